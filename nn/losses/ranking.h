#pragma once
/// Losses of pairs and triples: which of two ranks higher, which are similar. Formulas and gradients are those of
/// PyTorch's functions of the same names. All throw ShapeError and DtypeError for operands that do not fit, and
/// ValueError for parameters that are not finite. Targets are -1 or 1, of the dtype of the scores or vectors.
#include "ferrite/nn/losses/reduction.h"

namespace ferrite::nn {

/// Returns max(0, margin - target (first - second)), averaged by default: target 1 asks for a higher score of the
/// first, -1 of the second. All have one shape.
Tensor margin_ranking_loss(const Tensor& first, const Tensor& second, const Tensor& target, double margin = 0,
                           const LossOptions& options = {});

/// Returns the distance x where the target is 1 (similar), max(0, margin - x) where it is -1, averaged by default. All
/// have one shape.
Tensor hinge_embedding_loss(const Tensor& distance, const Tensor& target, double margin = 1,
                            const LossOptions& options = {});

/// Returns 1 - cos where the target is 1 (similar), max(0, cos - margin) where it is -1, averaged by default; cos is
/// the cosine of the angle of vectors along the last axis, with 1e-12 added to their squared lengths. first and second
/// [..., D], targets and losses [...].
Tensor cosine_embedding_loss(const Tensor& first, const Tensor& second, const Tensor& target, double margin = 0,
                             const LossOptions& options = {});

/// Parameters of the loss triplet_margin_loss.
struct TripletParameters {
  double margin = 1;      ///< how much farther from the anchor the negative should be than the positive
  double p = 2;           ///< exponent of the norm of distances: at least 1; infinity for the largest element
  double epsilon = 1e-6;  ///< added to every element of a difference of vectors, before the norm
  bool swap = false;      ///< compares the negative with the nearer of anchor and positive (Balntas et al. 2016)
};
/// Returns max(0, margin + |anchor - positive| - |anchor - negative|) of vectors [..., D], losses [...], averaged by
/// default. Throws ValueError for a p below 1, too.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletParameters& parameters = {}, const LossOptions& options = {});

}  // namespace ferrite::nn
