#pragma once
/// Adam's update as an operation and in place: attributes and kernels' entry points. Programs use adam_update.h.
#include "ferrite/nn/optim/adam_update.h"
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::nn::detail {

/// The constants of `adam_begin`.
struct AdamBetas {
  double beta1 = 0, beta2 = 0;
  static constexpr auto fields = attr_list(attr("beta1", &AdamBetas::beta1), attr("beta2", &AdamBetas::beta2));
};
/// Those of `adam_update`; one decay at most is set.
struct AdamAttrs : AdamBetas {
  double epsilon = 0;
  std::optional<double> weight_decay{}, decoupled_decay{};
  static constexpr auto fields =
      AdamBetas::fields.with(attr("epsilon", &AdamAttrs::epsilon), attr("weight_decay", &AdamAttrs::weight_decay),
                             attr("decoupled_decay", &AdamAttrs::decoupled_decay));
};

/// The constants of `adam_update` as it takes them. Made once: they are the same in every update.
Attrs adam_attrs(const AdamConstants& constants);

/// Updates done so far, i64 [parameters], and which of the parameters another one updates (1 or 0; undefined: all)
/// -> {t = steps + updated, 1 - beta1^t, 1 - beta2^t}: `adam_begin`.
Tensors begin_adam(const Tensor& steps, const Tensor& updated, const Attrs& betas);

/// A parameter and its moments.
struct AdamVariables {
  const Variable& w;
  const Variable& m;
  const Variable& v;
};

/// The numbers of one update: the rate, rank 0, and the corrections, rank 0 or by parameter of a group.
struct AdamPace {
  const Tensor& rate;
  const Tensor& correction1;
  const Tensor& correction2;
  std::size_t place = 0;  ///< of the parameter in its group
};

/// `adam_update` written over the old values, the same bits, in two steps: all that may throw is done when it is made.
/// Nobody may be recording. What it was made of must stay until it has run.
class AdamInPlace {
 public:
  /// Whether the buffers of the moments can take their new values: nobody else holds them. The operands are those of an
  /// optimiser, whose types have been checked there. Throws std::bad_alloc.
  bool prepare(const AdamVariables& variables, const Tensor& g, const AdamPace& pace);
  /// Throws nothing.
  void run(const Variable& w, const Attrs& attrs);

 private:
  const Tensor* operands_[7] = {};
  std::size_t place_ = 0;
  Tensor dense_;  ///< the gradient, where it does not lie row-major
  Tensor fresh_;  ///< for the new value of the parameter, where somebody else holds the old one
};

/// Reads the variables, applies `adam_update` and assigns what it gives. Throws as `adam_update`.
void update_by_adam(const AdamVariables& variables, const Tensor& g, const AdamPace& pace, const Attrs& attrs);

}  // namespace ferrite::nn::detail
