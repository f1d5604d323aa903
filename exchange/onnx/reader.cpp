/// Reads the messages of a model into graphs whose names are resolved.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ferrite/exchange/onnx/graph.h"
#include "ferrite/exchange/onnx/wire.h"
#include "ferrite/exchange/onnx_error.h"

namespace ferrite::onnx::detail {
namespace {

constexpr int kMostNestedGraphs = 32;
constexpr int kMostNestedFunctions = 32;

bool is_main_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

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

std::string quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

/// The names that a graph's nodes see.
struct Scope {
  std::unordered_map<std::string_view, std::int32_t> slots{};
  const Scope* outer = nullptr;
  int depth = 0;
};

/// Builds the graphs of one model.
class Reader {
 public:
  Reader(Program& program, std::filesystem::path folder, bool frozen)
      : program_(program), folder_(std::move(folder)), frozen_(frozen) {}

  void read() {
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
    imports_ = &program_.imports;
    program_.graph = read_graph(graph, nullptr);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw OnnxError(program_.where + ": " + what); }
  [[noreturn]] void fail(const Node& node, const std::string& what) const {
    fail("node " + node.label() + ": " + what);
  }

  void add_function(std::string_view message) {
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
    program_.functions.push_back(std::move(f));
  }

  Function* find_function(std::string_view domain, std::string_view name, std::string_view overload) const {
    for (const auto& f : program_.functions)
      if (f->name == name && f->domain == domain && f->overload == overload) return f.get();
    return nullptr;
  }

  void resolve_function(Function& f, const Node& node) {
    if (f.state == 1) fail(node, "functions call each other in a circle");
    if (f.state == 2) return;
    if (functions_open_ >= kMostNestedFunctions)
      fail(node, "functions are nested deeper than " + std::to_string(kMostNestedFunctions));
    f.state = 1;
    ++functions_open_;
    const Imports* const before = std::exchange(imports_, &f.imports);
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
      g.results.push_back(find(scope, name, "output", quoted(f.name)));
    }
    release(g);
    imports_ = before;
    --functions_open_;
    f.state = 2;
  }

  std::int32_t define(Graph& g, Scope& scope, std::string_view name) {
    if (name.empty()) fail("a value of graph " + quoted(g.name) + " has no name");
    if (!scope.slots.emplace(name, g.slots).second) fail("two values have the name " + quoted(name));
    return g.slots++;
  }

  Reference find(const Scope& scope, std::string_view name, const char* what, const std::string& of) const {
    std::int32_t depth = 0;
    for (const Scope* at = &scope; at; at = at->outer, ++depth)
      if (const auto found = at->slots.find(name); found != at->slots.end()) return {depth, found->second};
    fail(std::string(what) + " " + quoted(name) + " of " + of +
         " is not defined before it: it is missing, or the nodes are in a wrong order or a circle");
  }

  Graph read_graph(std::string_view message, const Scope* outer) {
    Scope scope;
    scope.outer = outer;
    scope.depth = outer ? outer->depth + 1 : 0;
    if (scope.depth > kMostNestedGraphs) fail("graphs are nested deeper than " + std::to_string(kMostNestedGraphs));
    Graph g;
    std::vector<std::string_view> with_values;
    for (Message m(message); m.next();) {
      if (m.tag() == graph_field::name) {
        g.name = m.bytes();
      } else if (m.tag() == graph_field::initializer || m.tag() == graph_field::sparse_initializer) {
        const bool sparse = m.tag() == graph_field::sparse_initializer;
        Initialiser& i = g.initialisers.emplace_back();
        i.value = sparse ? read_sparse_tensor(m.bytes(), program_.where, folder_, &i.name)
                         : read_tensor(m.bytes(), program_.where, folder_, &i.name);
        i.slot = define(g, scope, i.name);
      } else {
        m.skip();
      }
    }
    const std::unordered_map<std::string_view, std::int32_t> defaults = scope.slots;
    std::unordered_set<std::string_view> inputs;
    for (Message m(message); m.next();) {
      if (m.tag() != graph_field::input) {
        m.skip();
        continue;
      }
      Port port = read_port(Message(m.bytes()));
      if (!inputs.insert(port.name).second) fail("two inputs have the name " + quoted(port.name));
      if (defaults.count(port.name)) continue;  // an initialiser that old files repeat as an input
      g.input_slots.push_back(define(g, scope, port.name));
      g.inputs.push_back(std::move(port));
    }
    std::size_t count = 0;
    for (Message m(message); m.next();) {
      if (m.tag() == graph_field::node)
        g.nodes.push_back(read_node(m.bytes(), g, scope)), ++count;
      else
        m.skip();
    }
    for (Message m(message); m.next();) {
      if (m.tag() != graph_field::output) {
        m.skip();
        continue;
      }
      Port port = read_port(Message(m.bytes()));
      g.results.push_back(find(scope, port.name, "output", "graph " + quoted(g.name)));
      g.outputs.push_back(std::move(port));
    }
    choose_parameters(g);
    release(g);
    return g;
  }

