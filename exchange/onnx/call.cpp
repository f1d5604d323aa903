/// The operands and attributes of one application of an operation.
#include "ferrite/exchange/onnx/call.h"

#include "ferrite/exchange/emit/keep_extents_open.h"
#include "ferrite/exchange/onnx/interpreter.h"
#include "ferrite/exchange/onnx/wire.h"
#include "ferrite/exchange/onnx_error.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

/// Calls `each` with every field of one number in an attribute.
template <class F>
void each_field(const Attribute& a, std::uint32_t field, const F& each) {
  for (Message m(a.message); m.next();) {
    if (m.tag() == field)
      each(m);
    else
      m.skip();
  }
}

template <class T>
std::vector<T> numbers_of(const Tensor& x) {
  return visit_dtype(x.dtype(), [&](auto zero) {
    using From = decltype(zero);
    std::vector<T> out;
    for (const From v : x.to_vector<From>()) out.push_back(static_cast<T>(v));
    return out;
  });
}

}  // namespace

Call::Call(const Interpreter& interpreter, const Environment& environment, const Node& node, const Values& inputs,
           std::int64_t version)
    : interpreter_(&interpreter), environment_(&environment), node_(&node), inputs_(inputs), version_(version) {}

std::string Call::label() const { return "node " + node_->label(); }
std::string_view Call::name() const { return node_->operation; }
std::string_view Call::domain() const { return node_->row->domain; }

bool Call::has(std::size_t i) const {
  if (i < 64)
    read_inputs_ |= std::uint64_t{1} << i;
  else
    read_inputs_ |= std::uint64_t{1} << 63;
  return i < inputs_.size() && inputs_[i].defined();
}

const Value& Call::value(std::size_t i) const {
  if (!has(i)) refuse("input " + std::to_string(i) + " is missing");
  return inputs_[i];
}

const Tensor& Call::tensor(std::size_t i) const {
  const Value& v = value(i);
  if (!v.tensor.defined()) refuse("input " + std::to_string(i) + " is a sequence, not a tensor");
  return v.tensor;
}

bool Call::known(std::size_t i) const {
  (void)tensor(i);
  return !inputs_[i].numbers().is_abstract();
}

std::vector<std::int64_t> Call::known_ints(std::size_t i) const {
  if (!known(i)) refuse("input " + std::to_string(i) + " decides on its shape, and depends on data");
  const Tensor& x = inputs_[i].numbers();
  if (kind_of(x.dtype()) == DtypeKind::floating) refuse("input " + std::to_string(i) + " must hold integers");
  std::vector<std::int64_t> all = numbers_of<std::int64_t>(x);
  if (inputs_[i].known.defined()) tell(all);
  return all;
}

std::vector<double> Call::known_floats(std::size_t i) const {
  if (!known(i)) refuse("input " + std::to_string(i) + " decides on its shape, and depends on data");
  return numbers_of<double>(inputs_[i].numbers());
}

std::int64_t Call::known_int(std::size_t i) const {
  const auto all = known_ints(i);
  if (all.size() != 1)
    refuse("input " + std::to_string(i) + " must have one element, it has " + tensor(i).shape().str());
  return all[0];
}

double Call::known_float(std::size_t i) const {
  const auto all = known_floats(i);
  if (all.size() != 1)
    refuse("input " + std::to_string(i) + " must have one element, it has " + tensor(i).shape().str());
  return all[0];
}

const Attribute* Call::find(std::string_view name, bool read) const {
  for (std::size_t i = 0; i < node_->attributes.size(); ++i)
    if (read && node_->attributes[i].name == name) read_attributes_ |= std::uint64_t{1} << i;
  return find_attribute(*node_, name, *environment_);
}

const Attribute& Call::get(std::string_view name, int type) const {
  const Attribute* a = find(name, true);
  if (!a) refuse("attribute \"" + std::string(name) + "\" is missing");
  if (static_cast<int>(a->type) != type)
    refuse("attribute \"" + std::string(name) + "\" is of type " + std::to_string(static_cast<int>(a->type)) +
           ", not " + std::to_string(type));
  return *a;
}

bool Call::has_attribute(std::string_view name) const { return find(name, false) != nullptr; }
void Call::without_effect(std::string_view name) const { (void)find(name, true); }

