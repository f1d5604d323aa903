#pragma once
/// Losses of predicted classes and labels, and accuracy. Formulas and gradients are those of PyTorch's functions of the
/// same names. All throw ShapeError and DtypeError for operands that do not fit, ShapeError for a class outside 0..C -
/// 1 (in compiled functions, too), and ValueError for parameters outside the ranges below.
#include <optional>

#include "ferrite/nn/losses/reduction.h"

namespace ferrite::nn {

// ---- one class of many -------------------------------------------------------------------------------------

/// What cross_entropy and nll_loss take beside scores and targets.
///
///     nn::cross_entropy(logits, targets, {.class_weight = w, .label_smoothing = 0.1});
///     nn::cross_entropy(logits, tokens, {.classes_last = true, .lengths = lengths});   // [B, T, C] and [B, T]
struct ClassLossOptions {
  /// [C], of the scores' dtype: the loss of an element times that of its class. What PyTorch calls weight.
  Tensor class_weight{};
  std::int64_t ignore_index = -100;  ///< elements of this target do not count, even where their scores are NaN (in
                                     ///< PyTorch these spoil all gradients); it need not be a class
  double label_smoothing = 0;        ///< in 0..1: so much of a target is spread evenly over all classes
  /// Scores with three axes or more: true for [B, ..., C], as sequences have them, false for [B, C, ...], as images and
  /// PyTorch have them. They have no default, since both may fit the targets; fewer axes need none.
  std::optional<bool> classes_last{};
  Reduction reduction = Reduction::mean;  ///< mean: divided by the weights of the classes of the elements that count
  Tensor element_weight{};                ///< as in LossOptions, as the next two; losses have the shape of the targets
  Tensor mask{};
  Tensor lengths{};
};

/// -ln softmax(logits)[target]: logits [B, C], [C], [B, C, ...] or [B, ..., C] and integer targets [B], [B, ...] or []
/// -> [], or of the targets' shape with Reduction::none. Targets that are floats, of the logits' shape, are
/// probabilities of the classes: -sum of target ln softmax(logits) over classes; their mean is divided by the number of
/// elements. Throws ValueError for logits of three axes or more without `classes_last`, and a label_smoothing outside
/// 0..1.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction = Reduction::mean);
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const ClassLossOptions& options);

/// The same of logarithms of probabilities, as log_softmax gives them: -log_probs[target]. Integer targets only; throws
/// ValueError for a label_smoothing other than 0.
Tensor nll_loss(const Tensor& log_probs, const Tensor& targets, const ClassLossOptions& options = {});

/// What accuracy takes beside scores and targets; what these mean is said at ClassLossOptions and LossOptions.
///
///     nn::accuracy(logits, tokens, {.k = 5, .classes_last = true, .lengths = lengths});   // [B, T, C] and [B, T]
struct AccuracyOptions {
  std::int64_t k = 1;  ///< a target counts as predicted where it is among the k largest scores
  std::int64_t ignore_index = -100;
  std::optional<bool> classes_last{};
  Tensor element_weight{};  ///< a weighted mean, divided by the sum of the weights
  Tensor mask{};
  Tensor lengths{};
};
/// Share of the targets whose class has the largest score: logits [B, C], [C], [B, C, ...] or [B, ..., C] and
/// integer targets [B], [B, ...] or []. Of two equal scores the first counts as larger, as in argmax; NaN is the
/// largest, and never right. NaN where no target counts. Not differentiable. Throws as cross_entropy does, and
/// ValueError for a k below 1. `train::accuracy` adds up over the batches of an epoch.
double accuracy(const Tensor& logits, const Tensor& targets, const AccuracyOptions& options = {});

/// Parameters of multi_margin_loss.
struct MultiMarginParameters {
  int p = 1;  ///< the exponent, 1 or 2
  double margin = 1;
  Tensor class_weight{};  ///< [C], of the scores' dtype: the loss of a row times that of its class
};
/// sum over i other than y of max(0, margin - x[y] + x[i])^p / C: scores x [B, C], targets y i64 [B], losses [B].
/// As in PyTorch the mean is divided by B, not by weights of classes. Throws ValueError for p other than 1 or 2 and a
/// margin that is not finite.
Tensor multi_margin_loss(const Tensor& scores, const Tensor& targets, const MultiMarginParameters& parameters = {},
                         const LossOptions& options = {});

