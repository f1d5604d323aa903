#pragma once
/// The basic operations on tensors; further ones are in separate headers, such as tensor/math.h. Tensors are
/// immutable: each function returns a new tensor, and a view (reshape, permute, slice, ...) shares elements with its
/// input. All shapes broadcast by NumPy's rule. ShapeError names the operation and the shapes, DtypeError the dtypes;
/// there is no promotion between tensors (`cast`). Storage types (bf16, f16, i8) can be cast and viewed; operations
/// that compute refuse them with a DtypeError. Differentiable unless said otherwise. Semantics follow PyTorch's
/// function of the same name where one exists.
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/operand.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// The result of an operation that chooses elements along an axis: the elements, and the positions (i64, of the same
/// shape) that they have on that axis.
///
///     const auto [values, indices] = sort(x);
struct ValuesAndIndices {
  Tensor values;
  Tensor indices;
};

/// The bound of a `slice` or a range (`Index`) that reaches to the end of the axis, whatever its extent.
inline constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

// ---- creation --------------------------------------------------------------------------------------------

/// Returns a tensor filled with one value, of any dtype, f32 unless given. Throws ValueError for an integer that an
/// integer dtype cannot hold, DtypeError for a float in an integer dtype.
Tensor full(const Shape& shape, Scalar value, Dtype dtype = Dtype::f32);
Tensor zeros(const Shape& shape, Dtype dtype = Dtype::f32);
Tensor ones(const Shape& shape, Dtype dtype = Dtype::f32);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
/// Returns begin (0 if not given), begin + step, ... short of end: ceil((end - begin) / step) values [n]. The dtype is
/// i64 for integer literals, else f32, unless given. Throws ValueError for step 0 or too many values.
Tensor arange(Scalar end);
Tensor arange(Scalar begin, Scalar end, Scalar step = 1);
Tensor arange(Scalar begin, Scalar end, Scalar step, Dtype dtype);
/// Returns n equally spaced values from begin to end, both included [n]. Throws ValueError for n < 1 and ends that are
/// not finite, ShapeError for too many values, DtypeError unless the dtype is f32 or f64.
Tensor linspace(double begin, double end, std::int64_t n, Dtype dtype = Dtype::f32);
/// Returns a matrix [n, m] with ones on the diagonal, else 0; m defaults to n.
Tensor eye(std::int64_t n, std::int64_t m = -1, Dtype dtype = Dtype::f32);

// ---- pointwise arithmetic (numeric dtypes; a literal takes the dtype of the tensor) ------------------------

Tensor add(const Operand& a, const Operand& b);
Tensor sub(const Operand& a, const Operand& b);
Tensor mul(const Operand& a, const Operand& b);
/// Returns a / b, floats only: integers must be cast first.
Tensor div(const Operand& a, const Operand& b);
/// Returns a^b, floats only; a^2 has the bits of a * a. Differentiable in a, and in b where b is a tensor.
Tensor pow(const Operand& a, const Operand& b);
/// Returns the larger of a and b, element by element; NaN if either is NaN. Equal elements share the gradient evenly.
Tensor maximum(const Operand& a, const Operand& b);
Tensor minimum(const Operand& a, const Operand& b);
Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
/// Returns the sign of x: -1, 0 or 1; NaN is kept. The gradient is 0.
Tensor sign(const Tensor& x);
Tensor square(const Tensor& x);
/// Returns min(max(x, low), high). The gradient is 1 inside and at the bounds, else 0.
Tensor clamp(const Tensor& x, Scalar low, Scalar high);