  Attribute read_attribute(std::string_view message, const Scope& scope, const Node& node) {
    Attribute a{.name = {}, .message = message};
    std::string_view tensor;
    std::string_view graph;
    std::string_view sparse;
    int values = 0;
    AttributeType implied = AttributeType::undefined;
    const auto value = [&](AttributeType type) {
      values += implied != type;
      implied = type;
    };
    for (Message m(message); m.next();) {
      switch (m.tag()) {
        case attribute_field::name: a.name = m.bytes(); continue;
        case attribute_field::type: a.type = static_cast<AttributeType>(m.integer()); continue;
        case attribute_field::ref_attr_name: a.reference = m.bytes(); continue;
        case attribute_field::t: tensor = m.bytes(), value(AttributeType::tensor); continue;
        case attribute_field::g: graph = m.bytes(), value(AttributeType::graph); continue;
        case attribute_field::sparse_tensor: sparse = m.bytes(), value(AttributeType::sparse_tensor); continue;
        case attribute_field::f: value(AttributeType::number); break;
        case attribute_field::i: value(AttributeType::integer); break;
        case attribute_field::s: value(AttributeType::string); break;
        case attribute_field::floats: value(AttributeType::numbers); break;
        case attribute_field::ints: value(AttributeType::integers); break;
        case attribute_field::strings: value(AttributeType::strings); break;
        default: break;
      }
      m.skip();
    }
    if (a.name.empty()) fail(node, "an attribute has no name");
    if (!a.reference.empty()) return a;
    if (a.type == AttributeType::undefined) a.type = implied;
    // fields beyond the one that the type names may be there with their zero: what counts is the type
    if (a.type == AttributeType::tensor) a.tensor = read_tensor(tensor, where(node, a.name), folder_);
    if (a.type == AttributeType::sparse_tensor) a.tensor = read_sparse_tensor(sparse, where(node, a.name), folder_);
    if (a.type == AttributeType::graph) a.graph = std::make_unique<Graph>(read_graph(graph, &scope));
    return a;
  }
  std::string where(const Node& node, std::string_view attribute) const {
    return program_.where + ": node " + node.label() + ": attribute " + quoted(attribute);
  }

  Node read_node(std::string_view message, Graph& g, Scope& scope) {
    Node node;
    std::vector<std::string_view> inputs;
    std::vector<std::string_view> outputs;
    std::string_view overload;
    for (Message m(message); m.next();) {
      switch (m.tag()) {
        case node_field::input: inputs.push_back(m.bytes()); break;
        case node_field::output: outputs.push_back(m.bytes()); break;
        case node_field::name: node.name = m.bytes(); break;
        case node_field::op_type: node.operation = m.bytes(); break;
        case node_field::domain: node.domain = m.bytes(); break;
        case node_field::overload: overload = m.bytes(); break;
        default: m.skip();
      }
    }
    if (!outputs.empty()) node.first_output = outputs.front();
    if (node.operation.empty()) fail(node, "it names no operation");
    if (is_main_domain(node.domain)) node.domain = {};
    find_meaning(node, overload);
    while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
    for (const std::string_view name : inputs)
      node.inputs.push_back(name.empty() ? Reference{} : find(scope, name, "input", "node " + node.label()));
    read_attributes(node, message, scope);
    for (const std::string_view name : outputs) node.outputs.push_back(name.empty() ? -1 : define(g, scope, name));
    return node;
  }

  void read_attributes(Node& node, std::string_view message, const Scope& scope) {
    for (Message m(message); m.next();) {
      if (m.tag() != node_field::attribute) {
        m.skip();
        continue;
      }
      Attribute a = read_attribute(m.bytes(), scope, node);
      for (const Attribute& other : node.attributes)
        if (other.name == a.name) fail(node, "attribute " + quoted(a.name) + " is there twice");
      node.attributes.push_back(std::move(a));
    }
    constexpr std::size_t kMostAttributes = 64;  // one bit each of what was read
    if (node.attributes.size() > kMostAttributes) fail(node, "it has more than 64 attributes");
  }

