/// Lowers sums and other reductions, products, softmax and sorting operations.
#include <algorithm>
#include <array>
#include <cmath>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/exchange/onnx/operations/unsigned64.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/linalg.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/sorting.h"

namespace ferrite::onnx::detail {
namespace {

// ---- reductions ------------------------------------------------------------------------------------------

struct Reduced {
  Shape axes{};
  bool keep = true;
  bool nothing = false;  ///< whether no axis is reduced
};

/// Returns the axes, an attribute before the version `input_since` and an input from it on. If there are none, all axes
/// are reduced, or none where the node says so.
Reduced axes_of(const Call& c, std::int64_t input_since) {
  const int rank = c.tensor(0).rank();
  std::vector<std::int64_t> axes;
  bool none = false;
  if (c.version() < input_since) {
    axes = c.integers("axes");
  } else {
    if (c.has(1)) axes = c.known_ints(1);
    none = c.integer("noop_with_empty_axes", 0) != 0;
  }
  Reduced r{.keep = c.integer("keepdims", 1) != 0, .nothing = axes.empty() && none};
  for (std::int64_t& a : axes) a = axis_of(c, a, rank);
  std::ranges::sort(axes);
  for (const std::int64_t a : axes) r.axes.push_back(a);
  if (axes.empty() && !none)
    for (int i = 0; i < rank; ++i) r.axes.push_back(i);
  return r;
}

Tensor unchanged(const Tensor& x) { return x; }

/// Lowers a reduction f(x, axes, keepdim); integers and bool keep their type. Where no axis is reduced, `single`
/// applies what f does to single elements.
template <std::int64_t InputSince, class F>
Values reduced(const Call& c, F f, Tensor (*single)(const Tensor&) = unchanged) {
  const Reduced r = axes_of(c, InputSince);
  const Tensor& x = c.tensor(0);
  if (r.nothing) return {narrowed(single(x), c.type(0))};
  const Tensor y = f(x, r);
  return {narrowed(y.dtype() == x.dtype() ? y : cast(y, x.dtype()), c.type(0))};
}

Values reduce_sum(const Call& c) {
  return reduced<13>(c, [](const Tensor& x, const Reduced& r) { return sum(x, r.axes, r.keep); });
}
Values reduce_mean(const Call& c) {
  return reduced<18>(c, [](const Tensor& x, const Reduced& r) {
    if (is_float(x.dtype())) return mean(x, r.axes, r.keep);
    std::int64_t n = 1;
    for (const std::int64_t a : r.axes) n *= x.shape()[static_cast<int>(a)];
    return cast(cast(sum(x, r.axes, r.keep), Dtype::f64) / static_cast<double>(n), Dtype::i64);
  });
}
/// Returns the extreme of no elements: infinity, or the extreme number of the type.
double extreme_of_none(const Call& c, bool largest) {
  const ElementType type = c.type(0);
  if (is_floating(type)) return largest ? -INFINITY : INFINITY;
  if (!is_integral(type) || bits_of(type) > 32) c.refuse("the extreme of no elements is not supported");
  const double range = std::ldexp(1, bits_of(type)), low = is_unsigned(type) ? 0 : -range / 2;
  return largest ? low : low + range - 1;
}
bool reduces_none(const Tensor& x, const Reduced& r) {
  for (const std::int64_t a : r.axes)
    if (x.shape()[static_cast<int>(a)] == 0) return true;
  return false;
}
Tensor extreme_of(const Call& c, const Tensor& x, const Reduced& r, bool largest) {
  if (x.dtype() == Dtype::boolean) return largest ? any(x, r.axes, r.keep) : all(x, r.axes, r.keep);
  if (!reduces_none(x, r)) return largest ? amax(x, r.axes, r.keep) : amin(x, r.axes, r.keep);
  const Shape shape = sum(zeros(x.shape()), r.axes, r.keep).shape();
  return cast(full(shape, extreme_of_none(c, largest), Dtype::f64), x.dtype());
}
Values reduce_max(const Call& c) {
  return reduced<18>(c, [&](const Tensor& x, const Reduced& r) {
    return ordered(extreme_of(c, ordered(x, c.type(0)), r, true), c.type(0));
  });
}
Values reduce_min(const Call& c) {
  return reduced<18>(c, [&](const Tensor& x, const Reduced& r) {
    return ordered(extreme_of(c, ordered(x, c.type(0)), r, false), c.type(0));
  });
}
Values reduce_prod(const Call& c) {
  return reduced<18>(c, [](const Tensor& x, const Reduced& r) { return prod(x, r.axes, r.keep); });
}
Values reduce_l1(const Call& c) {
  return reduced<18>(
      c, [](const Tensor& x, const Reduced& r) { return sum(abs(x), r.axes, r.keep); }, abs);
}
Values reduce_l2(const Call& c) {
  return reduced<18>(
      c,
      [](const Tensor& x, const Reduced& r) {
        const Tensor squares = sum(square(x), r.axes, r.keep);
        return is_float(x.dtype()) ? sqrt(squares) : cast(sqrt(cast(squares, Dtype::f64)), Dtype::i64);
      },
      abs);
}
Values reduce_sum_square(const Call& c) {
  return reduced<18>(
      c, [](const Tensor& x, const Reduced& r) { return sum(square(x), r.axes, r.keep); }, square);
}
Values reduce_log_sum(const Call& c) {
  return reduced<18>(
      c, [](const Tensor& x, const Reduced& r) { return log(sum(x, r.axes, r.keep)); }, log);
}
Values reduce_log_sum_exp(const Call& c) {
  return reduced<18>(c, [](const Tensor& x, const Reduced& r) { return logsumexp(x, r.axes, r.keep); });
}

Values extreme_place(const Call& c, bool largest) {
  Tensor x = ordered(c.tensor(0), c.type(0));
  const int axis = axis_of(c, c.integer("axis", 0), x.rank());
  const bool keep = c.integer("keepdims", 1) != 0, last = c.version() >= 12 && c.integer("select_last_index", 0) != 0;
  if (last) x = flip(x, {axis});
  Tensor y = largest ? argmax(x, axis, keep) : argmin(x, axis, keep);
  if (last) y = x.shape()[axis] - 1 - y;
  return {{y, ElementType::i64}};
}
Values arg_max(const Call& c) { return extreme_place(c, true); }
Values arg_min(const Call& c) { return extreme_place(c, false); }

// ---- along an axis ---------------------------------------------------------------------------------------

/// Lowers softmax and its relatives; before opset 13 all axes from `axis` on count as one.
template <class F>
Values along(const Call& c, F f) {
  const Tensor& x = c.tensor(0);
  if (c.version() >= 13) return {narrowed(f(x, axis_of(c, c.integer("axis", -1), x.rank())), c.type(0))};
  const int axis = axis_of(c, c.integer("axis", 1), x.rank());
  std::int64_t before = 1, behind = 1;
  for (int i = 0; i < x.rank(); ++i) (i < axis ? before : behind) *= x.shape()[i];
  return {narrowed(reshape(f(reshape(x, {before, behind}), 1), x.shape()), c.type(0))};
}
Values softmax_(const Call& c) {
  return along(c, [&](const Tensor& x, int axis) { return softmax_of(x, axis, c.type(0)); });
}
Values log_softmax_(const Call& c) {
  return along(c, [](const Tensor& x, int axis) { return log_softmax(x, axis); });
}
Values hardmax(const Call& c) {
  return along(c, [](const Tensor& x, int axis) {
    Shape line = Shape::filled(x.rank(), 1);
    line[axis] = x.shape()[axis];
    return cast(eq(reshape(arange(0, x.shape()[axis], 1, Dtype::i64), line), argmax(x, axis, true)), x.dtype());
  });
}

Values lp_normalization(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = axis_of(c, c.integer("axis", -1), x.rank());
  const std::int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) c.refuse("p is 1 or 2, got " + std::to_string(p));
  const Tensor n = p == 1 ? sum(abs(x), {axis}, true) : sqrt(sum(square(x), {axis}, true));
  return {narrowed(x / where(eq(n, 0), ones_like(n), n), c.type(0))};
}

Values cumsum_(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = axis_of(c, c.known_int(1), x.rank());
  const bool backwards = c.integer("reverse", 0) != 0;
  Tensor y = cumsum(x, axis, backwards);
  if (c.integer("exclusive", 0) != 0) {
    Shape before = Shape::filled(x.rank(), 0), after = before;
    (backwards ? after : before)[axis] = 1;
    (backwards ? before : after)[axis] = -1;
    y = pad(y, before, after);
  }
  return {narrowed(cast(y, x.dtype()), c.type(0))};
}

Values top_k(const Call& c) {
  const Tensor x = ordered(c.tensor(0), c.type(0));
  const std::int64_t k = c.version() < 10 ? c.integer("k") : c.known_int(1);
  const bool largest = c.version() < 11 || c.integer("largest", 1) != 0;
  if (c.version() >= 11) c.without_effect("sorted");  // without it the order is undefined; this one is sorted
  const ValuesAndIndices r = topk(x, k, {.axis = axis_of(c, c.integer("axis", -1), x.rank()), .largest = largest});
  return {{ordered(r.values, c.type(0)), c.type(0)}, {r.indices, ElementType::i64}};
}

// ---- products --------------------------------------------------------------------------------------------

Values einsum_(const Call& c) {
  Tensors operands;
  for (std::size_t i = 0; i < c.inputs(); ++i) operands.push_back(c.tensor(i));
  return {narrowed(einsum(c.text("equation"), std::span<const Tensor>(operands.data(), operands.size())), c.type(0))};
}

constexpr std::array kRows = std::to_array<Operation>({
    {.name = "ReduceSum", .lower = reduce_sum, .static_inputs = 2},
    {.name = "ReduceMean", .lower = reduce_mean, .static_inputs = 2},
    {.name = "ReduceMax", .lower = reduce_max, .static_inputs = 2},
    {.name = "ReduceMin", .lower = reduce_min, .static_inputs = 2},
    {.name = "ReduceProd", .lower = reduce_prod, .static_inputs = 2},
    {.name = "ReduceL1", .lower = reduce_l1, .static_inputs = 2},
    {.name = "ReduceL2", .lower = reduce_l2, .static_inputs = 2},
    {.name = "ReduceSumSquare", .lower = reduce_sum_square, .static_inputs = 2},
    {.name = "ReduceLogSum", .lower = reduce_log_sum, .static_inputs = 2},
    {.name = "ReduceLogSumExp", .lower = reduce_log_sum_exp, .static_inputs = 2},
    {.name = "ArgMax", .lower = arg_max},
    {.name = "ArgMin", .lower = arg_min},
    {.name = "Softmax", .lower = softmax_},
    {.name = "LogSoftmax", .lower = log_softmax_},
    {.name = "Hardmax", .lower = hardmax},
    {.name = "LpNormalization", .lower = lp_normalization},
    {.name = "CumSum", .lower = cumsum_, .static_inputs = 2},
    {.name = "TopK", .lower = top_k, .static_inputs = 2},
    {.name = "Einsum", .lower = einsum_},
});

}  // namespace

Tensor softmax_of(const Tensor& x, int axis, ElementType type) {
  if (type != ElementType::f16 && type != ElementType::bf16) return softmax(x, axis);
  const auto rounded = [&](const Tensor& t) { return narrowed(t, type).tensor; };
  const Tensor parts = rounded(exp(rounded(x - amax(x, {axis}, true))));
  return rounded(parts / rounded(sum(parts, {axis}, true)));
}

Operations reduction_operations() { return kRows; }

}  // namespace ferrite::onnx::detail
