/// Reductions over axes, softmax and its like, running sums and products.
#include <algorithm>
#include <cmath>

#include "ferrite/exchange/onnx/operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

/// Narrow integers are added up in i64 and come back to their dtype.
Value back(const Call& call, const Tensor& y) {
  return narrowed(y.dtype() == call.tensor(0).dtype() ? y : cast(y, call.tensor(0).dtype()), call.type(0));
}

Tensor reduced(const Call& call, std::string_view name, const Tensor& x, const Shape& axes, bool keep) {
  const bool whole = !is_float(x.dtype());
  const Tensor wide = whole ? cast(x, Dtype::f64) : x;
  if (name == "ReduceSum") return sum(x, axes, keep);
  if (name == "ReduceMean") return whole ? trunc(mean(wide, axes, keep)) : mean(x, axes, keep);
  if (name == "ReduceProd") return prod(x, axes, keep);
  if (name == "ReduceL1") return sum(abs(x), axes, keep);
  if (name == "ReduceL2") return norm(wide, {.p = 2, .axes = axes, .keepdim = keep});
  if (name == "ReduceSumSquare") return sum(square(x), axes, keep);
  if (name == "ReduceLogSum") return log(sum(wide, axes, keep));
  if (name == "ReduceLogSumExp") return logsumexp(wide, axes, keep);
  const bool most = name == "ReduceMax";
  const bool logical = x.dtype() == Dtype::boolean;
  const Tensor y = logical ? cast(x, Dtype::i32) : x;
  const Tensor extreme = most ? amax(y, axes, keep) : amin(y, axes, keep);
  (void)call;
  return logical ? cast(extreme, Dtype::boolean) : extreme;
}

/// The extreme of no elements: infinite, or the last number of the type.
Values extreme_of_none(const Call& call, const Shape& axes, bool keep, bool most) {
  const ElementType type = call.type(0);
  const Tensor shape = sum(zeros(call.tensor(0).shape()), axes, keep);
  const Dtype dtype = dtype_for(type);
  if (is_floating(type)) return {{full(shape.shape(), most ? -INFINITY : INFINITY, dtype), type}};
  if (type == ElementType::boolean) return {{full(shape.shape(), most ? 0 : 1, dtype), type}};
  const int bits = bits_of(type);
  if (type == ElementType::u64 && !most) return {{full(shape.shape(), -1, dtype), type}};
  const std::int64_t top = is_unsigned(type) ? (bits == 64 ? -1 : (std::int64_t{1} << bits) - 1)
                                             : static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  const std::int64_t bottom = is_unsigned(type) ? 0 : -top - 1;
  return {{full(shape.shape(), most ? bottom : top, dtype), type}};
}

/// Axes as an attribute before version 18, of ReduceSum before 13.
Values reduce(const Call& call) {
  const Tensor& x = call.tensor(0);
  const bool keep = call.integer("keepdims", 1) != 0;
  const bool sums = call.name() == "ReduceSum";
  auto axes = axes_of(call, axes_argument(call, sums ? 13 : 18, 1), x.rank());
  const bool nothing = call.integer("noop_with_empty_axes", 0) != 0 && axes.empty();
  if (nothing) {
    const std::string_view name = call.name();
    // over no axes, each element is reduced by itself
    if (name == "ReduceL1" || name == "ReduceL2") return {narrowed(abs(x), call.type(0))};
    if (name == "ReduceSumSquare") return {narrowed(square(x), call.type(0))};
    if (name == "ReduceLogSum") return {back(call, log(is_float(x.dtype()) ? x : cast(x, Dtype::f64)))};
    return {call.value(0)};
  }
  if (axes.empty() && x.rank() == 0) return {back(call, reduced(call, call.name(), reshape(x, {1}), {0}, false))};
  const Shape over = shape_of(axes);
  if (x.numel() == 0 && (call.name() == "ReduceMax" || call.name() == "ReduceMin"))
    return extreme_of_none(call, over, keep, call.name() == "ReduceMax");
  return {back(call, reduced(call, call.name(), x, over, keep))};
}

