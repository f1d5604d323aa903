#include "ferrite/nn/stream.h"

#include <algorithm>

#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

template <class C>
void take_values(const std::vector<Named<C>>& from, const std::vector<Named<C>>& to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i].cell.assign(from[i].cell.peek());
}

/// One step as a sequence: [B, 1, D], or tokens [B, 1].
template <class In>
Tensor one_step(std::span<const In> x, std::int64_t batch) {
  const auto n = static_cast<std::int64_t>(x.size());
  if (n == 0 || n % batch != 0)
    throw ShapeError("stream: expects a multiple of " + std::to_string(batch) + " values a step, got " +
                     std::to_string(n));
  if constexpr (std::is_integral_v<In>) {
    return Tensor::from(x, {batch, n / batch});
  } else {
    return Tensor::from(x, {batch, 1, n / batch});
  }
}

}  // namespace

Stream Layer::stream(std::int64_t batch) const { return Stream(*this, batch); }

Stream::Stream(const Layer& model, std::int64_t batch) : batch_(batch) {
  if (batch < 1) throw ValueError("stream: the batch must be positive, got " + std::to_string(batch));
  if (!model.causal())
    throw ValueError("stream: " + model.kind() +
                     " is not causal: its output at a step needs other steps' inputs (a backward direction, a mean "
                     "over time), or one of its layers does not declare `causal`");
  const NewFrame frame;
  layer_ = model.clone();
  layer_->eval();
  parameters_ = model.named_parameters();
  buffers_ = model.named_buffers();
}

template <class In, class Out>
void Stream::advance(std::span<const In> x, std::span<Out> y) {
  const NewFrame frame;
  const Tensor out = (*layer_)(one_step(x, batch_), {.carry = &carry_});
  if (out.numel() != static_cast<std::int64_t>(y.size()))
    throw ShapeError("stream: a step gives " + std::to_string(out.numel()) + " values, there is room for " +
                     std::to_string(y.size()));
  const Tensor dense = contiguous(out);
  const std::span<const Out> values = dense.values<Out>();
  std::copy(values.begin(), values.end(), y.begin());
}

void Stream::step(std::span<const float> x, std::span<float> y) { advance(x, y); }
void Stream::step(std::span<const double> x, std::span<double> y) { advance(x, y); }
void Stream::step(std::span<const std::int64_t> tokens, std::span<float> y) { advance(tokens, y); }

void Stream::steps(std::int64_t n, std::span<const float> x, std::span<float> y) {
  if (n < 0 || (n > 0 && (x.size() % static_cast<std::size_t>(n) || y.size() % static_cast<std::size_t>(n))))
    throw ShapeError("stream: " + std::to_string(x.size()) + " and " + std::to_string(y.size()) +
                     " values cannot be cut into " + std::to_string(n) + " steps");
  for (std::size_t i = 0, count = static_cast<std::size_t>(n); i < count; ++i) {
    const std::size_t in = x.size() / count;
    const std::size_t out = y.size() / count;
    step(x.subspan(i * in, in), y.subspan(i * out, out));
  }
}

Stream Stream::clone() const {
  Stream copy;
  const NewFrame frame;
  copy.layer_ = layer_->clone();
  copy.parameters_ = parameters_;
  copy.buffers_ = buffers_;
  copy.carry_.restore(carry_.save());
  copy.batch_ = batch_;
  return copy;
}

void Stream::refresh() {
  const NewFrame frame;
  take_values(parameters_, layer_->named_parameters());
  take_values(buffers_, layer_->named_buffers());
}

}  // namespace ferrite::nn
