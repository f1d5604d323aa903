#pragma once
/// Losses of pairs and triples: which of two is better, which are alike. Formulas and gradients are those of PyTorch's
/// functions of the same names. All throw ShapeError and DtypeError for operands that do not fit, and ValueError for
/// parameters that are not finite. Targets are -1 or 1, of the dtype of what they judge.
#include "ferrite/nn/losses/reduction.h"

namespace ferrite::nn {

/// max(0, margin - target (first - second)): target 1 asks that the first ranks higher. All of one shape.
Tensor margin_ranking_loss(const Tensor& first, const Tensor& second, const Tensor& target, double margin = 0,
                           const LossOptions& options = {});

/// x where the target is 1, max(0, margin - x) where it is -1. All of one shape.
Tensor hinge_embedding_loss(const Tensor& distance, const Tensor& target, double margin = 1,
                            const LossOptions& options = {});

/// 1 - cos where the target is 1, max(0, cos - margin) where it is -1: cos the cosine of the vectors of the last axis,
/// 1e-12 added to the squares of both lengths. first and second [..., D], targets and losses [...].
Tensor cosine_embedding_loss(const Tensor& first, const Tensor& second, const Tensor& target, double margin = 0,
                             const LossOptions& options = {});

/// Parameters of triplet_margin_loss.
struct TripletParameters {
  double margin = 1;
  double p = 2;           ///< the norm of the distance: at least 1; infinity for the largest element
  double epsilon = 1e-6;  ///< added to every difference
  bool swap = false;      ///< the negative one is compared with the nearer of anchor and positive (Balntas et al. 2016)
};
/// max(0, margin + |anchor - positive| - |anchor - negative|) of vectors [..., D], losses [...]. Throws ValueError for
/// a p below 1, too.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletParameters& parameters = {}, const LossOptions& options = {});

}  // namespace ferrite::nn
