#pragma once
/// Results with a gradient of their own: what custom functions, checkpoints and hooks on gradients are made of.
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// How cotangents of some results become gradients of some operands.
struct GradientRule final : Subprogram {
  /// Given one application, gives the gradient of each of the first `inputs` operands of it: of the operand's shape and
  /// gradient_dtype, undefined for none. Written in operations.
  using Backward = std::function<Tensors(const Vjp& application, std::size_t inputs)>;

  GradientRule(std::string in_errors, Backward f) : who(std::move(in_errors)), backward(std::move(f)) {}
  bool equals(const Subprogram& other) const override { return this == &other; }

  std::string who;  ///< what errors begin with: "custom_function 'clip'"
  Backward backward;
};

/// Which values the rule reads.
enum class RuleReads : std::uint8_t { all, nothing };

/// The same values as the results of one application to `operands`, whose gradient is that of the rule; none passes
/// through the computation that gave the values. In a trace the application stands until a program is planned.
Tensors with_rule(std::shared_ptr<const GradientRule> rule, const Tensors& operands, const Tensors& values,
                  RuleReads reads = RuleReads::all);

}  // namespace ferrite::detail
