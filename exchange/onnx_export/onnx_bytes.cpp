/// Writes a program as the messages of an ONNX file.
#include <protozero/pbf_writer.hpp>
#include <set>
#include <unordered_map>

#include "ferrite/exchange/emit/unique_names.h"
#include "ferrite/exchange/onnx/schema.h"
#include "ferrite/exchange/onnx/value.h"
#include "ferrite/exchange/onnx_export/export_model.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::exchange::detail {
namespace {

using onnx::detail::AttributeType;
using protozero::pbf_writer;
namespace attribute_field = onnx::detail::attribute_field;
namespace dimension_field = onnx::detail::dimension_field;
namespace graph_field = onnx::detail::graph_field;
namespace model_field = onnx::detail::model_field;
namespace node_field = onnx::detail::node_field;
namespace opset_field = onnx::detail::opset_field;
namespace shape_field = onnx::detail::shape_field;
namespace tensor_field = onnx::detail::tensor_field;
namespace tensor_type_field = onnx::detail::tensor_type_field;
namespace type_field = onnx::detail::type_field;
namespace value_info_field = onnx::detail::value_info_field;

constexpr std::int64_t kIrVersion = 8, kOpset = 17;
constexpr std::int64_t kMostBytes = (std::int64_t{1} << 31) - 1;

bool is_initializer(const Instruction& i) { return i.op == kInitializer; }
bool is_node(const Instruction& i) { return i.op != "Constant" && !is_initializer(i); }

/// An Identity at the end of a block, for a result that no node of the block gives or that is already a result.
struct Copy {
  std::string node, from, to;
};

/// The names of all values and nodes.
class Names {
 public:
  explicit Names(const ExportProgram& p) : values_(static_cast<std::size_t>(p.values)) {
    for (const std::string& chosen : p.result_names) names_.claim(chosen);
    for (std::size_t i = 0; i < p.main.names.size(); ++i) at(p.main.arguments[i]) = names_.claim(p.main.names[i]);
    for (const Instruction& i : p.main.instructions)
      if (is_initializer(i)) at(i.results[0]) = names_.claim(i.get<std::string>("name"));
    name(p.main, p.result_names);
  }

  /// Returns the name of a value, empty for one that is left out.
  std::string of(const Value& v) const { return v.exists() ? values_[static_cast<std::size_t>(v.id)] : ""; }
  const std::string& of(const Instruction& node) const { return nodes_.at(&node); }
  const std::vector<std::string>& results_of(const Block& b) const { return results_.at(&b); }
  const std::vector<Copy>& copies_of(const Block& b) const { return copies_.at(&b); }

 private:
  std::string& at(const Value& v) { return values_[static_cast<std::size_t>(v.id)]; }

  /// Names the values of a block; `wanted` are the names of its results, or empty.
  void name(const Block& b, const std::vector<std::string>& wanted) {
    std::set<int> made, given;
    for (const Instruction& i : b.instructions)
      if (is_node(i))
        for (const Value& v : i.results) made.insert(v.id);
    std::unordered_map<int, std::string> own;
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (made.contains(b.results[k].id)) own.try_emplace(b.results[k].id, wanted[k]);
    for (const Instruction& i : b.instructions) {
      if (!is_node(i)) {
        if (!is_initializer(i)) nodes_[&i] = at(i.results[0]) = names_.claim("constant");
        continue;
      }
      name_blocks(i);
      const std::string& node = nodes_[&i] = in_layer(i.origin.layer, i.op);
      for (std::size_t k = 0; k < i.results.size(); ++k) {
        const auto chosen = own.find(i.results[k].id);
        at(i.results[k]) = chosen == own.end() ? names_.claim(node + ":" + std::to_string(k)) : chosen->second;
      }
    }
    std::vector<Copy>& copies = copies_[&b];
    std::vector<std::string>& results = results_[&b];
    for (std::size_t k = 0; k < b.results.size(); ++k) {
      const Value& v = b.results[k];
      if (made.contains(v.id) && given.insert(v.id).second) {
        results.push_back(of(v));
        continue;
      }
      const std::string node = names_.claim("Identity");
      results.push_back(wanted.empty() ? names_.claim(node + ":0") : wanted[k]);
      copies.push_back({node, of(v), results.back()});
    }
  }

