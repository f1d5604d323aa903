/// Freezes layers and functions: traces them, lowers them, runs the stored steps, writes the files.
#include "ferrite/exchange/freeze.h"

#include <algorithm>
#include <optional>

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/freeze/c_file.h"
#include "ferrite/exchange/freeze/c_lanes.h"
#include "ferrite/exchange/freeze/step_program.h"
#include "ferrite/exchange/freeze/step_source.h"
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

std::uint32_t sum_of(const Tensor& y, std::uint32_t sum) {
  const Tensor dense = contiguous(y);
  return detail::check_sum(dense.raw(), static_cast<std::size_t>(dense.numel() * size_of(dense.dtype())), sum);
}

/// Returns the sums of the outputs of the stored steps, as the layer's stream gives them.
std::vector<std::uint32_t> stream_sums(const nn::Layer& layer, const nn::StepRows& rows, const Spec& x, const Spec& y) {
  nn::Stream stream = layer.stream(rows.batch);
  CheckInputs numbers;
  std::vector<std::uint32_t> sums;
  const auto run = [&]<class In, class Out>(In, Out) {
    std::vector<Out> out(static_cast<std::size_t>(y.shape.numel()));
    for (int s = 0; s < detail::kCheckSteps; ++s) {
      const Tensor in = contiguous(next_input(numbers, x));
      stream.step(in.values<In>(), std::span<Out>(out));
      sums.push_back(detail::check_sum(out.data(), out.size() * sizeof(Out)));
    }
  };
  const bool wide = y.dtype == Dtype::f64;
  if (is_integer(x.dtype)) return wide ? run(std::int64_t{}, 0.0) : run(std::int64_t{}, 0.0F), sums;
  return wide ? run(0.0, 0.0) : run(0.0F, 0.0F), sums;
}

}  // namespace

FrozenNet freeze(const nn::Layer& layer, const nn::StepRows& rows, const FreezeOptions& options) {
  check_name(options.name);
  if (!layer.streams())
    throw ValueError("freeze: " + layer.kind() + " does not stream; write it as a whole program of fixed length");
  const NewFrame frame;
  const std::unique_ptr<nn::Layer> copy = layer.clone();
  copy->eval();
  const detail::StepSource source = detail::step_source(*copy, rows, options.block);
  FrozenProgram program = detail::frozen_program(source);
  std::optional<FrozenProgram> block;
  if (source.block) block = detail::frozen_program(source, true);
  if (block && !detail::same_states(program, *block)) block.reset();
  if (block) detail::turn_to_lanes(program, *block);
  const Graph& g = program.lowered.graph;
  FileFacts facts{.what = options.model, .hash = hash_of(g), .check = {}};
  if (facts.what.empty()) {
    std::int64_t parameters = 0;
    for (const Parameter& p : layer.parameters()) parameters += p.shape().numel();
    facts.what = "a step of " + layer.kind() + ", " + std::to_string(parameters) + " parameters";
  }
  facts.check = stream_sums(*copy, rows, g.values[program.inputs[0]], g.values[program.outputs[0]]);
  return detail::write_file(program, block ? &*block : nullptr, options, facts, true);
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
  const FrozenProgram program = detail::frozen_program(source);
  FileFacts facts{.what = options.model.empty() ? "a program" : options.model, .hash = hash_of(program.lowered.graph), .check = {}};
  CheckInputs numbers;
  for (int s = 0; s < detail::kCheckSteps; ++s) {
    Tensors x;
    for (const Spec& spec : inputs) x.push_back(next_input(numbers, spec));
    std::uint32_t sum = detail::check_sum(nullptr, 0);
    for (const Tensor& y : function(x)) sum = sum_of(y, sum);
    facts.check.push_back(sum);
  }
  return detail::write_file(program, nullptr, options, facts, false);
}

}  // namespace ferrite::exchange
