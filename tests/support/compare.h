#pragma once
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "ferrite/tensor/ops.h"

namespace support {

/// The elements as doubles, whatever the dtype and strides.
inline std::vector<double> doubles(const ferrite::Tensor& x) {
  return ferrite::visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::vector<double> out;
    for (const T v : x.to_vector<T>()) out.push_back(static_cast<double>(v));
    return out;
  });
}

/// err = max |a - b| / max(1, max |b|), the metric of docs/numerics.md; infinity for a NaN on one side only.
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

/// Equal shapes, and values within a tolerance of that metric. Prints both values at the first index that differs.
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
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(std::fabs(x[i] - y[i]) <= tolerance)) {
      std::ostringstream text;
      text.precision(17);
      text << "element " << i << " of " << a.shape().str() << ": " << x[i] << " and " << y[i];
      result.message() << text.str();
      break;
    }
  result.message() << ", distance " << distance(a, b) << " exceeds " << tolerance;
  return result;
}

/// Equal shapes and equal bits (a NaN equals a NaN).
inline boost::test_tools::predicate_result identical(const ferrite::Tensor& a, const ferrite::Tensor& b) {
  return within(a, b, 0);
}

/// Whether an error's text holds a phrase: for BOOST_CHECK_EXCEPTION.
inline auto says(std::string phrase) {
  return [phrase](const std::exception& e) {
    const bool found = std::string(e.what()).find(phrase) != std::string::npos;
    if (!found) BOOST_TEST_MESSAGE("the message is: " << e.what());
    return found;
  };
}

}  // namespace support
