#pragma once
/// The builder of StableHLO programs, with one method for each operation of the language that exported programs need.
#include <unordered_map>

#include "ferrite/exchange/emit/program_builder.h"

namespace ferrite::exchange::detail {

/// The style in which a StableHLO program is written.
struct HloStyle {
  bool unrolled = false;  ///< whether loops are written step by step
  /// Whether the program is one of several that are compared. Nothing may then depend on the value of an extent: equal
  /// constants are not shared, and constants that follow from extents are computed.
  bool comparable = false;
};

/// Builds StableHLO programs from operations of the language.
class HloBuilder final : public ProgramBuilder {
 public:
  explicit HloBuilder(const HloStyle& style) : style_(style) {}
  /// Makes a builder whose values differ from those of another one.
  explicit HloBuilder(const HloBuilder* other) : ProgramBuilder(other), style_(other->style_) {}

  const HloStyle& style() const { return style_; }

  const Format& format() const override;
  bool writes(const Primitive& op) const override;
  /// Writes an application. A pointwise operation gets all operands in the result's shape, literals as constants.
  Values write(const Application& a) override;
  /// Writes a constant of the traced program. Where programs are compared, its origin is its reader, so that an error
  /// can name it.
  Value constant_of(const Tensor& tensor, const Graph::Node* reader) override;

  Value constant(const Tensor& tensor) override;
  /// Writes a value whose elements are all `value`; equal ones are written once.
  Value filled(Scalar value, const Spec& spec) override;
  /// Writes a value of type `spec` whose elements all equal `element`, a tensor of rank 0 in the same dtype. A value
  /// that was written before is returned again, unless programs are compared.
  Value filled(const Tensor& element, const Spec& spec);
  /// Writes a constant in the shape and dtype of x.
  Value like(Scalar value, const Value& x) override { return filled(value, x.spec); }
  Value counted(std::int64_t count) override { return iota({{count}, Dtype::i64}, 0); }
  /// Writes a value whose elements are their index along an axis.
  Value iota(const Spec& spec, int axis);

  Value elementwise(std::string_view op, const Values& operands) override;
  Value remainder(const Value& a, const Value& b) override { return elementwise("remainder", {a, b}); }
  Value compare(std::string_view direction, const Value& a, const Value& b) override;
  Value is_nan(const Value& x) override { return compare("NE", x, x); }
  Value select(const Value& condition, const Value& a, const Value& b) override;
  Value convert(const Value& x, Dtype dtype) override;
  Value cast(const Value& x, Dtype dtype) override;

  Value expand(const Value& x, const Shape& shape) override;
  Value reshape(const Value& x, const Shape& shape) override;
  Value transpose(const Value& x, const Shape& order) override;
  Value reverse(const Value& x, int axis);
  Value slice(const Value& x, int axis, std::int64_t begin, std::int64_t count, std::int64_t step = 1) override;
  Value concatenate(const Values& parts, int axis) override;
  Value unsqueeze(const Value& x, int axis) override;
  Value picked(const Value& x, int axis, std::int64_t index) override;
  /// Pads x with `value` before and after each axis; negative amounts crop.
  Value pad(const Value& x, const Value& value, const Shape& before, const Shape& after);

  Value extent_of(const Value& x, int axis) override;
  /// Returns f64 for f64 and f32 for all others: not every target has f64.
  Dtype real_of_extents(Dtype dtype) const override { return dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

  /// Reduces x along `axes`, which are dropped.
  Value reduce(std::string_view op, const Value& x, const Value& init, const Shape& axes);
  /// Writes a product that sums over one axis of each operand, in their own precision; leading `batch` axes are shared.
  Value dot(const Value& a, const Value& b, int a_axis, int b_axis, int batch, const Shape& out);

  /// Gathers slices of extent 1 along an axis, at a rank-1 index.
  Value gather_slices(const Value& x, const Value& index, int axis);
  /// Gathers elements at coordinates [..., rank of x].
  Value gather_elements(const Value& x, const Value& coordinates);
  /// Applies updates to the elements at coordinates [..., rank of x] by "add", "maximum", ..., in any order.
  Value scatter(std::string_view applies, const Value& onto, const Value& coordinates, const Value& updates);

  /// Returns x[index] along axis 0, which is dropped; index is i64 [].
  Value element(const Value& x, const Value& index);
  /// Returns x with the element at `index` along axis 0 replaced.
  Value with_element(const Value& x, const Value& index, const Value& element);
  /// A step of a loop, from its number, i64 [], and the carried values to the next carried values, of the same types.
  using LoopBody = std::function<Values(const Value& step, const Values& now)>;
  /// Writes a loop over steps 0, 1, ..., steps - 1 and returns the carried values after the last. The body may read
  /// values written before the loop; values written in it are not visible outside.
  Values loop(std::int64_t steps, const Values& first, const LoopBody& body);

  /// Calls `write`, whose instructions become those of a block. Constants made in the block are not shared outside.
  void within(Block& block, const std::function<Values()>& write) override;

 private:
  struct Shared {
    Value value{};
    Tensor element{};
  };

  HloStyle style_;
  std::unordered_map<std::string, Shared> constants_{};  ///< filled values by their text
};

}  // namespace ferrite::exchange::detail
