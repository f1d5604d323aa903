#pragma once
/// A recorder that sees what a function reads from outside while no tape listens to it.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::detail {

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
