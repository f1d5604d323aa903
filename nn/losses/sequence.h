#pragma once
/// Losses of sequences whose alignment is not known: the negative logarithm of the probability of a target, summed over
/// all alignments. Each is one operation that walks the alignments in log space, forwards and backwards.
#include "ferrite/nn/losses/reduction.h"

namespace ferrite::nn {

/// Options of ctc_loss: the blank, targets without an alignment, and the reduction.
struct CtcOptions {
  std::int64_t blank = 0;      ///< the class that means no label
  bool zero_infinity = false;  ///< gives loss and gradient 0, instead of infinity and NaN, to a target that no
                               ///< alignment of its length can produce
  Reduction reduction = Reduction::mean;  ///< mean: over losses, each divided by the length of its target (at least 1)
  Tensor element_weight{};                ///< [B] or [], as in LossOptions: means are divided by the sum of the weights
  Tensor mask{};                          ///< bool [B], as in LossOptions: sequences where it is false do not count
  bool batch_first = false;               ///< log_probs are [B, T, C] instead of [T, B, C]
};
/// Returns the loss of connectionist temporal classification (Graves et al. 2006), as torch.nn.functional.ctc_loss:
/// logarithms of probabilities [T, B, C], as log_softmax gives them, and integer targets [B, S], padded with anything,
/// -> [], or [B] with Reduction::none. Lengths [B] of inputs (in 0..T) and targets (in 0..S) are i64 or i32; if
/// undefined, all are T or S. The gradient with respect to log_probs is minus the probability that a frame has a label.
/// (PyTorch's is what remains of it after log_softmax; both give the same gradient of the logits.) It is differentiated
/// again through the definition in operations, one step for each frame. Scores, targets and lengths of a masked
/// sequence may be anything. Throws ShapeError for shapes that do not fit and lengths outside their ranges, DtypeError,
/// and ValueError for a blank or a target outside 0..C - 1 and a target that is the blank; in compiled functions, too.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths = {},
                const Tensor& target_lengths = {}, const CtcOptions& options = {});

/// Options of rnnt_loss: the blank, what the first operand holds, and the reduction.
struct RnntOptions {
  std::int64_t blank = -1;                ///< the class that ends a frame; negative values count from the end
  Reduction reduction = Reduction::mean;  ///< mean: over the batch
  Tensor element_weight{};                ///< this and the mask as in CtcOptions
  Tensor mask{};
  bool log_probs = false;  ///< whether the first operand holds logarithms of probabilities instead of logits
};
/// Returns the loss of a transducer (Graves 2012, arXiv 1211.3711), as torchaudio.functional.rnnt_loss: logits
/// [B, T, U + 1, C] of every frame after every prefix, and integer targets [B, U], padded with anything, -> [], or [B]
/// with Reduction::none. Lengths [B] of inputs (in 1..T) and targets (in 0..U) are i64 or i32; if undefined, all are T
/// or U. Gradient, second derivative, masked sequences and errors are those of ctc_loss.
Tensor rnnt_loss(const Tensor& logits, const Tensor& targets, const Tensor& input_lengths = {},
                 const Tensor& target_lengths = {}, const RnntOptions& options = {});

}  // namespace ferrite::nn
