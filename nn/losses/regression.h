#pragma once
/// Losses of predicted numbers. All take tensors of one shape and dtype, f32 or f64, and LossOptions. They throw
/// ShapeError and DtypeError for others, and ValueError for parameters outside the ranges below. Formulas and gradients
/// are those of PyTorch's functions of the same names. Formulas are those of one element; the reduction, by default the
/// mean, follows.
#include "ferrite/nn/losses/reduction.h"

namespace ferrite::nn {

/// Returns the mean squared error: (prediction - target)^2, reduced to the mean [] or as `reduction` says.
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor mse_loss(const Tensor& prediction, const Tensor& target, const LossOptions& options);

/// Returns the mean absolute error: |prediction - target|, reduced to the mean [] or as `reduction` says. The gradient
/// is 0 where prediction and target are equal.
Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);
Tensor l1_loss(const Tensor& prediction, const Tensor& target, const LossOptions& options);

/// Returns the smooth L1 loss: d^2 / (2 beta) where d = |prediction - target| is below beta, else d - beta / 2 (d for
/// beta 0), reduced to the mean unless the options say otherwise. Throws ValueError for a beta that is negative or not
/// finite.
Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, double beta = 1, const LossOptions& options = {});

/// Returns the Huber loss: d^2 / 2 where d = |prediction - target| is below delta, else delta (d - delta / 2), reduced
/// to the mean unless the options say otherwise. As in PyTorch, a mean is divided by the number of elements, weighted
/// or not. Throws ValueError unless delta is positive and finite.
Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta = 1, const LossOptions& options = {});

/// Parameters of the loss poisson_nll_loss.
struct PoissonNllParameters {
  bool log_input = true;  ///< whether the prediction is the logarithm of the rate; false: the rate
  bool full = false;      ///< adds Stirling's approximation of ln target! for targets above 1
  double epsilon = 1e-8;  ///< added to the rate before its logarithm, if log_input is false
};
/// Returns the negative log-likelihood of counts `target` under Poisson distributions: e^x - target x for a prediction
/// x = ln rate, or rate - target ln(rate + epsilon), reduced to the mean unless the options say otherwise. Throws
/// ValueError for an epsilon that is negative or not finite.
Tensor poisson_nll_loss(const Tensor& prediction, const Tensor& target, const PoissonNllParameters& parameters = {},
                        const LossOptions& options = {});

/// Parameters of the loss gaussian_nll_loss.
struct GaussianNllParameters {
  bool full = false;      ///< adds the constant ln(2 pi) / 2
  double epsilon = 1e-6;  ///< lower bound of the variance v: for a smaller one, value and gradient are those at epsilon
};
/// Returns the negative log-likelihood of `target` under normal distributions: (ln v + (mean - target)^2 / v) / 2 for
/// the variance v, reduced to the mean unless the options say otherwise. The variance has the shape of the mean, or one
/// that broadcasts to it, and no negative element (ValueError, in compiled functions, too). Throws ValueError unless
/// epsilon is positive and finite.
Tensor gaussian_nll_loss(const Tensor& mean, const Tensor& target, const Tensor& variance,
                         const GaussianNllParameters& parameters = {}, const LossOptions& options = {});

/// Parameters of the loss kl_div.
struct KlDivParameters {
  bool log_target = false;  ///< whether the target holds logarithms of probabilities; false: probabilities
};
/// Returns each element's part of the Kullback-Leibler divergence of the prediction from the target: target (ln target
/// - prediction), and 0 for target 0, whatever the prediction is (PyTorch: NaN for -infinity). The prediction holds
/// logarithms. `Reduction::batch_mean` gives the divergence itself, averaged over the first axis.
Tensor kl_div(const Tensor& prediction, const Tensor& target, const KlDivParameters& parameters = {},
              const LossOptions& options = {});

}  // namespace ferrite::nn
