#pragma once
/// The means by which tests check operations: dense arrays of doubles, on which oracles work, and samples. Nothing in
/// the library reads an oracle.
#include <functional>
#include <vector>

#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// An interval that tests sample; the ends are sampled too.
struct Range {
  double low = -3;
  double high = 3;
};

/// A dense row-major array of doubles (integers and bool included).
struct Dense {
  Shape shape;
  Dtype dtype = Dtype::f64;
  std::vector<double> values;

  Dense() = default;
  explicit Dense(const Spec& s) : shape(s.shape), dtype(s.dtype), values(static_cast<std::size_t>(s.shape.numel())) {}
  double& at(const Shape& index) { return values[position(index)]; }
  double at(const Shape& index) const { return values[position(index)]; }
  /// Returns the element that a broadcast index of higher rank refers to.
  double broadcast_at(const Shape& index) const;

 private:
  std::size_t position(const Shape& index) const {
    std::size_t k = 0;
    for (int i = 0; i < shape.rank(); ++i)
      k = k * static_cast<std::size_t>(shape[i]) + static_cast<std::size_t>(index[i]);
    return k;
  }
};

/// Calls f(index) for every index of a shape in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& f);

/// One application that tests try: types, constants and the range of the values.
struct Sample {
  std::vector<Spec> inputs{};
  Attrs attrs{};
  Range range{};                        ///< of the float values; integer inputs take values from `indices`
  std::vector<std::int64_t> indices{};  ///< the values of integer inputs, repeated as often as needed
  std::vector<double> values{};         ///< values of the float inputs instead of random ones, repeated as needed
  bool smooth = true;                   ///< whether derivatives exist at random points of the range, or at `values`
  bool smooth_at_ties = true;           ///< whether they also exist where elements are 0 or equal
};

}  // namespace ferrite::detail