// ---- pointwise functions (floats) --------------------------------------------------------------------------

Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor reciprocal(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor exp2(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
/// Returns the hyperbolic tangent, within 3 units in the last place for every x.
Tensor tanh(const Tensor& x);
/// Returns 1 / (1 + e^-x), without overflow at either end. Within 6 units in the last place for every x, except that a
/// result which would be subnormal may be 0.
Tensor sigmoid(const Tensor& x);
/// Returns max(x, 0). NaN is kept; the gradient is 0 at 0.
Tensor relu(const Tensor& x);
Tensor erf(const Tensor& x);
/// The formula of `gelu`: x Phi(x) exactly, or Hendrycks and Gimpel's approximation by tanh.
enum class GeluForm : std::uint8_t { exact, tanh };
/// Returns x Phi(x), Phi the normal distribution function (arXiv 1606.08415). Exact form: within 40 units in the last
/// place or 3e-7 (f32; f64: 1e-15) for every x.
Tensor gelu(const Tensor& x, GeluForm form = GeluForm::exact);
/// Returns log(1 + e^x), without overflow.
Tensor softplus(const Tensor& x);
/// Returns x / (1 + |x|).
Tensor softsign(const Tensor& x);
/// Returns x sigmoid(x), within 4 units in the last place. Below -80 (f64: -700), where the sigmoid loses its digits,
/// it is computed as x e^x.
Tensor silu(const Tensor& x);
/// Returns log(sigmoid(x)) = -softplus(-x).
Tensor log_sigmoid(const Tensor& x);

// ---- comparisons and logic (not differentiable; results are bool) ------------------------------------------

/// Compares a and b element by element: bool, true where they are equal; shapes broadcast. Likewise `ne` (a != b), `lt`
/// (a < b), `le` (a <= b), `gt` (a > b) and `ge` (a >= b): PyTorch's short names, as `less` would clash with
/// `std::less`.
Tensor eq(const Operand& a, const Operand& b);
Tensor ne(const Operand& a, const Operand& b);
Tensor lt(const Operand& a, const Operand& b);
Tensor le(const Operand& a, const Operand& b);
Tensor gt(const Operand& a, const Operand& b);
Tensor ge(const Operand& a, const Operand& b);
/// Returns a && b of bool tensors, element by element; unlike for bools, both sides are always evaluated. Likewise ||.
Tensor operator&&(const Tensor& a, const Tensor& b);
Tensor operator||(const Tensor& a, const Tensor& b);
Tensor operator!(const Tensor& a);
/// Returns the elements of a where the bool tensor `condition` is true, else those of b. The gradient of elements not
/// taken is 0, even where they are NaN.
Tensor where(const Tensor& condition, const Operand& a, const Operand& b);
/// Returns x converted to another dtype, storage types (bf16, f16, i8) included. Floats are rounded once, to nearest
/// even; to integers they are truncated toward zero, values that do not fit saturate, and NaN gives 0. Integers that do
/// not fit a narrower type keep its low bits; anything to bool is "not zero". Differentiable between floats: through
/// bf16 and f16 the gradient passes in f32.
Tensor cast(const Tensor& x, Dtype dtype);

// ---- reductions over axes (empty: all); keepdim leaves extents of 1 ----------------------------------------

/// Sums elements over axes; bool and i32 give i64.
Tensor sum(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Returns the mean over axes, floats only; NaN for no elements.
Tensor mean(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Returns the largest element over axes, without its position; NaN if there is one; ties share the gradient evenly.
/// Throws ShapeError for no elements.
Tensor amax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
Tensor amin(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Returns amax(x, axes, keepdim) under a short name, without positions; `min` returns amin.
Tensor max(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
Tensor min(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Multiplies elements over axes; bool and i32 give i64, no elements 1.
Tensor prod(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Returns the index (i64) of the first largest element along an axis, which is dropped unless `keepdim`; a NaN counts
/// as largest. Not differentiable. Throws ShapeError for an axis without elements.
Tensor argmax(const Tensor& x, std::int64_t axis = -1, bool keepdim = false);
/// Returns the index (i64) of the first smallest element along an axis, which is dropped unless `keepdim`; a NaN counts
/// as smallest. Not differentiable. Throws ShapeError for an axis without elements.
Tensor argmin(const Tensor& x, std::int64_t axis = -1, bool keepdim = false);
/// Returns log(sum(exp(x))) over axes, without overflow; -inf for no elements or only -inf.
Tensor logsumexp(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Returns the variance of n elements over axes, sum of (x - mean)^2 / (n - correction); divides by 0 where n <=
/// correction (NaN or infinity, as in PyTorch). Throws ValueError for a correction that is not finite.
Tensor var(const Tensor& x, const Shape& axes = {}, bool keepdim = false, double correction = 1);
Tensor softmax(const Tensor& x, std::int64_t axis = -1);
Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);
/// Returns x summed over the axes along which `shape` broadcasts to x's shape, a tensor of `shape`: the adjoint of
/// `expand`.
Tensor sum_to(const Tensor& x, const Shape& shape);

// ---- products ----------------------------------------------------------------------------------------------

/// Returns the matrix product of the last two axes with broadcast leading axes, as NumPy's matmul: [K].[K] -> [],
/// [M, K].[K] -> [M], [K].[K, N] -> [N], [..., M, K].[..., K, N] -> [..., M, N]. Floats. Strided and transposed
/// operands are read in place. Order of summation: docs/numerics.md, rule 2.
Tensor matmul(const Tensor& a, const Tensor& b);

// ---- views (share the elements of x) -----------------------------------------------------------------------

/// Returns x with another shape of as many elements; one extent may be -1, which is inferred. Copies only when the
/// strides of x allow no view.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Reorders axes: axis i of the result is axis order[i] of x.
Tensor permute(const Tensor& x, const Shape& order);
/// Exchanges two axes; by default the last two.
Tensor transpose(const Tensor& x, std::int64_t a = -2, std::int64_t b = -1);
/// Returns the elements begin, begin + step, ... short of end along an axis, as Python's x[begin:end:step]: negative
/// bounds count from the end, bounds are clamped, and a negative step goes down (then kEnd as `end` means before the
/// first element and kEnd as `begin` the last one).
Tensor slice(const Tensor& x, std::int64_t axis, std::int64_t begin, std::int64_t end = kEnd, std::int64_t step = 1);
/// Returns the slice of x at one index along an axis, which is dropped: Python's x[:, index] for axis 1.
Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index);
/// Returns x with a larger shape, to which its own broadcasts: axes of extent 1 and new leading axes are repeated, as a
/// view; -1 keeps an extent.
Tensor expand(const Tensor& x, const Shape& shape);
/// Drops an axis of extent 1. Throws ShapeError for another extent, unlike PyTorch.
Tensor squeeze(const Tensor& x, std::int64_t axis);
/// Drops all axes of extent 1.
Tensor squeeze(const Tensor& x);
/// Inserts an axis of extent 1, which becomes axis `axis` of the result; -1 appends it.
Tensor unsqueeze(const Tensor& x, std::int64_t axis);
Tensor flip(const Tensor& x, const Shape& axes);
/// Merges the axes first..last, both included, into one.
Tensor flatten(const Tensor& x, std::int64_t first = 0, std::int64_t last = -1);
/// Returns all slices along an axis, which is dropped: [T, ...] gives T views [...], made by one operation.
Tensors unbind(const Tensor& x, std::int64_t axis = 0);
/// Splits an axis into pieces of `size`; the last one may be smaller. The pieces are views, made by one operation.
Tensors split(const Tensor& x, std::int64_t size, std::int64_t axis = 0);
/// Splits an axis into pieces of the given sizes, which must add up to the extent.
Tensors split(const Tensor& x, std::span<const std::int64_t> sizes, std::int64_t axis = 0);
/// Splits an axis into at most n pieces of size extent / n, rounded up; the last one may be smaller.
Tensors chunk(const Tensor& x, std::int64_t n, std::int64_t axis = 0);
/// Returns x as a contiguous tensor, row-major without gaps: x itself where it is one, else a copy.
Tensor contiguous(const Tensor& x);
/// Returns the same values, detached from every tape: a constant for gradients.
Tensor detach(const Tensor& x);

// ---- assembling and indexing -------------------------------------------------------------------------------

/// Joins tensors along an axis that they have; all other extents must agree.
Tensor concat(std::span<const Tensor> parts, std::int64_t axis = 0);
Tensor concat(std::initializer_list<Tensor> parts, std::int64_t axis = 0);
/// Joins tensors of one shape along a new axis, which becomes axis `axis` of the result.
Tensor stack(std::span<const Tensor> parts, std::int64_t axis = 0);
Tensor stack(std::initializer_list<Tensor> parts, std::int64_t axis = 0);
/// Adds before[i] and after[i] elements of `value` around axis i; negative amounts crop.
Tensor pad(const Tensor& x, const Shape& before, const Shape& after, Scalar value = 0);
/// Options of operations that take an index tensor: whether negative indices count from the end.
struct IndexOptions {
  /// A name for error messages. Empty: negative indices count from the end. Not empty: they are refused, like those
  /// from the extent on, and errors begin with the name: "embedding: token" gives "embedding: token -1 lies outside
  /// 0..9".
  Label who{};
};
/// Returns x[.., index[j], ..]: slices chosen by a rank-1 i64 (or i32) index along an axis. Throws ShapeError when an
/// index lies outside [-n, n), n the extent; in compiled programs too, even if the result is not read.
Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& index, const IndexOptions& options = {});
/// Picks elements along one axis: out[i][j][k] = x[i][index[i][j][k]][k] for axis 1; index has x's rank, and extents
/// not above x's on the other axes. Out-of-range indices throw as for index_select.
Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index, const IndexOptions& options = {});
/// Returns x with the elements of `source` added at `index` (of source's shape) along an axis: the adjoint of gather.
/// Repeated indices add up in row-major order.
Tensor scatter_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
                   const IndexOptions& options = {});
/// Returns x after checking it: throws where an element lies outside low..high or is NaN, ShapeError for integers,
/// RangeError for floats, with the message "<who> <value> lies outside <low>..<high>". The check is part of the
/// program: a compiled, scanned or differentiated function runs it too, before it writes any variable, whether or not
/// the result is read. Gradients pass unchanged. Throws DtypeError for bool.
Tensor checked(const Tensor& x, Scalar low, Scalar high, Label who);
/// Returns a row of `classes` elements for every index, 1 at the index, else 0: [...] i64 -> [..., classes]. Not
/// differentiable. Throws ShapeError for an index outside [0, classes).
Tensor one_hot(const Tensor& index, std::int64_t classes, Dtype dtype = Dtype::f32);

// ---- functions of layers, composed -------------------------------------------------------------------------

/// Returns (x - mean) / sqrt(var + epsilon) with mean and uncorrected variance over the last `axes` axes, a number of
/// axes (arXiv 1607.06450). Scale and shift are left to the caller.
Tensor layer_norm(const Tensor& x, int axes = 1, double epsilon = 1e-5);

/// Returns matmul(x, weight) + bias, weight [in, out] (torch's linear takes [out, in]); the product alone where the
/// bias is undefined.
Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias);

/// Returns x with its padding, which may hold anything, replaced: beyond its length every row repeats its last step, so
/// what a step computes from padding is as finite as within the row, and times 0 is 0. A row of length 0 takes the last
/// step of the longest row. x [T, B, ...] (or batch first) of any dtype, lengths i64 [B]; undefined: all T, x itself.
/// No gradient passes into the copies.
Tensor without_padding(const Tensor& x, const Tensor& lengths, bool batch_first = false);

// ---- operators ---------------------------------------------------------------------------------------------

inline Tensor operator+(const Operand& a, const Operand& b) { return add(a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return sub(a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return mul(a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return div(a, b); }
inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator<(const Operand& a, const Operand& b) { return lt(a, b); }
inline Tensor operator<=(const Operand& a, const Operand& b) { return le(a, b); }
inline Tensor operator>(const Operand& a, const Operand& b) { return gt(a, b); }
inline Tensor operator>=(const Operand& a, const Operand& b) { return ge(a, b); }

namespace detail {

/// Replaces the padding of x like `without_padding` (tensor/ops.h), for lengths i64 [B] that are known to lie in 0..T:
/// other lengths give meaningless values. Undefined lengths give x itself.
Tensor padding_replaced(const Tensor& x, const Tensor& lengths, bool batch_first = false);

}  // namespace detail
}  // namespace ferrite
