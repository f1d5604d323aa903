#pragma once
/// Values with a gradient given by a rule, the basis of custom functions, checkpoints and hooks on gradients. Also a
/// recorder that sees what a function reads from outside while no tape listens to it.
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::detail {

/// A rule that turns cotangents of some results into gradients of some operands.
struct GradientRule final : Subprogram {
  /// Returns the gradients of the first `inputs` operands of an application, each with the operand's shape and
  /// gradient_dtype, undefined for none. Written in operations.
  using Backward = std::function<Tensors(const Vjp& application, std::size_t inputs)>;

  GradientRule(std::string in_errors, Backward f) : who(std::move(in_errors)), backward(std::move(f)) {}
  bool equals(const Subprogram& other) const override { return this == &other; }

  std::string who;  ///< how errors begin: "custom_function 'clip'"
  Backward backward;
};

/// The values that a rule reads: all operands and results, or none.
enum class RuleReads : std::uint8_t { all, nothing };

/// Returns `values` as the results of one application to `operands` whose gradient is given by the rule; no gradient
/// passes through the computation of the values. In a trace the application remains until a program is planned.
Tensors with_rule(std::shared_ptr<const GradientRule> rule, const Tensors& operands, const Tensors& values,
                  RuleReads reads = RuleReads::all);

/// A recorder that collects the switches and variables that a function reads, each variable with its first value.
/// Throws TapeError for a tensor on an outer tape: no gradient would reach it.
class OutsideReads final : public Recorder {
 public:
  struct Read {
    Variable variable;
    Tensor value;
  };
  struct Switch {
    std::shared_ptr<const std::atomic<bool>> flag;
    bool value = false;
  };
  /// The treatment of parameters: they are collected, or refused like tensors on a tape.
  enum class Parameters : std::uint8_t { collected, refused };

  /// Must be constructed in the frame whose tapes are to be hidden.
  OutsideReads(std::string who, Parameters parameters);

  const std::vector<Read>& reads() const { return reads_; }
  const std::vector<Switch>& switches() const { return switches_; }

  void record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) override;
  void read(const Variable& variable, Tensor& value) override;
  bool write(const Variable&, const Tensor&) override { return false; }
  void flag(const std::shared_ptr<const std::atomic<bool>>& flag, bool value) override;

 private:
  std::string who_;
  Parameters parameters_;
  InlineVector<const Recorder*, 4> tapes_;  ///< tapes that record outside the function
  std::vector<Read> reads_;
  std::vector<Switch> switches_;
};

}  // namespace ferrite::detail
