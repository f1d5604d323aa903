#pragma once
/// RTNeural's JSON files of networks.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/recurrent/gated.h"

/// RTNeural's JSON: layers with their weights in Keras's layout. RTNeural's other form, a state_dict as nested lists,
/// is read with io/json_weights.h.
namespace ferrite::io {

/// Largest ratio that RateCorrected and RtneuralOptions::rate_ratio take: the sample rate at which the net runs divided
/// by that at which it was trained.
inline constexpr std::int64_t kMostRateRatio = 64;

/// Options for reading an RTNeural file.
struct RtneuralOptions {
  /// Sample rate at which the net runs divided by that at which it was trained, 1 to 64: 96000.0 / 44100. Unless it is
  /// 1, every gru and lstm becomes a RateCorrected.
  double rate_ratio = 1;
};

/// A recurrent layer of one level and direction that runs at `ratio` times the sample rate at which it was trained. Its
/// state is fed back after `ratio` steps instead of one, interpolated linearly between whole steps, as in RTNeural's
/// SampleRateCorrectionMode::LinInterp (github.com/jatinchowdhury18/RTNeural, RTNeural/common.h):
///
///   s_t = (1 - f) n_(t-N) + f n_(t-N-1),  n_t = cell(x_t, s_t),  y_t = h of s_(t+1)
///
/// with N the whole part of the ratio, f the rest and n before the first step zeros. The output thus comes ratio - 1
/// steps late, and with a ratio of 1 this is the layer itself. Sequences run as a scan. The carried states are `h` [N +
/// 1, B, H] ([N, B, H] for whole ratios) of the last steps, the latest first, and `c` of the same shape for an LSTM.
/// Parameters are those of the layer, with the prefix "layer.". Throws ValueError for lengths, resets, and an initial
/// state.
class RateCorrected final : public nn::Layer {
 public:
  /// Wraps a layer, which runs at `ratio` times the sample rate of its training. Throws ValueError for a null layer,
  /// more than one level or direction, a ratio outside 1..64.
  RateCorrected(std::unique_ptr<nn::GatedRecurrent> layer, double ratio);

  const nn::GatedRecurrent& layer() const& { return *layer_; }
  const nn::GatedRecurrent& layer() const&& = delete;
  double ratio() const { return ratio_; }  ///< returns the sample rate of use over that of training

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

/// Parses an RTNeural file in memory into a chain that computes what RTNeural computes. Layers: dense and
/// time-distributed-dense, gru (reset_after), lstm, conv1d (causal), prelu, batchnorm, activation (with elu); dense
/// layers and conv1d may lack a bias, and the activation of a layer becomes a separate layer after it. Layers are named
/// by position. A batchnorm is read in evaluation mode: `train()` gives it batch statistics. Throws IoError, its
/// message beginning with `where`, for another file, type of layer (conv2d, batchnorm2d) or activation, a padding that
/// is not causal, strides, shapes that do not fit; ValueError for a rate_ratio outside 1..64.
std::unique_ptr<nn::Sequential> parse_rtneural(std::span<const std::byte> bytes, std::string_view where = "rtneural",
                                               const RtneuralOptions& options = {});
/// Reads an RTNeural file. Throws as parse_rtneural, and IoError for a file that cannot be read.
std::unique_ptr<nn::Sequential> read_rtneural(const std::filesystem::path& path, const RtneuralOptions& options = {});

/// Returns the text of an RTNeural file for a chain of Linear, Gru, Lstm, CausalConv1d, Prelu, BatchNorm1d and
/// activations (tanh, relu, sigmoid, softmax, elu), f32. Each level of a deep GRU or LSTM becomes one layer, an LSTM's
/// two biases their sum, and a RateCorrected its layer. Throws IoError for what RTNeural does not have: other layers,
/// two directions, a projection, a reset before the product, other activations, a recurrent layer without bias, a
/// stride.
std::string serialize_rtneural(const nn::Sequential& net);
/// Writes an RTNeural file. Throws IoError as serialize_rtneural, and where the file cannot be written.
void save_rtneural(const nn::Sequential& net, const std::filesystem::path& path);

}  // namespace ferrite::io
