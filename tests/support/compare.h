#pragma once
/// Comparisons of tensors that print both values and the first element that differs.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "ferrite/tensor/ops.h"

namespace support {

/// Returns the elements as doubles, whatever the dtype and strides.
inline std::vector<double> doubles(const ferrite::Tensor& x) {
  return ferrite::visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<double> out;
    for (const T v : x.to_vector<T>()) out.push_back(static_cast<double>(v));
    return out;
  });
}

/// Returns err = max |a - b| / max(1, max |b|), the metric of docs/numerics.md; infinity if only one side has a NaN.
inline double distance(const ferrite::Tensor& a, const ferrite::Tensor& b) {
  const std::vector<double> x = doubles(a);
  const std::vector<double> y = doubles(b);
  double scale = 1;
  double worst = 0;
  for (const double v : y)
    if (std::isfinite(v)) scale = std::max(scale, std::fabs(v));
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double gap = std::fabs(x[i] - y[i]);
    worst = std::isnan(gap) ? INFINITY : std::max(worst, gap);
  }
  return worst / scale;
}

/// Returns the first place where two lists differ by more than a tolerance in the metric of `distance`; their size if
/// none.
inline std::size_t first_difference(const std::vector<double>& x, const std::vector<double>& y, double tolerance) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
    if (!same && !(std::fabs(x[i] - y[i]) <= tolerance)) return i;
  }
  return x.size();
}

/// Returns whether shapes are equal and values within a tolerance in the metric of `distance`. Prints both values at
/// the first index that differs.
inline boost::test_tools::predicate_result within(const ferrite::Tensor& a, const ferrite::Tensor& b,
                                                  double tolerance) {
  boost::test_tools::predicate_result result(true);
  if (a.shape() != b.shape()) {
    result = false;
    result.message() << "shapes " << a.shape().str() << " and " << b.shape().str();
    return result;
  }
  if (distance(a, b) <= tolerance) return result;
  result = false;
  const std::vector<double> x = doubles(a);
  const std::vector<double> y = doubles(b);
  const std::size_t at = first_difference(x, y, tolerance);
  if (at < x.size()) {
    std::ostringstream text;
    text.precision(17);
    text << "element " << at << " of " << a.shape().str() << ": " << x[at] << " and " << y[at];
    result.message() << text.str();
  }
  result.message() << ", distance " << distance(a, b) << " exceeds " << tolerance;
  return result;
}

/// Returns whether two elements have the same bits: 0 is not -0; a NaN equals any NaN.
template <class T>
bool same_bits(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
  else if constexpr (std::is_integral_v<T>)
    return x == y;
  else
    return same_bits(static_cast<float>(x), static_cast<float>(y));
}

/// Returns an element as a message shows it.
template <class T>
auto shown_element(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return +x;
  else
    return static_cast<float>(x);
}

/// Returns whether dtypes, shapes and bytes are equal, which decides most comparisons quickly.
inline bool same_bytes(const ferrite::Tensor& a, const ferrite::Tensor& b) {
  return a.spec() == b.spec() && a.contiguous() && b.contiguous() &&
         std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

/// Returns whether dtypes, shapes and bits are equal (a NaN equals a NaN). Prints the first element that differs.
inline boost::test_tools::predicate_result identical(const ferrite::Tensor& a, const ferrite::Tensor& b) {
  if (same_bytes(a, b)) return true;
  boost::test_tools::predicate_result result = within(a, b, 0);
  if (!result) return result;
  if (a.dtype() != b.dtype()) {
    result = false;
    result.message() << "dtypes " << a.spec().str() << " and " << b.spec().str();
    return result;
  }
  ferrite::visit_dtype(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> x = a.to_vector<T>();
    const std::vector<T> y = b.to_vector<T>();
    for (std::size_t i = 0; i < x.size() && result; ++i)
      if (!same_bits<T>(x[i], y[i])) {
        result = false;
        result.message() << "element " << i << " of " << a.shape().str()
                         << " differs in bits: " << shown_element<T>(x[i]) << " and " << shown_element<T>(y[i]);
      }
  });
  return result;
}

/// Returns a predicate for BOOST_CHECK_EXCEPTION: whether an error's text holds a phrase.
inline auto says(std::string phrase) {
  return [phrase](const std::exception& e) {
    const bool found = std::string(e.what()).find(phrase) != std::string::npos;
    if (!found) BOOST_TEST_MESSAGE("the message is: " << e.what());
    return found;
  };
}

}  // namespace support
