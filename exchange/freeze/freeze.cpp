/// Freezes layers and functions: traces them, lowers them, runs the stored steps, writes the files.
#include "ferrite/exchange/freeze.h"

#include <algorithm>
#include <optional>

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/freeze/c_file.h"
#include "ferrite/exchange/freeze/c_lanes.h"
#include "ferrite/exchange/freeze/frozen_program.h"
#include "ferrite/exchange/freeze/step_source.h"
#include "ferrite/exchange/freeze_jacobian.h"
#include "ferrite/exchange/freeze_training.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange {
namespace {

using detail::CheckInputs;
using detail::FileFacts;
using detail::FrozenProgram;

void check_name(const std::string& name) {
  const auto is_lower = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (name.empty() || name[0] < 'a' || name[0] > 'z' || !std::ranges::all_of(name, is_lower))
    throw ValueError("freeze: '" + name +
                     "' is no name for a net: it must be lower-case letters, digits and underlines, a letter first");
}

/// Returns a number that differs for programs that compute something else.
std::uint64_t hash_of(const Graph& g) {
  std::uint64_t h = 14695981039346656037U;
  const auto add = [&h](const void* bytes, std::size_t n) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < n; ++i) h = (h ^ at[i]) * 1099511628211U;
  };
  const std::string text = g.str(0);
  add(text.data(), text.size());
  for (const Graph::Constant& c : g.constants) {
    const Tensor dense = contiguous(c.tensor);
    add(dense.raw(), static_cast<std::size_t>(dense.numel() * size_of(dense.dtype())));
  }
  return h;
}

/// Fills a tensor with the next stored inputs.
Tensor next_input(CheckInputs& numbers, const Spec& spec) {
  std::vector<double> values(static_cast<std::size_t>(spec.shape.numel()));
  for (double& v : values) v = numbers.next(!is_float(spec.dtype));
  return cast(Tensor::from<double>(values, spec.shape), spec.dtype);
}

/// Continues a sum of bits with numbers, in which all NaNs are one: processors give them different bits.
template <class T>
std::uint32_t sum_of(std::span<const T> numbers, std::uint32_t sum) {
  for (const T x : numbers) {
    const T v = x != x ? T{} : x;
    sum = detail::check_sum(&v, sizeof v, sum);
  }
  return sum;
}
std::uint32_t sum_of(const Tensor& y, std::uint32_t sum) {
  const Tensor dense = contiguous(y);
  return visit_dtype(y.dtype(), [&](auto zero) { return sum_of(dense.values<decltype(zero)>(), sum); });
}

/// Returns the result of a stored step, false if it throws: the stored inputs may be outside of what a program allows.
template <class F>
bool succeeds(const F& step) {
  try {
    return step();
  } catch (const Error&) {
    return false;
  }
}

/// Returns the number of stored steps of a stream, enough for some outputs.
int check_steps(const nn::Pace& pace) {
  return static_cast<int>(std::min<std::int64_t>(64, pace.delay + (detail::kCheckSteps - 1) * pace.stride + 1));
}

/// Returns the sums of the outputs of the stored steps, as the layer's stream gives them; of a step without an output,
/// the sum of nothing.
std::vector<std::uint32_t> stream_sums(const nn::Layer& layer, const nn::StepRows& rows, const Spec& x, const Spec& y) {
  nn::Stream stream = layer.stream(rows.batch);
  CheckInputs numbers;
  std::vector<std::uint32_t> sums;
  const auto run = [&]<class In, class Out>(In, Out) {
    std::vector<Out> out(static_cast<std::size_t>(y.shape.numel()));
    for (int s = 0; s < check_steps(layer.pace()); ++s) {
      const Tensor in = contiguous(next_input(numbers, x));
      const bool gave = succeeds([&] { return stream.feed(in.values<In>(), std::span<Out>(out)); });
      const std::uint32_t nothing = detail::check_sum(nullptr, 0);
      sums.push_back(gave ? sum_of(std::span<const Out>(out), nothing) : nothing);
    }
  };
  const bool wide = y.dtype == Dtype::f64;
  if (is_integer(x.dtype)) return wide ? run(std::int64_t{}, 0.0) : run(std::int64_t{}, 0.0F), sums;
  return wide ? run(0.0, 0.0) : run(0.0F, 0.0F), sums;
}

/// Returns whether the check of a net compares its states, too: floats that each step replaces. In these, a bit that
/// changes is seen before it reaches an output.
bool checks_states(const std::vector<detail::FrozenStage>& stages) {
  if (stages.size() > 1 || stages[0].window) return false;
  return std::ranges::all_of(stages[0].program.states, [](const detail::FrozenState& s) {
    const bool replaced = s.keeping == detail::Keeping::value || s.keeping == detail::Keeping::pair;
    return replaced && is_float(s.spec.dtype);
  });
}

