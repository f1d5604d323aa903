#pragma once
/// Normalisation with weights as layers: over batches, groups, instances, and by the root mean square. LayerNorm is in
/// nn/layers/layers.h.
#include <optional>

#include "ferrite/nn/layer_of.h"
#include "ferrite/tensor/normalization.h"

namespace ferrite::nn {

/// Options of batch norms and, with other defaults, of instance norms: channels, running statistics and weights.
template <bool over_batch>
struct ChannelNormOptions {
  std::int64_t num_features = 0;  ///< C, number of channels
  double epsilon = 1e-5;          ///< added to the variance
  /// The part of the running statistics that a batch replaces. If unset, batch norms keep the mean over all batches and
  /// instance norms keep the initial values, as in PyTorch.
  std::optional<double> momentum = 0.1;
  bool affine = over_batch;               ///< whether there are weight and bias; by default for batch norms alone
  bool track_running_stats = over_batch;  ///< false: evaluation, too, uses the statistics of x; default as affine
  bool channels_last = false;             ///< x is [B, ..., C], as in sequences [B, T, C]; the builder sets it
  static constexpr auto fields =
      attr_list(attr("num_features", &ChannelNormOptions::num_features), attr("epsilon", &ChannelNormOptions::epsilon),
                attr("momentum", &ChannelNormOptions::momentum), attr("affine", &ChannelNormOptions::affine),
                attr("track_running_stats", &ChannelNormOptions::track_running_stats),
                attr("channels_last", &ChannelNormOptions::channels_last));
};
using BatchNormOptions = ChannelNormOptions<true>;
using InstanceNormOptions = ChannelNormOptions<false>;

/// Normalises each channel by its mean and variance over the batch, as torch.nn.BatchNorm1d, 2d and 3d, or over each
/// x[b] alone, as InstanceNorm1d, 2d and 3d; then multiplies by weight [C], initially 1, and adds bias [C], initially 0
/// (tensor/normalization.h). Training uses the statistics of x; the buffers running_mean (initially 0) and running_var
/// (1) then take the part `momentum` of these (the corrected variance; for instances means over the batch), and
/// num_batches_tracked of batch norms counts. Evaluation uses the running statistics. x is [B, C, ...] with N axes of
/// space; BatchNorm1d also takes [B, C].
///
/// Over sequences x [B, T, C] (channels_last) `context.lengths` say which steps count: all statistics are taken over
/// these alone, and no gradient comes from or reaches the others, whatever they hold; their results are meaningless.
/// Lengths are ignored for x [B, C] and where running statistics are used; elsewhere they throw ValueError.
///
/// Batch norms take their statistics over the batches of all of `context.replicas` (nn/replicas.h), as
/// torch.nn.SyncBatchNorm; a replica may then have a single value, or none.
///
/// Throws ShapeError for other ranks and numbers of channels, and for a single value per channel while training;
/// DtypeError unless x has the dtype of the weights.
template <bool over_batch, int N>
class ChannelNorm final : public LayerOf<ChannelNorm<over_batch, N>, ChannelNormOptions<over_batch>> {
 public:
  static constexpr std::string_view name = over_batch ? N == 1   ? "batch_norm1d"
                                                        : N == 2 ? "batch_norm2d"
                                                                 : "batch_norm3d"
                                           : N == 1   ? "instance_norm1d"
                                           : N == 2   ? "instance_norm2d"
                                                      : "instance_norm3d";
  /// Throws ValueError for no features, an epsilon below 0 or not finite, and a momentum outside 0..1.
  explicit ChannelNorm(const ChannelNormOptions<over_batch>& options, const Init& init = {});

  Tensor forward(const Tensor& x, const Context&) const override;
  bool reads_lengths() const override { return !this->options().channels_last || of_batch(); }
  /// Returns whether this is a batch norm with the channels last and running statistics: a stream evaluates.
  bool causal() const override {
    return over_batch && this->options().channels_last && this->options().track_running_stats;
  }
  StepInput step_input() const override;

  Parameter weight, bias;                                 ///< empty if not `affine`
  Buffer running_mean, running_var, num_batches_tracked;  ///< empty unless `track_running_stats`; the counter is i64

