/// Walks over the messages of a model: its graphs and functions, their nodes and the tensors in them.
#include "ferrite/exchange/onnx/onnx_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ferrite/tensor/recorder.h"

namespace ferrite::onnx::detail {
namespace {

constexpr int kMostNestedGraphs = 32;
constexpr int kMostNestedFunctions = 32;
constexpr int kMostNested = 64;  // graphs and functions together
constexpr std::int64_t kNewestOpset = 28;
constexpr std::size_t kMostFunctions = 4096;
constexpr std::size_t kMostImports = 256;

/// Returns an upper bound on the number of names: values that nodes define, inputs and initialisers.
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
    const NewFrame apart;  // constants are not part of a trace
    graphs_ = Reader::graphs_of(*this);
  });
  return *graphs_;
}

std::shared_ptr<CheckedModel> read_model(Input& input, std::string where, const std::filesystem::path& folder,
                                         const Training& training, std::set<std::string, std::less<>> constants) {
  auto program = std::make_shared<CheckedModel>(std::move(where));
  program->constants = std::move(constants);
  try {
    Outline outline = outline_of(input);
    program->bytes = std::move(outline.bytes);
    if (program->bytes.size() > std::numeric_limits<std::uint32_t>::max())
      throw DamagedFile("more than 4 GiB of messages: only raw_data and external data may be larger");
    Reader::check(*program, {folder, &input, program->messages(), std::move(outline.left_out)}, training);
  } catch (const DamagedFile& e) {
    throw OnnxError(program->where + ": " + e.fault());
  }
  return program;
}

// ---- nodes and their attributes, and which values are released where -----------------------------------------------