/// Continues the last sum with the states after the stored steps.
std::uint32_t with_states(std::uint32_t sum, const detail::StepSource& source) {
  CheckInputs numbers;
  Tensors states;
  for (const detail::SourceState& s : source.states) states.push_back(s.first);
  for (int s = 0; s < detail::kCheckSteps; ++s) {
    Tensors in{next_input(numbers, source.inputs[0])};
    for (const Tensor& state : states) in.push_back(state);
    Tensors out;
    if (succeeds([&] { return out = source.function(in), true; })) states = Tensors(out.begin() + 1, out.end());
  }
  for (const Tensor& state : states) sum = sum_of(state, sum);
  return sum;
}

/// Runs a stored step of a stream and returns the sum of its outputs.
std::uint32_t program_sum(ProgramStream& s, const ProgramStreamOptions& options, std::span<const ProgramInput> inputs,
                          CheckInputs& numbers) {
  const auto is_state = [&](std::size_t i, bool output) {
    return std::ranges::any_of(options.states, [&](const auto& p) { return (output ? p.second : p.first) == i; });
  };
  const auto fill = [&]<class T>(std::size_t i, T) {
    for (T& v : s.input<T>(i)) v = static_cast<T>(numbers.next(std::is_integral_v<T>));
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_state(i, false)) continue;
    const Dtype dtype = inputs[i].step.dtype;
    if (is_float(dtype)) {
      dtype == Dtype::f32 ? fill(i, 0.0F) : fill(i, 0.0);
    } else {
      dtype == Dtype::i32 ? fill(i, std::int32_t{}) : fill(i, std::int64_t{});
    }
  }
  std::uint32_t sum = detail::check_sum(nullptr, 0);
  if (!succeeds([&] { return s.step(), true; })) return sum;
  const auto add = [&]<class T>(std::size_t i, T) { sum = sum_of(std::span<const T>(s.output<T>(i)), sum); };
  for (std::size_t i = 0; i < s.outputs(); ++i) {
    if (is_state(i, true)) continue;
    const Dtype dtype = s.output_spec(i).dtype;
    if (is_float(dtype)) {
      dtype == Dtype::f32 ? add(i, 0.0F) : add(i, 0.0);
    } else {
      dtype == Dtype::i32 ? add(i, std::int32_t{}) : add(i, std::int64_t{});
    }
  }
  return sum;
}

}  // namespace

FrozenNet freeze(const nn::Layer& layer, const nn::StepRows& rows, const FreezeOptions& options) {
  check_name(options.name);
  if (!layer.streams())
    throw ValueError("freeze: " + layer.kind() + " does not stream; write it as a whole program of fixed length");
  const NewFrame frame;
  const std::unique_ptr<nn::Layer> copy = layer.clone();
  copy->eval();
  const std::vector<detail::Stage> sources = detail::stages_of(*copy, rows, options.block);
  std::vector<detail::FrozenStage> stages;
  FileFacts facts{.what = options.model, .hash = 0, .check = {}};
  for (const detail::Stage& s : sources) stages.push_back({detail::frozen_program(s.source), s.window});
  std::optional<FrozenProgram> block;
  if (sources[0].source.block) block = detail::frozen_program(sources[0].source, true);
  if (block && !detail::same_states(stages[0].program, *block)) block.reset();
  if (block) detail::turn_to_lanes(stages[0].program, *block);
  for (const detail::FrozenStage& s : stages) facts.hash = facts.hash * 31 + hash_of(s.program.lowered.graph);
  if (facts.what.empty()) {
    std::int64_t parameters = 0;
    for (const Parameter& p : layer.parameters()) parameters += p.shape().numel();
    facts.what = "a step of " + layer.kind() + ", " + std::to_string(parameters) + " parameters";
  }
  const FrozenProgram &first = stages.front().program, &last = stages.back().program;
  facts.check =
      stream_sums(*copy, rows, first.lowered.graph.values[first.inputs[0]], last.lowered.graph.values[last.outputs[0]]);
  facts.checks_states = checks_states(stages);
  if (facts.checks_states) facts.check.back() = with_states(facts.check.back(), sources[0].source);
  return detail::write_file(stages, block ? &*block : nullptr, options, facts, detail::Interface::steps);
}

