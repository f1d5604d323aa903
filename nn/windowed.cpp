/// Layers whose outputs are functions of windows of their inputs: their steps, and what they carry.
#include "ferrite/nn/windowed.h"

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {

Pace Windowed::pace() const {
  const std::optional<StepWindow> w = window();
  return w ? w->pace() : Pace{};
}

std::vector<StepState> Windowed::states(const StepRows& in) const {
  const std::optional<StepWindow> w = window();
  if (!w || !w->pace().even() || w->reach() == 0) return {};
  return {{.name = "past", .shape = {w->reach(), in.batch, in.width}, .dtype = in.dtype, .rows = 1}};
}

StepResult Windowed::step(const Tensor& x, const Tensors& states) const {
  const std::optional<StepWindow> w = window();
  if (!w) return Layer::step(x, states);
  Tensors taps, next;
  for (std::int64_t k = 0; k + 1 < w->taps; ++k) taps.push_back(select(states[0], 0, k * w->dilation));
  taps.push_back(x);
  if (!states.empty()) next.push_back(concat({slice(states[0], 0, 1), unsqueeze(x, 0)}, 0));
  return {over(stack(std::span<const Tensor>(taps.data(), taps.size()), 1)), next};
}

std::size_t Windowed::add_steps(StepGraph& graph, std::size_t x) const {
  const std::optional<StepWindow> w = window();
  if (!w || !streams()) return Layer::add_steps(graph, x);
  return graph.add(*this, detail::window_step(*w, graph.rows(x), detail::program_of_window(*this, *w, graph.rows(x))),
                   {x});
}

bool Windowed::looks_back(const Tensor& x) const {
  const std::optional<StepWindow> w = window();
  if (!w) return Layer::looks_back(x);
  const bool tiles = w->before == 0 && w->after == 0 && w->reach() < w->stride && x.shape()[1] % w->stride == 0;
  return !tiles && (!carried_states().empty() || w->reach() > 0 || w->stride > 1);
}

}  // namespace ferrite::nn