  void name_blocks(const Instruction& i) {
    for (const Block& inner : i.blocks) {
      for (std::size_t k = 0; k < inner.arguments.size(); ++k) at(inner.arguments[k]) = names_.claim(inner.names[k]);
      name(inner, {});
    }
  }

  std::string in_layer(Scope layer, const std::string& op) {
    return names_.claim(layer.empty() ? op : std::string(layer.path()) + "/" + op);
  }

  UniqueNames names_;
  std::vector<std::string> values_;
  std::unordered_map<const Instruction*, std::string> nodes_;
  std::unordered_map<const Block*, std::vector<std::string>> results_;
  std::unordered_map<const Block*, std::vector<Copy>> copies_;
};

std::int32_t element_type(Dtype dtype) { return static_cast<std::int32_t>(onnx::detail::type_for(dtype)); }

void write_tensor(pbf_writer w, const std::string& name, const Tensor& tensor) {
  const Tensor t = ferrite::detail::dense(tensor);
  const Shape& shape = t.shape();
  w.add_packed_int64(tensor_field::dims, shape.begin(), shape.end());
  w.add_int32(tensor_field::data_type, element_type(t.dtype()));
  w.add_string(tensor_field::name, name);
  visit_dtype(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto bytes = static_cast<std::size_t>(t.numel()) * sizeof(T);
    w.add_bytes(tensor_field::raw_data, reinterpret_cast<const char*>(t.data<T>()), bytes);
  });
}

/// Writes the value of an attribute; `owner` names a tensor in it.
void write_value(pbf_writer& w, const Attribute& a, const std::string& owner) {
  const auto type = [&](AttributeType t) { w.add_enum(attribute_field::type, static_cast<std::int32_t>(t)); };
  const auto integers = [&](const auto& list) {
    for (const std::int64_t n : list) w.add_int64(attribute_field::ints, n);
    type(AttributeType::integers);
  };
  if (const auto* i = std::get_if<std::int64_t>(&a.value)) {
    w.add_int64(attribute_field::i, *i);
    type(AttributeType::integer);
  } else if (const auto* f = std::get_if<float>(&a.value)) {
    w.add_float(attribute_field::f, *f);
    type(AttributeType::number);
  } else if (const auto* s = std::get_if<std::string>(&a.value)) {
    w.add_bytes(attribute_field::s, *s);
    type(AttributeType::string);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&a.value)) {
    for (const std::string& text : *texts) w.add_bytes(attribute_field::strings, text);
    type(AttributeType::strings);
  } else if (const auto* tensor = std::get_if<Tensor>(&a.value)) {
    write_tensor(pbf_writer(w, attribute_field::t), owner, *tensor);
    type(AttributeType::tensor);
  } else if (const auto* list = std::get_if<Integers>(&a.value)) {
    integers(*list);
  } else {
    integers(std::get<Shape>(a.value));
  }
}

class Writer {
 public:
  explicit Writer(const Names& names) : names_(names) {}

  /// Writes a block as a graph. Extents of the main block's inputs and outputs have the names that `p` gives; within a
  /// node they have none, since runtimes that replace names by numbers do so only outside. A constant is a node:
  /// initialisers are what a reader may train.
  void graph(pbf_writer w, const Block& b, const std::string& name, const ExportProgram* p) const {
    for (const Instruction& i : b.instructions)
      if (i.op == "Constant") node(pbf_writer(w, graph_field::node), i);
    for (const Instruction& i : b.instructions)
      if (is_node(i)) node(pbf_writer(w, graph_field::node), i);
    for (const Copy& c : names_.copies_of(b)) copy(pbf_writer(w, graph_field::node), c);
    w.add_string(graph_field::name, name);
    for (const Instruction& i : b.instructions)
      if (is_initializer(i))
        write_tensor(pbf_writer(w, graph_field::initializer), names_.of(i.results[0]), i.get<Tensor>("value"));
    const std::vector<std::string>& results = names_.results_of(b);
    for (std::size_t i = 0; i < b.arguments.size(); ++i)
      port(pbf_writer(w, graph_field::input), names_.of(b.arguments[i]), b.arguments[i].spec,
           p && !p->argument_axes.empty() ? p->argument_axes[i] : std::vector<std::string>());
    for (std::size_t i = 0; i < b.results.size(); ++i)
      port(pbf_writer(w, graph_field::output), results[i], b.results[i].spec,
           p && !p->result_axes.empty() ? p->result_axes[i] : std::vector<std::string>());
  }

