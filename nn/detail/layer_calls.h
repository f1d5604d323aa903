#pragma once
/// What a call of a layer does before and after its operations: checks lengths, puts back what a chain has changed if
/// one of its layers throws, reads parameters that may be left out.
#include <utility>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/nn/windowed.h"
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

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

/// The lengths i64 [B], checked as part of the program to lie in least..T each (tensor/ops.h: checked). Throws
/// ShapeError in the words of `who`, "gru: a length of".
Tensor checked_lengths(Label who, const Tensor& lengths, std::int64_t B, std::int64_t T, std::int64_t least = 1);

/// x [B, T, C] as a layer with windows of these steps sees it: `outside` in place of the steps beyond the lengths,
/// where windows reach over the ends of rows. Throws ValueError for lengths and reset masks that it cannot honour:
/// windows that are none or that do not know where the padding begins (`padding` is false), and resets within windows.
Tensor within_lengths(const Layer& layer, const std::optional<StepWindow>& window, const Tensor& x,
                      const Context& context, bool padding, double outside);

/// y [B, T', C], what such a layer made of x, with 0 in place of the steps beyond `lengths_after`: where what it puts
/// `outside` is not finite, windows of nothing else would pass it on.
Tensor with_zeros_behind(const Windowed& layer, const Tensor& y, const Context& context);

/// Its value; undefined for an empty handle.
inline Tensor value_of(const Parameter& p) { return p.defined() ? p.value() : Tensor(); }

}  // namespace ferrite::nn::detail
