#pragma once
/// Normalisation by means and variances: of channels, of groups of them, of instances, by the root mean square, by
/// neighbouring channels. Semantics follow torch.nn.functional; `layer_norm` is in tensor/ops.h. x is f32 or f64;
/// functions of channels take [N, C, ...]. Weights and biases [C] are optional (an undefined one counts as ones or
/// zeros) and have x's dtype. All functions are differentiable any number of times.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// A scale and a shift for every channel, weight and bias [C]; either may be undefined: 1 and 0.
struct ChannelAffine {
  Tensor weight{}, bias{};
};

/// Normalises every channel by a mean and a variance that are given: (x - mean) / sqrt(var + epsilon) * weight + bias,
/// x [N, C, ...], mean and var [C]. With the mean and the uncorrected variance of x over all axes but the second this
/// is the batch norm of arXiv 1502.03167 in training; with running ones, in evaluation. Throws ShapeError for an x
/// without channels and numbers of channels that differ, DtypeError for other dtypes and different ones, ValueError for
/// a negative epsilon.
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const ChannelAffine& affine = {},
                  double epsilon = 1e-5);

/// Normalises each of `groups` groups of neighbouring channels of each x[n] (arXiv 1803.08494): (x - mean) /
/// sqrt(var + epsilon) * weight + bias, with the group's mean and uncorrected variance; x [N, C, ...]. Throws as
/// `batch_norm`, and ValueError for groups that do not divide C.
Tensor group_norm(const Tensor& x, std::int64_t groups, const ChannelAffine& affine = {}, double epsilon = 1e-5);

/// Normalises each channel of each x[n] by its own mean and variance (arXiv 1607.08022): group_norm with one group per
/// channel.
Tensor instance_norm(const Tensor& x, const ChannelAffine& affine = {}, double epsilon = 1e-5);

/// Returns x / sqrt(mean of x^2 + epsilon) over the last `axes` axes, times a weight of their extents
/// (arXiv 1910.07467). A negative epsilon means the epsilon of x's dtype, 2^-23 or 2^-52, like None in PyTorch.
Tensor rms_norm(const Tensor& x, int axes = 1, const Tensor& weight = {}, double epsilon = -1);

/// The constants of the formula of `local_response_norm`.
struct LocalResponseOptions {
  double alpha = 1e-4, beta = 0.75, k = 1;
};
/// Returns x / (k + alpha / size * sum of x^2)^beta, with the sum over `size` neighbouring channels, size / 2 before
/// and (size - 1) / 2 after: x [N, C, ...]. Throws as `batch_norm`, and ValueError for a size below 1.
Tensor local_response_norm(const Tensor& x, std::int64_t size, const LocalResponseOptions& options = {});

}  // namespace ferrite