  void find_meaning(Node& node, std::string_view overload) {
    if (Function* f = find_function(node.domain, node.operation, overload)) {
      resolve_function(*f, node);
      node.function = f;
      return;
    }
    node.version = imports_->of(node.domain);
    bool other = false;
    node.row = find_operation(node.domain, node.operation, std::max<std::int64_t>(node.version, 1), &other);
    const std::string domain = node.domain.empty() ? "" : " of domain " + quoted(node.domain);
    if (!node.row && !other) fail(node, "this operation" + domain + " is not supported");
    if (node.version < 0) fail(node, "the model imports no opset for domain " + quoted(node.domain));
    if (!node.row) fail(node, "this operation is not supported in opset " + std::to_string(node.version));
  }

  /// Initialisers of floats are parameters, unless their numbers decide on shapes.
  void choose_parameters(Graph& g) {
    std::vector<char> decides(static_cast<std::size_t>(g.slots), 0);
    const auto mark = [&](const Reference& r) {
      if (r.depth == 0 && r.slot >= 0) decides[static_cast<std::size_t>(r.slot)] = 1;
    };
    for (auto node = g.nodes.rbegin(); node != g.nodes.rend(); ++node) {
      const bool all = std::any_of(node->outputs.begin(), node->outputs.end(), [&](std::int32_t slot) {
        return slot >= 0 && decides[static_cast<std::size_t>(slot)];
      });
      if (all && (node->operation == "Shape" || node->operation == "Size")) continue;
      for (std::size_t i = 0; i < node->inputs.size(); ++i)
        if (all || (node->row && (node->row->quoted || (i < 32 && node->row->static_inputs >> i & 1U))))
          mark(node->inputs[i]);
    }
    for (Initialiser& i : g.initialisers) {
      if (frozen_ || !is_floating(i.value.type) || decides[static_cast<std::size_t>(i.slot)]) continue;
      std::string name(i.name);
      for (int n = 2; !parameter_names_.insert(name).second; ++n) name = std::string(i.name) + "_" + std::to_string(n);
      i.parameter = static_cast<std::int32_t>(program_.parameters.size());
      program_.parameter_types.push_back(i.value.type);
      program_.parameters.emplace_back(std::move(name), std::exchange(i.value, {}));
    }
  }

  /// Notes with each node which slots nobody reads behind it.
  static void release(Graph& g) {
    std::vector<char> stays(static_cast<std::size_t>(g.slots), 0);
    for (const Reference& r : g.results)
      if (r.depth == 0) stays[static_cast<std::size_t>(r.slot)] = 1;
    for (auto node = g.nodes.rbegin(); node != g.nodes.rend(); ++node) {
      for (const Attribute& a : node->attributes)
        if (a.graph) keep_captured(*a.graph, 1, stays);
      for (const Reference& r : node->inputs) {
        if (r.depth != 0 || r.slot < 0 || stays[static_cast<std::size_t>(r.slot)]) continue;
        stays[static_cast<std::size_t>(r.slot)] = 1;
        node->released.push_back(r.slot);
      }
    }
  }
  static void keep_captured(const Graph& inner, std::int32_t depth, std::vector<char>& stays) {
    const auto keep = [&](const Reference& r) {
      if (r.depth == depth) stays[static_cast<std::size_t>(r.slot)] = 1;
    };
    for (const Reference& r : inner.results) keep(r);
    for (const Node& node : inner.nodes) {
      for (const Reference& r : node.inputs) keep(r);
      for (const Attribute& a : node.attributes)
        if (a.graph) keep_captured(*a.graph, depth + 1, stays);
    }
  }

  Program& program_;
  std::filesystem::path folder_;
  bool frozen_;
  const Imports* imports_ = nullptr;
  int functions_open_ = 0;
  std::unordered_set<std::string> parameter_names_{};
};

}  // namespace

std::string Node::label() const {
  return quoted(name.empty() ? first_output : name) + " (" + std::string(operation) + ")";
}

std::int64_t Imports::of(std::string_view domain) const {
  for (const auto& [name, version] : versions)
    if (name == domain) return version;
  return -1;
}

std::shared_ptr<Program> read_program(std::vector<char> bytes, std::string where, const std::filesystem::path& folder,
                                      bool frozen) {
  auto program = std::make_shared<Program>();
  program->bytes = std::move(bytes);
  program->where = std::move(where);
  try {
    Reader(*program, folder, frozen).read();
  } catch (const OnnxError& e) {
    const std::string what = e.what();
    if (what.rfind("onnx: ", 0) == 0 && program->where != "onnx") throw OnnxError(program->where + what.substr(4));
    throw;
  }
  return program;
}

}  // namespace ferrite::onnx::detail
