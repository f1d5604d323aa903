/// Walks over the nodes of a graph and their attributes, and notes which values are released where.
#include <algorithm>
#include <utility>

#include "ferrite/exchange/onnx/onnx_reader.h"

namespace ferrite::onnx::detail {

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

}  // namespace ferrite::onnx::detail
