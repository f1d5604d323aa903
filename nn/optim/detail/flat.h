#pragma once
/// Parameters as one vector of doubles, for optimisers that see all of them at once.
#include <cmath>
#include <cstddef>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn::detail {

using FlatVector = std::vector<double>;

/// Throws ValueError for no parameters, an empty handle or a parameter that is given twice.
void check_flat(const char* who, const std::vector<Parameter>& parameters);

/// The elements of all parameters, one after the other.
FlatVector flat_position(const std::vector<Parameter>& parameters);
/// Gives the parameters these elements.
void set_flat_position(const std::vector<Parameter>& parameters, const FlatVector& x);
/// The elements of a tensor.
FlatVector flat_elements(const Tensor& x);

inline double dot(const FlatVector& a, const FlatVector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline double largest(const FlatVector& a) {
  double most = 0;
  for (const double v : a) most = std::fabs(v) > most || std::isnan(v) ? std::fabs(v) : most;
  return most;
}

/// a += scale b
inline void add_scaled(FlatVector& a, double scale, const FlatVector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += scale * b[i];
}

}  // namespace ferrite::nn::detail
