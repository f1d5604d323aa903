#pragma once
/// What tests hold `rule_update` to: its formulas in doubles, one element after the other, and what is sampled.
#include "ferrite/nn/optim/detail/rule_update.h"
#include "ferrite/tensor/oracle.h"

namespace ferrite::nn::detail {

void rule_oracle(std::span<const ferrite::detail::Dense> in, std::span<ferrite::detail::Dense> out,
                 const RuleForm& form);
std::vector<ferrite::detail::Sample> rule_samples();

}  // namespace ferrite::nn::detail
