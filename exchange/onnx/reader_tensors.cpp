/// Walks over the tensors of a model: which are parameters, and which are held because its messages lack their
/// elements.
#include <utility>

#include "ferrite/exchange/onnx/onnx_reader.h"

namespace ferrite::onnx::detail {
namespace {

/// Calls `each` with the nodes of a graph or function, the last one first. `field` is the number of theirs.
template <class F>
void each_node_from_behind(std::string_view graph, std::uint32_t field, const F& each) {
  constexpr std::size_t kBlock = 64;      // nodes whose views are there at a time
  std::vector<std::size_t> starts = {0};  // of fields with so many nodes
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

/// `"encoder/Gru_3" (GRU)`.
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
