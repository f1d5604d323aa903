#pragma once
/// The logarithm of Gamma, its derivatives, the inverse of erf and a Bessel function, for one number: the kernels of
/// special functions.

namespace ferrite::detail {

/// Returns ln |Gamma(x)| by the C library. (std::lgamma writes a sign to a global variable.)
double log_gamma_of(double x);
/// Returns the derivative of ln Gamma. Reflected below 0; the asymptotic series from 10 on, reached by recurrence.
double digamma_of(double x);
/// Returns the n-th derivative of digamma, 1 <= n <= kMostPolygamma: (-1)^(n + 1) n! zeta(n + 1, x), Hurwitz's zeta by
/// the Euler-Maclaurin sum; below 0 from zeta of the distances to the poles next to x.
double polygamma_of(int n, double x);
inline constexpr int kMostPolygamma = 24;
/// Returns the inverse of erf: Giles's approximation (2010), to 4e-7, and `steps` steps of Newton's method on erf or
/// erfc, each of which squares the error.
double erfinv_of(double y, int steps);
/// Returns I_0(x), the modified Bessel function of order 0, by its series of positive terms.
double bessel_i0(double x);

}  // namespace ferrite::detail
