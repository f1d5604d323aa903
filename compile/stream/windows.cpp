/// Rules for windows over time: convolutions and pooling.
#include "ferrite/compile/stream/detail/analysis.h"

#include "ferrite/tensor/window_attributes.h"

namespace ferrite::detail {
namespace {

/// Gathers the frames under the taps of `steps` windows, each one step later: x [B, C, span + steps] -> [B, steps, C,
/// taps], or [B, C, taps] for a single step.
Tensor windows_of(const Tensor& x, std::int64_t taps, std::int64_t dilation, std::int64_t steps) {
  if (steps == 1) return dilation > 1 && taps > 1 ? slice(x, 2, 0, x.shape()[2], dilation) : x;
  Tensors by_tap;
  for (std::int64_t k = 0; k < taps; ++k) by_tap.push_back(slice(x, 2, k * dilation, k * dilation + steps));
  return transpose(stack(std::span<const Tensor>(by_tap.data(), by_tap.size()), 3), 1, 2);
}

}  // namespace

void Analysis::window(std::int64_t taps, std::int64_t dilation, std::int64_t before, Scalar value, const AttrsOf& attrs,
                      const OfWindow& results) {
  const int t = flow(0).axis;
  const std::int64_t span = (taps - 1) * dilation;
  Flow x = flow(0);
  if (before > 0) x = behind(x, t, filled(in_shape(0), t, before, value, graph_.values[node_->in[0]].dtype));
  if (x.lead < span) refuse("looks " + std::to_string(span - x.lead) + " steps ahead");
  if (span == 0 && before == 0 && !results) return alone(t, t, attrs);
  const std::int64_t lead = x.lead - span;
  Tensors first(node_->out.size());
  if (lead > 0) {
    Tensors in = {x.first};
    for (std::size_t i = 1; i < node_->in.size(); ++i) in.push_back(first_frames(i, -1, lead));
    first = applied(*node_->op, in, attrs(lead));
  }
  FrameNode node;
  for (const ValueId v : node_->in) node.in.push_back({.value = v});
  const int state =
      span > 0 ? add_state(frames(x.first, t, lead, x.lead), std::to_string(span) + " frames of its window") : -1;
  const OfWindow apply = results ? results : [op = node_->op, attrs](const Tensors& in, std::int64_t steps) {
    return applied(*op, in, attrs(steps));
  };
  node.run = [apply, state, t](const Tensors& in, FrameStates& states, std::int64_t steps) {
    Tensors operands = in;
    if (state >= 0) {
      const auto k = static_cast<std::size_t>(state);
      operands[0] = joined(states.now[k], in[0], t);
      states.next[k] = slice(operands[0], t, steps);
    }
    return apply(operands, steps);
  };
  program_.nodes_.push_back(std::move(node));
  for (std::size_t k = 0; k < node_->out.size(); ++k)
    put(k, {.axis = t, .live = true, .lead = lead, .first = first[k]});
}

Analysis::OfWindow Analysis::product_of_window(const ConvolutionAttrs& a) {
  return [groups = a.groups, dilation = a.dilation[0]](const Tensors& in, std::int64_t steps) {
    const Tensor& w = in[1];  // [N, C / groups, taps]
    const std::int64_t B = in[0].shape()[0], N = w.shape()[0], terms = w.shape()[1] * w.shape()[2];
    const std::int64_t rows = B * steps;
    const Tensor taps = windows_of(in[0], w.shape()[2], dilation, steps);
    const Tensor by_group = permute(reshape(w, {groups, N / groups, terms}), {0, 2, 1});
    const Tensor y = groups == 1
                         ? matmul(reshape(taps, {rows, terms}), select(by_group, 0, 0))
                         : transpose(matmul(transpose(reshape(taps, {rows, groups, terms}), 0, 1), by_group), 0, 1);
    const Tensor sums = steps == 1 ? reshape(y, {B, N, 1}) : transpose(reshape(y, {B, steps, N}), 1, 2);
    return Tensors{in.size() > 2 ? sums + reshape(in[2], {N, 1}) : sums};
  };
}

void Analysis::convolution(bool transposed) {
  if (over_time(1) || (node_->in.size() > 2 && over_time(2))) refuse("has weights that differ from step to step");
  const int t = flow(0).axis, space = t - 2;
  const auto a = node_->attrs.as<ConvolutionAttrs>();
  if (t == 0) return alone(t, t, same());
  if (t == 1) refuse("sums over time");
  if (a.stride[space] != 1)
    refuse("strides over time; the steps of a layer for it (nn::Conv1d, nn::AvgPool1d) are known");
  const auto attrs = [a, space](std::int64_t n) {
    ConvolutionAttrs of = a;
    of.before[space] = 0;
    of.size[space] = n;
    return Attrs(of);
  };
  const std::int64_t taps = in_shape(1)[t];
  if (!transposed && in_shape(0).rank() == 3)
    return window(taps, a.dilation[space], a.before[space], 0, attrs, product_of_window(a));
  if (!transposed) return window(taps, a.dilation[space], a.before[space], 0, attrs);
  if (taps != 1 || a.before[space] != 0) refuse("is transposed over several steps");
  alone(t, t, attrs);
}

void Analysis::pooling() {
  const int t = flow(0).axis;
  const auto a = node_->attrs.as<PoolAttrs>();
  const int space = t - (in_shape(0).rank() - a.kernel.rank());
  if (space < 0) return alone(t, t, same());
  if (a.adaptive) refuse("reads windows that depend on the number of steps");
  if (a.stride[space] != 1)
    refuse("strides over time; the steps of a layer for it (nn::Conv1d, nn::AvgPool1d) are known");
  const bool sums = node_->op->time == TimeRule::pools_sums;
  if (a.before[space] > 0 && !sums) refuse("pads time");
  if (node_->op->time == TimeRule::pools_places && a.kernel[space] != 1) refuse("numbers steps");
  const auto attrs = [a, space](std::int64_t n) {
    PoolAttrs of = a;
    of.before[space] = 0;
    of.size[space] = n;
    return Attrs(of);
  };
  window(a.kernel[space], a.dilation.rank() ? a.dilation[space] : 1, a.before[space], 0, attrs);
}

}  // namespace ferrite::detail
