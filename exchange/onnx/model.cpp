/// ONNX models as modules.
#include <map>
#include <mutex>
#include <utility>

#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/onnx/interpreter.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::onnx {

struct Model::State {
  State(std::shared_ptr<detail::CheckedModel> read, const ReadOptions& options);

  std::shared_ptr<detail::CheckedModel> program{};
  detail::Interpreter::Limits limits{};
  std::map<std::string, detail::Value> fixed{};  ///< values of inputs that are the same in every call
  std::vector<Port> inputs{};
  std::vector<Port> outputs{};
  mutable std::mutex guard{};
  mutable std::map<std::string, std::string> notes{};  ///< how nodes were lowered in the last call
};

namespace {

Port described(const detail::Port& port) {
  Port p{.name = std::string(port.name), .ranked = port.ranked};
  if (port.type != detail::ElementType::undefined) p.type = detail::name_of(port.type);
  if (port.tensor && port.type != detail::ElementType::undefined)
    p.dtype = detail::dtype_for(port.type, "onnx: input or output \"" + p.name + "\"");
  for (const detail::Dimension& d : port.shape)
    p.shape.push_back(d.extent >= 0 ? std::to_string(d.extent) : d.symbol.empty() ? "?" : std::string(d.symbol));
  return p;
}

/// Checks that a shape fits an input; `symbols` collects the extents of named dimensions.
void check_shape(const std::string& where, const detail::Port& port, const Tensor& x,
                 std::map<std::string_view, std::int64_t>& symbols) {
  if (!port.ranked) return;
  const auto refuse = [&] {
    std::string wanted;
    for (const std::string& s : described(port).shape) wanted += (wanted.empty() ? "" : ", ") + s;
    throw ShapeError(where + ": input \"" + std::string(port.name) + "\" has another shape: " + x.shape().str() +
                     " for [" + wanted + "]");
  };
  if (static_cast<std::size_t>(x.rank()) != port.shape.size()) refuse();
  for (std::size_t i = 0; i < port.shape.size(); ++i) {
    const detail::Dimension& d = port.shape[i];
    const std::int64_t extent = x.shape()[static_cast<int>(i)];
    if (d.extent >= 0 && d.extent != extent) refuse();
    if (!detail::is_placeholder(d.symbol) && symbols.emplace(d.symbol, extent).first->second != extent) refuse();
  }
}

/// Returns a tensor as the value of an input; storage types become the dtype that holds them.
detail::Value accepted(const std::string& where, const detail::Port& port, const Tensor& x) {
  const detail::ElementType type =
      port.type == detail::ElementType::undefined ? detail::type_for(x.dtype()) : port.type;
  const Dtype dtype = detail::dtype_for(type, where);
  if (x.dtype() == dtype) return detail::narrowed(x, type);
  if (detail::type_for(x.dtype()) == type) return {cast(x, dtype), type};
  throw DtypeError(where + ": input \"" + std::string(port.name) + "\" is of type " +
                   std::string(detail::name_of(type)) + ", held in " + std::string(ferrite::name_of(dtype)) + ": got " +
                   std::string(ferrite::name_of(x.dtype())));
}

}  // namespace

Model::State::State(std::shared_ptr<detail::CheckedModel> read, const ReadOptions& options)
    : program(std::move(read)), limits{options.most_trips, options.most_elements} {
  inputs.reserve(program->inputs.size());
  outputs.reserve(program->outputs.size());
  for (const detail::Port& port : program->inputs) {
    const std::string name(port.name);
    const auto constant = options.constants.find(name);
    if (constant == options.constants.end()) {
      inputs.push_back(described(port));
    } else if (constant->second.defined()) {
      const NewFrame frame;
      detail::Value& value = fixed[name] = accepted(program->where, port, constant->second);
      value.constant = true;
    }
  }
  for (const detail::Port& port : program->outputs) outputs.push_back(described(port));
  for (const auto& [name, value] : options.constants)
    if (!fixed.contains(name))
      throw ValueError(program->where + ": ReadOptions::constants names no input of the model: \"" + name + "\"");
}

Model::Model(std::shared_ptr<State> state, const Model* values) : state_(std::move(state)) {
  if (values) {
    for (const auto& p : values->named_parameters())
      parameters_.push_back(parameter(p.name, Parameter(p.name, p.variable.peek())));
    take_after(*values);
    return;
  }
  for (auto& [name, value] : std::exchange(state_->program->parameters, {}))
    parameters_.push_back(parameter(name, Parameter(name, std::exchange(value, {}).tensor)));
}

