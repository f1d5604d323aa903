#pragma once
/// Checks and values shared by several optimisers, and the first operation of Adam's updates.
#include <string>

#include "ferrite/nn/optim/detail/rule.h"
#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::nn::detail {

/// Throws ValueError unless the number lies in [0, 1).
void check_below_one(const char* who, const char* what, double value);

/// Returns how a rule applies weight decay; none for a decay of 0.
RuleDecay decay_of(double weight_decay, bool decoupled);

/// Counts an update of those parameters of a group that `updated` names (all if undefined) in `steps`, i64
/// [parameters]. Returns the number of this update for each, f64 [parameters]; at least 1, also for a parameter never
/// updated.
Tensor count_step(const State& steps, const Tensor& updated);

/// Returns the number of an update for the parameter at an index of its group, rank 0: the shared one, or its element.
Tensor number_at(const Tensor& number, std::size_t place);

/// Returns the bias correction 1 - beta^steps.
Tensor correction(const Tensor& beta, const Tensor& steps);
Tensor correction(double beta, const Tensor& steps);

/// Returns two numbers as the value of an option.
OptionValue pair_option(double a, double b);

/// Appends the states of another group to a list.
void append(std::vector<State>& list, const std::vector<State>& more);

/// Attributes of `adam_begin`: the decay rates.
struct AdamBetas {
  double beta1 = 0, beta2 = 0;
  static constexpr auto fields = attr_list(attr("beta1", &AdamBetas::beta1), attr("beta2", &AdamBetas::beta2));
};

/// Performs `adam_begin`: the number of past updates, i64 [parameters], and which parameters this one updates (1 or 0;
/// undefined: all) -> {t = steps + updated, 1 - beta1^t, 1 - beta2^t}.
Tensors begin_adam(const Tensor& steps, const Tensor& updated, const Attrs& betas);

}  // namespace ferrite::nn::detail
