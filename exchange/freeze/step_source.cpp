/// Finds the step of a layer as a function of tensors.
#include "ferrite/exchange/freeze/step_source.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

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

/// Returns the type of the inputs of n steps of one row.
Spec block_spec(const nn::StepRows& r, std::int64_t n) {
  return {is_integer(r.dtype) ? Shape{n} : Shape{n, r.width}, r.dtype};
}

Tensor first_of(const nn::StepState& s) {
  const Spec spec = s.spec();
  return s.initial.defined() ? contiguous(expand(unsqueeze(s.initial.peek(), s.rows), spec.shape))
                             : zeros(spec.shape, s.dtype);
}

StepSource own_step(const nn::Layer& layer, const nn::StepRows& rows) {
  StepSource s{.function = {}, .input_names = {"x"}, .output_names = {"y"}, .inputs = {spec_of(rows)}, .states = {}};
  UniqueNames names;
  bool grows = false;
  for (const nn::StepState& state : layer.states(rows)) {
    s.states.push_back({names.claim(state.name), state.spec(), first_of(state), state.capacity});
    grows = grows || state.capacity > 0;
  }
  if (grows) s.states.push_back({"made", {{rows.batch}, Dtype::i64}, zeros({rows.batch}, Dtype::i64), 0, true});
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

/// Returns whether a program computes steps one after the other.
bool is_recurrent(const Graph& g) {
  return std::ranges::any_of(g.nodes, [](const Graph::Node& n) {
    switch (n.op->time) {
      case TimeRule::linear_recurrence:
      case TimeRule::minimal_recurrence:
      case TimeRule::recurrence:
      case TimeRule::scan: return true;
      default: return false;
    }
  });
}

/// The step of a layer as it is found in `forward`.
struct Found {
  StreamProgram program;
  bool recurrent;
};

Found found_in(const nn::Layer& layer, const nn::StepRows& rows, std::int64_t steps) {
  const bool tokens = is_integer(rows.dtype);
  const Spec over_time{tokens ? Shape{rows.batch, steps} : Shape{rows.batch, steps, rows.width}, rows.dtype};
  const std::array<Spec, 1> specs{over_time};
  const std::array<int, 1> axes{1};
  Graph g = trace([&](const Tensors& x) { return Tensors{layer(x[0])}; }, specs);
  const bool recurrent = is_recurrent(g);
  return {StreamProgram(std::move(g), axes, steps), recurrent};
}

std::function<Tensors(const Tensors&)> function_of(const std::shared_ptr<const Found>& found, const nn::StepRows& rows,
                                                   std::int64_t steps) {
  return [found, rows, steps](const Tensors& in) {
    const bool tokens = is_integer(rows.dtype);
    const Tensor x = reshape(in[0], tokens ? Shape{rows.batch, steps} : Shape{rows.batch, steps, rows.width});
    FrameStates states{Tensors(in.begin() + 1, in.end()), Tensors(in.begin() + 1, in.end())};
    const Tensor y = found->program.step({x}, states, steps)[0];
    const std::int64_t all = rows.batch * steps;
    Tensors out{reshape(y, {all, y.numel() / all})};
    for (const Tensor& t : states.next) out.push_back(t);
    return out;
  };
}

void try_trace(const std::function<Tensors(const Tensors&)>& f, std::vector<Spec> specs, const StepSource& s) {
  for (const SourceState& state : s.states) specs.push_back(state.spec);
  (void)trace(f, specs);
}

/// Returns the steps that are found in `forward`; nullopt for those that wait for each other, if `only_blocks`.
std::optional<StepSource> found_step(const nn::Layer& layer, const nn::StepRows& rows, std::int64_t steps,
                                     std::int64_t block, bool only_blocks) {
  const auto found = std::make_shared<Found>(found_in(layer, rows, steps));
  const bool blocks = block > 1 && rows.batch == 1 && !found->recurrent;
  if (only_blocks && !blocks) return {};
  StepSource s{.function = function_of(found, rows, 1),
               .input_names = {"x"},
               .output_names = {"y"},
               .inputs = {spec_of(rows)},
               .states = {}};
  UniqueNames names;
  for (const StreamProgram::State& state : found->program.states())
    s.states.push_back({names.claim("s"), state.first.spec(), state.first});
  try_trace(s.function, s.inputs, s);
  if (!blocks) return s;
  s.block_steps = block;
  s.block = function_of(found, rows, block);
  try_trace(s.block, {block_spec(rows, block)}, s);
  return s;
}

}  // namespace