std::int64_t Call::integer(std::string_view name) const {
  std::int64_t value = 0;
  each_field(get(name, static_cast<int>(AttributeType::integer)), attribute_field::i,
             [&](Message& m) { value = m.integer(); });
  return value;
}
std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) const {
  return find(name, true) ? integer(name) : otherwise;
}

double Call::number(std::string_view name) const {
  double value = 0;
  each_field(get(name, static_cast<int>(AttributeType::number)), attribute_field::f,
             [&](Message& m) { value = static_cast<double>(m.number()); });
  return value;
}
double Call::number(std::string_view name, double otherwise) const {
  return find(name, true) ? number(name) : otherwise;
}

std::string Call::text(std::string_view name) const {
  std::string value;
  each_field(get(name, static_cast<int>(AttributeType::string)), attribute_field::s,
             [&](Message& m) { value = m.bytes(); });
  return value;
}
std::string Call::text(std::string_view name, std::string_view otherwise) const {
  return find(name, true) ? text(name) : std::string(otherwise);
}

std::vector<std::int64_t> Call::integers(std::string_view name, std::vector<std::int64_t> otherwise) const {
  if (!find(name, true)) return otherwise;
  std::vector<std::int64_t> values;
  each_field(get(name, static_cast<int>(AttributeType::integers)), attribute_field::ints,
             [&](Message& m) { m.integers(values); });
  return values;
}

std::vector<double> Call::numbers(std::string_view name, std::vector<double> otherwise) const {
  if (!find(name, true)) return otherwise;
  std::vector<float> values;
  each_field(get(name, static_cast<int>(AttributeType::numbers)), attribute_field::floats,
             [&](Message& m) { m.numbers(values); });
  return {values.begin(), values.end()};
}

std::vector<std::string> Call::texts(std::string_view name, std::vector<std::string> otherwise) const {
  if (!find(name, true)) return otherwise;
  std::vector<std::string> values;
  each_field(get(name, static_cast<int>(AttributeType::strings)), attribute_field::strings,
             [&](Message& m) { values.emplace_back(m.bytes()); });
  return values;
}

Value Call::tensor_attribute(std::string_view name) const {
  const Attribute* a = find(name, true);
  if (!a) refuse("attribute \"" + std::string(name) + "\" is missing");
  if (!a->tensor) refuse("attribute \"" + std::string(name) + "\" is no tensor");
  return a->tensor->value();
}

Values Call::run(std::string_view attribute, const Values& inputs) const {
  const Graph& graph = *get(attribute, static_cast<int>(AttributeType::graph)).graph;
  if (inputs.size() != graph.inputs.size())
    refuse("graph \"" + std::string(attribute) + "\" takes " + std::to_string(graph.inputs.size()) + " inputs, not " +
           std::to_string(inputs.size()));
  interpreter_->count_body(*node_);
  return interpreter_->run_graph(graph, inputs, environment_);
}
std::size_t Call::graph_inputs(std::string_view attribute) const {
  return get(attribute, static_cast<int>(AttributeType::graph)).graph->inputs.size();
}
std::size_t Call::graph_outputs(std::string_view attribute) const {
  return get(attribute, static_cast<int>(AttributeType::graph)).graph->outputs.size();
}
std::int64_t Call::most_trips() const { return interpreter_->limits().most_trips; }
std::int64_t Call::most_elements() const { return interpreter_->limits().most_elements; }

std::size_t Call::outputs() const { return node_->outputs.size(); }
bool Call::wants(std::size_t i) const { return i < node_->outputs.size() && node_->outputs[i] >= 0; }

void Call::refuse(const std::string& why) const {
  throw OnnxError(interpreter_->program().where + ": " + label() + ": " + why);
}
void Call::tell(std::vector<std::int64_t> numbers, bool counts) const {
  using exchange::detail::KeepExtentsOpen;
  if (KeepExtentsOpen::active()) KeepExtentsOpen::has_read(label(), std::move(numbers), counts);
}
void Call::lowered_as(const std::string& what) const { interpreter_->note(*node_, what); }

void Call::check_all_read() const {
  for (std::size_t i = 0; i < node_->attributes.size(); ++i)
    if (!(read_attributes_ >> i & 1U) && find_attribute(*node_, node_->attributes[i].name, *environment_))
      refuse("attribute \"" + std::string(node_->attributes[i].name) + "\" is not supported");
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].defined() && !(read_inputs_ >> std::min<std::size_t>(i, 63) & 1U))
      refuse("input " + std::to_string(i) + " is not supported");
}

}  // namespace ferrite::onnx::detail
