#pragma once
/// Initialisers: how the parameters of a layer get their first values.
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ferrite/tensor/random.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::nn {

/// A function that computes the first value of a parameter from its shape and the random stream of its full name.
class Fill {
 public:
  using Function = std::function<Tensor(const Shape& shape, const RandomKey& key, Dtype dtype)>;

  /// Wraps a function. `random` says whether its result depends on the key; if not, the parameter has its value even
  /// without a seed. Throws ValueError for a null function.
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Fill> && std::constructible_from<Function, F>)
      Fill(F&& f, bool random = true)
      : f_(std::forward<F>(f)), random_(random) {
    if (!f_) ferrite::detail::throw_value_error("fill: the function is null");
  }

  /// Returns the first value of a parameter. Throws ShapeError or DtypeError when the function returns another type.
  Tensor operator()(const Shape& shape, const RandomKey& key, Dtype dtype) const;
  bool random() const { return random_; }

 private:
  Function f_;
  bool random_;
};

/// Initialisers of parameters. Shapes are those in memory: a matrix is [in, out], with gates next to each other along
/// the last axis.
namespace init {

Fill constant(double value);
Fill uniform(double low, double high);
Fill normal(double mean, double deviation);
/// Draws from U(-b, b) with b = gain sqrt(6 / (in + out)) (Glorot and Bengio 2010).
Fill xavier_uniform(double gain = 1);
/// Draws from N(0, s^2) with s = gain sqrt(2 / (in + out)) (Glorot and Bengio 2010).
Fill xavier_normal(double gain = 1);
/// Draws from U(-b, b) with b = gain sqrt(3 / in) (He et al. 2015, arXiv 1502.01852); gain sqrt(2) suits relu.
Fill kaiming_uniform(double gain = 1.4142135623730951);
/// Draws from N(0, s^2) with s = gain / sqrt(in) (He et al. 2015, arXiv 1502.01852); gain sqrt(2) suits relu.
Fill kaiming_normal(double gain = 1.4142135623730951);
/// Draws a matrix whose rows or columns, whichever are fewer, are orthonormal (Saxe et al. 2013, arXiv 1312.6120), and
/// multiplies it by `gain`.
Fill orthogonal(double gain = 1);

}  // namespace init

/// The source of a layer's first weights: the seed of the whole model, the layer's dotted name in it, and the dtype. A
/// parameter's random stream is the hash of its full name, so adding a layer does not change other weights, and no two
/// layers of a model begin with the same weights.
///
/// Without a seed the weights are declared but have no values yet. A module with a seed draws them when it adopts the
/// layer, under their full names in it; one without a seed leaves them to the module that adopts it; and files and
/// assignments set them. Reading a weight before that throws Error. Give a seed to a layer that no module adopts.
struct Init {
  std::optional<std::uint64_t> seed{};
  std::string prefix{};  ///< the layer's dotted name, "encoder.gru", or empty
  Dtype dtype = Dtype::f32;

  /// Returns the init of the child of this name.
  Init child(std::string_view name) const;
  std::string full_name(std::string_view name) const;
  /// Returns the random stream of the parameter of this name. Throws ValueError without a seed.
  RandomKey key(std::string_view name) const;
};

}  // namespace ferrite::nn
