#pragma once
/// What several optimisers check and compute alike, and what Adam's updates begin with, as an operation.
#include <string>

#include "ferrite/nn/optim/detail/rule.h"
#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::nn::detail {

/// Throws ValueError unless the number lies in [0, 1).
void check_below_one(const char* who, const char* what, double value);

/// The decay of a rule, by an option that may be 0.
RuleDecay decay_of(double weight_decay, bool decoupled);

/// Counts an update of the parameters of a group that `updated` names (all of them where it is undefined) in `steps`,
/// i64 [parameters]. Gives the number that the update has for each, f64 [parameters]; 1 for one that was never updated.
Tensor count_step(const State& steps, const Tensor& updated);

/// The value of a number of an update for the parameter at that place of its group, rank 0: one that parameters share,
/// or their element.
Tensor number_at(const Tensor& number, std::size_t place);

/// 1 - beta^steps.
Tensor correction(const Tensor& beta, const Tensor& steps);
Tensor correction(double beta, const Tensor& steps);

/// Two numbers as an option's value.
OptionValue pair_option(double a, double b);

/// Appends the states of another group.
void append(std::vector<State>& list, const std::vector<State>& more);

/// The constants of `adam_begin`.
struct AdamBetas {
  double beta1 = 0, beta2 = 0;
  static constexpr auto fields = attr_list(attr("beta1", &AdamBetas::beta1), attr("beta2", &AdamBetas::beta2));
};

/// Updates done so far, i64 [parameters], and which of the parameters another one updates (1 or 0; undefined: all)
/// -> {t = steps + updated, 1 - beta1^t, 1 - beta2^t}: `adam_begin`.
Tensors begin_adam(const Tensor& steps, const Tensor& updated, const Attrs& betas);

}  // namespace ferrite::nn::detail
