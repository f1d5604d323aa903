/// Walks over the messages of a model: its graphs and functions.
#include "ferrite/exchange/onnx/onnx_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ferrite/tensor/recorder.h"

namespace ferrite::onnx::detail {
namespace {

constexpr int kMostNestedGraphs = 32;
constexpr int kMostNestedFunctions = 32;
constexpr int kMostNested = 64;  // of both
constexpr std::int64_t kNewestOpset = 28;
constexpr std::size_t kMostFunctions = 4096;
constexpr std::size_t kMostImports = 256;

/// The values that nodes define, and what else has a name, at most.
std::size_t count_names(std::string_view message, std::uint32_t node_field_number,
                        std::initializer_list<std::uint32_t> others) {
  std::size_t n = 0;
  for (Message m(message); m.next();) {
    if (m.tag() == node_field_number) {
      Message(m.bytes()).each_of(node_field::output, [&](std::string_view name) { n += !name.empty(); });
      continue;
    }
    n += static_cast<std::size_t>(std::ranges::count(others, m.tag()));
    m.skip();
  }
  return n;
}

Dimension read_dimension(Message m) {
  Dimension d;
  while (m.next()) {
    if (m.tag() == dimension_field::dim_value)
      d.extent = m.integer();
    else if (m.tag() == dimension_field::dim_param)
      d.symbol = m.bytes();
    else
      m.skip();
  }
  if (d.extent < 0) d.extent = -1;
  return d;
}

}  // namespace

void Reader::check(CheckedModel& program, const Elsewhere& elsewhere, const Training& training) {
  Check check{program, elsewhere, training};
  Reader reader(program, &check);
  const std::string_view graph = reader.read_model(program);
  Graph main = reader.read_graph(graph, nullptr);
  program.inputs = std::move(main.inputs);
  program.outputs = std::move(main.outputs);
  program.inputs.shrink_to_fit();
  program.outputs.shrink_to_fit();
  Message(graph).each_of(graph_field::node, [&](std::string_view) { ++program.nodes; });
  for (const auto& [name, trains] : training.asked)
    if (!check.asked.contains(name))
      throw ValueError(program.where + ": ReadOptions::trains names no initialiser of the model: \"" + name + "\"");
}

std::unique_ptr<const Graphs> Reader::graphs_of(const CheckedModel& program) {
  Reader reader(program, nullptr);
  reader.find_functions();
  Message(program.messages()).each_of(model_field::graph, [&](std::string_view graph) {
    reader.graphs_->main = reader.read_graph(graph, nullptr);
  });
  return std::move(reader.graphs_);
}

std::string_view Reader::read_model(CheckedModel& program) {
  std::string_view graph;
  std::int64_t ir_version = 0;
  bool has_graph = false;
  for (Message m(program.messages()); m.next();) {
    switch (m.tag()) {
      case model_field::ir_version: ir_version = m.integer(); break;
      case model_field::opset_import: read_import(program.imports, Message(m.bytes())); break;
      case model_field::graph:
        if (has_graph) fail("it has two graphs");
        graph = m.bytes();
        has_graph = true;
        break;
      default: m.skip();
    }
  }
  find_functions();
  if (!has_graph) fail("it holds no graph: is it an ONNX model?");
  if (program.imports.versions.empty()) {
    if (ir_version >= 3) fail("it imports no opset");
    program.imports.versions.emplace_back(std::string_view(), 1);
  }
  if (program.imports.of("") > kNewestOpset)
    fail("opset " + std::to_string(program.imports.of("")) + " is not known: the newest one that is supported is " +
         std::to_string(kNewestOpset));
  return graph;
}

void Reader::read_import(Imports& imports, Message m) const {
  std::string_view domain;
  std::int64_t version = 0;
  while (m.next()) {
    if (m.tag() == opset_field::domain)
      domain = m.bytes();
    else if (m.tag() == opset_field::version)
      version = m.integer();
    else
      m.skip();
  }
  if (imports.versions.size() == kMostImports) fail("it imports more than " + std::to_string(kMostImports) + " opsets");
  imports.versions.emplace_back(is_main_domain(domain) ? std::string_view() : domain, version);
}

void Reader::find_functions() {
  Message(program_.messages()).each_of(model_field::functions, [&](std::string_view message) {
    add_function(message);
  });
}

void Reader::add_function(std::string_view message) {
  if (functions_.size() == kMostFunctions) fail("it has more than " + std::to_string(kMostFunctions) + " functions");
  Function f{.message = message};
  Imports imports;
  for (Message m(message); m.next();) {
    switch (m.tag()) {
      case function_field::name: f.name = m.bytes(); break;
      case function_field::domain: f.domain = m.bytes(); break;
      case function_field::overload: f.overload = m.bytes(); break;
      case function_field::opset_import: read_import(imports, Message(m.bytes())); break;
      default: m.skip();
    }
  }
  if (is_main_domain(f.domain)) f.domain = {};
  if (f.name.empty()) fail("a function has no name");
  if (find_function(f.domain, f.name, f.overload)) fail("function " + quoted(f.name) + " is there twice");
  functions_[{f.domain, f.name, f.overload}] = &graphs_->functions.emplace_back(std::move(f));
}

void Reader::resolve_function(Function& f, const Node& node) {
  if (f.state == 1) fail(node, "functions call each other in a circle");
  if (f.state == 2) return enter(f.depth);
  if (functions_open_ >= kMostNestedFunctions)
    fail(node, "functions are nested deeper than " + std::to_string(kMostNestedFunctions));
  enter(1);
  f.state = 1;
  ++functions_open_;
  const int before_it = open_++, deepest_before = std::exchange(deepest_, open_);
  f.body = std::make_unique<Function::Body>();
  const Imports* const before = std::exchange(imports_, &f.body->imports);
  const std::uint64_t size_before = std::exchange(size_, 0);
  read_body(f, node);
  imports_ = before;
  f.size = std::exchange(size_, size_before);
  --functions_open_;
  open_ = before_it;
  f.depth = deepest_ - open_;
  deepest_ = std::max(deepest_, deepest_before);
  f.state = 2;
  if (check_) f.body.reset();
}

void Reader::enter(int levels) {
  deepest_ = std::max(deepest_, open_ + levels);
  if (deepest_ > kMostNested)
    fail("graphs and functions are nested deeper than " + std::to_string(kMostNested) + ", both together");
}

void Reader::read_body(Function& f, const Node& node) {
  Function::Body& body = *f.body;
  Scope scope{.slots = {program_.messages(), count_names(f.message, function_field::node, {function_field::input})}};
  Graph& g = body.graph;
  g.name = f.name;
  Message(f.message).each_of(function_field::opset_import,
                             [&](std::string_view import) { read_import(body.imports, Message(import)); });
  for (Message m(f.message); m.next();) {
    switch (m.tag()) {
      case function_field::attribute: {
        const std::string_view name = m.bytes();
        if (!check_) body.attributes.push_back(name);
        break;
      }
      case function_field::attribute_proto: {
        Attribute a = read_attribute(m.bytes(), scope, node);
        if (!check_) body.defaults.push_back(std::move(a));
        break;
      }
      case function_field::input: {
        const Port port{.name = m.bytes()};
        const std::int32_t slot = define(g, scope, port.name);
        if (check_) break;
        g.inputs.push_back(port);
        g.input_slots.push_back(slot);
        break;
      }
      default: m.skip();
    }
  }
  Message(f.message).each_of(function_field::node, [&](std::string_view bytes) { read_node(bytes, g, scope); });
  Message(f.message).each_of(function_field::output, [&](std::string_view name) {
    const Reference from = find(scope, name, "output", [&] { return quoted(f.name); });
    if (check_) return;
    g.outputs.push_back({.name = name});
    g.results.push_back(from);
  });
  g.slots = scope.slots.size();
  const std::vector<bool> decides = deciding(scope, f.message, function_field::node, {});
  for (std::size_t i = 0; i < std::min<std::size_t>(decides.size(), 64); ++i)
    f.static_inputs |= std::uint64_t{decides[i]} << i;
  release(g);
}

Reference Reader::find(const Scope& scope, std::string_view name, const char* what, const Node& node) const {
  return find(scope, name, what, [&] { return "node " + node.label(); });
}

Reference Reader::find(const Scope& scope, std::string_view name, const char* what,
                       const std::function<std::string()>& of) const {
  std::int32_t depth = 0;
  for (const Scope* at = &scope; at; at = at->outer, ++depth)
    if (const std::int32_t slot = at->slots.find(name); slot >= 0) return {depth, slot};
  fail(std::string(what) + " " + quoted(name) + " of " + of() +
       " is not defined before it: it is missing, or the nodes are in a wrong order or a circle");
}

Graph Reader::read_graph(std::string_view message, const Scope* outer) {
  const int depth = outer ? outer->depth + 1 : 0;
  if (depth > kMostNestedGraphs) fail("graphs are nested deeper than " + std::to_string(kMostNestedGraphs));
  enter(1);
  ++open_;
  const std::size_t names = count_names(
      message, graph_field::node, {graph_field::initializer, graph_field::sparse_initializer, graph_field::input});
  Scope scope{.slots = {program_.messages(), names}, .outer = outer, .depth = depth};
  Graph g;
  Message(message).each_of(graph_field::name, [&](std::string_view name) { g.name = name; });
  each_tensor(message, [&](std::string_view tensor, Storage storage) {
    (void)define(g, scope, name_of_tensor(tensor, storage));
  });
  read_inputs(g, scope, message);
  Message(message).each_of(graph_field::node, [&](std::string_view bytes) { read_node(bytes, g, scope); });
  Message(message).each_of(graph_field::output, [&](std::string_view bytes) {
    Port port = read_port(bytes);
    const Reference from = find(scope, port.name, "output", [&] { return "graph " + quoted(g.name); });
    if (check_ && outer) return;
    g.results.push_back(from);
    g.outputs.push_back(std::move(port));
  });
  g.slots = scope.slots.size();
  read_initialisers(g, scope, message);
  release(g);
  --open_;
  return g;
}

void Reader::read_inputs(Graph& g, Scope& scope, std::string_view message) const {
  std::vector<bool> repeated(static_cast<std::size_t>(scope.slots.size()));  // initialisers
  Message(message).each_of(graph_field::input, [&](std::string_view bytes) {
    Port port = read_port(bytes);
    if (const std::int32_t slot = scope.slots.find(port.name); slot >= 0) {
      const auto i = static_cast<std::size_t>(slot);
      if (i >= repeated.size() || repeated[i]) fail("two inputs have the name " + quoted(port.name));
      repeated[i] = true;
      return;  // an initialiser that old files repeat as an input
    }
    const std::int32_t slot = define(g, scope, port.name);
    if (check_ && scope.outer) return;
    g.input_slots.push_back(slot);
    g.inputs.push_back(std::move(port));
  });
}

Port Reader::read_port(std::string_view message) const {
  Port port;
  for (Message m(message); m.next();) {
    if (m.tag() == value_info_field::name)
      port.name = m.bytes();
    else if (m.tag() == value_info_field::type)
      read_type(port, Message(m.bytes()));
    else
      m.skip();
  }
  return port;
}

void Reader::read_type(Port& port, Message type) const {
  while (type.next()) {
    if (type.tag() != type_field::tensor_type) {
      port.tensor &= type.tag() == type_field::denotation;
      type.skip();
      continue;
    }
    for (Message m(type.bytes()); m.next();) {
      if (m.tag() == tensor_type_field::elem_type) {
        port.type = static_cast<ElementType>(m.integer());
      } else if (m.tag() == tensor_type_field::shape) {
        port.ranked = true;
        Message(m.bytes()).each_of(shape_field::dim, [&](std::string_view dimension) {
          if (port.shape.size() == static_cast<std::size_t>(Shape::kMaxRank))
            fail("input or output " + quoted(port.name) + " has more than " + std::to_string(Shape::kMaxRank) +
                 " axes");
          port.shape.push_back(read_dimension(Message(dimension)));
        });
      } else {
        m.skip();
      }
    }
  }
}

std::string Node::label() const { return quoted(title) + " (" + std::string(operation) + ")"; }

std::int64_t Imports::of(std::string_view domain) const {
  for (const auto& [name, version] : versions)
    if (name == domain) return version;
  return -1;
}

const Graphs& CheckedModel::graphs() const {
  std::call_once(once_, [this] {
    const NewFrame apart;  // a trace does not see constants being made
    graphs_ = Reader::graphs_of(*this);
  });
  return *graphs_;
}

std::shared_ptr<CheckedModel> read_checked(Input& input, std::string where, const std::filesystem::path& folder,
                                           const Training& training, std::set<std::string, std::less<>> constants) {
  auto program = std::make_shared<CheckedModel>(std::move(where));
  program->constants = std::move(constants);
  try {
    Outline outline = outline_of(input);
    program->bytes = std::move(outline.bytes);
    if (program->bytes.size() > std::numeric_limits<std::uint32_t>::max())
      throw OnnxError("onnx: more than 4 GiB of messages: only raw_data and external data may be larger");
    Reader::check(*program, {folder, &input, program->messages(), std::move(outline.left_out)}, training);
  } catch (const OnnxError& e) {
    const std::string what = e.what();
    if (what.rfind("onnx: ", 0) == 0 && program->where != "onnx") throw OnnxError(program->where + what.substr(4));
    throw;
  }
  return program;
}

}  // namespace ferrite::onnx::detail
