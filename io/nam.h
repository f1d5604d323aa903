#pragma once
/// The `.nam` files of the Neural Amp Modeler: models of amplifiers, read, trained further, streamed and written.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/lstm.h"

/// `.nam`: JSON of an architecture, its sizes and one list of weights (github.com/sdatkinson/NeuralAmpModelerCore).
namespace ferrite::io {

struct NamLstmOptions {
  std::int64_t input_size = 1;
  std::int64_t hidden_size = 1;
  std::int64_t layers = 1;
  std::int64_t out_channels = 1;
  static constexpr auto fields =
      attr_list(attr("input_size", &NamLstmOptions::input_size), attr("hidden_size", &NamLstmOptions::hidden_size),
                attr("layers", &NamLstmOptions::layers), attr("out_channels", &NamLstmOptions::out_channels));
};

/// An LSTM that begins from states of its own, and a product behind it: x [B, T, input_size] -> [B, T, out_channels].
/// Parameters: those of `lstm` (nn::Lstm) and `head` (nn::Linear), and `initial_h` and `initial_c` [layers,
/// hidden_size], which start as zeros; all of them train. Throws ValueError for a reset mask and a carry, which would
/// begin from zeros; else as Lstm and Linear.
class NamLstm final : public nn::LayerOf<NamLstm, NamLstmOptions> {
 public:
  static constexpr auto name = "nam_lstm";
  /// Throws ValueError for sizes below 1.
  explicit NamLstm(const NamLstmOptions& options, const nn::Init& init = {});

  nn::Lstm lstm;
  nn::Linear head;
  Parameter initial_h, initial_c;

  Tensor forward(const Tensor& x, const nn::Context& context) const override;
  bool causal() const override { return true; }
  nn::StepInput step_input() const override { return lstm.step_input(); }
  /// h and c, which begin with the initial ones.
  std::vector<nn::StepState> states(const nn::StepRows& in) const override;
  nn::StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(nn::StepGraph& graph, std::size_t x) const override;
};

/// Models of rising size for one amplifier, one of which runs: SlimmableContainer. Parameters are named
/// "<position>.<parameter>".
class NamContainer final : public nn::Layer {
 public:
  explicit NamContainer(nn::Init init = {}) : Layer(std::move(init)) {}

  /// Appends a model for sizes below `max_value`. Throws ValueError for a null one and for a value that is not above
  /// the one before.
  void add(double max_value, std::unique_ptr<nn::Layer> model);
  std::size_t size() const { return models_.size(); }
  const nn::Layer& operator[](std::size_t i) const& { return *models_[i].layer; }
  const nn::Layer& operator[](std::size_t i) const&& = delete;
  double max_value(std::size_t i) const { return models_[i].max_value; }
  /// The first model whose max_value is above the size runs from now on, else the last one, which runs at first. A
  /// stream keeps the one with which it was made.
  void select(double size);
  std::size_t selected() const { return selected_; }

  std::string kind() const override { return "nam_container"; }
  bool causal() const override;
  Tensor forward(const Tensor& x, const nn::Context& context) const override;
  nn::StepInput step_input() const override;
  std::vector<nn::StepState> states(const nn::StepRows& in) const override;
  nn::StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(nn::StepGraph& graph, std::size_t x) const override;
  std::unique_ptr<nn::Layer> clone() const override;

 private:
  struct Model {
    double max_value;
    std::unique_ptr<nn::Layer> layer;
  };
  bool only_chains() const override { return true; }
  const nn::Layer& running() const;

  std::vector<Model> models_;
  std::size_t selected_ = 0;
};

/// What a file holds.
struct NamModel {
  std::unique_ptr<nn::Layer> layer;     ///< nn::Wavenet, NamLstm or NamContainer: x [B, T, 1] -> [B, T, 1]
  std::optional<double> sample_rate{};  ///< in Hz
  std::string version = "0.5.4";
  std::string metadata{};  ///< the file's object `metadata` as JSON; empty without one
};

/// Reads LSTM, WaveNet and SlimmableContainer, of versions 0.5 to 0.7. The layer begins as a file's first sample does
/// in a host that has not run before: convolutions see zeros, an LSTM its initial states. (The reference runs a model
/// on zeros first: give the stream as many zeros as `nn::Wavenet::receptive_field` says to have the same.) `metadata`,
/// `slimmable` of a WaveNet's arrays and what stands beside the known keys of the root do not change numbers; of these
/// metadata is kept, that of a container's models is not.
///
/// Throws IoError, its message beginning with `where`: not JSON, more than 32 levels, more than 8192 values beside the
/// weights, texts above 64 KiB, keys that occur twice; another version, architecture, activation, or key of a
/// configuration, each by its name; a condition_dsp that is no WaveNet or has another sample rate; sizes that do not
/// fit each other; another number of weights than the sizes say. Memory beyond the bytes is below twice their number
/// and 1 MiB until sizes and weights have been found to agree.
NamModel parse_nam(std::span<const std::byte> bytes, std::string_view where = "nam");
NamModel read_nam(const std::filesystem::path& path);

/// The same for what parse_nam gives: reading it again gives the same bits. The two biases of an LSTM become their sum.
/// Throws IoError for another layer, weights that are not f32 or not finite, and metadata that is no JSON object.
std::string serialize_nam(const NamModel& model);
void save_nam(const NamModel& model, const std::filesystem::path& path);

}  // namespace ferrite::io
