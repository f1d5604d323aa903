/// Averages of weights during training.
#include "ferrite/nn/optim/weight_average.h"

#include <algorithm>
#include <unordered_set>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {

WeightAverage::WeightAverage(std::vector<Parameter> parameters, const WeightAverageOptions& options)
    : parameters_(std::move(parameters)), decay_(options.decay) {
  if (decay_ && !(*decay_ >= 0 && *decay_ < 1))
    throw ValueError("weight average: the decay must lie in [0, 1), got " + Scalar(*decay_).str());
  if (parameters_.empty()) throw ValueError("weight average: there are no parameters");
  std::unordered_set<const void*> seen;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (!p.defined()) throw ValueError("weight average: parameter " + std::to_string(i) + " is an empty handle");
    if (!seen.insert(p.identity()).second)
      throw ValueError("weight average: the parameter '" + p.name() + "' is given twice");
    const auto same = std::ranges::count(names, p.name());
    names.push_back(p.name());
    const std::string name = "average." + p.name() + (same > 0 ? "#" + std::to_string(same + 1) : std::string());
    averages_.emplace_back(name, zeros(p.shape(), p.dtype()));
    states_.push_back({name, averages_.back()});
  }
  count_ = State("averaged", full({}, 0, Dtype::f64));
  states_.push_back({"averaged", count_});
}

void WeightAverage::update() {
  if (ferrite::detail::read_flag(swapped_))
    throw ValueError("weight average: the averages are exchanged with the parameters; swap them back first");
  const NoTapes frame;
  const Tensor before = count_.value();
  const Tensor first = before < 1;
  const Tensor share = decay_ ? full({}, 1 - *decay_, Dtype::f64) : 1 / (before + 1);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor w = parameters_[i].value(), average = averages_[i].value();
    averages_[i].assign(where(first, w, average + cast(share, w.dtype()) * (w - average)));
  }
  count_.assign(before + 1);
}

void WeightAverage::swap() {
  if (ferrite::detail::frame().tracing)
    throw TraceError("weight average: an exchange cannot be traced; swap outside of the program");
  if (count() == 0) throw ValueError("weight average: there are no averages before the first update");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor w = parameters_[i].peek();
    parameters_[i].assign(averages_[i].peek());
    averages_[i].assign(w);
  }
  swapped_->store(!swapped_->load());
}

std::int64_t WeightAverage::count() const { return static_cast<std::int64_t>(count_.peek().item<double>()); }

}  // namespace ferrite::nn
