/// The steps of layers that are written in operations: their states, and checks of their calls.
#include "ferrite/nn/step.h"

#include <algorithm>

#include "ferrite/compile/tracer.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/math.h"

namespace ferrite::nn {
namespace {

bool grows(const std::vector<StepState>& states) {
  return std::any_of(states.begin(), states.end(), [](const StepState& s) { return s.capacity > 0; });
}

void check_state(const std::string& kind, const char* what, const std::string& name, const Tensor& given,
                 const Spec& wanted) {
  if (!given.defined() || given.spec() != wanted)
    throw ShapeError(kind + ": a step " + what + " the state '" + name + "' as " + wanted.str() + ", got " +
                     (given.defined() ? given.spec().str() : "none"));
}

}  // namespace

StepRows detail::rows_of(const Tensor& x) {
  if (x.rank() < 1 || x.rank() > 2) throw ShapeError("step: expects rows [B, D] or tokens [B], got " + x.shape().str());
  return {x.shape()[0], x.rank() == 2 ? x.shape()[1] : 1, x.dtype()};
}

StepRows detail::rows_after(const Layer& layer, const StepRows& in, const std::vector<StepState>& states) {
  Tracer tracer(Tracer::Outside::captures);
  const NewFrame frame(tracer);
  Tensors given;
  for (const StepState& s : states) given.push_back(tracer.input(s.spec()));
  if (grows(states)) given.push_back(tracer.input({{in.batch}, Dtype::i64}));
  return rows_of(layer.advance(tracer.input(spec_of(in)), given).y);
}

LayerNames::LayerNames(std::string_view path, std::string_view kind)
    : scope(Scope::of(path)), steps(Label::of(std::string(kind) + " steps").text()) {}

Pace Pace::then(const Pace& next) const {
  const auto scaled = [&](std::int64_t n) { return ferrite::detail::checked_mul(stride, n, "pace"); };
  return {scaled(next.stride), ferrite::detail::checked_add(delay, scaled(next.delay), "pace"),
          ferrite::detail::checked_add(after, scaled(next.after), "pace")};
}

Spec StepState::spec() const {
  Shape all = shape;
  if (capacity > 0) all.insert(1, capacity);
  return {all, dtype};
}

Tensor Layer::lengths_after(const Tensor& lengths) const {
  const Pace p = pace();
  if (p == Pace{}) return lengths;
  const Tensor left = floor_divide(lengths + (p.after - p.delay - 1), p.stride) + 1;
  return where(gt(lengths, 0), maximum(left, 0), 0);
}

std::vector<StepState> Layer::states(const StepRows&) const { return {}; }

StepResult Layer::step(const Tensor& x, const Tensors&) const {
  if (!causal() || !carried_states().empty()) return {};
  const detail::SingleStep single;
  const Tensor y = forward(unsqueeze(x, 1), {});
  const std::int64_t B = x.shape()[0];
  if (y.rank() < 1 || y.shape()[0] != B)
    throw ShapeError("stream: " + kind() + " gives " + y.shape().str() + " for " + std::to_string(B) + " rows");
  return {reshape(y, detail::spec_of({B, y.numel() / std::max<std::int64_t>(B, 1), y.dtype()}).shape)};
}

StepResult Layer::advance(const Tensor& x, const Tensors& given) const {
  return inside([&] {
    const std::vector<StepState> own = states(detail::rows_of(x));
    const std::size_t expected = own.size() + (grows(own) ? 1 : 0);
    if (given.size() != expected)
      throw ShapeError(kind() + ": a step takes " + std::to_string(expected) + " states, got " +
                       std::to_string(given.size()));
    for (std::size_t i = 0; i < own.size(); ++i) check_state(kind(), "takes", own[i].name, given[i], own[i].spec());
    if (grows(own)) check_state(kind(), "takes", "steps", given[own.size()], {{x.shape()[0]}, Dtype::i64});
    if (pace() != Pace{})
      throw PaceError(kind() + ": " + std::to_string(pace().stride) + " steps give one, the first one " +
                      std::to_string(pace().delay) +
                      " later, so a layer that contains it has no step in operations; put it into a chain");
    StepResult r = step(x, given);
    if (!r.y.defined()) throw ValueError(kind() + ": has no step; override states and step");
    if (r.states.size() != own.size())
      throw ShapeError(kind() + ": a step gives " + std::to_string(own.size()) + " states, got " +
                       std::to_string(r.states.size()));
    for (std::size_t i = 0; i < own.size(); ++i)
      check_state(kind(), "gives", own[i].name, r.states[i], {own[i].shape, own[i].dtype});
    return r;
  });
}

}  // namespace ferrite::nn
