/// Callbacks at the weights and at faults: averages, ending where something is not finite.
#include "ferrite/train/callbacks.h"
#include "ferrite/train/detail/fingerprints.h"

namespace ferrite::train {

bool TerminateOnNaN::on_not_finite(Training&, const std::string&) { return true; }

Ema::Ema(std::vector<Parameter> parameters, double decay, bool in_the_end)
    : parameters_(std::move(parameters)),
      options_{.decay = decay},
      average_(std::make_shared<nn::WeightAverage>(parameters_, options_)),
      in_the_end_(in_the_end) {}

void Ema::on_train_begin(Training&) {
  average_ = std::make_shared<nn::WeightAverage>(parameters_, options_);
  seen_ = 0;
}

void Ema::on_batch_end(Training& t) {
  if (t.step() == seen_) return;  // gradients are still being gathered
  seen_ = t.step();
  average_->update();
}

void Ema::on_validation_begin(Training&) { average_->swap(); }
void Ema::on_validation_end(Training&) { average_->swap(); }
void Ema::on_train_end(Training&) {
  if (in_the_end_ && average_->count() > 0) average_->swap();
}

std::string Ema::settings() const {
  return "decay=" + detail::exact(*options_.decay) + ", parameters=" + std::to_string(parameters_.size()) +
         (in_the_end_ ? "" : ", not in the end");
}

void Ema::restore(const std::vector<double>& state) {
  if (state.size() != 1)
    throw ValueError("callback ema: a state of " + std::to_string(state.size()) + " numbers, it has one");
  seen_ = static_cast<std::int64_t>(state[0]);
}

}  // namespace ferrite::train
