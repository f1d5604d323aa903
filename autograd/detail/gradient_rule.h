#pragma once
/// Results with a gradient of their own: what custom functions, checkpoints and hooks on gradients are made of. Also a
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

/// Collects the variables that are read, each with the value that it had first, and the switches. Throws TapeError for
/// a tensor that stands on a tape outside: no gradient would pass to it.
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
  /// What becomes of parameters: they are collected, or refused as tensors on a tape are.
  enum class Parameters : std::uint8_t { collected, refused };

  /// To be made in the frame whose tapes do not listen.
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
  InlineVector<const Recorder*, 4> tapes_;  ///< those outside
  std::vector<Read> reads_;
  std::vector<Switch> switches_;
};

}  // namespace ferrite::detail
