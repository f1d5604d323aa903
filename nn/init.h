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

/// An initialiser: a function that computes the first value of a parameter from its shape, its dtype and a random key,
/// whose stream belongs to the parameter's full name.
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
  /// Returns whether the value depends on the key, so that it needs a seed.
  bool random() const { return random_; }

 private:
  Function f_;
  bool random_;
};

/// Initialisers of parameters. Shapes are those in memory: a matrix is [in, out], with gates next to each other along
/// the last axis.
namespace init {

/// Returns an initialiser that sets every element to the value.
Fill constant(double value);
/// Returns an initialiser that draws from U(low, high).
Fill uniform(double low, double high);
/// Returns an initialiser that draws from N(mean, deviation^2).
Fill normal(double mean, double deviation);
/// Returns an initialiser that draws from U(-b, b) with b = gain sqrt(6 / (in + out)), the last two extents of the
/// shape (Glorot and Bengio 2010).
Fill xavier_uniform(double gain = 1);
/// Returns an initialiser that draws from N(0, s^2) with s = gain sqrt(2 / (in + out)) (Glorot and Bengio 2010).
Fill xavier_normal(double gain = 1);
/// Returns an initialiser that draws from U(-b, b) with b = gain sqrt(3 / in) (He et al. 2015, arXiv 1502.01852); the
/// default gain, sqrt(2), suits relu.
Fill kaiming_uniform(double gain = 1.4142135623730951);
/// Returns an initialiser that draws from N(0, s^2) with s = gain / sqrt(in) (He et al. 2015, arXiv 1502.01852); the
/// default gain, sqrt(2), suits relu.
Fill kaiming_normal(double gain = 1.4142135623730951);
/// Returns an initialiser that draws a matrix whose rows or columns, whichever are fewer, are orthonormal (Saxe et al.
/// 2013, arXiv 1312.6120), and multiplies it by `gain`.
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
  std::optional<std::uint64_t> seed{};  ///< the seed of the whole model; none: values come later
  std::string prefix{};                 ///< the layer's dotted name, "encoder.gru", or empty
  Dtype dtype = Dtype::f32;             ///< the dtype of the layer's parameters

  /// Returns the init for a part of this name in the layer: the same seed and dtype, the prefix "<prefix>.<name>".
  Init child(std::string_view name) const;
  /// Returns "<prefix>.<name>", or the name alone without a prefix.
  std::string full_name(std::string_view name) const;
  /// Returns the key, seed and stream, from which the parameter of this name is drawn. Throws ValueError without a
  /// seed.
  RandomKey key(std::string_view name) const;
};

}  // namespace ferrite::nn
