#pragma once
/// Puts together ONNX programs node by node, with the types of all values.
#include "ferrite/exchange/emit/program_builder.h"

namespace ferrite::exchange::detail {

/// The rule of broadcasting for shapes that are known to fit.
Shape spread_shape(const Shape& a, const Shape& b);

/// Names of elementwise operations and comparisons are ONNX's or, where a rule is written for every format,
/// StableHLO's.
class OnnxBuilder final : public ProgramBuilder {
 public:
  OnnxBuilder() = default;
  /// One whose values differ from those of another.
  explicit OnnxBuilder(const OnnxBuilder* other) : ProgramBuilder(other) {}

  const Format& format() const override;
  bool writes(const Primitive& op) const override;
  /// Pointwise operations get all operands, literals among them as constants of rank 0.
  Values write(const Application& a) override;

  /// A node with results of these types. An operand that does not exist is left out.
  Values nodes(std::string_view op, Values in, const std::vector<Spec>& out, Attributes attributes = {});
  Value node(std::string_view op, Values in, const Spec& out, Attributes attributes = {}) {
    return nodes(op, std::move(in), {out}, std::move(attributes))[0];
  }
  /// What a reader may train, under its name.
  Value variable(const std::string& name, const Tensor& tensor);

  Value constant(const Tensor& tensor) override;
  Value filled(Scalar value, const Spec& spec) override;
  /// Of rank 0.
  Value like(Scalar value, const Value& x) override { return scalar(value, x.dtype()); }
  Value counted(std::int64_t count) override;
  Value shape_of(const Shape& s) { return integers(Integers(s.begin(), s.end())); }

  /// Operands are broadcast.
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
  /// An axis of extent 1 less.
  Value squeeze(const Value& x, int axis);
  Value picked(const Value& x, int axis, std::int64_t index) override;

  Value extent_of(const Value& x, int axis) override;
  Dtype real_of_extents(Dtype) const override { return Dtype::f64; }
};

}  // namespace ferrite::exchange::detail
