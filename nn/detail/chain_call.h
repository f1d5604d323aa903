#pragma once
/// What a call of a chain of layers does before its first layer and when one of them throws.
#include <utility>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn::detail {

/// One call of a chain, while it lives. The outermost chain of a call checks the lengths of the context once, and puts
/// back what its layers have counted and remembered if one of them throws.
class ChainCall {
 public:
  /// Throws ShapeError for lengths that are not i64 [B] or lie outside 0..T, of sequences [B, T, D] and tokens [B, T];
  /// those of the context are the checked ones from then on.
  ChainCall(const Layer& chain, const Tensor& x, Context& context);
  ~ChainCall();
  ChainCall(const ChainCall&) = delete;
  ChainCall& operator=(const ChainCall&) = delete;

  /// Says which lengths chains inside of this one get: those need no check.
  static void passes(const Tensor& lengths);
  /// Gives states, buffers and what is carried the values from before the call.
  void undo() const;

 private:
  void check(const Layer& chain, const Tensor& x, Context& context);

  const void* lengths_before_;
  bool inside_before_;
  std::vector<std::pair<Variable, Tensor>> kept_;
};

}  // namespace ferrite::nn::detail
