/// Reads the messages of a model into graphs whose names are resolved.
#include "ferrite/exchange/onnx/reader.h"

#include <algorithm>
#include <utility>

#include "ferrite/exchange/onnx/wire.h"

namespace ferrite::onnx::detail {
namespace {

constexpr int kMostNestedGraphs = 32;
constexpr int kMostNestedFunctions = 32;
constexpr std::int64_t kNewestOpset = 28;

void read_dimension(Port& port, Message m) {
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
  port.shape.push_back(d);
}

void read_type(Port& port, Message type) {
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
        for (Message shape(m.bytes()); shape.next();) {
          if (shape.tag() == shape_field::dim)
            read_dimension(port, Message(shape.bytes()));
          else
            shape.skip();
        }
      } else {
        m.skip();
      }
    }
  }
}

Port read_port(Message m) {
  Port port;
  while (m.next()) {
    if (m.tag() == value_info_field::name)
      port.name = m.bytes();
    else if (m.tag() == value_info_field::type)
      read_type(port, Message(m.bytes()));
    else
      m.skip();
  }
  return port;
}

void read_import(Imports& imports, Message m) {
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
  imports.versions.emplace_back(is_main_domain(domain) ? std::string_view() : domain, version);
}

}  // namespace

void Reader::read() {
  std::string_view graph;
  bool has_graph = false;
  for (Message m({program_.bytes.data(), program_.bytes.size()}); m.next();) {
    switch (m.tag()) {
      case model_field::ir_version: program_.ir_version = m.integer(); break;
      case model_field::producer_name: program_.producer = m.bytes(); break;
      case model_field::opset_import: read_import(program_.imports, Message(m.bytes())); break;
      case model_field::graph:
        if (has_graph) fail("it has two graphs");
        graph = m.bytes();
        has_graph = true;
        break;
      case model_field::functions: add_function(m.bytes()); break;
      default: m.skip();
    }
  }
  if (!has_graph) fail("it holds no graph: is it an ONNX model?");
  if (program_.imports.versions.empty()) {
    if (program_.ir_version >= 3) fail("it imports no opset");
    program_.imports.versions.emplace_back(std::string_view(), 1);
  }
  if (program_.imports.of("") > kNewestOpset)
    fail("opset " + std::to_string(program_.imports.of("")) + " is not known: the newest one that is supported is " +
         std::to_string(kNewestOpset));
  imports_ = &program_.imports;
  program_.graph = read_graph(graph, nullptr);
}

void Reader::add_function(std::string_view message) {
  auto f = std::make_unique<Function>();
  f->message = message;
  for (Message m(message); m.next();) {
    switch (m.tag()) {
      case function_field::name: f->name = m.bytes(); break;
      case function_field::domain: f->domain = m.bytes(); break;
      case function_field::overload: f->overload = m.bytes(); break;
      case function_field::opset_import: read_import(f->imports, Message(m.bytes())); break;
      case function_field::attribute: f->attributes.push_back(m.bytes()); break;
      default: m.skip();
    }
  }
  if (is_main_domain(f->domain)) f->domain = {};
  if (f->name.empty()) fail("a function has no name");
  if (find_function(f->domain, f->name, f->overload)) fail("function " + quoted(f->name) + " is there twice");
  functions_[{f->domain, f->name, f->overload}] = f.get();
  program_.functions.push_back(std::move(f));
}

