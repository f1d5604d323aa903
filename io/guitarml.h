#pragma once
/// GuitarML's JSON files of recurrent models of amplifiers.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/io/tensor_file.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/gated.h"

/// The files of Automated-GuitarAmpModelling and of the plug-ins that read them (Proteus, NeuralPi): {"model_data":
/// {"model": "SimpleRNN", "unit_type": "LSTM", ...}, "state_dict": {"rec.weight_ih_l0": [[...]], ...}}. The weights
/// alone can also be read with io/json_weights.h.
namespace ferrite::io {

/// The sizes and parts of a GuitarmlNet.
struct GuitarmlOptions {
  bool gru = false;  ///< whether the recurrent layer is a GRU; otherwise it is an LSTM
  std::int64_t input_size = 1;
  std::int64_t output_size = 1;
  std::int64_t hidden_size = 1;
  std::int64_t layers = 1;  ///< number of levels of the recurrent layer
  std::int64_t skip = 1;    ///< number of features of the input that are added to the output
  bool bias = true;         ///< whether the recurrent layer has a bias
  bool lin_bias = true;     ///< whether the linear layer after it has a bias: CoreAudioML's bias_fl
  static constexpr auto fields =
      attr_list(attr("gru", &GuitarmlOptions::gru), attr("input_size", &GuitarmlOptions::input_size),
                attr("output_size", &GuitarmlOptions::output_size), attr("hidden_size", &GuitarmlOptions::hidden_size),
                attr("layers", &GuitarmlOptions::layers), attr("skip", &GuitarmlOptions::skip),
                attr("bias", &GuitarmlOptions::bias), attr("lin_bias", &GuitarmlOptions::lin_bias));
};

/// CoreAudioML's SimpleRNN: x [B, T, input_size] -> y [B, T, output_size],
///
///   y = lin(rec(x)) + x[:, :, :skip]
///
/// Parameters: those of `rec` (nn::Lstm or nn::Gru) and `lin` (nn::Linear), under the names of the file. Lengths,
/// resets and carries are handled as by the recurrent layer.
class GuitarmlNet final : public nn::LayerOf<GuitarmlNet, GuitarmlOptions> {
 public:
  static constexpr auto name = "guitarml";
  /// Throws ValueError for sizes below 1, a skip that is neither 0 nor the output's size within that of the input.
  explicit GuitarmlNet(const GuitarmlOptions& options, const nn::Init& init = {});

  /// Returns the recurrent layer.
  const nn::GatedRecurrent& rec() const& { return *rec_; }
  const nn::GatedRecurrent& rec() const&& = delete;
  /// Returns the linear layer after the recurrent one.
  const nn::Linear& lin() const& { return lin_; }
  const nn::Linear& lin() const&& = delete;

  Tensor forward(const Tensor& x, const nn::Context& context) const override;
  bool causal() const override { return true; }
  nn::StepInput step_input() const override { return rec_->step_input(); }
  std::vector<nn::StepState> states(const nn::StepRows& in) const override { return rec_->states(in); }
  nn::StepResult step(const Tensor& x, const Tensors& states) const override;

 private:
  bool only_chains() const override { return true; }

  std::unique_ptr<nn::GatedRecurrent> rec_;
  nn::Linear lin_;
};

/// Parses a GuitarML file in memory. Throws IoError, its message beginning with `where`, for anything else: not JSON,
/// without `model_data` or `state_dict`, another model or unit, sizes that are invalid or do not fit the weights, and a
/// skip that is neither 0 nor the size of the output.
std::unique_ptr<GuitarmlNet> parse_guitarml(std::span<const std::byte> bytes, std::string_view where = "guitarml");
/// Reads a GuitarML file. Throws IoError as parse_guitarml, and for a file that cannot be read.
std::unique_ptr<GuitarmlNet> read_guitarml(const std::filesystem::path& path);

}  // namespace ferrite::io
