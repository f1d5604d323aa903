/// Runs the graphs of a model as Ferrite's operations.
#include "ferrite/exchange/onnx/interpreter.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "ferrite/exchange/emit/keep_extents_open.h"
#include "ferrite/exchange/onnx/call.h"
#include "ferrite/exchange/onnx_error.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/storage_limit.h"

namespace ferrite::onnx::detail {
namespace {

const Value& value_at(const Environment& at, const Reference& r) {
  static const Value absent;
  if (r.slot < 0) return absent;
  const Environment* e = &at;
  for (std::int32_t i = 0; i < r.depth; ++i) e = e->outer;
  return e->values[static_cast<std::size_t>(r.slot)];
}

/// Returns the first value of a parameter that is also a running statistic.
const Constant* statistic_at(const Environment& at, const Reference& r) {
  if (r.slot < 0) return nullptr;
  const Environment* e = &at;
  for (std::int32_t i = 0; i < r.depth; ++i) e = e->outer;
  const auto found = e->graph->statistics.find(r.slot);
  return found == e->graph->statistics.end() ? nullptr : found->second;
}

bool is_constant(const Value& v) { return !v.defined() || v.constant; }

bool is_folded(const Node& node, const Values& inputs) {
  if (!node.row || node.row->draws) return false;
  for (const Attribute& a : node.attributes)
    if (a.graph) return false;
  return std::all_of(inputs.begin(), inputs.end(), is_constant);
}

/// Replaces the tensors of constants by their known numbers.
Values numbers_of(Values all) {
  for (Value& v : all)
    if (v.known.defined()) v.tensor = std::exchange(v.known, {});
  return all;
}

/// Sets the known numbers of outputs that are constant although their operand is not, such as its extents.
void mark_extents(Values& outputs) {
  for (Value& v : outputs)
    if (v.constant && v.tensor.defined() && !v.known.defined()) v.known = v.tensor;
}

/// Gives constants that follow from extents the tensors that the program computes for them; numbers that only a
/// constant can give (as by Unique) stay.
template <class F>
void keep_operations(const std::string& who, Values& outputs, const F& operations) {
  for (Value& v : outputs)
    if (v.tensor.defined()) v.known = v.tensor;
  try {
    const Values computed = operations();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].tensor.defined()) outputs[i].tensor = computed[i].tensor;
  } catch (const Error&) {
    for (const Value& v : outputs)
      if (v.tensor.defined()) exchange::detail::KeepExtentsOpen::has_read(who, {v.tensor.numel()});
  }
}

}  // namespace

const Attribute* find_attribute(const Node& node, std::string_view name, const Environment& at,
                                const Environment** where, std::size_t* index) {
  for (std::size_t i = 0; i < node.attributes.size(); ++i) {
    const Attribute& a = node.attributes[i];
    if (a.name != name) continue;
    if (index) *index = i;
    if (where) *where = &at;
    if (a.reference.empty()) return &a;
    const Environment* body = &at;
    while (body && !body->function) body = body->outer;
    if (!body) return nullptr;
    if (const Attribute* given = find_attribute(*body->node, a.reference, *body->caller, where)) return given;
    for (const Attribute& otherwise : body->function->body->defaults)
      if (otherwise.name == a.reference) return &otherwise;
    return nullptr;
  }
  return nullptr;
}

Values Interpreter::run_graph(const Graph& graph, const Values& inputs, const Environment* outer) const {
  Environment at{.graph = &graph, .outer = outer};
  at.values.resize(static_cast<std::size_t>(graph.slots));
  for (std::size_t i = 0; i < graph.input_slots.size(); ++i)
    at.values[static_cast<std::size_t>(graph.input_slots[i])] = inputs[i];
  for (const Initialiser& i : graph.initialisers) {
    Value& v = at.values[static_cast<std::size_t>(i.slot)];
    if (i.parameter < 0) {
      v = i.value->value();
    } else {
      const auto number = static_cast<std::size_t>(i.parameter);
      v = {parameter_(number), program_.parameter_types[number]};
    }
  }
  run_nodes(at);
  return results_of(at);
}

void Interpreter::count_body(const Node& node) const {
  constexpr std::int64_t kMostTimes = 64;
  if (++bodies_ / kMostTimes > limits_.most_trips)
    throw OnnxError(program_.where + ": node " + node.label() + ": graphs within this model ran more than " +
                    std::to_string(kMostTimes) + " times " + std::to_string(limits_.most_trips) +
                    " times in one call (ReadOptions::most_trips)");
}