void Reader::resolve_function(Function& f, const Node& node) {
  if (f.state == 1) fail(node, "functions call each other in a circle");
  if (f.state == 2) return;
  if (functions_open_ >= kMostNestedFunctions)
    fail(node, "functions are nested deeper than " + std::to_string(kMostNestedFunctions));
  f.state = 1;
  ++functions_open_;
  const Imports* const before = std::exchange(imports_, &f.imports);
  const std::uint64_t size_before = std::exchange(size_, 0);
  Scope scope;
  Graph& g = f.body;
  g.name = f.name;
  std::vector<std::string_view> results;
  for (Message m(f.message); m.next();) {
    if (m.tag() == function_field::input) {
      const Port port{.name = m.bytes()};
      g.inputs.push_back(port);
      g.input_slots.push_back(define(g, scope, port.name));
    } else if (m.tag() == function_field::output) {
      results.push_back(m.bytes());
    } else if (m.tag() == function_field::attribute_proto) {
      f.defaults.push_back(read_attribute(m.bytes(), scope, node));
    } else {
      m.skip();
    }
  }
  for (Message m(f.message); m.next();) {
    if (m.tag() == function_field::node)
      g.nodes.push_back(read_node(m.bytes(), g, scope));
    else
      m.skip();
  }
  for (const std::string_view name : results) {
    g.outputs.push_back({.name = name});
    g.results.push_back(find(scope, name, "output", [&] { return quoted(f.name); }));
  }
  release(g);
  imports_ = before;
  f.size = std::exchange(size_, size_before);
  --functions_open_;
  f.state = 2;
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
  Scope scope;
  scope.outer = outer;
  scope.depth = outer ? outer->depth + 1 : 0;
  if (scope.depth > kMostNestedGraphs) fail("graphs are nested deeper than " + std::to_string(kMostNestedGraphs));
  Graph g;
  for (Message m(message); m.next();) {
    if (m.tag() == graph_field::name) {
      g.name = m.bytes();
    } else if (m.tag() == graph_field::initializer || m.tag() == graph_field::sparse_initializer) {
      const bool sparse = m.tag() == graph_field::sparse_initializer;
      Initialiser& i = g.initialisers.emplace_back();
      i.value = sparse ? read_sparse_constant(m.bytes(), program_.where, elsewhere_, &i.name)
                       : read_constant(m.bytes(), program_.where, elsewhere_, &i.name);
      i.slot = define(g, scope, i.name);
    } else {
      m.skip();
    }
  }
  const std::int32_t defaults = g.slots;
  std::unordered_set<std::string_view> inputs;
  Message(message).each_of(graph_field::input, [&](std::string_view bytes) {
    Port port = read_port(Message(bytes));
    if (!inputs.insert(port.name).second) fail("two inputs have the name " + quoted(port.name));
    if (const std::int32_t slot = scope.slots.find(port.name); slot >= 0 && slot < defaults)
      return;  // an initialiser that old files repeat as an input
    g.input_slots.push_back(define(g, scope, port.name));
    g.inputs.push_back(std::move(port));
  });
  Message(message).each_of(graph_field::node,
                           [&](std::string_view bytes) { g.nodes.push_back(read_node(bytes, g, scope)); });
  Message(message).each_of(graph_field::output, [&](std::string_view bytes) {
    Port port = read_port(Message(bytes));
    g.results.push_back(find(scope, port.name, "output", [&] { return "graph " + quoted(g.name); }));
    g.outputs.push_back(std::move(port));
  });
  choose_parameters(g);
  release(g);
  return g;
}

std::string Node::label() const { return quoted(title) + " (" + std::string(operation) + ")"; }

std::int64_t Imports::of(std::string_view domain) const {
  for (const auto& [name, version] : versions)
    if (name == domain) return version;
  return -1;
}

std::shared_ptr<Program> read_program(Input& input, std::string where, const std::filesystem::path& folder,
                                      bool frozen) {
  auto program = std::make_shared<Program>();
  program->where = std::move(where);
  try {
    Outline outline = outline_of(input);
    program->bytes = std::move(outline.bytes);
    const std::string_view bytes(program->bytes.data(), program->bytes.size());
    Reader(*program, {folder, &input, bytes, std::move(outline.left_out)}, frozen).read();
  } catch (const OnnxError& e) {
    const std::string what = e.what();
    if (what.rfind("onnx: ", 0) == 0 && program->where != "onnx") throw OnnxError(program->where + what.substr(4));
    throw;
  }
  return program;
}

}  // namespace ferrite::onnx::detail
