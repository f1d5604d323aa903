#pragma once
/// What several optimisers check and compute alike.
#include <string>

#include "ferrite/nn/optim/detail/rule.h"
#include "ferrite/nn/optim/optimizer.h"

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

}  // namespace ferrite::nn::detail
