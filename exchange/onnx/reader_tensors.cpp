/// Walks over the tensors of a model: which are parameters, and which are held because its messages lack their
/// elements.
#include <utility>

#include "ferrite/exchange/onnx/reader.h"

namespace ferrite::onnx::detail {
namespace {

/// Calls `each` with the nodes of a graph, the last one first.
template <class F>
void each_node_from_behind(std::string_view graph, const F& each) {
  constexpr std::size_t kBlock = 64;      // nodes whose views are there at a time
  std::vector<std::size_t> starts = {0};  // of fields with so many nodes
  std::vector<std::string_view> block;
  std::size_t nodes = 0;
  Message(graph).each_of(graph_field::node, [&](std::string_view node) {
    if (++nodes % kBlock == 0) starts.push_back(static_cast<std::size_t>(node.data() + node.size() - graph.data()));
  });
  for (std::size_t end = graph.size(); !starts.empty(); starts.pop_back()) {
    block.clear();
    Message(graph.substr(starts.back(), end - starts.back())).each_of(graph_field::node, [&](std::string_view node) {
      block.push_back(node);
    });
    for (; !block.empty(); block.pop_back()) each(block.back());
    end = starts.back();
  }
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
  const std::vector<bool> decides = check_ && !check_->frozen ? deciding(scope, message) : std::vector<bool>();
  std::int32_t slot = 0;
  each_tensor(message, [&](std::string_view tensor, Storage storage) {
    const std::int32_t at = slot++;
    if (check_) return check_initialiser(tensor, storage, decides.empty() || decides[static_cast<std::size_t>(at)]);
    Initialiser& i = g.initialisers.emplace_back(Initialiser{.slot = at});
    const auto held = program_.held.find(program_.place_of(tensor));
    if (held == program_.held.end()) {
      i.value = &graphs_->constants.emplace_back(read_constant(tensor, storage, program_.where, {}));
    } else {
      i.parameter = held->second.parameter;
      i.value = &held->second.value;
    }
  });
}

void Reader::check_initialiser(std::string_view message, Storage storage, bool decides) {
  Constant c = read_checked(message, storage, program_.where);
  if (decides || !is_floating(c.type())) return check_constant(message, std::move(c));
  Program& p = check_->program;
  const std::string given(name_of_tensor(message, storage));
  std::string name = given;
  for (int& n = check_->given[given]; !check_->parameter_names.insert(name).second;)
    name = given + "_" + std::to_string(++n + 1);
  p.held[p.place_of(message)].parameter = static_cast<std::int32_t>(p.parameters.size());
  p.parameter_types.push_back(c.type());
  p.parameters.emplace_back(std::move(name), std::move(c).value());
}

std::vector<bool> Reader::deciding(const Scope& scope, std::string_view message) const {
  std::vector<bool> decides(static_cast<std::size_t>(scope.slots.size()));
  each_node_from_behind(message, [&](std::string_view node) {
    std::string_view operation, domain, overload;
    bool any = false;
    for (Message m(node); m.next();) {
      switch (m.tag()) {
        case node_field::op_type: operation = m.bytes(); break;
        case node_field::domain: domain = m.bytes(); break;
        case node_field::overload: overload = m.bytes(); break;
        case node_field::output:
          if (const std::string_view name = m.bytes(); !name.empty())
            any |= decides[static_cast<std::size_t>(scope.slots.find(name))];
          break;
        default: m.skip();
      }
    }
    if (any && (operation == "Shape" || operation == "Size")) return;
    if (is_main_domain(domain)) domain = {};
    const Operation* const row =
        find_function(domain, operation, overload)
            ? nullptr
            : find_operation(domain, operation, std::max<std::int64_t>(imports_->of(domain), 1), nullptr);
    std::size_t i = 0;
    Message(node).each_of(node_field::input, [&](std::string_view name) {
      const bool all = any || (row && (row->quoted || (i < 32 && row->static_inputs >> i & 1U)));
      ++i;
      if (!all || name.empty()) return;
      if (const std::int32_t slot = scope.slots.find(name); slot >= 0) decides[static_cast<std::size_t>(slot)] = true;
    });
  });
  return decides;
}

}  // namespace ferrite::onnx::detail
