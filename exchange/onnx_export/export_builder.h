#pragma once
/// Puts together graphs of ONNX node by node, with the types of all values.
#include <initializer_list>

#include "ferrite/exchange/emit/unique_names.h"
#include "ferrite/exchange/onnx_export/export_parts.h"
#include "ferrite/tensor/scope.h"

namespace ferrite::onnx::detail {

/// A value of the graph.
struct ExportValue {
  std::string name{};  ///< empty for a value that no lowering gives
  Spec spec{};

  bool exists() const { return !name.empty(); }
  const Shape& shape() const { return spec.shape; }
  Dtype dtype() const { return spec.dtype; }
};
using ExportValues = std::vector<ExportValue>;
using Attributes = std::vector<AttributeParts>;

/// The rule of broadcasting for shapes that are known to fit.
Shape spread_shape(const Shape& a, const Shape& b);

/// Names of a graph and of those within it.
using exchange::detail::UniqueNames;

class GraphBuilder {
 public:
  explicit GraphBuilder(UniqueNames& names) : names_(names) {}

  UniqueNames& names() { return names_; }
  GraphParts& parts() { return parts_; }
  const GraphParts& parts() const { return parts_; }
  /// The layer to which what is written from now on belongs.
  Scope layer() const { return layer_; }
  void set_layer(Scope layer) { layer_ = layer; }

  /// Whether a node of this graph gives the value; else it is an input, a constant, or from outside.
  bool makes(const ExportValue& value) const;

  /// A node with results of these types. An operand without a name is left out.
  ExportValues nodes(const std::string& op, const ExportValues& in, const std::vector<Spec>& out,
                     Attributes attributes = {});
  ExportValue node(const std::string& op, const ExportValues& in, const Spec& out, Attributes attributes = {}) {
    return nodes(op, in, {out}, std::move(attributes))[0];
  }

  ExportValue constant(const Tensor& tensor);
  /// One value, of rank 0.
  ExportValue scalar(Scalar value, Dtype dtype);
  ExportValue scalar_like(Scalar value, const ExportValue& x) { return scalar(value, x.dtype()); }
  /// i64 [n].
  ExportValue integers(const Integers& values);
  ExportValue shape_of(const Shape& s) { return integers(Integers(s.begin(), s.end())); }
  /// One value in every element.
  ExportValue filled(Scalar value, const Spec& spec);

  /// Operations on elements whose operands and result have one dtype; operands are broadcast.
  ExportValue elementwise(const std::string& op, const ExportValues& in);
  ExportValue add(const ExportValue& a, const ExportValue& b) { return elementwise("Add", {a, b}); }
  ExportValue subtract(const ExportValue& a, const ExportValue& b) { return elementwise("Sub", {a, b}); }
  ExportValue multiply(const ExportValue& a, const ExportValue& b) { return elementwise("Mul", {a, b}); }
  ExportValue divide(const ExportValue& a, const ExportValue& b) { return elementwise("Div", {a, b}); }
  /// Equal, Less, LessOrEqual, Greater, GreaterOrEqual: bool.
  ExportValue compare(const std::string& op, const ExportValue& a, const ExportValue& b);
  ExportValue negation(const ExportValue& a) { return elementwise("Not", {a}); }
  ExportValue select(const ExportValue& condition, const ExportValue& a, const ExportValue& b);
  /// To another dtype by the language's rules; x itself where it has that dtype.
  ExportValue convert(const ExportValue& x, Dtype dtype);

  /// x itself where nothing changes, in these and what follows.
  ExportValue reshape(const ExportValue& x, const Shape& shape);
  ExportValue expand(const ExportValue& x, const Shape& shape);
  ExportValue transpose(const ExportValue& x, const Shape& order);
  ExportValue slice(const ExportValue& x, int axis, std::int64_t begin, std::int64_t count, std::int64_t step = 1);
  ExportValue concatenate(const ExportValues& parts, int axis);
  /// An axis of extent 1 more, or less.
  ExportValue unsqueeze(const ExportValue& x, int axis);
  ExportValue squeeze(const ExportValue& x, int axis);

 private:
  UniqueNames& names_;
  GraphParts parts_{};
  Scope layer_{};
};

}  // namespace ferrite::onnx::detail
