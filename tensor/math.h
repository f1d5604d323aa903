#pragma once
/// Elementwise functions beside those of tensor/ops.h: trigonometry, rounding, division with remainder, special
/// functions, bits, tests of numbers. Names, NaN and infinities as in PyTorch. Floats (f32, f64) unless said otherwise,
/// DtypeError for other dtypes; operands broadcast. Errors are 4 units in the last place at most, on every instruction
/// set and over the whole range, but 16 for `digamma` in f64 and more near zeros where terms cancel: of `digamma`,
/// `polygamma` and `lgamma` below 0, of `logit` at 1/2, of `logaddexp`. docs/numerics.md has a table. f32 is computed
/// in packets (tensor/kernel/packet_math.h).
#include <optional>

#include "ferrite/tensor/ops.h"

namespace ferrite {

// ---- trigonometry ------------------------------------------------------------------------------------------

Tensor tan(const Tensor& x);
/// NaN outside of [-1, 1], where the slope is infinite.
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
/// The angle of the point (x, y), -pi..pi. Its gradient is 0 at (0, 0), as PyTorch's, and at infinite points; it
/// neither overflows nor vanishes where squares of the coordinates do (PyTorch's does).
Tensor atan2(const Operand& y, const Operand& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);
/// NaN below 1.
Tensor acosh(const Tensor& x);
/// NaN outside of [-1, 1]; infinite at the ends.
Tensor atanh(const Tensor& x);
/// sqrt(a^2 + b^2) without overflow; gradient 0 at (0, 0).
Tensor hypot(const Operand& a, const Operand& b);
/// sin(pi x) / (pi x), 1 at 0.
Tensor sinc(const Tensor& x);

// ---- rounding and division (gradients of rounding are 0) ---------------------------------------------------

Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
/// To the nearest whole number, halves to even ones.
Tensor round(const Tensor& x);
/// To so many decimals, negative ones left of the point: round(x 10^decimals) / 10^decimals.
Tensor round(const Tensor& x, int decimals);
/// Toward zero.
Tensor trunc(const Tensor& x);
/// x - trunc(x), of x's sign. Gradient 1.
Tensor frac(const Tensor& x);
/// a - b trunc(a / b), of a's sign, exact; numbers of any dtype but bool. Of integers a divisor 0 is refused:
/// ValueError for a literal, ShapeError for an element, in compiled programs too. Integers that do not fit wrap around.
Tensor fmod(const Operand& a, const Operand& b);
/// a - b floor(a / b), of b's sign (Python's %); dtypes and errors as `fmod`.
Tensor remainder(const Operand& a, const Operand& b);
/// floor(a / b), as Python's //; dtypes and errors as `fmod`. Gradient 0.
Tensor floor_divide(const Operand& a, const Operand& b);

// ---- special functions -------------------------------------------------------------------------------------

/// ln |Gamma(x)|; infinite at 0, -1, -2, ...
Tensor lgamma(const Tensor& x);
/// The derivative of lgamma; at 0 infinite, at -1, -2, ... NaN.
Tensor digamma(const Tensor& x);
/// The n-th derivative of digamma, n from 0 to 20. Throws ValueError for another n.
Tensor polygamma(std::int64_t n, const Tensor& x);
/// 1 - erf(x), accurate where that is small.
Tensor erfc(const Tensor& x);
/// The inverse of erf: infinite at -1 and 1, NaN outside.
Tensor erfinv(const Tensor& x);
/// ln(e^a + e^b) without overflow.
Tensor logaddexp(const Tensor& a, const Tensor& b);
/// log2(2^a + 2^b) without overflow.
Tensor logaddexp2(const Tensor& a, const Tensor& b);
/// ln(x / (1 - x)), NaN outside of [0, 1]; with epsilon of x between epsilon and 1 - epsilon, gradient 0 outside.
/// Throws ValueError for an epsilon outside of [0, 0.5].
Tensor logit(const Tensor& x, std::optional<double> epsilon = {});
/// x ln(y), 0 where x = 0 unless y is NaN.
Tensor xlogy(const Tensor& x, const Tensor& y);
/// x y, 0 where y = 0, whatever x is: infinite or NaN. No NaN reaches a gradient there, either. For weights of which 0
/// means absent; y has the dtype of x, and shapes broadcast.
Tensor multiply_no_nan(const Tensor& x, const Tensor& y);
Tensor log10(const Tensor& x);
/// 10^x.
Tensor exp10(const Tensor& x);

// ---- mixing and replacing ----------------------------------------------------------------------------------

/// a + weight (b - a), from the nearer end.
Tensor lerp(const Tensor& a, const Tensor& b, const Operand& weight);
/// What `nan_to_num` puts in the place of infinities; unset: the largest and the lowest number of the dtype.
struct NanToNumOptions {
  double nan = 0;
  std::optional<double> posinf{}, neginf{};
};
/// x with finite numbers in place of NaN and infinities, through which no gradient passes.
Tensor nan_to_num(const Tensor& x, const NanToNumOptions& options = {});
/// |a| with b's sign, that of zeros included. Gradient 0 where a is 0.
Tensor copysign(const Operand& a, const Operand& b);
/// 0 below 0 and of NaN, 1 above, values at 0. Dtypes are equal; any but bool.
Tensor heaviside(const Tensor& x, const Tensor& values);

// ---- tests of numbers (any dtype but storage types; results are bool; not differentiable) ------------------

Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
/// Options of `isclose`.
struct IscloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;  ///< a NaN is close to a NaN
};
/// |a - b| <= atol + rtol |b|, or equal. Throws ValueError for negative tolerances.
Tensor isclose(const Tensor& a, const Tensor& b, const IscloseOptions& options = {});
/// Exactly one of two is not 0.
Tensor logical_xor(const Tensor& a, const Tensor& b);

// ---- bits (i32, i64; all but shifts also bool; not differentiable) -----------------------------------------

Tensor bitwise_and(const Operand& a, const Operand& b);
Tensor bitwise_or(const Operand& a, const Operand& b);
Tensor bitwise_xor(const Operand& a, const Operand& b);
/// Every bit turned over; of bool `!`.
Tensor bitwise_not(const Tensor& x);
/// a 2^b, bits that do not fit lost; 0 for b negative or beyond the bits of the dtype.
Tensor bitwise_left_shift(const Operand& a, const Operand& b);
/// a / 2^b rounded down; for b negative or beyond the bits of the dtype 0 or, for a < 0, -1.
Tensor bitwise_right_shift(const Operand& a, const Operand& b);

}  // namespace ferrite
