#pragma once
/// Losses of sequences whose alignment is not known: the negative logarithm of the probability of a target, summed over
/// all alignments. Each is one operation that goes over the alignments in log space, forwards and backwards.
#include "ferrite/nn/losses/reduction.h"

namespace ferrite::nn {

/// What ctc_loss takes beside its operands.
struct CtcOptions {
  std::int64_t blank = 0;      ///< the class that stands for no label
  bool zero_infinity = false;  ///< a target that no alignment of its length can give has loss and gradient 0 instead of
                               ///< infinity and NaN
  Reduction reduction = Reduction::mean;  ///< mean: of the losses divided by the lengths of the targets (at least 1)
  Tensor element_weight{};                ///< [B] or [], as in LossOptions: means are divided by the sum of the weights
  Tensor mask{};                          ///< bool [B], as in LossOptions: false where a sequence does not count
  bool batch_first = false;               ///< log_probs [B, T, C]
};
/// Connectionist temporal classification (Graves et al. 2006), as torch.nn.functional.ctc_loss: logarithms of
/// probabilities [T, B, C], as log_softmax gives them, and targets [B, S], i64 or i32, padded with anything. Lengths
/// i64 [B] of inputs (in 0..T) and targets (in 0..S); undefined: all T, all S. -> [], or [B] with Reduction::none.
/// The gradient is that with respect to log_probs: minus the probability that a frame has a label. (PyTorch's is
/// what is left of it behind log_softmax, the same with respect to logits.) It is differentiated again through the
/// definition in operations, one step for each frame.
/// Scores and targets of a masked sequence may be anything, as LossOptions says, and so may its lengths.
/// Throws ShapeError for shapes that do not fit and lengths outside their ranges, DtypeError, and ValueError for a
/// blank or a target outside 0..C - 1 and a target that is the blank; in compiled functions, too.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths = {},
                const Tensor& target_lengths = {}, const CtcOptions& options = {});

/// What rnnt_loss takes beside its operands.
struct RnntOptions {
  std::int64_t blank = -1;                ///< the class that ends a frame; negative ones count from the end
  Reduction reduction = Reduction::mean;  ///< mean: of the batch
  Tensor element_weight{};                ///< as of ctc_loss, as is the mask
  Tensor mask{};
  bool log_probs = false;  ///< the first operand holds logarithms of probabilities, else logits
};
/// The loss of a transducer (Graves 2012, arXiv 1211.3711), as torchaudio.functional.rnnt_loss: logits [B, T, U + 1, C]
/// of every frame behind every prefix, targets [B, U], i64 or i32, padded with anything. Lengths i64 [B] of inputs (in
/// 1..T) and targets (in 0..U); undefined: all. -> [], or [B] with Reduction::none. Gradient, second derivative, masked
/// sequences and errors as ctc_loss.
Tensor rnnt_loss(const Tensor& logits, const Tensor& targets, const Tensor& input_lengths = {},
                 const Tensor& target_lengths = {}, const RnntOptions& options = {});

}  // namespace ferrite::nn
