#pragma once
/// Losses of predicted classes and labels, and accuracy. Formulas and gradients are those of PyTorch's functions of the
/// same names. All throw ShapeError and DtypeError for operands that do not fit, ShapeError for a class outside 0..C -
/// 1 (in compiled functions, too), and ValueError for parameters outside the ranges below.
#include <optional>

#include "ferrite/nn/losses/reduction.h"

namespace ferrite::nn {

// ---- one class of many -------------------------------------------------------------------------------------

/// Options of cross_entropy and nll_loss: which elements count how much, where the axis of classes is, the reduction.
///
///     nn::cross_entropy(logits, targets, {.class_weight = w, .label_smoothing = 0.1});
///     nn::cross_entropy(logits, tokens, {.classes_last = true, .lengths = lengths});   // [B, T, C] and [B, T]
struct ClassLossOptions {
  /// Weights of the classes, [C], of the scores' dtype: each multiplies the losses of its class. PyTorch's weight.
  Tensor class_weight{};
  std::int64_t ignore_index = -100;  ///< targets of this value do not count, even if their scores are NaN (which spoils
                                     ///< all gradients in PyTorch); need not be a class
  double label_smoothing = 0;        ///< in 0..1: the part of each target that is spread evenly over all classes
  /// The axis of the classes, for scores with three axes or more: true for [B, ..., C], as in sequences, false for
  /// [B, C, ...], as in images and PyTorch. There is no default, since both may fit the targets; fewer axes need none.
  std::optional<bool> classes_last{};
  Reduction reduction = Reduction::mean;  ///< mean: divided by the class weights of the elements that count
  Tensor element_weight{};                ///< this and the next two as in LossOptions, for losses of the targets' shape
  Tensor mask{};
  Tensor lengths{};
};

/// Returns the cross-entropy of logits, -ln softmax(logits)[target], averaged by default: logits [B, C], [C],
/// [B, C, ...] or [B, ..., C] and integer targets [B], [B, ...] or [] -> [], or the targets' shape with
/// Reduction::none. Float targets, of the logits' shape, are probabilities of the classes: -sum of target ln
/// softmax(logits) over classes; their mean is divided by the number of elements. Throws ValueError for logits of three
/// axes or more without `classes_last`, and a label_smoothing outside 0..1.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction = Reduction::mean);
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const ClassLossOptions& options);

/// Returns the cross-entropy of logarithms of probabilities, as log_softmax gives them: -log_probs[target]. Takes
/// integer targets only. Throws ValueError for a label_smoothing other than 0.
Tensor nll_loss(const Tensor& log_probs, const Tensor& targets, const ClassLossOptions& options = {});

/// Options of accuracy: how many classes are tried and which elements count. Fields without a comment are those of
/// ClassLossOptions and LossOptions.
///
///     nn::accuracy(logits, tokens, {.k = 5, .classes_last = true, .lengths = lengths});   // [B, T, C] and [B, T]
struct AccuracyOptions {
  std::int64_t k = 1;  ///< a target counts as predicted if it is among the k largest scores
  std::int64_t ignore_index = -100;
  std::optional<bool> classes_last{};
  Tensor element_weight{};  ///< weights of a weighted mean, divided by their sum
  Tensor mask{};
  Tensor lengths{};
};
/// Returns the share of targets, in 0..1, whose class has the largest score: logits [B, C], [C], [B, C, ...] or
/// [B, ..., C] and integer targets [B], [B, ...] or []. Of equal scores the first counts as larger, as in argmax; NaN
/// counts as the largest, and is never right. Returns NaN if no target counts. Not differentiable. Throws as
/// cross_entropy does, and ValueError for a k below 1. `train::accuracy` accumulates over the batches of an epoch.
double accuracy(const Tensor& logits, const Tensor& targets, const AccuracyOptions& options = {});

/// Parameters of the loss multi_margin_loss.
struct MultiMarginParameters {
  int p = 1;              ///< the exponent, 1 or 2
  double margin = 1;      ///< by how much the score of the target's class should exceed each other score
  Tensor class_weight{};  ///< [C], of the scores' dtype: multiplies the losses of its class
};
/// Returns the multi-class hinge loss: the sum over classes i other than y of max(0, margin - x[y] + x[i])^p / C:
/// scores x [B, C], integer targets y [B], losses [B]. As in PyTorch the mean is divided by B, not by weights of
/// classes. Throws ValueError for p other than 1 or 2 and a margin that is not finite.
Tensor multi_margin_loss(const Tensor& scores, const Tensor& targets, const MultiMarginParameters& parameters = {},
                         const LossOptions& options = {});

