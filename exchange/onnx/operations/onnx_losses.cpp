/// Lowers losses, quantisation, shifts of bits, and operations on places.
#include <algorithm>
#include <array>
#include <limits>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/index.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/shapes.h"

namespace ferrite::onnx::detail {
namespace {

// ---- losses ----------------------------------------------------------------------------------------------

/// Returns the negative log likelihood of log probabilities [N, C, ...] and classes [N, ...], with a weight for each
/// class and a class that is ignored.
Tensor nll(const Call& c, const Tensor& log_probabilities, const Tensor& classes) {
  const std::int64_t C = log_probabilities.shape()[1];
  Tensor index = cast(classes, Dtype::i64), counts = ones(classes.shape(), log_probabilities.dtype());
  if (c.has_attribute("ignore_index")) {
    const std::int64_t ignored = c.integer("ignore_index");
    const Tensor left_out = eq(index, ignored);
    index = where(left_out, zeros_like(index), index);
    counts = where(left_out, zeros_like(counts), counts);
  }
  if (c.has(2)) counts = counts * reshape(index_select(c.tensor(2), 0, reshape(index, {-1})), counts.shape());
  if (c.has(2) && c.tensor(2).shape() != Shape{C}) c.refuse("weight must be [" + std::to_string(C) + "]");
  const Tensor picked = reshape(gather(log_probabilities, 1, unsqueeze(index, 1)), counts.shape());
  const Tensor loss = where(eq(counts, 0), zeros_like(picked), -picked * counts);
  const std::string reduction = c.text("reduction", "mean");
  if (reduction == "none") return loss;
  if (reduction == "sum") return sum(loss);
  if (reduction == "mean") return sum(loss) / sum(counts);
  c.refuse("reduction is none, sum or mean, got '" + reduction + "'");
}

void check_classes(const Call& c) {
  const Shape &x = c.tensor(0).shape(), &y = c.tensor(1).shape();
  if (x.rank() < 2 || y.rank() != x.rank() - 1)
    c.refuse("scores [N, C, ...] and classes [N, ...] do not fit: " + x.str() + " and " + y.str());
}

Values nll_loss_(const Call& c) {
  check_classes(c);
  return {narrowed(nll(c, c.tensor(0), c.tensor(1)), c.type(0))};
}
Values softmax_cross_entropy(const Call& c) {
  check_classes(c);
  const Tensor log_probabilities = log_softmax(c.tensor(0), 1);
  Values out = {narrowed(nll(c, log_probabilities, c.tensor(1)), c.type(0))};
  if (c.wants(1)) out.push_back(narrowed(log_probabilities, c.type(0)));
  return out;
}

// ---- quantisation ----------------------------------------------------------------------------------------

/// Expands a scale or zero point, for all of x, along an axis or for blocks along it, to broadcast with x.
Tensor spread(const Call& c, const Tensor& t, const Tensor& x) {
  const std::int64_t given = c.version() >= 13 ? c.integer("axis", 1) : 1;
  const std::int64_t block = c.version() >= 21 ? c.integer("block_size", 0) : 0;
  if (block != 0) {
    const int axis = axis_of(c, given, x.rank());
    if (t.rank() != x.rank() || block < 0 || (x.size(axis) + block - 1) / block != t.size(axis))
      c.refuse("scales " + t.shape().str() + " do not fit blocks of " + std::to_string(block));
    return slice(repeat_interleave(t, block, axis), axis, 0, x.size(axis));
  }
  if (t.numel() == 1) return reshape(t, {});
  if (t.rank() != 1) c.refuse("scales " + t.shape().str() + " without a block_size");
  Shape line = Shape::filled(x.rank(), 1);
  line[axis_of(c, given, x.rank())] = t.numel();
  return reshape(t, line);
}

Values quantize(const Call& c) {
  c.without_effect("saturate");  // only for floats of 8 bits
  const auto given = static_cast<ElementType>(c.version() >= 21 ? c.integer("output_dtype", 0) : 0);
  if (c.version() >= 23 && c.integer("precision", 0) != 0) c.refuse("precision is not supported");
  const ElementType to = c.has(2) ? c.type(2) : given == ElementType::undefined ? ElementType::u8 : given;
  if (given != ElementType::undefined && given != to) c.refuse("output_dtype is not that of the zero point");
  if (!is_integral(to) || bits_of(to) > 16) c.refuse("quantises to " + std::string(name_of(to)) + " are not supported");
  const Tensor& x = c.tensor(0);
  const Tensor numbers = is_float(x.dtype()) ? x : cast(x, Dtype::f32);
  Tensor y = round(numbers / spread(c, cast(c.tensor(1), numbers.dtype()), x));
  if (c.has(2)) y = y + cast(spread(c, c.tensor(2), x), numbers.dtype());
  const std::int64_t range = std::int64_t{1} << bits_of(to), low = is_unsigned(to) ? 0 : -range / 2;
  return {{cast(clamp(y, static_cast<double>(low), static_cast<double>(low + range - 1)), dtype_for(to)), to}};
}

Values dequantize(const Call& c) {
  const auto given = static_cast<ElementType>(c.version() >= 23 ? c.integer("output_dtype", 0) : 0);
  const ElementType to = given == ElementType::undefined ? c.type(1) : given;
  if (!is_floating(to)) c.refuse("output_dtype must be a float");
  const Tensor& x = c.tensor(0);
  Tensor whole = cast(x, Dtype::i64);
  if (c.has(2)) whole = whole - cast(spread(c, c.tensor(2), x), Dtype::i64);
  const Tensor scale = spread(c, c.tensor(1), x);
  return {narrowed(cast(cast(whole, scale.dtype()) * scale, dtype_for(to)), to)};
}

// ---- others ----------------------------------------------------------------------------------------------

/// Returns x shifted right by n. With `clear`, the copies of the sign bit that enter are cleared: uint64 is held in i64
/// by its bits.
Tensor shifted_right(const Tensor& x, const Tensor& n, bool clear) {
  if (!clear) return bitwise_right_shift(x, n);
  const Tensor half = bitwise_and(bitwise_right_shift(x, 1), std::numeric_limits<std::int64_t>::max());
  return where(eq(n, 0), x, bitwise_right_shift(half, n - 1));
}
Values bit_shift(const Call& c) {
  const std::string direction = c.text("direction");
  if (direction != "LEFT" && direction != "RIGHT") c.refuse("direction is LEFT or RIGHT, got '" + direction + "'");
  const Tensor x = cast(c.tensor(0), Dtype::i64), n = cast(c.tensor(1), Dtype::i64);
  const Tensor y = direction == "LEFT" ? bitwise_left_shift(x, n) : shifted_right(x, n, c.type(0) == ElementType::u64);
  return {narrowed(cast(y, dtype_for(c.type(0))), c.type(0))};
}

/// Lowers NonZero, in eager execution only: the shape depends on data.
Values non_zero(const Call& c) {
  if (!c.known(0)) c.refuse("the shape of its result depends on data");
  return {{transpose(nonzero(c.tensor(0)), 0, 1), ElementType::i64}};
}

Values cumprod_(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = axis_of(c, c.known_int(1), x.rank());
  const bool backwards = c.integer("reverse", 0) != 0;
  Tensor y = cast(cumprod(x, axis, backwards), x.dtype());
  if (c.integer("exclusive", 0) != 0) {
    Shape before = Shape::filled(x.rank(), 0), after = before;
    (backwards ? after : before)[axis] = 1;
    (backwards ? before : after)[axis] = -1;
    y = pad(y, before, after, 1);
  }
  return {narrowed(y, c.type(0))};
}

constexpr std::array kRows = std::to_array<Operation>({
    {.name = "NegativeLogLikelihoodLoss", .lower = nll_loss_},
    {.name = "SoftmaxCrossEntropyLoss", .lower = softmax_cross_entropy},
    {.name = "QuantizeLinear", .lower = quantize},
    {.name = "DequantizeLinear", .lower = dequantize},
    {.name = "BitShift", .lower = bit_shift},
    {.name = "NonZero", .lower = non_zero},
    {.name = "CumProd", .lower = cumprod_, .static_inputs = 2},
});

}  // namespace

Operations loss_operations() { return kRows; }

}  // namespace ferrite::onnx::detail