// ---- labels, any number of which may hold -------------------------------------------------------------------

/// -(t ln p + (1 - t) ln(1 - p)) of probabilities p and targets t in 0..1 of one shape. Logarithms are at least -100;
/// their slopes at p = 0 and 1 are 1e12. As in PyTorch, a mean is divided by the number of elements, weighted or not.
/// Throws ValueError for a probability outside 0..1 or NaN, in compiled functions, too.
Tensor bce(const Tensor& probabilities, const Tensor& target, const LossOptions& options = {});

/// Parameters of bce_with_logits.
struct BceParameters {
  Tensor pos_weight{};  ///< broadcasts to the logits: [C] weighs positive targets of each class
};
/// Binary cross-entropy of targets in [0, 1] from logits: w t softplus(-x) + (1 - t) softplus(x), w the weight of
/// positive targets or 1. A sum of terms that are never negative, so small losses keep their digits; softplus(x) - x y
/// has none left beyond x = 17 in f32. Means as in bce.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceParameters& parameters,
                       const LossOptions& options = {});

/// Parameters of focal_loss.
struct FocalParameters {
  double alpha = 0.25;  ///< in 0..1: the weight of positive targets, negative ones weigh 1 - alpha; below 0: none
  double gamma = 2;     ///< how much less elements count that are right already; 0: not at all
};
/// alpha_t (1 - p_t)^gamma (-ln p_t), p_t = p for target 1 and 1 - p for target 0, p = sigmoid(logits) (arXiv
/// 1708.02002; torchvision's sigmoid_focal_loss). Means as in bce. Throws ValueError for an alpha above 1 and a gamma
/// that is negative or not finite.
Tensor focal_loss(const Tensor& logits, const Tensor& target, const FocalParameters& parameters = {},
                  const LossOptions& options = {});

/// ln(1 + e^(-t x)) of scores x and targets t of -1 and 1.
Tensor soft_margin_loss(const Tensor& scores, const Tensor& target, const LossOptions& options = {});

/// -(t ln sigmoid(x) + (1 - t) ln sigmoid(-x)), averaged over the last axis: logits and targets [..., C], losses [...].
/// `class_weight` [C] multiplies the terms of the classes.
Tensor multilabel_soft_margin_loss(const Tensor& logits, const Tensor& target, const Tensor& class_weight = {},
                                   const LossOptions& options = {});

/// sum over targets y and classes i that are none of max(0, 1 - (x[y] - x[i])) / C: scores [B, C] and i64 targets
/// [B, C], of which those before the first -1 count; losses [B].
Tensor multilabel_margin_loss(const Tensor& scores, const Tensor& targets, const LossOptions& options = {});

// ---- regions --------------------------------------------------------------------------------------------------

/// Parameters of tversky_loss.
struct TverskyParameters {
  double alpha = 0.5;  ///< weight of what is predicted and not there
  double beta = 0.5;   ///< weight of what is there and not predicted
  double smooth = 1;   ///< added above and below
};
/// 1 - (S(p t) + s) / (S(p t) + alpha S(p (1 - t)) + beta S((1 - p) t) + s), S the sum over all axes but the first
/// (arXiv 1706.05721): probabilities and targets [B, ...], losses [B]. With alpha = beta = 1/2 a Dice loss of smooth
/// 2 s. Of LossOptions, weight and mask belong to the losses and `lengths` [B] to the regions [B, T, ...]: steps from
/// there on add nothing to S. Throws ValueError for parameters that are negative or not finite.
Tensor tversky_loss(const Tensor& probabilities, const Tensor& target, const TverskyParameters& parameters = {},
                    const LossOptions& options = {});
/// 1 - (2 S(p t) + s) / (S(p) + S(t) + s), S, shapes and options as above (arXiv 1606.04797). Throws as above.
Tensor dice_loss(const Tensor& probabilities, const Tensor& target, double smooth = 1, const LossOptions& options = {});

}  // namespace ferrite::nn
