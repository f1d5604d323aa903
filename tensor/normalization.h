#pragma once
/// Normalisation by means and variances: of channels, of groups of them, of instances, by the root mean square, by
/// neighbouring channels. Semantics follow torch.nn.functional; `layer_norm` is in tensor/ops.h. x is f32 or f64, f32
/// or f64 [N, C, ...] where channels are spoken of; weights and biases [C] are optional (an undefined one counts as
/// ones or zeros) and of x's dtype. All are differentiable, any number of times.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// A scale and a shift of every channel, either of which may be left out.
struct ChannelAffine {
  Tensor weight{}, bias{};
};

/// (x - mean) / sqrt(var + epsilon) * weight + bias, channel by channel: x [N, C, ...], mean and var [C]. With the mean
/// and the uncorrected variance of x over all axes but the second it is the batch norm of arXiv 1502.03167 in training,
/// with running ones that of evaluation. Throws ShapeError for an x without channels and numbers of channels that
/// differ, DtypeError for other dtypes and different ones, ValueError for a negative epsilon.
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const ChannelAffine& affine = {},
                  double epsilon = 1e-5);

/// (x - mean) / sqrt(var + epsilon) * weight + bias, with mean and uncorrected variance of each of `groups` groups of
/// neighbouring channels of each x[n] (arXiv 1803.08494): x [N, C, ...]. Throws as `batch_norm`, and ValueError for
/// groups that do not divide C.
Tensor group_norm(const Tensor& x, std::int64_t groups, const ChannelAffine& affine = {}, double epsilon = 1e-5);

/// group_norm whose groups are the single channels: statistics of each x[n, c] (arXiv 1607.08022).
Tensor instance_norm(const Tensor& x, const ChannelAffine& affine = {}, double epsilon = 1e-5);

/// x / sqrt(mean of x^2 + epsilon) over the last `axes` axes, times a weight of their extents (arXiv 1910.07467). An
/// epsilon below 0 stands for that of x's dtype, 2^-23 or 2^-52, as None does in PyTorch.
Tensor rms_norm(const Tensor& x, int axes = 1, const Tensor& weight = {}, double epsilon = -1);

struct LocalResponseOptions {
  double alpha = 1e-4, beta = 0.75, k = 1;
};
/// x / (k + alpha / size * sum of x^2)^beta over `size` neighbouring channels, size / 2 before and (size - 1) / 2
/// behind: x [N, C, ...]. Throws as `batch_norm`, and ValueError for a size below 1.
Tensor local_response_norm(const Tensor& x, std::int64_t size, const LocalResponseOptions& options = {});

}  // namespace ferrite
