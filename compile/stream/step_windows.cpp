/// Operations as functions of windows over time: convolutions, pooling and slices.
#include "ferrite/compile/stream/detail/analysis.h"

#include <limits>

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

/// The results of a convolution along time as a product of matrices, which a plan packs: with the bits of the
/// convolution, whose terms come in this order, too (docs/numerics.md).
Tensors product_of_windows(const ConvolutionAttrs& a, const Tensors& in, std::int64_t steps) {
  const Tensor& w = in[1];  // [N, C / groups, taps]
  const std::int64_t B = in[0].shape()[0], N = w.shape()[0], terms = w.shape()[1] * w.shape()[2];
  const std::int64_t rows = B * steps;
  const Tensor taps = windows_of(in[0], w.shape()[2], a.dilation[0], steps);
  const Tensor by_group = permute(reshape(w, {a.groups, N / a.groups, terms}), {0, 2, 1});
  const Tensor y = a.groups == 1
                       ? matmul(reshape(taps, {rows, terms}), select(by_group, 0, 0))
                       : transpose(matmul(transpose(reshape(taps, {rows, a.groups, terms}), 0, 1), by_group), 0, 1);
  const Tensor sums = steps == 1 ? reshape(y, {B, N, 1}) : transpose(reshape(y, {B, steps, N}), 1, 2);
  return Tensors{in.size() > 2 ? sums + reshape(in[2], {N, 1}) : sums};
}

NodeWindow window_of_convolution(const Graph& g, const Graph::Node& n, int t) {
  const auto a = n.attrs.as<ConvolutionAttrs>();
  const int space = t - 2;
  const auto results = [=, op = n.op, is_line = g.values[n.in[0]].shape.rank() == 3](
                           const Tensors& in, std::int64_t steps, std::int64_t dilation) {
    ConvolutionAttrs of = a;
    of.stride[space] = 1, of.before[space] = 0, of.dilation[space] = dilation, of.size[space] = steps;
    return is_line ? product_of_windows(of, in, steps) : applied(*op, in, of);
  };
  return {.taps = g.values[n.in[1]].shape[t],
          .dilation = a.dilation[space],
          .stride = a.stride[space],
          .before = a.before[space],
          .results = results};
}

NodeWindow window_of_pooling(const Graph& g, const Graph::Node& n, int t) {
  const auto a = n.attrs.as<PoolAttrs>();
  const int space = t - (g.values[n.in[0]].shape.rank() - a.kernel.rank());
  const auto results = [=, op = n.op](const Tensors& in, std::int64_t steps, std::int64_t dilation) {
    PoolAttrs of = a;
    of.stride[space] = 1, of.before[space] = 0, of.size[space] = steps;
    if (of.dilation.rank() > 0) of.dilation[space] = dilation;
    return applied(*op, in, of);
  };
  return {.taps = a.kernel[space],
          .dilation = a.dilation.rank() > 0 ? a.dilation[space] : 1,
          .stride = a.stride[space],
          .before = a.before[space],
          .padding = n.op->time == TimeRule::pools_sums ? 0 : -std::numeric_limits<double>::infinity(),
          .results = results};
}

NodeWindow window_of_slice(const Graph::Node& n, int t) {
  const auto a = n.attrs.as<SliceAttrs>();
  const auto results = [=](const Tensors& in, std::int64_t steps, std::int64_t) {
    return Tensors{slice(in[0], t, a.begin, a.begin + steps)};
  };
  return {.taps = a.begin + 1, .stride = a.step, .results = results};
}

/// A reshaping that joins some successive frames in one.
NodeWindow window_of_reshape(const Graph& g, const Graph::Node& n, int t) {
  const Shape &from = g.values[n.in[0]].shape, &to = g.values[n.out[0]].shape;
  const auto results = [to, t](const Tensors& in, std::int64_t steps, std::int64_t) {
    Shape shape = to;
    shape[t] = steps;
    return Tensors{reshape(in[0], shape)};
  };
  return {.taps = from[t] / to[t], .stride = from[t] / to[t], .results = results};
}

}  // namespace

NodeWindow window_of(const Graph& g, const Graph::Node& n, int axis) {
  switch (n.op->time) {
    case TimeRule::convolves: return window_of_convolution(g, n, axis);
    case TimeRule::pools_sums:
    case TimeRule::pools_maxima:
    case TimeRule::pools_places: return window_of_pooling(g, n, axis);
    case TimeRule::reshapes: return window_of_reshape(g, n, axis);
    default: return window_of_slice(n, axis);
  }
}

void Analysis::window() {
  const int t = flow(0).axis;
  const NodeWindow w = window_of(graph_, *node_, t);
  if (w.stride != 1) refuse_window("strides over time");
  const std::int64_t span = (w.taps - 1) * w.dilation;
  Flow x = flow(0);
  if (w.before > 0) x = behind(x, t, filled(in_shape(0), t, w.before, w.padding, graph_.values[node_->in[0]].dtype));
  if (x.lead < span) refuse_window("looks " + std::to_string(span - x.lead) + " steps ahead");
  const std::int64_t lead = x.lead - span;
  Tensors first(node_->out.size());
  if (lead > 0) {
    Tensors in = {x.first};
    for (std::size_t i = 1; i < node_->in.size(); ++i) in.push_back(first_frames(i, -1, lead));
    first = w.results(in, lead, w.dilation);
  }
  FrameNode node;
  for (const ValueId v : node_->in) node.in.push_back({.value = v});
  const int state =
      span > 0 ? add_state(frames(x.first, t, lead, x.lead), std::to_string(span) + " frames of its window") : -1;
  node.run = [w, state, t](const Tensors& in, FrameStates& states, std::int64_t steps) {
    Tensors operands = in;
    if (state >= 0) {
      const auto k = static_cast<std::size_t>(state);
      operands[0] = joined(states.now[k], in[0], t);
      states.next[k] = slice(operands[0], t, steps);
    }
    return w.results(operands, steps, w.dilation);
  };
  program_.nodes_.push_back(std::move(node));
  const auto own = static_cast<std::size_t>(node_ - graph_.nodes.data());
  for (std::size_t k = 0; k < node_->out.size(); ++k)
    put(k, {.axis = t, .live = true, .lead = lead, .first = first[k], .valid = x.valid - span, .past_end = own});
}

void Analysis::convolution(bool transposed) {
  if (over_time(1) || (node_->in.size() > 2 && over_time(2))) refuse("has weights that differ from step to step");
  const int t = flow(0).axis, space = t - 2;
  if (t == 0) return alone(t, t, same());
  if (t == 1) refuse("sums over time");
  if (!transposed) return window();
  const auto a = node_->attrs.as<ConvolutionAttrs>();
  if (a.stride[space] != 1) refuse("strides over time");
  if (in_shape(1)[t] != 1 || a.before[space] != 0) refuse("is transposed over several steps");
  alone(t, t, [a, space](std::int64_t n) {
    ConvolutionAttrs of = a;
    of.size[space] = n;
    return Attrs(of);
  });
}

void Analysis::pooling() {
  const int t = flow(0).axis;
  const auto a = node_->attrs.as<PoolAttrs>();
  const int space = t - (in_shape(0).rank() - a.kernel.rank());
  if (space < 0) return alone(t, t, same());
  if (a.adaptive) refuse("reads windows that depend on the number of steps");
  if (node_->op->time == TimeRule::pools_places && a.kernel[space] != 1) refuse("numbers steps");
  window();
}

}  // namespace ferrite::detail
