#pragma once
/// Helpers of a layer's call: they check lengths, restore what a chain has changed if one of its layers throws, and
/// read parameters that may be left out.
#include <utility>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/nn/windowed.h"
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::nn::detail {

/// A call with lengths, for the object's life: the outermost call checks them for all that it runs.
class LengthsCall {
 public:
  /// Replaces the lengths of the context by checked ones, unless an outer call has checked them. Throws ShapeError for
  /// lengths that are not i64 [B] or lie outside 0..T, for sequences [B, T, D] and tokens [B, T].
  LengthsCall(const Layer& layer, const Tensor& x, Context& context);
  ~LengthsCall();
  LengthsCall(const LengthsCall&) = delete;
  LengthsCall& operator=(const LengthsCall&) = delete;

  /// Sets the lengths that this call passes to the layers inside it, which need no check.
  static void passes(const Tensor& lengths);
  /// Returns whether a running call has checked these lengths.
  static bool has_checked(const Tensor& lengths);

 private:
  const void* before_;
};

/// One call of a chain, for the object's life. The outermost chain of a call restores the buffers and states of its
/// layers if one of them throws.
class ChainCall {
 public:
  /// Begins a call; checks lengths like LengthsCall.
  ChainCall(const Layer& chain, const Tensor& x, Context& context);
  ~ChainCall();
  ChainCall(const ChainCall&) = delete;
  ChainCall& operator=(const ChainCall&) = delete;

  /// Restores the values of states, buffers and carries from before the call.
  void undo() const;

 private:
  LengthsCall lengths_;
  bool inside_before_;
  std::vector<std::pair<Variable, Tensor>> kept_;
};

/// Returns the lengths i64 [B], with a check, as part of the program, that each lies in least..T (tensor/ops.h:
/// checked). Throws ShapeError, whose text begins with `who`, "gru: a length of".
Tensor checked_lengths(Label who, const Tensor& lengths, std::int64_t B, std::int64_t T, std::int64_t least = 1);

/// Returns x [B, T, C] as a layer with these windows sees it: with `outside` in place of the steps beyond the lengths,
/// if windows reach over the ends of rows. Throws ValueError for lengths and reset masks that the layer cannot honour:
/// without windows over steps, with a padding that does not follow the lengths (`padding` is false), and for resets
/// within windows.
Tensor within_lengths(const Layer& layer, const std::optional<StepWindow>& window, const Tensor& x,
                      const Context& context, bool padding, double outside);

/// Returns y [B, T', C], the output of such a layer, with 0 in place of the steps beyond `lengths_after`: if `outside`
/// is not finite, windows that see nothing else would give it.
Tensor with_zeros_behind(const Windowed& layer, const Tensor& y, const Context& context);

/// Returns the value of a parameter; undefined for an empty handle.
inline Tensor value_of(const Parameter& p) { return p.defined() ? p.value() : Tensor(); }

}  // namespace ferrite::nn::detail