// ---- labels, any number of which may be true ------------------------------------------------------------------

/// Returns the binary cross-entropy -(t ln p + (1 - t) ln(1 - p)) of probabilities p and targets t in 0..1 of one
/// shape, averaged by default. Logarithms are at least -100; their slopes at p = 0 and 1 are 1e12. As in PyTorch, a
/// mean is divided by the number of elements, weighted or not. Throws ValueError for a probability outside 0..1 or NaN,
/// in compiled functions, too.
Tensor bce(const Tensor& probabilities, const Tensor& target, const LossOptions& options = {});

/// Parameters of the loss bce_with_logits.
struct BceParameters {
  Tensor pos_weight{};  ///< broadcasts to the logits: [C] weights the positive targets of each class
};
/// Returns the binary cross-entropy of targets t in [0, 1] from logits x: w t softplus(-x) + (1 - t) softplus(x), with
/// w the weight of positive targets (pos_weight) or 1, averaged by default. The terms are never negative, so small
/// losses keep their digits; softplus(x) - x y would lose all of them beyond x = 17 in f32. Means are those of bce.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceParameters& parameters,
                       const LossOptions& options = {});

/// Parameters of the loss focal_loss.
struct FocalParameters {
  double alpha = 0.25;  ///< in 0..1: weight of positive targets, with 1 - alpha for negative ones; below 0: unweighted
  double gamma = 2;     ///< how strongly the loss of elements that are already right is reduced; 0: not at all
};
/// Returns the focal loss alpha_t (1 - p_t)^gamma (-ln p_t), averaged by default, with p_t = p for target 1, 1 - p for
/// target 0, and p = sigmoid(logits) (arXiv 1708.02002; torchvision's sigmoid_focal_loss). Means are those of bce.
/// Throws ValueError for an alpha above 1 and a gamma that is negative or not finite.
Tensor focal_loss(const Tensor& logits, const Tensor& target, const FocalParameters& parameters = {},
                  const LossOptions& options = {});

/// Returns the logistic loss ln(1 + e^(-t x)) of scores x and targets t of -1 and 1, averaged by default.
Tensor soft_margin_loss(const Tensor& scores, const Tensor& target, const LossOptions& options = {});

/// Returns the binary cross-entropy of logits x, -(t ln sigmoid(x) + (1 - t) ln sigmoid(-x)), averaged over the last
/// axis: logits and targets [..., C], losses [...], which are averaged, too, by default. `class_weight` [C] multiplies
/// the terms of the classes.
Tensor multilabel_soft_margin_loss(const Tensor& logits, const Tensor& target, const Tensor& class_weight = {},
                                   const LossOptions& options = {});

/// Returns the multi-label hinge loss: the sum over the targets y of a row, and over the classes i that are not among
/// them, of max(0, 1 - (x[y] - x[i])) / C: scores [B, C] and integer targets [B, C], of which those before the first -1
/// count; losses [B].
Tensor multilabel_margin_loss(const Tensor& scores, const Tensor& targets, const LossOptions& options = {});

// ---- regions --------------------------------------------------------------------------------------------------

/// Parameters of the loss tversky_loss.
struct TverskyParameters {
  double alpha = 0.5;  ///< weight of false positives: predicted but not in the target
  double beta = 0.5;   ///< weight of false negatives: in the target but not predicted
  double smooth = 1;   ///< s, added to numerator and denominator
};
/// Returns the Tversky loss 1 - (S(p t) + s) / (S(p t) + alpha S(p (1 - t)) + beta S((1 - p) t) + s), with S the sum
/// over all axes but the first (arXiv 1706.05721): probabilities and targets [B, ...], losses [B]. With alpha = beta =
/// 1/2 it is a Dice loss of smooth 2 s. Of LossOptions, weight and mask belong to the losses, and `lengths` [B] to the
/// regions [B, T, ...]: steps beyond a length add nothing to S. Throws ValueError for parameters that are negative or
/// not finite.
Tensor tversky_loss(const Tensor& probabilities, const Tensor& target, const TverskyParameters& parameters = {},
                    const LossOptions& options = {});
/// Returns the Dice loss 1 - (2 S(p t) + s) / (S(p) + S(t) + s) with s = smooth, and S, shapes, options and errors of
/// tversky_loss (arXiv 1606.04797).
Tensor dice_loss(const Tensor& probabilities, const Tensor& target, double smooth = 1, const LossOptions& options = {});

}  // namespace ferrite::nn