std::string Model::summary() const {
  const detail::CheckedModel& p = *state_->program;
  return "onnx(nodes=" + std::to_string(p.nodes) + ", opset=" + std::to_string(p.imports.of("")) + ")";
}

const std::vector<Port>& Model::inputs() const& { return state_->inputs; }
const std::vector<Port>& Model::outputs() const& { return state_->outputs; }

Tensors Model::run(const Tensors& inputs) const {
  const detail::CheckedModel& program = *state_->program;
  if (inputs.size() != state_->inputs.size())
    throw ShapeError(program.where + ": the model takes " + std::to_string(state_->inputs.size()) + " inputs, got " +
                     std::to_string(inputs.size()));
  return inside([&] {
    detail::Values values;
    std::map<std::string_view, std::int64_t> symbols;
    std::size_t next = 0;
    for (const detail::Port& port : program.inputs) {
      const auto fixed = state_->fixed.find(std::string(port.name));
      const bool is_fixed = fixed != state_->fixed.end();
      values.push_back(is_fixed ? fixed->second : accepted(program.where, port, inputs[next++]));
      check_shape(program.where, port, values.back().tensor, symbols);
    }
    const detail::Interpreter interpreter(
        program, [this](std::size_t i) { return parameters_[i].value(); }, state_->limits,
        [this](const detail::Node& node, const std::string& what) {
          const std::lock_guard lock(state_->guard);
          state_->notes[node.label()] = what;
        });
    Tensors outputs;
    for (const detail::Value& v : interpreter.run(values)) {
      if (!v.tensor.defined())
        throw OnnxError(program.where + ": output \"" + state_->outputs[outputs.size()].name +
                        "\" is no tensor: sequences and optional values are not supported there");
      outputs.push_back(v.tensor);
    }
    return outputs;
  });
}

Tensor Model::forward(const Tensor& x, const nn::Context& context) const {
  if (state_->inputs.size() != 1 || state_->outputs.size() != 1)
    throw ValueError(state_->program->where + ": a model with " + std::to_string(state_->inputs.size()) +
                     " inputs and " + std::to_string(state_->outputs.size()) + " outputs is no layer: call `run`");
  if (context.lengths.defined() || context.reset_mask.defined() || context.carry)
    throw ValueError(state_->program->where + ": an ONNX model takes no lengths, resets or carries");
  return run({x})[0];
}

std::unique_ptr<nn::Layer> Model::clone() const { return std::unique_ptr<nn::Layer>(new Model(state_, this)); }

std::string Model::report() const {
  std::map<std::string, std::size_t> counts;
  std::string initialisers;
  const std::function<void(const detail::Graph&, bool)> walk = [&](const detail::Graph& graph, bool counted) {
    for (const detail::Initialiser& i : graph.initialisers) {
      initialisers += '"' + std::string(i.name) + "\" (initialiser): " + std::string(detail::text_of(i.reason));
      initialisers += (i.because.empty() ? "" : ", by node " + i.because) + "\n";
    }
    for (const detail::Node& node : graph.nodes) {
      if (counted) ++counts[std::string(node.operation)];
      for (const detail::Attribute& a : node.attributes)
        if (a.graph) walk(*a.graph, counted);
    }
  };
  const detail::Graphs& graphs = state_->program->graphs();
  walk(graphs.main, true);
  for (const detail::Function& f : graphs.functions)
    if (f.body) walk(f.body->graph, false);
  std::string text;
  for (const auto& [operation, n] : counts) text += operation + ": " + std::to_string(n) + "\n";
  text += initialisers;
  const std::lock_guard lock(state_->guard);
  for (const auto& [node, what] : state_->notes) text += node + ": " + what + "\n";
  return text;
}

namespace {

std::shared_ptr<detail::CheckedModel> program_of(detail::Input& input, const std::string& where,
                                                 const std::filesystem::path& folder, const ReadOptions& options) {
  std::set<std::string, std::less<>> constants;
  for (const auto& [name, value] : options.constants) constants.insert(name);
  return detail::read_model(input, where, folder, {.frozen = options.frozen, .asked = options.trains},
                            std::move(constants));
}

}  // namespace

Model read(const std::filesystem::path& path, const ReadOptions& options) {
  std::filesystem::path folder;
  if (options.external_data) folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  detail::Input input(path);
  return Model(std::make_shared<Model::State>(program_of(input, path.string(), folder, options), options));
}

Model parse(std::span<const std::byte> bytes, const ReadOptions& options) {
  if (options.external_data) throw ValueError("onnx: a model in memory has no folder for external data: use `read`");
  detail::Input input(bytes);
  return Model(std::make_shared<Model::State>(program_of(input, "onnx", {}, options), options));
}

}  // namespace ferrite::onnx
