#pragma once
/// Puts together StableHLO programs: one method for each operation of the language that programs of ours need.
#include <functional>
#include <initializer_list>
#include <memory>
#include <unordered_map>

#include "ferrite/exchange/stablehlo/hlo_program.h"

namespace ferrite::exchange::detail {

/// How a program is written.
struct HloStyle {
  bool unrolled = false;  ///< loops, step by step
  /// As one of several that are compared: nothing depends on what an extent happens to be, so that equal constants are
  /// not shared and constants that extents decide are computed.
  bool comparable = false;
};

class HloBuilder {
 public:
  explicit HloBuilder(const HloStyle& style) : style_(style) {}
  /// One whose values differ from those of another.
  explicit HloBuilder(const HloBuilder* other) : style_(other->style_), next_(other->next_) {}

  /// To what belongs what is written from now on.
  const HloOrigin& origin() const { return origin_; }
  void set_origin(const HloOrigin& origin) { origin_ = origin; }

  const HloStyle& style() const { return style_; }

  HloValue constant(const Tensor& tensor);
  /// One value in every element; equal constants are written once.
  HloValue constant(Scalar value, const Spec& spec);
  /// The same for an element of rank 0.
  HloValue filled(const Tensor& element, const Spec& spec);
  /// The same in the shape and dtype of x.
  HloValue constant_like(Scalar value, const HloValue& x) { return constant(value, x.spec); }
  /// The index along an axis.
  HloValue iota(const Spec& spec, int axis);

  /// Operations on elements whose operands and result have one type: "add", "tanh", "clamp", ...
  HloValue elementwise(std::string_view op, std::initializer_list<HloValue> operands);
  HloValue elementwise(std::string_view op, const HloValues& operands);
  HloValue add(const HloValue& a, const HloValue& b) { return elementwise("add", {a, b}); }
  HloValue subtract(const HloValue& a, const HloValue& b) { return elementwise("subtract", {a, b}); }
  HloValue multiply(const HloValue& a, const HloValue& b) { return elementwise("multiply", {a, b}); }
  HloValue divide(const HloValue& a, const HloValue& b) { return elementwise("divide", {a, b}); }
  /// Direction: EQ, NE, LT, LE, GT, GE.
  HloValue compare(std::string_view direction, const HloValue& a, const HloValue& b);
  HloValue select(const HloValue& condition, const HloValue& a, const HloValue& b);
  /// To another dtype by the language's rules; x itself where it has that dtype.
  HloValue convert(const HloValue& x, Dtype dtype);

  /// Repeats axes of extent 1 and new leading axes; x itself where nothing changes.
  HloValue broadcast(const HloValue& x, const Shape& shape);
  /// x itself where nothing changes.
  HloValue reshape(const HloValue& x, const Shape& shape);
  HloValue transpose(const HloValue& x, const Shape& order);
  HloValue reverse(const HloValue& x, int axis);
  /// count elements from begin along an axis, step > 0 apart; x itself where it is all of them.
  HloValue slice(const HloValue& x, int axis, std::int64_t begin, std::int64_t count, std::int64_t step = 1);
  HloValue concatenate(const HloValues& parts, int axis);
  /// Negative amounts crop.
  HloValue pad(const HloValue& x, const HloValue& value, const Shape& before, const Shape& after);

  /// Axes are dropped.
  HloValue reduce(std::string_view op, const HloValue& x, const HloValue& init, const Shape& axes);
  /// Sums over one axis of each; leading `batch` axes are shared. In the operands' own precision.
  HloValue dot(const HloValue& a, const HloValue& b, int a_axis, int b_axis, int batch, const Shape& out);

  /// Slices of extent 1 along an axis, at a rank-1 index.
  HloValue gather_slices(const HloValue& x, const HloValue& index, int axis);
  /// Elements at coordinates [..., rank of x].
  HloValue gather_elements(const HloValue& x, const HloValue& coordinates);
  /// x with updates added at coordinates [..., rank of x].
  HloValue scatter_add(const HloValue& onto, const HloValue& coordinates, const HloValue& updates);

  /// x[index] along axis 0, which is dropped; index is i64 [].
  HloValue element(const HloValue& x, const HloValue& index);
  /// x with that element replaced.
  HloValue with_element(const HloValue& x, const HloValue& index, const HloValue& element);
  /// One step of a loop: its number, i64 [], and what goes round -> what goes round, of the same types.
  using LoopBody = std::function<HloValues(const HloValue& step, const HloValues& now)>;
  /// Steps 0, 1, ..., steps - 1 of a loop; gives what goes round after the last. Values written before may be read
  /// inside; values written inside end there.
  HloValues loop(std::int64_t steps, const HloValues& first, const LoopBody& body);

  /// A value that an instruction, or a block as its argument, is about to give.
  HloValue fresh(const Spec& spec) { return {(*next_)++, spec}; }
  /// Any instruction with one result.
  HloValue emit(std::string_view op, const HloValues& operands, const Spec& spec, HloAttributes attributes = {},
                HloTypes types = HloTypes::function);
  /// An instruction as it is.
  void append(HloInstruction instruction) { block_->instructions.push_back(std::move(instruction)); }
  /// What is written goes to a block, which ends with what `write` gives. Constants made there are not shared outside.
  void within(HloBlock& block, const std::function<HloValues()>& write);

  /// What was written.
  std::vector<HloInstruction>& instructions() { return main_.instructions; }
  /// More than the largest id.
  int values() const { return *next_; }

 private:
  struct Shared {
    HloValue value{};
    Tensor element{};
  };

  HloStyle style_;
  std::shared_ptr<int> next_ = std::make_shared<int>(0);
  HloOrigin origin_{};
  HloBlock main_{};
  HloBlock* block_ = &main_;
  std::unordered_map<std::string, Shared> constants_{};  ///< by text
};

}  // namespace ferrite::exchange::detail
