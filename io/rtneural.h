#pragma once
/// RTNeural's JSON files of networks.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/recurrent/gated.h"

/// RTNeural's JSON: layers with their weights in Keras's layout. Its other form, a state_dict as nested lists, is read
/// with io/json_weights.h.
namespace ferrite::io {

inline constexpr std::int64_t kMostRateRatio = 64;

struct RtneuralOptions {
  /// The sample rate at which the net runs over that at which it was trained, 1 to 64: 96000.0 / 44100. Other than 1,
  /// every gru and lstm becomes a RateCorrected.
  double rate_ratio = 1;
};

/// A recurrent layer of one level and direction that runs at `ratio` times the sample rate at which it was trained: its
/// state comes back after `ratio` steps in place of one, interpolated linearly between whole ones, as in RTNeural's
/// SampleRateCorrectionMode::LinInterp (github.com/jatinchowdhury18/RTNeural, RTNeural/common.h):
///
///   s_t = (1 - f) n_(t-N) + f n_(t-N-1),  n_t = cell(x_t, s_t),  y_t = h of s_(t+1)
///
/// with N the whole part of the ratio, f the rest and n before the first step zeros; so that the output, too, comes
/// ratio - 1 steps late, and with a ratio of 1 it is the layer itself. Sequences run as a scan. The state is `h` [N +
/// 1, B, H] ([N, B, H] for whole ratios) of the last steps, the latest first, and likewise `c` of an LSTM; both are
/// carried. Parameters are those of the layer, behind "layer.". Throws ValueError for lengths, resets, and an initial
/// state.
class RateCorrected final : public nn::Layer {
 public:
  /// Throws ValueError for a null layer, more than one level or direction, a ratio outside 1..64.
  RateCorrected(std::unique_ptr<nn::GatedRecurrent> layer, double ratio);

  const nn::GatedRecurrent& layer() const& { return *layer_; }
  const nn::GatedRecurrent& layer() const&& = delete;
  double ratio() const { return ratio_; }

  std::string kind() const override { return "rate_corrected"; }
  bool causal() const override { return true; }
  Tensor forward(const Tensor& x, const nn::Context& context) const override;
  nn::StepInput step_input() const override { return layer_->step_input(); }
  std::vector<nn::StepState> states(const nn::StepRows& in) const override;
  nn::StepResult step(const Tensor& x, const Tensors& states) const override;
  std::unique_ptr<nn::Layer> clone() const override;

 private:
  std::int64_t held() const;
  Tensor delayed(const Tensor& held) const;

  std::unique_ptr<nn::GatedRecurrent> layer_;
  double ratio_;
};

/// A chain that computes what RTNeural computes: dense and time-distributed-dense, gru (reset_after), lstm, conv1d
/// (causal), of these dense ones and conv1d without a bias, too, prelu, batchnorm, activation (with elu); an activation
/// of a layer is a layer of its own behind it. Layers are named by position. A batchnorm is read in evaluation mode:
/// `train()` gives it batch statistics. Throws IoError, its message beginning with `where`, for what is not such a
/// file, another type of layer (conv2d, batchnorm2d) or activation, a padding that is not causal, strides, shapes that
/// do not fit; ValueError for a rate_ratio outside 1..64.
std::unique_ptr<nn::Sequential> parse_rtneural(std::span<const std::byte> bytes, std::string_view where = "rtneural",
                                               const RtneuralOptions& options = {});
std::unique_ptr<nn::Sequential> read_rtneural(const std::filesystem::path& path, const RtneuralOptions& options = {});

/// The same for a chain of Linear, Gru, Lstm, CausalConv1d, Prelu, BatchNorm1d and activations (tanh, relu, sigmoid,
/// softmax, elu), f32. Layers of a deep GRU or LSTM become one each; an LSTM's two biases become their sum; of a
/// RateCorrected its layer is written. Throws IoError for what RTNeural does not have: other layers, two directions, a
/// projection, a reset before the product, other activations, a recurrent layer without bias, a stride.
std::string serialize_rtneural(const nn::Sequential& net);
void save_rtneural(const nn::Sequential& net, const std::filesystem::path& path);

}  // namespace ferrite::io