StepSource step_source(const nn::Layer& layer, const nn::StepRows& rows, std::int64_t block) {
  const NewFrame frame;
  std::string why;
  const auto find = [&](bool only_blocks) -> std::optional<StepSource> {
    for (const std::int64_t steps : kTraced) try {
        return found_step(layer, rows, steps, block, only_blocks);
      } catch (const Error& e) {
        if (steps == kTraced.back()) why += "; " + std::string(e.what());
      }
    return {};
  };
  if (block > 1 && rows.batch == 1)
    if (auto found = find(true)) return *found;
  try {
    StepSource own = own_step(layer, rows);
    try_trace(own.function, own.inputs, own);
    return own;
  } catch (const ShapeError&) {
    throw;
  } catch (const Error& e) {
    why = e.what();
  }
  if (auto found = find(false)) return *found;
  throw ExportError("freeze: " + layer.kind() + " has no step that can be written: " + why);
}

namespace {

/// A program over time, and which of its inputs and outputs are states.
struct OverTime {
  StreamProgram program;
  std::vector<ProgramInput> inputs;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  bool is_input_state(std::size_t i) const {
    return std::ranges::any_of(pairs, [i](const auto& p) { return p.first == i; });
  }
  bool is_output_state(std::size_t i) const {
    return std::ranges::any_of(pairs, [i](const auto& p) { return p.second == i; });
  }
  /// Computes one step: x..., states that were found, states of pairs -> y..., the same states.
  Tensors step(const Tensors& in) const {
    Tensors given(inputs.size());
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!is_input_state(i)) given[i] = in[next++];
    FrameStates states;
    for (std::size_t k = 0; k < program.states().size(); ++k) states.now.push_back(in[next++]);
    states.next = states.now;
    for (const auto& [input, output] : pairs) given[input] = in[next++];
    const Tensors y = program.step(given, states);
    Tensors out;
    for (std::size_t i = 0; i < y.size(); ++i)
      if (!is_output_state(i)) out.push_back(y[i]);
    for (const Tensor& t : states.next) out.push_back(t);
    for (const auto& [input, output] : pairs) out.push_back(y[output]);
    return out;
  }
};

}  // namespace

StepSource program_source(const ProgramStream::Program& program, std::span<const ProgramInput> inputs,
                          const ProgramStreamOptions& options, std::vector<std::string> input_names,
                          std::vector<std::string> output_names) {
  const NewFrame frame;
  std::vector<Spec> specs;
  std::vector<int> axes;
  for (const ProgramInput& in : inputs) {
    specs.push_back(in.step);
    if (in.time_axis >= 0) specs.back().shape[in.time_axis] = kTraced[0];
    axes.push_back(in.time_axis);
  }
  const auto over = std::make_shared<OverTime>(
      OverTime{StreamProgram(trace(program, specs), axes, kTraced[0]), {inputs.begin(), inputs.end()}, options.states});
  StepSource s{.function = [over](const Tensors& in) { return over->step(in); },
               .input_names = {},
               .output_names = {},
               .inputs = {},
               .states = {}};
  UniqueNames names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (over->is_input_state(i)) continue;
    s.input_names.push_back(names.claim(i < input_names.size() ? input_names[i] : "x" + std::to_string(i)));
    s.inputs.push_back(inputs[i].step);
  }
  for (std::size_t i = 0; i < over->program.outputs().size(); ++i)
    if (!over->is_output_state(i))
      s.output_names.push_back(names.claim(i < output_names.size() ? output_names[i] : "y" + std::to_string(i)));
  for (const StreamProgram::State& state : over->program.states())
    s.states.push_back({names.claim("s"), state.first.spec(), state.first});
  for (const auto& [input, output] : options.states) {
    const Spec& spec = inputs[input].step;
    s.states.push_back(
        {names.claim(input < input_names.size() ? input_names[input] : "s"), spec, zeros(spec.shape, spec.dtype)});
  }
  return s;
}

}  // namespace ferrite::exchange::detail