FrozenNet freeze(const std::function<Tensors(const Tensors&)>& function, std::span<const Spec> inputs,
                 const FreezeOptions& options) {
  check_name(options.name);
  const NewFrame frame;
  detail::StepSource source{.function = function,
                            .input_names = options.inputs,
                            .output_names = options.outputs,
                            .inputs = {inputs.begin(), inputs.end()},
                            .states = {}};
  if (source.input_names.empty())
    for (std::size_t i = 0; i < inputs.size(); ++i) source.input_names.push_back("x" + std::to_string(i));
  if (source.output_names.empty()) {
    const std::size_t n = trace(function, inputs).outputs.size();
    for (std::size_t i = 0; i < n; ++i) source.output_names.push_back("y" + std::to_string(i));
  }
  std::vector<detail::FrozenStage> stages;
  stages.push_back({detail::frozen_program(source)});
  FileFacts facts{.what = options.model.empty() ? "a program" : options.model,
                  .hash = hash_of(stages[0].program.lowered.graph),
                  .check = {}};
  CheckInputs numbers;
  for (int s = 0; s < detail::kCheckSteps; ++s) {
    Tensors x;
    for (const Spec& spec : inputs) x.push_back(next_input(numbers, spec));
    std::uint32_t sum = detail::check_sum(nullptr, 0);
    Tensors out;
    (void)succeeds([&] { return out = function(x), true; });
    for (const Tensor& y : out) sum = sum_of(y, sum);
    facts.check.push_back(sum);
  }
  return detail::write_file(stages, nullptr, options, facts, detail::Interface::program);
}

FrozenNet freeze(const ProgramStream::Program& program, std::span<const ProgramInput> inputs,
                 const ProgramStreamOptions& stream, const FreezeOptions& options) {
  check_name(options.name);
  const NewFrame frame;
  ProgramStream reference(program, inputs, stream);
  const detail::StepSource source = detail::program_source(program, inputs, stream, options.inputs, options.outputs);
  std::vector<detail::FrozenStage> stages;
  stages.push_back({detail::frozen_program(source)});
  FileFacts facts{.what = options.model.empty() ? "a step of a program" : options.model,
                  .hash = hash_of(stages[0].program.lowered.graph),
                  .check = {}};
  CheckInputs numbers;
  for (int s = 0; s < detail::kCheckSteps; ++s) facts.check.push_back(program_sum(reference, stream, inputs, numbers));
  return detail::write_file(stages, nullptr, options, facts, detail::Interface::steps);
}

FrozenNet freeze_jacobian(const StepProgram& step, const JacobianProgramOptions& jacobian,
                          const FreezeOptions& options) {
  const JacobianProgram j = jacobian_program(step, jacobian);
  FreezeOptions named = options;
  named.inputs = j.input_names, named.outputs = j.output_names;
  if (named.model.empty()) named.model = "a step with its Jacobians";
  return freeze(j.function, j.inputs, named);
}

FrozenNet freeze_training(const TrainingStep& step, const FreezeOptions& options, const FrozenPrediction& predict) {
  check_name(options.name);
  const NewFrame frame;
  const Graph& g = step.graph;
  const auto name = [](FrozenProgram& p, std::vector<std::string> inputs, std::vector<std::string> outputs) {
    for (std::size_t i = inputs.size(); i < p.inputs.size(); ++i) inputs.push_back("x" + std::to_string(i));
    for (std::size_t i = outputs.size(); i < p.outputs.size(); ++i) outputs.push_back("y" + std::to_string(i));
    p.input_names = std::move(inputs), p.output_names = std::move(outputs);
  };
  const auto or_else = [](const std::vector<std::string>& given, std::vector<std::string> usual) {
    return given.empty() ? usual : given;
  };
  std::vector<detail::FrozenStage> stages;
  stages.push_back({detail::frozen_program(g, g.variables, step.names)});
  name(stages[0].program, or_else(options.inputs, {"x", "target"}), or_else(options.outputs, {"loss"}));
  std::optional<FrozenProgram> other;
  if (predict.function) {
    Graph traced = trace(predict.function, predict.inputs);
    if (!traced.writes.empty()) throw ValueError("freeze_training: the function that predicts assigns variables");
    other = detail::frozen_program(traced, g.variables, step.names);
    name(*other, or_else(predict.input_names, {"x"}), or_else(predict.output_names, {"y"}));
  }
  FileFacts facts{
      .what = options.model.empty() ? "a step of training" : options.model, .hash = hash_of(g), .check = {}};
  for (const Variable& v : g.variables) facts.hash = facts.hash * 31 + sum_of(v.peek(), 0);
  CheckInputs numbers;
  Tensors values;
  for (const Variable& v : g.variables) values.push_back(v.peek());
  for (int s = 0; s < detail::kCheckSteps; ++s) {
    Tensors in;
    for (const ValueId x : g.inputs) in.push_back(next_input(numbers, g.values[x]));
    for (const Graph::VariableValue& r : g.reads) in.push_back(values[r.variable]);
    const Tensors out = replay(g, in);
    std::uint32_t sum = detail::check_sum(nullptr, 0);
    for (std::size_t i = 0; i < g.outputs.size(); ++i) sum = sum_of(out[i], sum);
    facts.check.push_back(sum);
    for (std::size_t k = 0; k < g.writes.size(); ++k) values[g.writes[k].variable] = out[g.outputs.size() + k];
  }
  return detail::write_file(stages, nullptr, options, facts, detail::Interface::training, other ? &*other : nullptr);
}

}  // namespace ferrite::exchange
