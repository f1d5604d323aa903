#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ferrite/tensor/random.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::nn {

/// Makes the first value of a parameter of a shape from the random stream of its full name.
using Fill = std::function<Tensor(const Shape& shape, const RandomKey& key, Dtype dtype)>;

/// Fills. Shapes are those in memory: a matrix is [in, out], gates side by side along the last axis.
namespace init {

Fill constant(double value);
Fill uniform(double low, double high);
Fill normal(double mean, double deviation);
/// U(-b, b) with b = gain sqrt(6 / (in + out)) (Glorot and Bengio 2010).
Fill xavier_uniform(double gain = 1);
Fill xavier_normal(double gain = 1);
/// U(-b, b) with b = gain sqrt(3 / in) (He et al. 2015, arXiv 1502.01852); gain sqrt(2) suits relu.
Fill kaiming_uniform(double gain = 1.4142135623730951);
Fill kaiming_normal(double gain = 1.4142135623730951);
/// Orthonormal rows or columns, whichever are fewer (Saxe et al. 2013, arXiv 1312.6120).
Fill orthogonal(double gain = 1);

}  // namespace init

/// Where a layer's first weights come from: the seed of the whole model, the layer's dotted name in it, and the
/// dtype. A parameter's stream is the hash of its full name, so adding a layer leaves the other weights alone.
struct Init {
  std::uint64_t seed = 0;
  std::string prefix{};  ///< "" or "encoder.gru"
  Dtype dtype = Dtype::f32;

  /// The same for a child of that name.
  Init child(std::string_view name) const;
  std::string full_name(std::string_view name) const;
  RandomKey key(std::string_view name) const { return {seed, stream_of(full_name(name)), 0}; }
};

}  // namespace ferrite::nn
