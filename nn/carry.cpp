/// The states of a model's layers between calls.
#include "ferrite/nn/carry.h"

#include <algorithm>

namespace ferrite::nn {

Carry::Carry(const Module& model, std::int64_t batch) : of_(model.carried_states()), batch_(batch) {
  if (batch < 0) throw ValueError("carry: the batch must not be negative, got " + std::to_string(batch));
  const NewFrame frame;
  for (const CarriedState& s : of_) states_.emplace_back(s.name, zeros({s.layers, batch, s.width}, s.dtype));
}

void Carry::reset() const {
  for (const State& s : states_) s.assign(zeros(s.shape(), s.dtype()));
}

void Carry::reset(std::int64_t row) const {
  if (row < 0 || row >= batch_)
    throw ValueError("carry: row " + std::to_string(row) + " lies outside 0.." + std::to_string(batch_ - 1));
  const Tensor own = reshape(eq(arange(batch_), row), {1, batch_, 1});
  for (const State& s : states_) s.assign(where(own, 0, s.value()));
}

std::vector<Tensor> Carry::save() const { return {states_.begin(), states_.end()}; }

void Carry::restore(std::span<const Tensor> states) const {
  if (states.size() != states_.size())
    throw ValueError("carry: the model has " + std::to_string(states_.size()) + " states, got " +
                     std::to_string(states.size()));
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Spec own{states_[i].shape(), states_[i].dtype()};
    const std::string text = "carry: '" + states_[i].name() + "' is " + own.str() + ", got ";
    if (states[i].dtype() != own.dtype) throw DtypeError(text + states[i].spec().str());
    if (states[i].shape() != own.shape) throw ShapeError(text + states[i].spec().str());
  }
  for (std::size_t i = 0; i < states.size(); ++i) states_[i].assign(states[i]);
}

std::span<const State> Carry::states_of(const Layer& layer, std::int64_t batch) const {
  const auto own = [&](const CarriedState& s) { return layer.is_layer_of(s); };
  const auto first = std::find_if(of_.begin(), of_.end(), own);
  if (first == of_.end())
    throw ValueError("carry: a " + layer.kind() + " has no states here; the carry was made for another model");
  if (batch != batch_)
    throw ShapeError("carry: was made for a batch of " + std::to_string(batch_) + ", got " + std::to_string(batch) +
                     "; make a carry for each size of batch");
  const auto count = std::count_if(first, of_.end(), own);
  return std::span<const State>(states_).subspan(static_cast<std::size_t>(first - of_.begin()),
                                                 static_cast<std::size_t>(count));
}

std::vector<Tensor> pieces(const Tensor& x, std::int64_t n) {
  if (n < 1) throw ValueError("pieces: the length must be positive, got " + std::to_string(n));
  if (x.rank() < 2) throw ShapeError("pieces: expects [B, T, ...], got " + x.shape().str());
  const Tensors parts = split(x, n, 1);
  return {parts.begin(), parts.end()};
}

}  // namespace ferrite::nn