Attribute Reader::read_attribute(std::string_view message, const Scope& scope, const Node& node) {
  Attribute a{.name = {}, .message = message};
  std::string_view tensor;
  std::string_view graph;
  std::string_view sparse;
  AttributeType implied = AttributeType::undefined;
  std::uint64_t seen = 0;
  const auto value = [&](AttributeType type) {
    implied = type;
    seen |= std::uint64_t{1} << static_cast<unsigned>(type);
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
  // a list without elements and a number that is 0 may be left out; a value of another type in its place may not
  const auto type = static_cast<std::uint32_t>(a.type);
  if (type == 0 || type > 14 || (seen != 0 && !(seen >> type & 1U)))
    fail(node, "attribute " + quoted(a.name) + " has no value of its type, " + std::to_string(type));
  const auto where = [&] { return program_.where + ": node " + node.label() + ": attribute " + quoted(a.name); };
  if (a.type == AttributeType::tensor) a.tensor = read_attribute_tensor(tensor, Storage::dense, where());
  if (a.type == AttributeType::sparse_tensor) a.tensor = read_attribute_tensor(sparse, Storage::sparse, where());
  if (a.type == AttributeType::graph) {
    Graph g = read_graph(graph, &scope);
    if (!check_) a.graph = std::make_unique<Graph>(std::move(g));
  }
  return a;
}

void Reader::read_node(std::string_view message, Graph& g, Scope& scope) {
  Node node;
  std::size_t inputs = 0;  // up to the last one that has a name
  std::size_t all_inputs = 0;
  std::size_t outputs = 0;
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  for (Message m(message); m.next();) {
    switch (m.tag()) {
      case node_field::input:
        ++all_inputs;
        if (!m.bytes().empty()) inputs = all_inputs;
        break;
      case node_field::output:
        if (outputs++ == 0)
          node.title = m.bytes();
        else
          m.skip();
        break;
      case node_field::name: name = m.bytes(); break;
      case node_field::op_type: node.operation = m.bytes(); break;
      case node_field::domain: domain = m.bytes(); break;
      case node_field::overload: overload = m.bytes(); break;
      default: m.skip();
    }
  }
  if (!name.empty()) node.title = name;
  if (node.operation.empty()) fail(node, "it names no operation");
  find_meaning(node, is_main_domain(domain) ? std::string_view() : domain, overload);
  if (!check_) {
    node.inputs = graphs_->lists.make<Reference>(inputs);
    node.outputs = graphs_->lists.make<std::int32_t>(outputs);
  }
  auto to = node.inputs.begin();
  Message(message).each_of(node_field::input, [&](std::string_view input) {
    const Reference from = input.empty() ? Reference{} : find(scope, input, "input", node);
    if (to != node.inputs.end()) *to++ = from;
  });
  read_attributes(node, message, scope);
  auto slot = node.outputs.begin();
  Message(message).each_of(node_field::output, [&](std::string_view output) {
    const std::int32_t there = output.empty() ? -1 : define(g, scope, output);
    if (slot != node.outputs.end()) *slot++ = there;
  });
  if (!check_) g.nodes.push_back(std::move(node));
}

void Reader::read_attributes(Node& node, std::string_view message, const Scope& scope) {
  constexpr std::size_t kMostAttributes = 64;  // one bit each of what was read
  Message(message).each_of(node_field::attribute, [&](std::string_view bytes) {
    if (node.attributes.size() == kMostAttributes) fail(node, "it has more than 64 attributes");
    Attribute a = read_attribute(bytes, scope, node);
    for (const Attribute& other : node.attributes)
      if (other.name == a.name) fail(node, "attribute " + quoted(a.name) + " is there twice");
    node.attributes.push_back(std::move(a));
  });
}

void Reader::find_meaning(Node& node, std::string_view domain, std::string_view overload) {
  if (Function* f = find_function(domain, node.operation, overload)) {
    resolve_function(*f, node);
    node.function = f;
    count(f->size, node);
    return;
  }
  node.version = imports_->of(domain);
  bool other = false;
  node.row = find_operation(domain, node.operation, std::max<std::int64_t>(node.version, 1), &other);
  if (!node.row && !other)
    fail(node, "this operation" + (domain.empty() ? "" : " of domain " + quoted(domain)) + " is not supported");
  if (node.version < 0) fail(node, "the model imports no opset for domain " + quoted(domain));
  if (!node.row) fail(node, "this operation is not supported in opset " + std::to_string(node.version));
  count(1, node);
}

void Reader::count(std::uint64_t nodes, const Node& node) {
  constexpr std::uint64_t kMostNodes = std::uint64_t{1} << 22;
  if ((size_ += nodes) > kMostNodes)
    fail(node, "the model has more than " + std::to_string(kMostNodes) + " nodes, its functions in their places");
}

void Reader::release(Graph& g) {
  if (check_) return;
  std::vector<char> stays(static_cast<std::size_t>(g.slots), 0);
  for (const Reference& r : g.results)
    if (r.depth == 0) stays[static_cast<std::size_t>(r.slot)] = 1;
  std::vector<std::int32_t> released;
  for (auto node = g.nodes.rbegin(); node != g.nodes.rend(); ++node) {
    for (const Attribute& a : node->attributes)
      if (a.graph) keep_captured(*a.graph, 1, stays);
    released.clear();
    for (const Reference& r : node->inputs) {
      if (r.depth != 0 || r.slot < 0 || stays[static_cast<std::size_t>(r.slot)]) continue;
      stays[static_cast<std::size_t>(r.slot)] = 1;
      released.push_back(r.slot);
    }
    const auto list = graphs_->lists.make<std::int32_t>(released.size());
    std::copy(released.begin(), released.end(), list.begin());
    node->released = list;
  }
}

void Reader::keep_captured(const Graph& inner, std::int32_t depth, std::vector<char>& stays) {
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

// ---- tensors: which are parameters, and which are held because messages lack their elements ------------------------

namespace {

/// Calls `each` with the nodes of a graph or function, the last one first. `field` is the number of their field.
template <class F>
void each_node_from_behind(std::string_view graph, std::uint32_t field, const F& each) {
  constexpr std::size_t kBlock = 64;      // number of nodes whose views are in memory at a time
  std::vector<std::size_t> starts = {0};  // positions after every kBlock nodes
  std::vector<std::string_view> block;
  std::size_t nodes = 0;
  Message(graph).each_of(field, [&](std::string_view node) {
    if (++nodes % kBlock == 0) starts.push_back(static_cast<std::size_t>(node.data() + node.size() - graph.data()));
  });
  for (std::size_t end = graph.size(); !starts.empty(); starts.pop_back()) {
    block.clear();
    Message(graph.substr(starts.back(), end - starts.back())).each_of(field, [&](std::string_view node) {
      block.push_back(node);
    });
    for (; !block.empty(); block.pop_back()) each(block.back());
    end = starts.back();
  }
}

/// Returns the label of a node, `"encoder/Gru_3" (GRU)`.
std::string label_of(std::string_view message) {
  Node node;
  std::string_view name;
  for (Message m(message); m.next();) {
    if (m.tag() == node_field::name)
      name = m.bytes();
    else if (m.tag() == node_field::op_type)
      node.operation = m.bytes();
    else if (m.tag() == node_field::output && node.title.empty())
      node.title = m.bytes();
    else
      m.skip();
  }
  if (!name.empty()) node.title = name;
  return node.label();
}

}  // namespace

const Constant* Reader::read_attribute_tensor(std::string_view message, Storage storage, const std::string& where) {
  if (!check_) {
    const auto held = program_.held.find(program_.place_of(message));
    if (held != program_.held.end()) return &held->second.value;
    return &graphs_->constants.emplace_back(read_constant(message, storage, where, {}));
  }
  check_constant(message, read_checked(message, storage, where));
  return nullptr;
}

void Reader::check_constant(std::string_view message, Constant c) {
  if (!c.elsewhere()) return c.check();
  c.keep();
  check_->program.held[program_.place_of(message)].value = std::move(c);
}

Constant Reader::read_checked(std::string_view message, Storage storage, const std::string& where) {
  constexpr std::int64_t kMostSparse = 1 << 17;
  Constant c = read_constant(message, storage, where, check_->elsewhere);
  if (storage == Storage::dense) return c;
  const std::int64_t more = c.value().tensor.numel() - 64 * static_cast<std::int64_t>(message.size());
  if (more > 0 && (check_->sparse += more) > kMostSparse)
    fail("its sparse tensors are too large: " + std::to_string(check_->sparse) +
         " elements more than 64 for each byte of them");
  return c;
}

void Reader::read_initialisers(Graph& g, const Scope& scope, std::string_view message) {
  std::size_t n = 0;
  each_tensor(message, [&](std::string_view, Storage) { ++n; });
  if (n == 0) return;
  std::map<std::int32_t, std::string> nodes;
  const Because note = [&](std::int32_t slot, std::string_view node) {
    if (static_cast<std::size_t>(slot) < n) nodes.emplace(slot, label_of(node));
  };
  std::vector<bool> decides;
  std::vector<std::uint16_t> uses;
  if (!check_ || !check_->training.frozen) {
    decides =
        deciding(scope, message, graph_field::node, inputs_that_are_data(scope, message), check_ ? Because() : note);
    uses = uses_of_initialisers(scope, message, n);
  }
  std::size_t next = 0;
  each_tensor(message, [&](std::string_view tensor, Storage storage) {
    const std::size_t at = next++;
    if (check_)
      return check_initialiser(tensor, storage, uses.empty() ? std::uint16_t{Use::other} : uses[at],
                               !decides.empty() && decides[at]);
    const auto slot = static_cast<std::int32_t>(at);
    Initialiser& i = g.initialisers.emplace_back(Initialiser{.slot = slot, .name = name_of_tensor(tensor, storage)});
    i.reason = program_.reasons[initialisers_++];
    if (i.reason == Reason::folded) i.because = nodes[slot];
    const auto held = program_.held.find(program_.place_of(tensor));
    if (held == program_.held.end()) {
      i.value = &graphs_->constants.emplace_back(read_constant(tensor, storage, program_.where, {}));
    } else {
      i.parameter = held->second.parameter;
      i.value = &held->second.value;
      if (i.parameter >= 0 && uses[at] & Use::statistic) g.statistics[slot] = i.value;
    }
  });
}

void Reader::check_initialiser(std::string_view message, Storage storage, std::uint16_t uses, bool decides) {
  Constant c = read_checked(message, storage, program_.where);
  CheckedModel& p = check_->program;
  const std::string_view file_name = name_of_tensor(message, storage);
  const auto asked = check_->training.asked.find(std::string(file_name));
  if (asked != check_->training.asked.end()) check_->asked.insert(asked->first);
  p.reasons.push_back(reason_for(check_->training, file_name, c, uses, decides));
  if (!trains(p.reasons.back())) return check_constant(message, std::move(c));
  const std::string given(file_name);
  std::string name = given;
  for (int& n = check_->given[given]; !check_->parameter_names.insert(name).second;)
    name = given + "_" + std::to_string(++n + 1);
  Held& held = p.held[p.place_of(message)];
  held.parameter = static_cast<std::int32_t>(p.parameters.size());
  p.parameter_types.push_back(c.type());
  p.parameters.emplace_back(std::move(name), std::move(c).value());
  if (uses & Use::statistic) {  // the elements are shared until the parameter changes
    Value first = p.parameters.back().second;
    first.constant = true;
    held.value = Constant(std::move(first), true);
  }
}

bool Reader::Meaning::takes(std::size_t i) const {
  if (function) return i < 64 && (function->static_inputs >> i & 1U);
  return row && i < 32 && (row->static_inputs >> i & 1U);
}

Reader::Meaning Reader::meaning_of(std::string_view node) const {
  Meaning m;
  std::string_view domain, overload;
  for (Message field(node); field.next();) {
    switch (field.tag()) {
      case node_field::op_type: m.operation = field.bytes(); break;
      case node_field::domain: domain = field.bytes(); break;
      case node_field::overload: overload = field.bytes(); break;
      default: field.skip();
    }
  }
  if (is_main_domain(domain)) domain = {};
  m.function = find_function(domain, m.operation, overload);
  if (!m.function)
    m.row = find_operation(domain, m.operation, std::max<std::int64_t>(imports_->of(domain), 1), nullptr);
  return m;
}

std::vector<bool> Reader::inputs_that_are_data(const Scope& scope, std::string_view message) const {
  std::vector<bool> data(static_cast<std::size_t>(scope.slots.size()));
  if (scope.outer) return data;  // states of loops and the like may be known
  Message(message).each_of(graph_field::input, [&](std::string_view bytes) {
    std::string_view name;
    Message(bytes).each_of(value_info_field::name, [&](std::string_view given) { name = given; });
    if (!program_.constants.contains(name)) data[static_cast<std::size_t>(scope.slots.find(name))] = true;
  });
  each_tensor(message, [&](std::string_view tensor, Storage storage) {
    data[static_cast<std::size_t>(scope.slots.find(name_of_tensor(tensor, storage)))] = false;  // repeated as an input
  });
  return data;
}

std::vector<std::uint16_t> Reader::uses_of_initialisers(const Scope& scope, std::string_view message,
                                                        std::size_t n) const {
  std::vector<std::uint16_t> uses(n);
  Message(message).each_of(graph_field::node, [&](std::string_view node) {
    const Meaning meaning = meaning_of(node);
    std::size_t i = 0;
    Message(node).each_of(node_field::input, [&](std::string_view name) {
      const std::int32_t slot = name.empty() ? -1 : scope.slots.find(name);
      if (slot >= 0 && static_cast<std::size_t>(slot) < n)
        uses[static_cast<std::size_t>(slot)] |= use_of(meaning.row, i);
      ++i;
    });
  });
  return uses;
}

std::vector<bool> Reader::deciding(const Scope& scope, std::string_view message, std::uint32_t nodes,
                                   std::vector<bool> data, const Because& because) const {
  const auto slot_of = [&](std::string_view name) { return name.empty() ? -1 : scope.slots.find(name); };
  const auto is_extents = [](const Meaning& m) {
    return !m.function && (m.operation == "Shape" || m.operation == "Size");
  };
  data.resize(static_cast<std::size_t>(scope.slots.size()));
  Message(message).each_of(nodes, [&](std::string_view node) {
    const Meaning meaning = meaning_of(node);
    if (is_extents(meaning)) return;
    bool any = meaning.row && meaning.row->draws;
    Message(node).each_of(node_field::input, [&](std::string_view name) {
      if (const std::int32_t slot = slot_of(name); slot >= 0) any |= data[static_cast<std::size_t>(slot)];
    });
    if (!any) return;
    Message(node).each_of(node_field::output, [&](std::string_view name) {
      if (const std::int32_t slot = slot_of(name); slot >= 0) data[static_cast<std::size_t>(slot)] = true;
    });
  });
  std::vector<bool> decides(static_cast<std::size_t>(scope.slots.size()));
  each_node_from_behind(message, nodes, [&](std::string_view node) {
    const Meaning meaning = meaning_of(node);
    bool any = false;
    Message(node).each_of(node_field::output, [&](std::string_view name) {
      if (const std::int32_t slot = slot_of(name); slot >= 0) any |= decides[static_cast<std::size_t>(slot)];
    });
    if (any && is_extents(meaning)) return;
    std::size_t i = 0;
    Message(node).each_of(node_field::input, [&](std::string_view name) {
      const bool needed = any || meaning.takes(i++);
      const std::int32_t slot = needed ? slot_of(name) : -1;
      if (slot < 0 || data[static_cast<std::size_t>(slot)] || decides[static_cast<std::size_t>(slot)]) return;
      decides[static_cast<std::size_t>(slot)] = true;
      if (because) because(slot, node);
    });
  });
  return decides;
}

}  // namespace ferrite::onnx::detail
