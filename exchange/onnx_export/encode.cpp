/// Writes the parts of a model as the messages of an ONNX file.
#include <protozero/pbf_writer.hpp>

#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/onnx/schema.h"
#include "ferrite/exchange/onnx/value.h"
#include "ferrite/exchange/onnx_export/export_parts.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::onnx::detail {
namespace {

using protozero::pbf_writer;

constexpr std::int64_t kIrVersion = 8, kOpset = 17;
constexpr std::int64_t kMostBytes = (std::int64_t{1} << 31) - 1;

std::int32_t element_type(Dtype dtype) { return static_cast<std::int32_t>(type_for(dtype)); }

void write_tensor(pbf_writer w, const InitialiserParts& i) {
  const Tensor t = ferrite::detail::dense(i.tensor);
  const Shape& shape = t.shape();
  w.add_packed_int64(tensor_field::dims, shape.begin(), shape.end());
  w.add_int32(tensor_field::data_type, element_type(t.dtype()));
  w.add_string(tensor_field::name, i.name);
  visit_dtype(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto bytes = static_cast<std::size_t>(t.numel()) * sizeof(T);
    w.add_bytes(tensor_field::raw_data, reinterpret_cast<const char*>(t.data<T>()), bytes);
  });
}

void write_graph(pbf_writer w, const GraphParts& g);

void write_attribute(pbf_writer w, const AttributeParts& a) {
  w.add_string(attribute_field::name, a.name);
  const auto type = [&](AttributeType t) { w.add_enum(attribute_field::type, static_cast<std::int32_t>(t)); };
  if (const auto* i = std::get_if<std::int64_t>(&a.value)) {
    w.add_int64(attribute_field::i, *i);
    type(AttributeType::integer);
  } else if (const auto* f = std::get_if<float>(&a.value)) {
    w.add_float(attribute_field::f, *f);
    type(AttributeType::number);
  } else if (const auto* s = std::get_if<std::string>(&a.value)) {
    w.add_bytes(attribute_field::s, *s);
    type(AttributeType::string);
  } else if (const auto* list = std::get_if<Integers>(&a.value)) {
    for (const std::int64_t n : *list) w.add_int64(attribute_field::ints, n);
    type(AttributeType::integers);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&a.value)) {
    for (const std::string& text : *texts) w.add_bytes(attribute_field::strings, text);
    type(AttributeType::strings);
  } else {
    write_graph(pbf_writer(w, attribute_field::g), *std::get<std::shared_ptr<GraphParts>>(a.value));
    type(AttributeType::graph);
  }
}

void write_node(pbf_writer w, const NodeParts& n) {
  for (const std::string& name : n.in) w.add_string(node_field::input, name);
  for (const std::string& name : n.out) w.add_string(node_field::output, name);
  w.add_string(node_field::name, n.name);
  w.add_string(node_field::op_type, n.op);
  for (const AttributeParts& a : n.attributes) write_attribute(pbf_writer(w, node_field::attribute), a);
}

void write_port(pbf_writer w, const PortParts& p) {
  w.add_string(value_info_field::name, p.name);
  pbf_writer type(w, value_info_field::type);
  pbf_writer tensor(type, type_field::tensor_type);
  tensor.add_int32(tensor_type_field::elem_type, element_type(p.spec.dtype));
  if (p.spec.shape.rank() == 0) return tensor.add_message(tensor_type_field::shape, std::string());  // not left out
  pbf_writer shape(tensor, tensor_type_field::shape);
  for (int i = 0; i < p.spec.shape.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string name = at < p.names.size() ? p.names[at] : "";
    if (name == kOpenExtent) {
      shape.add_message(shape_field::dim, std::string());
      continue;
    }
    pbf_writer dim(shape, shape_field::dim);
    if (!name.empty())
      dim.add_string(dimension_field::dim_param, name);
    else
      dim.add_int64(dimension_field::dim_value, p.spec.shape[i]);
  }
}

/// A constant is a node: initialisers are what a reader may train.
void write_constant(pbf_writer w, const InitialiserParts& i) {
  w.add_string(node_field::output, i.name);
  w.add_string(node_field::name, i.name);
  w.add_string(node_field::op_type, "Constant");
  pbf_writer attribute(w, node_field::attribute);
  attribute.add_string(attribute_field::name, "value");
  write_tensor(pbf_writer(attribute, attribute_field::t), i);
  attribute.add_enum(attribute_field::type, static_cast<std::int32_t>(AttributeType::tensor));
}

void write_graph(pbf_writer w, const GraphParts& g) {
  for (const InitialiserParts& i : g.initialisers)
    if (!i.variable) write_constant(pbf_writer(w, graph_field::node), i);
  for (const NodeParts& n : g.nodes) write_node(pbf_writer(w, graph_field::node), n);
  w.add_string(graph_field::name, g.name);
  for (const InitialiserParts& i : g.initialisers)
    if (i.variable) write_tensor(pbf_writer(w, graph_field::initializer), i);
  for (const PortParts& p : g.inputs) write_port(pbf_writer(w, graph_field::input), p);
  for (const PortParts& p : g.outputs) write_port(pbf_writer(w, graph_field::output), p);
}

std::int64_t bytes_of(const GraphParts& g) {
  std::int64_t n = 0;
  for (const InitialiserParts& i : g.initialisers) n += i.tensor.numel() * size_of(i.tensor.dtype());
  return n;
}

}  // namespace

std::string encoded(const GraphParts& graph) {
  const auto refuse = [](std::int64_t n) {
    if (n > kMostBytes)
      throw exchange::ExportError("to_onnx: a message of protobuf has at most 2 GiB: " + std::to_string(n) +
                                  " bytes; write the variables as inputs");
  };
  refuse(bytes_of(graph));
  std::string bytes;
  pbf_writer model(bytes);
  model.add_int64(model_field::ir_version, kIrVersion);
  model.add_string(model_field::producer_name, "ferrite");
  {
    pbf_writer opset(model, model_field::opset_import);
    opset.add_string(opset_field::domain, "");
    opset.add_int64(opset_field::version, kOpset);
  }
  write_graph(pbf_writer(model, model_field::graph), graph);
  refuse(static_cast<std::int64_t>(bytes.size()));
  return bytes;
}

}  // namespace ferrite::onnx::detail
