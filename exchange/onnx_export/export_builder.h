#pragma once
/// The builder of ONNX programs, node by node, with the types of all values.
#include "ferrite/exchange/emit/program_builder.h"

namespace ferrite::exchange::detail {

/// Returns the shape to which two shapes broadcast, which are known to fit.
Shape spread_shape(const Shape& a, const Shape& b);

/// Builds ONNX programs. It takes elementwise operations and comparisons by ONNX's names and, for lowerings that all
/// formats share, by StableHLO's.
class OnnxBuilder final : public ProgramBuilder {
 public:
  OnnxBuilder() = default;
  /// Makes a builder whose values differ from those of another one.
  explicit OnnxBuilder(const OnnxBuilder* other) : ProgramBuilder(other) {}

  const Format& format() const override;
  bool writes(const Primitive& op) const override;
  /// Writes an application. A pointwise operation gets all operands, literals as constants of rank 0.
  Values write(const Application& a) override;

  /// Writes a node with results of the types `out`. An operand that does not exist is left out.
  Values nodes(std::string_view op, Values in, const std::vector<Spec>& out, Attributes attributes = {});
  Value node(std::string_view op, Values in, const Spec& out, Attributes attributes = {}) {
    return nodes(op, std::move(in), {out}, std::move(attributes))[0];
  }
  /// Writes an initialiser under its name, which a reader may train.
  Value variable(const std::string& name, const Tensor& tensor);

  Value constant(const Tensor& tensor) override;
  Value filled(Scalar value, const Spec& spec) override;
  /// Writes a constant of rank 0 in the dtype of x.
  Value like(Scalar value, const Value& x) override { return scalar(value, x.dtype()); }
  Value counted(std::int64_t count) override;
  Value shape_of(const Shape& s) { return integers(Integers(s.begin(), s.end())); }

  /// Writes an elementwise operation, whose operands are broadcast.
  Value elementwise(std::string_view op, const Values& in) override;
  Value remainder(const Value& a, const Value& b) override;
  Value compare(std::string_view direction, const Value& a, const Value& b) override;
  Value is_nan(const Value& x) override { return node("IsNaN", {x}, {x.shape(), Dtype::boolean}); }
  Value negation(const Value& a) { return elementwise("Not", {a}); }
  Value select(const Value& condition, const Value& a, const Value& b) override;
  Value convert(const Value& x, Dtype dtype) override;
  Value cast(const Value& x, Dtype dtype) override;

  Value expand(const Value& x, const Shape& shape) override;
  Value reshape(const Value& x, const Shape& shape) override;
  Value transpose(const Value& x, const Shape& order) override;
  Value slice(const Value& x, int axis, std::int64_t begin, std::int64_t count, std::int64_t step = 1) override;
  Value concatenate(const Values& parts, int axis) override;
  Value unsqueeze(const Value& x, int axis) override;
  /// Removes an axis of extent 1.
  Value squeeze(const Value& x, int axis);
  Value picked(const Value& x, int axis, std::int64_t index) override;

  Value extent_of(const Value& x, int axis) override;
  Dtype real_of_extents(Dtype) const override { return Dtype::f64; }
};

}  // namespace ferrite::exchange::detail
