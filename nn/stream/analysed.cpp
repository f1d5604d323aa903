/// The step of a layer that is found in its `forward`.
#include "ferrite/compile/stream_program.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/detail/steps.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::FrameStates;
using ferrite::detail::StreamProgram;

/// A number of steps that extents of other axes seldom are, and one for the proof.
constexpr std::int64_t kSteps = 11, kProvedSteps = 37;
constexpr int kTime = 1;  // of x [B, T, D] and tokens [B, T]

Spec sequence_of(const StepRows& in, std::int64_t steps) {
  Spec x = spec_of(in);
  x.shape.insert(kTime, steps);
  return x;
}

StreamProgram program_of(const Layer& layer, const StepRows& in) {
  const Spec x = sequence_of(in, kSteps);
  const NewFrame frame;
  const auto f = [&](const Tensors& given) { return Tensors{layer(given[0])}; };
  Graph graph = trace(f, {&x, 1});
  try {
    return {std::move(graph), {&kTime, 1}, kSteps};
  } catch (const ShapeError& e) {  // an operation that takes no single step
    throw ValueError(e.what());
  }
}

/// The axis that counts rows: the one that has one more where there is a row more.
int rows_of_state(const StreamProgram::State& s, const StreamProgram::State& more) {
  const Shape a = s.first.shape(), b = more.first.shape();
  int rows = -1;
  for (int k = 0; a.rank() == b.rank() && k < a.rank(); ++k)
    if (a[k] != b[k]) rows = rows < 0 && b[k] == a[k] + 1 ? k : a.rank();
  if (rows < 0 || rows == a.rank())
    throw ValueError("stream: " + s.words + " has no axis of rows: " + s.first.spec().str());
  return rows;
}

std::vector<StepState> states_of(const StreamProgram& program, const StreamProgram& more) {
  if (program.states().size() != more.states().size())
    throw ValueError("stream: what a step carries depends on the number of rows or steps");
  std::vector<StepState> states;
  for (std::size_t i = 0; i < program.states().size(); ++i) {
    const StreamProgram::State& s = program.states()[i];
    states.push_back({.name = s.words,
                      .shape = s.first.shape(),
                      .dtype = s.first.dtype(),
                      .rows = rows_of_state(s, more.states()[i])});
  }
  return states;
}

/// Floats of any size, and tokens 0 and 1.
Tensor any_sequence(const StepRows& in) {
  const Spec x = sequence_of(in, kProvedSteps);
  if (is_float(x.dtype)) return cast(uniform(x.shape, {.seed = 1}, -1, 1), x.dtype);
  return cast(reshape(remainder(arange(x.shape.numel()), 2), x.shape), x.dtype);
}

/// Runs the steps beside the layer on more steps than were traced: what reads the last step of a sequence, or its
/// number of steps, gives something else there.
void prove(const StreamProgram& program, const Layer& layer, const StepRows& in) {
  if (program.outputs()[0].axis != kTime)
    throw ValueError("stream: " + layer.kind() + " gives results whose axis of time is not 1, [B, T, ...]");
  const NewFrame frame;
  const Tensor x = any_sequence(in);
  if (!program.gives(x, kTime, layer(x)))
    throw ValueError("stream: a step gives other numbers than the whole sequence, in which " + layer.kind() +
                     " reads its end, its beginning or its number of steps");
}

/// Rows all begin alike.
std::vector<Tensor> first_values(const StreamProgram& program, const std::vector<StepState>& states) {
  const NewFrame frame;
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < states.size(); ++i)
    values.push_back(contiguous(select(program.states()[i].first, states[i].rows, 0)));
  return values;
}

}  // namespace

StepSource analysed(const Layer& layer, const StepRows& in) {
  const std::shared_ptr<const Layer> copy = evaluating_copy(layer);
  const auto program = std::make_shared<const StreamProgram>(program_of(*copy, in));
  // One that carries nothing is called with single steps as it is, which works on any number of rows.
  if (program->states().empty() && layer.causal() && layer.carried_states().empty()) return source_of(layer, in);
  prove(*program, *copy, in);
  const std::vector<StepState> states = states_of(*program, program_of(*copy, {in.batch + 1, in.width, in.dtype}));
  const auto step = [program, copy](const Tensor& x, const Tensors& given) -> StepResult {
    FrameStates s{given, given};
    const Tensor y = program->step({unsqueeze(x, kTime)}, s)[0];
    const std::int64_t B = x.shape()[0];
    return {reshape(y, {B, y.numel() / B}), s.next};
  };
  // What frames before the first one hold may depend on weights: it is found again for new ones.
  const auto begin = [copy, in, states, parameters = layer.named_parameters(), buffers = layer.named_buffers()] {
    const std::unique_ptr<Layer> now = evaluating_copy(*copy);
    take_values(parameters, now->named_parameters());
    take_values(buffers, now->named_buffers());
    const StreamProgram again = program_of(*now, in);
    prove(again, *now, in);
    return first_values(again, states);
  };
  return {.kind = layer.kind(),
          .states = states,
          .step = step,
          .initial = first_values(*program, states),
          .begin = begin,
          .originals = originals_of(layer, *copy),
          .any_rows = false};
}

}  // namespace ferrite::nn::detail
