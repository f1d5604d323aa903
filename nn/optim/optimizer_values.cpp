/// What several optimisers check and compute alike.
#include "ferrite/nn/optim/detail/common.h"

#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {

void check_below_one(const char* who, const char* what, double value) {
  if (!(value >= 0 && value < 1))
    throw ValueError(std::string(who) + ": " + what + " must lie in [0, 1), got " + Scalar(value).str());
}

RuleDecay decay_of(double weight_decay, bool decoupled) {
  if (weight_decay == 0) return RuleDecay::none;
  return decoupled ? RuleDecay::weights : RuleDecay::gradient;
}

Tensor count_step(const State& steps, const Tensor& updated) {
  const Tensor before = steps.value();
  const Tensor next = updated.defined() ? before + updated : before + 1;
  steps.assign(next);
  const Tensor t = cast(next, Dtype::f64);
  return updated.defined() ? maximum(t, 1) : t;  // nothing reads those of others, which must be numbers
}

Tensor number_at(const Tensor& number, std::size_t place) {
  return number.rank() == 0 ? number : select(number, 0, static_cast<std::int64_t>(place));
}

Tensor correction(const Tensor& beta, const Tensor& steps) { return 1 - pow(beta, steps); }
Tensor correction(double beta, const Tensor& steps) { return 1 - pow(beta, steps); }

OptionValue pair_option(double a, double b) { return std::vector<std::optional<double>>{a, b}; }

void append(std::vector<State>& list, const std::vector<State>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace ferrite::nn::detail
