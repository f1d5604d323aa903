#pragma once
/// Puts together StableHLO programs: one method for each operation of the language that programs of ours need.
#include <unordered_map>

#include "ferrite/exchange/emit/program_builder.h"

namespace ferrite::exchange::detail {

/// How a program is written.
struct HloStyle {
  bool unrolled = false;  ///< loops, step by step
  /// As one of several that are compared: nothing depends on what an extent happens to be, so that equal constants are
  /// not shared and constants that extents decide are computed.
  bool comparable = false;
};

class HloBuilder final : public ProgramBuilder {
 public:
  explicit HloBuilder(const HloStyle& style) : style_(style) {}
  /// One whose values differ from those of another.
  explicit HloBuilder(const HloBuilder* other) : ProgramBuilder(other), style_(other->style_) {}

  const HloStyle& style() const { return style_; }

  const Format& format() const override;
  bool writes(const Primitive& op) const override;
  /// Pointwise operations get all operands in the result's shape, literals among them as constants.
  Values write(const Application& a) override;
  /// Where programs are compared it belongs to what reads it, so that an error can name that.
  Value constant_of(const Tensor& tensor, const Graph::Node* reader) override;

  Value constant(const Tensor& tensor) override;
  /// Equal ones are written once.
  Value filled(Scalar value, const Spec& spec) override;
  /// The same for an element of rank 0.
  Value filled(const Tensor& element, const Spec& spec);
  /// In the shape and dtype of x.
  Value like(Scalar value, const Value& x) override { return filled(value, x.spec); }
  Value counted(std::int64_t count) override { return iota({{count}, Dtype::i64}, 0); }
  /// The index along an axis.
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
  /// Negative amounts crop.
  Value pad(const Value& x, const Value& value, const Shape& before, const Shape& after);

  Value extent_of(const Value& x, int axis) override;
  /// f64 for f64 alone: not every target has that.
  Dtype real_of_extents(Dtype dtype) const override { return dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

  /// Axes are dropped.
  Value reduce(std::string_view op, const Value& x, const Value& init, const Shape& axes);
  /// Sums over one axis of each; leading `batch` axes are shared. In the operands' own precision.
  Value dot(const Value& a, const Value& b, int a_axis, int b_axis, int batch, const Shape& out);

  /// Slices of extent 1 along an axis, at a rank-1 index.
  Value gather_slices(const Value& x, const Value& index, int axis);
  /// Elements at coordinates [..., rank of x].
  Value gather_elements(const Value& x, const Value& coordinates);
  /// Updates at coordinates [..., rank of x], each applied to the element that is there: "add", "maximum", ... in any
  /// order.
  Value scatter(std::string_view applies, const Value& onto, const Value& coordinates, const Value& updates);

  /// x[index] along axis 0, which is dropped; index is i64 [].
  Value element(const Value& x, const Value& index);
  /// x with that element replaced.
  Value with_element(const Value& x, const Value& index, const Value& element);
  /// One step of a loop: its number, i64 [], and what goes round -> what goes round, of the same types.
  using LoopBody = std::function<Values(const Value& step, const Values& now)>;
  /// Steps 0, 1, ..., steps - 1 of a loop; gives what goes round after the last. Values written before may be read
  /// inside; values written inside end there.
  Values loop(std::int64_t steps, const Values& first, const LoopBody& body);

  /// Constants made in the block are not shared outside.
  void within(Block& block, const std::function<Values()>& write) override;

 private:
  struct Shared {
    Value value{};
    Tensor element{};
  };

  HloStyle style_;
  std::unordered_map<std::string, Shared> constants_{};  ///< by text
};

}  // namespace ferrite::exchange::detail