 private:
  void node(pbf_writer w, const Instruction& i) const {
    for (const Value& v : i.operands) w.add_string(node_field::input, names_.of(v));
    for (const Value& v : i.results) w.add_string(node_field::output, names_.of(v));
    w.add_string(node_field::name, names_.of(i));
    w.add_string(node_field::op_type, i.op);
    for (const Block& inner : i.blocks) {
      pbf_writer attribute(w, node_field::attribute);
      attribute.add_string(attribute_field::name, "body");
      graph(pbf_writer(attribute, attribute_field::g), inner, "body", nullptr);
      attribute.add_enum(attribute_field::type, static_cast<std::int32_t>(AttributeType::graph));
    }
    for (const Attribute& a : i.attributes) {
      pbf_writer attribute(w, node_field::attribute);
      attribute.add_string(attribute_field::name, a.name);
      write_value(attribute, a, names_.of(i));
    }
  }

  static void copy(pbf_writer w, const Copy& c) {
    w.add_string(node_field::input, c.from);
    w.add_string(node_field::output, c.to);
    w.add_string(node_field::name, c.node);
    w.add_string(node_field::op_type, "Identity");
  }

  static void port(pbf_writer w, const std::string& name, const Spec& spec, const std::vector<std::string>& axes) {
    w.add_string(value_info_field::name, name);
    pbf_writer type(w, value_info_field::type);
    pbf_writer tensor(type, type_field::tensor_type);
    tensor.add_int32(tensor_type_field::elem_type, element_type(spec.dtype));
    if (spec.shape.rank() == 0) return tensor.add_message(tensor_type_field::shape, std::string());  // also for rank 0
    pbf_writer shape(tensor, tensor_type_field::shape);
    for (int i = 0; i < spec.shape.rank(); ++i) {
      const std::string own = axes.empty() ? "" : axes[static_cast<std::size_t>(i)];
      if (own.empty() && spec.shape[i] == kOpenExtent) {
        shape.add_message(shape_field::dim, std::string());
        continue;
      }
      pbf_writer dim(shape, shape_field::dim);
      if (own.empty())
        dim.add_int64(dimension_field::dim_value, spec.shape[i]);
      else
        dim.add_string(dimension_field::dim_param, own == "?" ? name + "_" + std::to_string(i) : own);
    }
  }

  const Names& names_;
};

std::int64_t bytes_of(const Block& b) {
  std::int64_t n = 0;
  for (const Instruction& i : b.instructions) {
    for (const Block& inner : i.blocks) n += bytes_of(inner);
    if (is_node(i)) continue;
    const auto& tensor = i.get<Tensor>("value");
    n += tensor.numel() * size_of(tensor.dtype());
  }
  return n;
}

}  // namespace

std::string onnx_bytes(const ExportProgram& program, const std::string& name) {
  const auto refuse = [](std::int64_t n) {
    if (n > kMostBytes)
      throw ExportError("to_onnx: a message of protobuf has at most 2 GiB: " + std::to_string(n) +
                        " bytes; write the variables as inputs");
  };
  refuse(bytes_of(program.main));
  const Names names(program);
  std::string bytes;
  pbf_writer model(bytes);
  model.add_int64(model_field::ir_version, kIrVersion);
  model.add_string(model_field::producer_name, "ferrite");
  {
    pbf_writer opset(model, model_field::opset_import);
    opset.add_string(opset_field::domain, "");
    opset.add_int64(opset_field::version, kOpset);
  }
  Writer(names).graph(pbf_writer(model, model_field::graph), program.main, name, &program);
  refuse(static_cast<std::int64_t>(bytes.size()));
  return bytes;
}

}  // namespace ferrite::exchange::detail
