/// Rules for windows over time: convolutions and pooling.
#include "ferrite/compile/stream/detail/analysis.h"

#include "ferrite/tensor/window_attributes.h"

namespace ferrite::detail {
void Analysis::window(std::int64_t taps, std::int64_t dilation, std::int64_t before, Scalar value, const AttrsOf& attrs,
                      const std::function<Tensors(const Tensors&)>& one) {
  const int t = flow(0).axis;
  const std::int64_t span = (taps - 1) * dilation;
  Flow x = flow(0);
  if (before > 0) x = behind(x, t, filled(in_shape(0), t, before, value, graph_.values[node_->in[0]].dtype));
  if (x.lead < span) refuse("looks " + std::to_string(span - x.lead) + " steps ahead");
  if (span == 0 && before == 0 && !one) return alone(t, t, attrs);
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
  const auto apply =
      one ? one : [op = node_->op, of_one = Attrs(attrs(1))](const Tensors& in) { return applied(*op, in, of_one); };
  node.run = [apply, state, t](const Tensors& in, FrameStates& states) {
    Tensors operands = in;
    if (state >= 0) {
      const auto k = static_cast<std::size_t>(state);
      operands[0] = joined(states.now[k], in[0], t);
      states.next[k] = slice(operands[0], t, 1);
    }
    return apply(operands);
  };
  program_.nodes_.push_back(std::move(node));
  for (std::size_t k = 0; k < node_->out.size(); ++k)
    put(k, {.axis = t, .live = true, .lead = lead, .first = first[k]});
}

std::function<Tensors(const Tensors&)> Analysis::product_of_window(const ConvolutionAttrs& a) {
  return [groups = a.groups, dilation = a.dilation[0]](const Tensors& in) {
    const Tensor &x = in[0], &w = in[1];  // [B, C, span + 1], [N, C / groups, taps]
    const std::int64_t B = x.shape()[0], N = w.shape()[0], terms = w.shape()[1] * w.shape()[2];
    const Tensor taps = dilation > 1 && w.shape()[2] > 1 ? slice(x, 2, 0, x.shape()[2], dilation) : x;
    const Tensor by_group = permute(reshape(w, {groups, N / groups, terms}), {0, 2, 1});
    const Tensor y = groups == 1
                         ? matmul(reshape(taps, {B, terms}), select(by_group, 0, 0))
                         : transpose(matmul(transpose(reshape(taps, {B, groups, terms}), 0, 1), by_group), 0, 1);
    const Tensor sums = reshape(y, {B, N, 1});
    return Tensors{in.size() > 2 ? sums + reshape(in[2], {N, 1}) : sums};
  };
}

void Analysis::convolution(bool transposed) {
  if (over_time(1) || (node_->in.size() > 2 && over_time(2))) refuse("has weights that differ from step to step");
  const int t = flow(0).axis, space = t - 2;
  const auto a = node_->attrs.as<ConvolutionAttrs>();
  if (t == 0) return alone(t, t, same());
  if (t == 1) refuse("sums over time");
  if (a.stride[space] != 1) refuse("strides over time");
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
  if (a.stride[space] != 1) refuse("strides over time");
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
