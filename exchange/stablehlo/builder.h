#pragma once
/// Writes StableHLO line by line: one method for each operation of the language that programs of ours need. Syntax as
/// the pretty printer of the StableHLO repository has it; `gather` and `scatter` have a generic form only.
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ferrite/tensor/scope.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

/// A value in the text.
struct HloValue {
  std::string name{};  ///< "%3"; empty for a value that no lowering gives
  Spec spec{};

  const Shape& shape() const { return spec.shape; }
  Dtype dtype() const { return spec.dtype; }
};
using HloValues = std::vector<HloValue>;

/// "f32", ..., "i1".
std::string_view hlo_dtype(Dtype dtype);
/// "tensor<2x3xf32>".
std::string hlo_type(const Spec& spec);
/// "[1, 0]".
std::string hlo_list(const Shape& list);
/// "dense<...>".
std::string hlo_elements(const Tensor& tensor);

class HloBuilder {
 public:
  /// Loops are written as loops, or step by step (`unroll`). With `locations`, operations are followed by the layer to
  /// which they belong.
  explicit HloBuilder(std::string indent, bool unroll = false, bool locations = false)
      : indent_(std::move(indent)), unroll_(unroll), locates_(locations) {}

  /// The layer to which what is written from now on belongs.
  Scope layer() const { return layer_; }
  void set_layer(Scope layer) { layer_ = layer; }

  bool unrolls() const { return unroll_; }

  HloValue constant(const Tensor& tensor);
  /// One value in every element; equal constants are written once.
  HloValue constant(Scalar value, const Spec& spec);
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

  const std::string& text() const { return text_; }

 private:
  HloValue emit(const std::string& right_hand_side, const Spec& spec);
  /// ` loc("encoder.0")`, or nothing.
  std::string location() const;
  /// A block of lines further in, which ends with its results.
  void region(const std::function<HloValues()>& write);

  std::string indent_;
  bool unroll_;
  bool locates_;
  Scope layer_{};
  std::string text_;
  int next_ = 0;
  std::unordered_map<std::string, HloValue> constants_;
};

}  // namespace ferrite::exchange::detail
