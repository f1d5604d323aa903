/// Recurrent layers at a higher sample rate than that of their training.
#include <cmath>

#include "ferrite/compile/scan.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/nn/carry.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite::io {

RateCorrected::RateCorrected(std::unique_ptr<nn::GatedRecurrent> layer, double ratio)
    : layer_(std::move(layer)), ratio_(ratio) {
  if (!layer_) throw ValueError("rate_corrected: the layer is null");
  if (layer_->sizes().layers != 1 || layer_->sizes().bidirectional)
    throw ValueError("rate_corrected: takes a recurrent layer of one level and one direction");
  if (!(ratio >= 1 && ratio <= kMostRateRatio))
    throw ValueError("rate_corrected: the ratio must be from 1 to " + Scalar(kMostRateRatio).str() + ", got " +
                     Scalar(ratio).str());
  adopt("layer", *layer_);
  for (const nn::StepState& s : layer_->states({1, layer_->input_size(), step_input().dtype}))
    carries(s.name, held(), s.shape[2], s.dtype);
}

/// Steps whose states are kept: so many as the ratio, rounded up.
std::int64_t RateCorrected::held() const { return static_cast<std::int64_t>(std::ceil(ratio_)); }

/// What the states of the last steps, [held, B, H], give the next one, [1, B, H].
Tensor RateCorrected::delayed(const Tensor& held_states) const {
  const auto N = static_cast<std::int64_t>(std::floor(ratio_));
  const Tensor whole = slice(held_states, 0, N - 1, N);
  const double f = ratio_ - static_cast<double>(N);
  return f > 0 ? f * slice(held_states, 0, N, N + 1) + (1 - f) * whole : whole;
}

std::vector<nn::StepState> RateCorrected::states(const nn::StepRows& in) const {
  std::vector<nn::StepState> all = layer_->states(in);
  for (nn::StepState& s : all) s.shape[0] = held();
  return all;
}

nn::StepResult RateCorrected::step(const Tensor& x, const Tensors& states) const {
  Tensors before;
  for (const Tensor& s : states) before.push_back(delayed(s));
  const nn::StepResult r = layer_->advance(x, before);
  Tensors after;
  for (std::size_t i = 0; i < states.size(); ++i)
    after.push_back(held() == 1 ? r.states[i] : concat({r.states[i], slice(states[i], 0, 0, held() - 1)}, 0));
  return {squeeze(delayed(after[0]), 0), after};
}

Tensor RateCorrected::forward(const Tensor& x, const nn::Context& context) const {
  if (context.lengths.defined() || context.reset_mask.defined())
    throw ValueError("rate_corrected: takes sequences of one length, without resets");
  if (x.rank() != 3) throw ShapeError("rate_corrected: expects [B, T, D], got " + x.shape().str());
  const std::int64_t B = x.shape()[0];
  const std::span<const State> carried = context.carry ? context.carry->states_of(*this, B) : std::span<const State>();
  Tensors init;
  for (const nn::StepState& s : states({B, x.shape()[2], x.dtype()}))
    init.push_back(carried.empty() ? zeros(s.shape, s.dtype) : Tensor(carried[init.size()]));
  const auto body = [this](const Tensors& carry, const Tensors& xs) -> ScanStep {
    nn::StepResult r = step(xs[0], carry);
    return {std::move(r.states), {std::move(r.y)}};
  };
  const ScanResult r = scan(body, init, {transpose(x, 0, 1)});
  for (std::size_t i = 0; i < carried.size(); ++i) carried[i].assign(contiguous(r.carry[i]));
  return transpose(r.y[0], 0, 1);
}

std::unique_ptr<nn::Layer> RateCorrected::clone() const {
  std::unique_ptr<nn::Layer> inner = layer_->clone();
  std::unique_ptr<nn::GatedRecurrent> layer(&dynamic_cast<nn::GatedRecurrent&>(*inner));
  (void)inner.release();
  auto copy = std::make_unique<RateCorrected>(std::move(layer), ratio_);
  copy->take_after(*this);
  return copy;
}

}  // namespace ferrite::io
