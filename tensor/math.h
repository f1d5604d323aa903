#pragma once
/// Elementwise functions besides those of tensor/ops.h: trigonometry, rounding, division with remainder, special
/// functions, bits, tests of numbers. Names, NaN and infinities as in PyTorch. Floats (f32, f64) unless said otherwise,
/// with DtypeError for other dtypes; operands broadcast. Errors are at most 4 units in the last place on every
/// instruction set and over the whole range, except 16 for `digamma` in f64 and more near zeros where terms cancel: of
/// `digamma`, `polygamma` and `lgamma` below 0, of `logit` at 1/2, of `logaddexp`. docs/numerics.md has a table. f32 is
/// computed in packets (tensor/kernel/packet_math.h).
#include <optional>

#include "ferrite/tensor/ops.h"

namespace ferrite {

// ---- trigonometry ------------------------------------------------------------------------------------------

Tensor tan(const Tensor& x);
/// Returns the arc sine; NaN outside [-1, 1], and an infinite slope at the ends.
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
/// Returns the angle of the point (x, y), in -pi..pi. Its gradient is 0 at (0, 0), as PyTorch's, and at infinite
/// points; it neither overflows nor vanishes where squares of the coordinates do (PyTorch's does).
Tensor atan2(const Operand& y, const Operand& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);
/// Returns the inverse of cosh; NaN below 1.
Tensor acosh(const Tensor& x);
/// Returns the inverse of tanh; NaN outside [-1, 1], infinite at the ends.
Tensor atanh(const Tensor& x);
/// Returns sqrt(a^2 + b^2) without overflow; the gradient is 0 at (0, 0).
Tensor hypot(const Operand& a, const Operand& b);
/// Returns sin(pi x) / (pi x), and 1 where x is 0.
Tensor sinc(const Tensor& x);

// ---- rounding and division (gradients of rounding are 0) ---------------------------------------------------

Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
/// Rounds to the nearest whole number, halves to even ones.
Tensor round(const Tensor& x);
/// Rounds to `decimals` decimal places, halves to even; -2 rounds to hundreds: round(x 10^decimals) / 10^decimals.
Tensor round(const Tensor& x, int decimals);
/// Rounds toward zero.
Tensor trunc(const Tensor& x);
/// Returns x - trunc(x), with x's sign. The gradient is 1.
Tensor frac(const Tensor& x);
/// Returns the remainder a - b trunc(a / b), with a's sign, exact; numbers of any dtype but bool. An integer divisor 0
/// is refused: ValueError for a literal, ShapeError for an element, in compiled programs too. Integers that do not fit
/// wrap around.
Tensor fmod(const Operand& a, const Operand& b);
/// Returns the remainder a - b floor(a / b), with b's sign (Python's %); dtypes and errors as `fmod`.
Tensor remainder(const Operand& a, const Operand& b);
/// Returns floor(a / b), as Python's //; dtypes and errors as `fmod`. The gradient is 0.
Tensor floor_divide(const Operand& a, const Operand& b);

// ---- special functions -------------------------------------------------------------------------------------

/// Returns ln |Gamma(x)|; infinite at 0, -1, -2, ...
Tensor lgamma(const Tensor& x);
/// Returns the derivative of lgamma; infinite at 0, NaN at -1, -2, ...
Tensor digamma(const Tensor& x);
/// Returns the n-th derivative of digamma, n from 0 to 20. Throws ValueError for another n.
Tensor polygamma(std::int64_t n, const Tensor& x);
/// Returns 1 - erf(x), accurate where that is small.
Tensor erfc(const Tensor& x);
/// Returns the inverse of erf: infinite at -1 and 1, NaN outside.
Tensor erfinv(const Tensor& x);
/// Returns ln(e^a + e^b) without overflow.
Tensor logaddexp(const Tensor& a, const Tensor& b);
/// Returns log2(2^a + 2^b) without overflow.
Tensor logaddexp2(const Tensor& a, const Tensor& b);
/// Returns ln(x / (1 - x)), NaN outside [0, 1]; with epsilon, x is clamped to between epsilon and 1 - epsilon, with
/// gradient 0 outside. Throws ValueError for an epsilon outside [0, 0.5].
Tensor logit(const Tensor& x, std::optional<double> epsilon = {});
/// Returns x ln(y), 0 where x = 0 unless y is NaN.
Tensor xlogy(const Tensor& x, const Tensor& y);
/// Returns x y, but 0 where y = 0 even if x is infinite or NaN. No NaN reaches a gradient there either. For weights of
/// which 0 means absent; y has the dtype of x, and shapes broadcast.
Tensor multiply_no_nan(const Tensor& x, const Tensor& y);
Tensor log10(const Tensor& x);
/// Returns 10^x.
Tensor exp10(const Tensor& x);

// ---- mixing and replacing ----------------------------------------------------------------------------------

/// Returns a + weight (b - a), computed from the nearer of a and b.
Tensor lerp(const Tensor& a, const Tensor& b, const Operand& weight);
/// Replacement values of `nan_to_num`: for NaN, infinity (posinf) and -infinity (neginf). Where not given, infinities
/// become the largest and the lowest number of the dtype.
struct NanToNumOptions {
  double nan = 0;
  std::optional<double> posinf{}, neginf{};
};
/// Replaces NaN and infinities in x by finite numbers; no gradient passes through these elements.
Tensor nan_to_num(const Tensor& x, const NanToNumOptions& options = {});
/// Returns |a| with b's sign, including the sign of zeros. The gradient is 0 where a is 0.
Tensor copysign(const Operand& a, const Operand& b);
/// Returns the unit step: 0 where x < 0 or x is NaN, 1 where x > 0, the element of `values` where x = 0. Dtypes are
/// equal; any but bool.
Tensor heaviside(const Tensor& x, const Tensor& values);

// ---- tests of numbers (any dtype but storage types; results are bool; not differentiable) ------------------

Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
/// Options of `isclose`: the tolerances, relative and absolute, and whether NaN equals NaN.
struct IscloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;  ///< a NaN is close to a NaN
};
/// Returns whether |a - b| <= atol + rtol |b| or a = b, for each pair of elements. Throws ValueError for negative
/// tolerances.
Tensor isclose(const Tensor& a, const Tensor& b, const IscloseOptions& options = {});
/// Returns whether exactly one of a and b is not 0, for each pair of elements.
Tensor logical_xor(const Tensor& a, const Tensor& b);

// ---- bits (i32, i64; all but shifts also bool; not differentiable) -----------------------------------------

Tensor bitwise_and(const Operand& a, const Operand& b);
Tensor bitwise_or(const Operand& a, const Operand& b);
Tensor bitwise_xor(const Operand& a, const Operand& b);
/// Inverts every bit; for bool `!`.
Tensor bitwise_not(const Tensor& x);
/// Returns a << b, a 2^b without the bits that do not fit; 0 for b negative or beyond the bits of the dtype.
Tensor bitwise_left_shift(const Operand& a, const Operand& b);
/// Returns a >> b, a / 2^b rounded down; for b negative or beyond the bits of the dtype 0 or, for a < 0, -1.
Tensor bitwise_right_shift(const Operand& a, const Operand& b);

}  // namespace ferrite
