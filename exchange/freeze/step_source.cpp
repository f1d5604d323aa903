/// Finds the step of a layer as a function of tensors.
#include "ferrite/exchange/freeze/step_source.h"

#include <array>

#include "ferrite/compile/stream_program.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/emit/unique_names.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::FrameStates;
using ferrite::detail::StreamProgram;

Spec spec_of(const nn::StepRows& r) {
  return {is_integer(r.dtype) ? Shape{r.batch} : Shape{r.batch, r.width}, r.dtype};
}

Tensor first_of(const nn::StepState& s) {
  const Spec spec = s.spec();
  return s.initial.defined() ? contiguous(expand(unsqueeze(s.initial.peek(), s.rows), spec.shape))
                             : zeros(spec.shape, s.dtype);
}

StepSource own_step(const nn::Layer& layer, const nn::StepRows& rows) {
  StepSource s{.function = {},
               .input_names = {"x"},
               .output_names = {"y"},
               .inputs = {spec_of(rows)},
               .states = {}};
  UniqueNames names;
  bool grows = false;
  for (const nn::StepState& state : layer.states(rows)) {
    s.states.push_back({names.claim(state.name), state.spec(), first_of(state), state.capacity});
    grows = grows || state.capacity > 0;
  }
  if (grows)
    s.states.push_back({"made", {{rows.batch}, Dtype::i64}, zeros({rows.batch}, Dtype::i64), 0, true});
  s.function = [&layer](const Tensors& in) {
    nn::StepResult r = layer.advance(in[0], Tensors(in.begin() + 1, in.end()));
    Tensors out{std::move(r.y)};
    for (Tensor& state : r.states) out.push_back(std::move(state));
    return out;
  };
  return s;
}

/// Numbers of steps at which `forward` is traced: one that is rarely the extent of another axis, and longer ones for
/// layers that look back further.
constexpr std::array<std::int64_t, 3> kTraced = {11, 211, 2111};

StepSource found_step(const nn::Layer& layer, const nn::StepRows& rows, std::int64_t steps) {
  const bool tokens = is_integer(rows.dtype);
  const Spec over_time{tokens ? Shape{rows.batch, steps} : Shape{rows.batch, steps, rows.width}, rows.dtype};
  const std::array<Spec, 1> specs{over_time};
  const std::array<int, 1> axes{1};
  const auto program = std::make_shared<StreamProgram>(
      trace([&](const Tensors& x) { return Tensors{layer(x[0])}; }, specs), axes, steps);
  StepSource s{.function = {},
               .input_names = {"x"},
               .output_names = {"y"},
               .inputs = {spec_of(rows)},
               .states = {}};
  UniqueNames names;
  for (const StreamProgram::State& state : program->states())
    s.states.push_back({names.claim("s"), state.first.spec(), state.first});
  s.function = [program, rows](const Tensors& in) {
    const bool ids = is_integer(rows.dtype);
    const Tensor x = reshape(in[0], ids ? Shape{rows.batch, 1} : Shape{rows.batch, 1, rows.width});
    FrameStates states{Tensors(in.begin() + 1, in.end()), Tensors(in.begin() + 1, in.end())};
    const Tensor y = program->step({x}, states)[0];
    Tensors out{reshape(y, {rows.batch, y.numel() / rows.batch})};
    for (const Tensor& t : states.next) out.push_back(t);
    return out;
  };
  return s;
}

}  // namespace

StepSource step_source(const nn::Layer& layer, const nn::StepRows& rows) {
  const NewFrame frame;
  StepSource own = own_step(layer, rows);
  std::vector<Spec> specs = own.inputs;
  for (const SourceState& s : own.states) specs.push_back(s.spec);
  std::string why;
  try {
    (void)trace(own.function, specs);
    return own;
  } catch (const ShapeError&) {
    throw;
  } catch (const Error& e) {
    why = e.what();
  }
  for (const std::int64_t steps : kTraced) try {
      StepSource found = found_step(layer, rows, steps);
      specs = found.inputs;
      for (const SourceState& s : found.states) specs.push_back(s.spec);
      (void)trace(found.function, specs);
      return found;
    } catch (const Error& e) {
      if (steps == kTraced.back()) why += "; " + std::string(e.what());
    }
  throw ExportError("freeze: " + layer.kind() + " has no step that can be written: " + why);
}

}  // namespace ferrite::exchange::detail