 private:
  /// Returns whether the statistics are those of the input instead of the running ones.
  bool of_batch() const { return this->training() || !this->options().track_running_stats; }
  /// Normalises x with the channels on axis 1.
  Tensor normalised(const Tensor& x, const Replicas* replicas) const;
  /// Normalises x [B, T, C] over the first `lengths` steps of each row.
  Tensor normalised(const Tensor& x, const Tensor& lengths, const Replicas* replicas) const;
  /// Updates the running statistics by the mean and the corrected variance [C] of a batch.
  void track(const Tensor& mean, const Tensor& var) const;
};
template <int N>
using BatchNorm = ChannelNorm<true, N>;
using BatchNorm1d = BatchNorm<1>;
using BatchNorm2d = BatchNorm<2>;
using BatchNorm3d = BatchNorm<3>;
template <int N>
using InstanceNorm = ChannelNorm<false, N>;
using InstanceNorm1d = InstanceNorm<1>;
using InstanceNorm2d = InstanceNorm<2>;
using InstanceNorm3d = InstanceNorm<3>;

/// Options of GroupNorm: numbers of groups and channels, epsilon, and the position of the channels.
struct GroupNormOptions {
  std::int64_t num_groups = 0;    ///< number of groups, which divides num_channels
  std::int64_t num_channels = 0;  ///< C, number of channels
  double epsilon = 1e-5;          ///< added to the variance
  bool affine = true;             ///< whether there are weight and bias
  bool channels_last = false;     ///< x is [B, ..., C] instead of [B, C, ...]
  static constexpr auto fields =
      attr_list(attr("num_groups", &GroupNormOptions::num_groups),
                attr("num_channels", &GroupNormOptions::num_channels), attr("epsilon", &GroupNormOptions::epsilon),
                attr("affine", &GroupNormOptions::affine), attr("channels_last", &GroupNormOptions::channels_last));
};
/// Normalises groups of channels, as torch.nn.GroupNorm: group_norm with weight [C], initially 1, and bias [C],
/// initially 0; x [B, C, ...]. `context.lengths` as in ChannelNorm: over sequences [B, T, C] (channels_last) each row
/// uses its own steps. Throws ShapeError for another number of channels, DtypeError unless x has the dtype of the
/// weights.
class GroupNorm final : public LayerOf<GroupNorm, GroupNormOptions> {
 public:
  static constexpr auto name = "group_norm";
  /// Throws ValueError for sizes below 1, groups that do not divide the channels, an epsilon below 0 or not finite.
  explicit GroupNorm(const GroupNormOptions& options, const Init& init = {});
  Tensor forward(const Tensor& x, const Context&) const override;
  bool reads_lengths() const override { return true; }

  Parameter weight, bias;  ///< empty if not `affine`
};

/// Options of RmsNorm: extent of the last axis, epsilon and weight.
struct RmsNormOptions {
  std::int64_t features = 0;  ///< D, extent of the last axis
  double epsilon = -1;        ///< added to the mean of x^2; below 0: the dtype's, 2^-23 or 2^-52, as None in PyTorch
  bool affine = true;         ///< whether there is a weight
  static constexpr auto fields =
      attr_list(attr("features", &RmsNormOptions::features), attr("epsilon", &RmsNormOptions::epsilon),
                attr("affine", &RmsNormOptions::affine));
};
/// Normalises the last axis by its root mean square, as torch.nn.RMSNorm: x / sqrt(mean of x^2 + epsilon) * weight,
/// where weight [D] starts as 1. Throws ShapeError for another last extent, DtypeError unless x has the dtype of the
/// weight.
class RmsNorm final : public LayerOf<RmsNorm, RmsNormOptions> {
 public:
  static constexpr auto name = "rms_norm";
  /// Throws ValueError for no features and an epsilon that is not finite.
  explicit RmsNorm(const RmsNormOptions& options, const Init& init = {});
  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override;

  Parameter weight;  ///< empty if not `affine`
};

extern template class LayerOf<ChannelNorm<true, 1>, ChannelNormOptions<true>>;
extern template class LayerOf<ChannelNorm<true, 2>, ChannelNormOptions<true>>;
extern template class LayerOf<ChannelNorm<true, 3>, ChannelNormOptions<true>>;
extern template class LayerOf<ChannelNorm<false, 1>, ChannelNormOptions<false>>;
extern template class LayerOf<ChannelNorm<false, 2>, ChannelNormOptions<false>>;
extern template class LayerOf<ChannelNorm<false, 3>, ChannelNormOptions<false>>;
extern template class LayerOf<GroupNorm, GroupNormOptions>;
extern template class LayerOf<RmsNorm, RmsNormOptions>;

}  // namespace ferrite::nn
