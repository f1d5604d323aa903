#pragma once
/// What a call of a layer does before the first operation, and a call of a chain when one of its layers throws.
#include <utility>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn::detail {

/// A call with lengths, while it lives: the outermost one checks them, for all that it runs.
class LengthsCall {
 public:
  /// Throws ShapeError for lengths that are not i64 [B] or lie outside 0..T, of sequences [B, T, D] and tokens [B, T];
  /// those of the context are the checked ones from then on.
  LengthsCall(const Layer& layer, const Tensor& x, Context& context);
  ~LengthsCall();
  LengthsCall(const LengthsCall&) = delete;
  LengthsCall& operator=(const LengthsCall&) = delete;

  /// Says which lengths layers inside of this call get: those need no check.
  static void passes(const Tensor& lengths);
  /// Whether a call that runs has checked these.
  static bool has_checked(const Tensor& lengths);

 private:
  const void* before_;
};

/// One call of a chain, while it lives. The outermost chain of a call puts back what its layers have counted and
/// remembered if one of them throws.
class ChainCall {
 public:
  /// Checks lengths as LengthsCall does.
  ChainCall(const Layer& chain, const Tensor& x, Context& context);
  ~ChainCall();
  ChainCall(const ChainCall&) = delete;
  ChainCall& operator=(const ChainCall&) = delete;

  /// Gives states, buffers and what is carried the values from before the call.
  void undo() const;

 private:
  LengthsCall lengths_;
  bool inside_before_;
  std::vector<std::pair<Variable, Tensor>> kept_;
};

}  // namespace ferrite::nn::detail
