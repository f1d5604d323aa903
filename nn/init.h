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

/// Makes the first value of a parameter of a shape from the random stream of its full name.
class Fill {
 public:
  using Function = std::function<Tensor(const Shape& shape, const RandomKey& key, Dtype dtype)>;

  /// `random`: whether the key matters. What needs none has its value without a seed, too. Throws ValueError for a null
  /// function.
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Fill> && std::constructible_from<Function, F>)
      Fill(F&& f, bool random = true)
      : f_(std::forward<F>(f)), random_(random) {
    if (!f_) ferrite::detail::throw_value_error("fill: the function is null");
  }

  /// Throws ShapeError and DtypeError when the function gives something else.
  Tensor operator()(const Shape& shape, const RandomKey& key, Dtype dtype) const;
  bool random() const { return random_; }

 private:
  Function f_;
  bool random_;
};

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
/// dtype. A parameter's stream is the hash of its full name, so adding a layer leaves the other weights alone, and no
/// two layers of a model begin alike.
///
/// Without a seed the weights are declared and have no values yet: a module with a seed draws them when it adopts the
/// layer, under their full names in it (one without leaves them to the module that adopts it), and files and
/// assignments give them others. Reading a weight before throws Error. A layer that stands alone is given a seed.
struct Init {
  std::optional<std::uint64_t> seed{};
  std::string prefix{};  ///< "" or "encoder.gru"
  Dtype dtype = Dtype::f32;

  /// The same for a child of that name.
  Init child(std::string_view name) const;
  std::string full_name(std::string_view name) const;
  /// Throws ValueError without a seed.
  RandomKey key(std::string_view name) const;
};

}  // namespace ferrite::nn