void Interpreter::run_nodes(Environment& at) const {
  Values inputs;
  for (const Node& node : at.graph->nodes) {
    inputs.clear();
    for (const Reference& r : node.inputs) inputs.push_back(value_at(at, r));
    if (node.row && node.row->statistics)
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (node.row->statistics >> i & 1U)
          if (const Constant* const first = statistic_at(at, node.inputs[i])) inputs[i] = first->value();
    for (const std::int32_t slot : node.released) at.values[static_cast<std::size_t>(slot)] = {};
    Values outputs = node.function ? run_function(node, inputs, at) : run_node(node, inputs, at);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] < 0) continue;
      if (i >= outputs.size() || !outputs[i].defined())
        throw OnnxError(program_.where + ": node " + node.label() + ": output " + std::to_string(i) +
                        " is not supported");
      at.values[static_cast<std::size_t>(node.outputs[i])] = std::move(outputs[i]);
    }
  }
}

Values Interpreter::results_of(const Environment& at) const {
  Values results;
  for (const Reference& r : at.graph->results) results.push_back(value_at(at, r));
  return results;
}

Values Interpreter::run_function(const Node& node, const Values& inputs, const Environment& at) const {
  const Function::Body& f = *node.function->body;
  const auto refuse = [&](const std::string& what) {
    throw OnnxError(program_.where + ": node " + node.label() + ": " + what);
  };
  if (inputs.size() > f.graph.inputs.size())
    refuse("the function takes fewer inputs: " + std::to_string(inputs.size()));
  for (const Attribute& a : node.attributes) {
    const auto known = [&](const auto& name) { return name == a.name; };
    if (std::none_of(f.attributes.begin(), f.attributes.end(), known) &&
        std::none_of(f.defaults.begin(), f.defaults.end(), [&](const Attribute& d) { return d.name == a.name; }))
      refuse("attribute \"" + std::string(a.name) + "\" is none of the function's");
  }
  Environment body{.graph = &f.graph, .function = node.function, .node = &node, .caller = &at};
  body.values.resize(static_cast<std::size_t>(f.graph.slots));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    body.values[static_cast<std::size_t>(f.graph.input_slots[i])] = inputs[i];
  run_nodes(body);
  return results_of(body);
}

Scope Interpreter::scope_of(const Node& node) const {
  const std::string model =
      model_.empty() ? std::filesystem::path(program_.where).filename().string() : std::string(model_.path());
  return Scope::of(model + "/" + std::string(node.title));
}

Values Interpreter::run_node(const Node& node, const Values& inputs, const Environment& at) const {
  const auto lower = [&](const Values& in) {
    const Call call(*this, at, node, in, node.version);
    try {
      const ferrite::detail::StorageLimit limit(limits_.most_elements);
      Values outputs = node.row->lower(call);
      call.check_all_read();
      for (const Value& v : outputs)
        if (v.tensor.defined() && v.tensor.numel() > limits_.most_elements)
          call.refuse("a result of " + v.tensor.shape().str() + " is too large (ReadOptions::most_elements)");
      return outputs;
    } catch (const OnnxError&) {
      throw;
    } catch (const TraceError& e) {
      throw TraceError(program_.where + ": node " + node.label() + ": " + e.what());
    } catch (const Error& e) {
      throw OnnxError(program_.where + ": node " + node.label() + ": " + e.what());
    }
  };
  const bool open = exchange::detail::KeepExtentsOpen::active();
  Values outputs;
  if (!is_folded(node, inputs)) {
    std::optional<ferrite::detail::Scoped> scoped;
    if (ferrite::detail::observed()) scoped.emplace(scope_of(node));
    outputs = lower(inputs);
    if (open) mark_extents(outputs);
    return outputs;
  }
  {
    const NewFrame apart;
    outputs = open ? lower(numbers_of(inputs)) : lower(inputs);
  }
  for (Value& v : outputs) v.constant = true;
  if (open && std::ranges::any_of(inputs, [](const Value& v) { return v.known.defined(); }))
    keep_operations("node " + node.label(), outputs, [&] { return lower(inputs); });
  return outputs;
}

}  // namespace ferrite::onnx::detail
