/// Rules for recurrences: sequences of the recurrent layers, and scans.
#include "ferrite/compile/stream/detail/analysis.h"

#include "ferrite/compile/scan_body.h"
#include "ferrite/tensor/linear_scan.h"

namespace ferrite::detail {
void Analysis::recurrence(const std::vector<std::size_t>& carried, const std::vector<std::size_t>& results,
                          const std::vector<int>& axes, const std::vector<int>& out_axes, const AttrsOf& attrs) {
  const std::int64_t lead = common_lead();
  FrameNode node = operands(lead, axes);
  Tensors first(node_->out.size()), begin;
  for (const std::size_t i : carried) {
    if (!known_[node_->in[i]].defined()) refuse("begins from a state that depends on an input");
    begin.push_back(known_[node_->in[i]]);
  }
  if (lead > 0) {
    Tensors in;
    for (std::size_t i = 0; i < axes.size(); ++i) in.push_back(first_frames(i, axes[i], lead));
    first = applied(*node_->op, in, attrs(lead));
    for (std::size_t k = 0; k < carried.size(); ++k) begin[k] = first[results[k]];
  }
  std::vector<std::size_t> states;
  for (std::size_t k = 0; k < carried.size(); ++k)
    states.push_back(static_cast<std::size_t>(add_state(begin[k], "a state of the recurrence")));
  node.run = [op = node_->op, attrs, carried, results, states](const Tensors& in, FrameStates& s, std::int64_t steps) {
    Tensors operands = in;
    for (std::size_t k = 0; k < carried.size(); ++k) operands[carried[k]] = s.now[states[k]];
    Tensors out = applied(*op, operands, attrs(steps));
    for (std::size_t k = 0; k < carried.size(); ++k) s.next[states[k]] = out[results[k]];
    return out;
  };
  program_.nodes_.push_back(std::move(node));
  for (std::size_t k = 0; k < node_->out.size(); ++k)
    put(k, {.axis = out_axes[k], .live = true, .lead = out_axes[k] < 0 ? 0 : lead, .first = first[k]});
}

void Analysis::recurrent() {
  const auto flag = [&](std::size_t field) { return std::get<bool>(*node_->attrs.at(field)); };
  const bool reverse = flag(0), batch_first = flag(1);  // what the constants of all sequences begin with
  const int t = batch_first ? 1 : 0;
  if (reverse) refuse("runs backwards in time");
  if (!over_time(0) || flow(0).axis != t) refuse("runs along another axis than time");
  std::vector<int> axes(node_->in.size(), -1), out_axes(node_->out.size(), -1);
  for (std::size_t i = 1; i < axes.size(); ++i) {
    const Dtype dtype = graph_.values[node_->in[i]].dtype;
    if (over_time(i) || !is_float(dtype)) refuse("has lengths, resets or weights that belong to whole sequences");
  }
  axes[0] = out_axes[0] = t;
  const bool memory = node_->out.size() == 4;  // y, h, c and what the gradient reads
  Attrs one = node_->attrs;
  one.replace(2, false);  // nothing is saved
  const auto attrs = [one](std::int64_t) { return one; };
  memory ? recurrence({1, 2}, {1, 2}, axes, out_axes, attrs) : recurrence({1}, {1}, axes, out_axes, attrs);
}

void Analysis::scanned() {
  const auto a = node_->attrs.as<ScanAttrs>();
  const auto body = std::static_pointer_cast<const ScanBody>(node_->attrs.body);
  const auto s = body->signature();
  if (a.reverse) refuse("runs backwards in time");
  if (s.sums > 0) refuse("sums over time");
  std::vector<int> axes(node_->in.size(), -1), out_axes(node_->out.size(), -1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const bool x = i >= s.carries && i < s.carries + s.xs;
    if (over_time(i) && (!x || flow(i).axis != 0)) refuse("runs along another axis than time");
    if (x) axes[i] = 0;
  }
  for (std::size_t k = s.carries; k < out_axes.size(); ++k) out_axes[k] = 0;
  std::vector<std::size_t> carried;
  for (std::size_t k = 0; k < s.carries; ++k) carried.push_back(k);
  recurrence(carried, carried, axes, out_axes, [body](std::int64_t n) { return ScanBody::attrs_of(body, n, false); });
}

void Analysis::linear() {
  if (node_->attrs.as<LinearScanAttrs>().reverse) refuse("runs backwards in time");
  const int a = in_shape(0).rank() == in_shape(1).rank() ? 1 : -1;  // it may be that of all steps
  carrying_results({a, 1}, 2);
}

void Analysis::carrying_results(std::vector<int> axes, std::size_t state) {
  constexpr int t = 1;  // of [B, T, ...]
  for (std::size_t i = 0; i < node_->in.size(); ++i) {
    if (over_time(i) && (i >= state || flow(i).axis != t)) refuse("runs along another axis than time");
    if (!is_float(graph_.values[node_->in[i]].dtype)) refuse("has lengths or resets that belong to whole sequences");
  }
  Spec rows = graph_.values[node_->out[0]];
  rows.shape.erase(t);
  const Tensor h0 = node_->in.size() > state ? known_[node_->in[state]] : zeros(rows.shape, rows.dtype);
  if (!h0.defined()) refuse("begins from a state that depends on an input");

  const std::int64_t lead = common_lead();
  axes.resize(node_->in.size(), -1);
  FrameNode node = operands(lead, axes);
  const auto apply = [op = node_->op, attrs = node_->attrs, state](const Tensors& in, const Tensor& h) {
    Tensors given;
    for (std::size_t i = 0; i < state; ++i) given.push_back(in[i]);
    given.push_back(h);
    return applied(*op, given, attrs)[0];
  };
  Tensor first;
  if (lead > 0) {
    Tensors in;
    for (std::size_t i = 0; i < state; ++i) in.push_back(first_frames(i, axes[i], lead));
    first = apply(in, h0);
  }
  const auto k = static_cast<std::size_t>(
      add_state(lead > 0 ? contiguous(select(first, t, -1)) : h0, "a state of the recurrence"));
  node.run = [apply, k](const Tensors& in, FrameStates& s, std::int64_t) {
    const Tensor y = apply(in, s.now[k]);
    s.next[k] = select(y, t, -1);
    return Tensors{y};
  };
  program_.nodes_.push_back(std::move(node));
  put(0, {.axis = t, .live = true, .lead = lead, .first = first});
}

}  // namespace ferrite::detail