Values extreme_index(const Call& call) {
  Tensor x = call.tensor(0);
  const int axis = axis_of(call, call.integer("axis", 0), x.rank());
  const bool keep = call.integer("keepdims", 1) != 0;
  const bool last = call.version() >= 12 && call.integer("select_last_index", 0) != 0;
  if (last) x = flip(x, Shape{axis});
  Tensor y = call.name() == "ArgMax" ? argmax(x, axis, keep) : argmin(x, axis, keep);
  if (last) y = x.size(axis) - 1 - y;
  return {{y, ElementType::i64}};
}

/// Before version 13 over all axes from `axis` on, together.
Values softmax_of(const Call& call) {
  const Tensor& x = call.tensor(0);
  const bool old = call.version() < 13;
  const int axis = axis_of(call, call.integer("axis", old ? 1 : -1), x.rank());
  const std::string_view name = call.name();
  const auto apply = [&](const Tensor& t, int along) {
    if (name == "Softmax") return softmax(t, along);
    if (name == "LogSoftmax") return log_softmax(t, along);
    // Hardmax: 1 at the first of the largest
    const Tensor first = argmax(t, along, true);
    std::vector<std::int64_t> extents(static_cast<std::size_t>(t.rank()), 1);
    extents[static_cast<std::size_t>(along)] = t.size(along);
    return cast(eq(first, reshape(arange(Scalar(0), Scalar(t.size(along)), Scalar(1), Dtype::i64), shape_of(extents))),
                t.dtype());
  };
  if (!old) return {narrowed(apply(x, axis), call.type(0))};
  std::int64_t rows = 1, columns = 1;
  for (int i = 0; i < x.rank(); ++i) (i < axis ? rows : columns) *= x.size(i);
  return {narrowed(reshape(apply(reshape(x, {rows, columns}), 1), x.shape()), call.type(0))};
}

Values running(const Call& call) {
  Tensor x = call.tensor(0);
  const int axis = axis_of(call, call.known_int(1), x.rank());
  const bool reverse = call.integer("reverse", 0) != 0;
  const bool product = call.name() == "CumProd";
  if (call.integer("exclusive", 0) != 0) {  // moved by one, the empty sum in front
    std::vector<std::int64_t> none(static_cast<std::size_t>(x.rank())), one(none);
    one[static_cast<std::size_t>(axis)] = 1;
    const Scalar neutral(product ? 1 : 0);
    x = reverse ? pad(slice(x, axis, 1), shape_of(none), shape_of(one), neutral)
                : pad(slice(x, axis, 0, std::max<std::int64_t>(0, x.size(axis) - 1)), shape_of(one), shape_of(none), neutral);
  }
  return {back(call, product ? cumprod(x, axis, reverse) : cumsum(x, axis, reverse))};
}

constexpr Operation kOperations[] = {
    {.name = "ReduceSum", .lower = reduce, .static_inputs = 2},
    {.name = "ReduceMean", .lower = reduce, .static_inputs = 2},
    {.name = "ReduceProd", .lower = reduce, .static_inputs = 2},
    {.name = "ReduceMax", .lower = reduce, .static_inputs = 2},
    {.name = "ReduceMin", .lower = reduce, .static_inputs = 2},
    {.name = "ReduceL1", .lower = reduce, .static_inputs = 2},
    {.name = "ReduceL2", .lower = reduce, .static_inputs = 2},
    {.name = "ReduceSumSquare", .lower = reduce, .static_inputs = 2},
    {.name = "ReduceLogSum", .lower = reduce, .static_inputs = 2},
    {.name = "ReduceLogSumExp", .lower = reduce, .static_inputs = 2},
    {.name = "ArgMax", .lower = extreme_index},
    {.name = "ArgMin", .lower = extreme_index},
    {.name = "Softmax", .lower = softmax_of},
    {.name = "LogSoftmax", .lower = softmax_of},
    {.name = "Hardmax", .lower = softmax_of},
    {.name = "CumSum", .lower = running, .static_inputs = 2},
    {.name = "CumProd", .lower = running, .static_inputs = 2},
};

}  // namespace

Operations reduction_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
