/// Makes streams of ONNX models: finds the step of every input, and the inputs that are states.
#include "ferrite/exchange/onnx_stream.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace ferrite::onnx {
namespace {

std::vector<std::string> names_of(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& p : ports) names.push_back(p.name);
  return names;
}

/// Returns the number that the text of an extent gives, or nothing for a name.
std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return n;
}

/// Returns one step of an input; the options take precedence over the file.
exchange::ProgramInput step_of(const Port& port, const StreamOptions& o) {
  exchange::ProgramInput in{.step = {{}, port.dtype}, .time_axis = -1};
  const auto given = o.steps.find(port.name);
  const auto axis = o.time_axes.find(port.name);
  if (axis != o.time_axes.end()) in.time_axis = axis->second;
  if (given != o.steps.end()) in.step.shape = given->second;
  if (given == o.steps.end() && !port.ranked)
    throw ValueError("onnx: the file does not say the shape of input '" + port.name +
                     "'; give that of a step: StreamOptions::steps");
  for (std::size_t i = 0; i < port.shape.size(); ++i) {
    const std::string& text = port.shape[i];
    const bool time = !o.time.empty() && text == o.time;
    if (time && axis == o.time_axes.end()) in.time_axis = static_cast<int>(i);
    if (given != o.steps.end()) continue;
    const auto extent = o.extents.find(text);
    const std::optional<std::int64_t> number = number_of(text);
    if (time || static_cast<int>(i) == in.time_axis) {
      in.step.shape.push_back(1);
    } else if (extent != o.extents.end()) {
      in.step.shape.push_back(extent->second);
    } else if (number) {
      in.step.shape.push_back(*number);
    } else {
      throw ValueError("onnx: extent '" + text + "' of input '" + port.name +
                       "' is not known; give it: StreamOptions::extents, or the shape of a step: StreamOptions::steps");
    }
  }
  return in;
}

void check_names(const std::vector<Port>& inputs, const StreamOptions& o) {
  const auto check = [&](const std::string& name) {
    if (std::ranges::find(inputs, name, &Port::name) == inputs.end())
      throw ValueError("onnx: the model has no input '" + name + "'");
  };
  for (const auto& [name, shape] : o.steps) check(name);
  for (const auto& [name, axis] : o.time_axes) check(name);
  const bool timed =
      std::ranges::any_of(inputs, [&](const Port& p) { return std::ranges::find(p.shape, o.time) != p.shape.end(); });
  if (!o.time.empty() && !timed) throw ValueError("onnx: no input of the model has a dimension '" + o.time + "'");
}

/// A model as a program over time.
struct OverTime {
  std::vector<exchange::ProgramInput> inputs;
  exchange::ProgramStreamOptions options;
};

OverTime over_time(const Model& model, const StreamOptions& o) {
  check_names(model.inputs(), o);
  std::vector<exchange::ProgramInput> inputs;
  for (const Port& p : model.inputs()) inputs.push_back(step_of(p, o));
  exchange::ProgramStreamOptions options{.verify = o.verify};
  const auto place = [](const std::vector<Port>& ports, const std::string& name, const char* what) {
    const auto at = std::ranges::find(ports, name, &Port::name);
    if (at == ports.end()) throw ValueError("onnx: the model has no " + std::string(what) + " '" + name + "'");
    return static_cast<std::size_t>(at - ports.begin());
  };
  for (const auto& [input, output] : o.states)
    options.states.emplace_back(place(model.inputs(), input, "input"), place(model.outputs(), output, "output"));
  return {std::move(inputs), std::move(options)};
}

exchange::ProgramStream program_of(const Model& model, const StreamOptions& o) {
  const OverTime over = over_time(model, o);
  return exchange::ProgramStream([&model](const Tensors& in) { return model.run(in); }, over.inputs, over.options);
}

}  // namespace

Stream::Stream(const Model& model, const StreamOptions& options)
    : inputs_(names_of(model.inputs())), outputs_(names_of(model.outputs())), program_(program_of(model, options)) {}

exchange::FrozenNet freeze(const Model& model, const StreamOptions& stream, exchange::FreezeOptions options) {
  const OverTime over = over_time(model, stream);
  options.inputs = names_of(model.inputs()), options.outputs = names_of(model.outputs());
  return exchange::freeze([&model](const Tensors& in) { return model.run(in); }, over.inputs, over.options, options);
}

std::size_t Stream::place(const std::vector<std::string>& names, std::string_view name, const char* what) {
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) {
    std::string all;
    for (const std::string& n : names) all += (all.empty() ? "'" : ", '") + n + "'";
    throw ValueError("onnx: the model has no " + std::string(what) + " '" + std::string(name) + "'; it has " + all);
  }
  return static_cast<std::size_t>(at - names.begin());
}

}  // namespace ferrite::onnx
