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

/// The sizes of a NamLstm.
struct NamLstmOptions {
  std::int64_t input_size = 1;
  std::int64_t hidden_size = 1;
  std::int64_t layers = 1;  ///< number of levels of the LSTM
  std::int64_t out_channels = 1;
  static constexpr auto fields =
      attr_list(attr("input_size", &NamLstmOptions::input_size), attr("hidden_size", &NamLstmOptions::hidden_size),
                attr("layers", &NamLstmOptions::layers), attr("out_channels", &NamLstmOptions::out_channels));
};

/// An LSTM with trained initial states, followed by a linear layer: x [B, T, input_size] -> [B, T, out_channels].
/// Parameters: those of `lstm` (nn::Lstm) and `head` (nn::Linear), and `initial_h` and `initial_c` [layers,
/// hidden_size], which start as zeros. Throws ValueError for a reset mask and a carry, which would start from zeros;
/// otherwise as Lstm and Linear.
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
  /// Returns h and c, whose first values are `initial_h` and `initial_c`.
  std::vector<nn::StepState> states(const nn::StepRows& in) const override;
  nn::StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(nn::StepGraph& graph, std::size_t x) const override;
};

/// Models of increasing size for one amplifier, of which one runs: NAM's SlimmableContainer. Parameters are named
/// "<position>.<parameter>".
class NamContainer final : public nn::Layer {
 public:
  explicit NamContainer(nn::Init init = {}) : Layer(std::move(init), nn::detail::OwnSteps()) {}

  /// Appends a model, which `select` takes for sizes below `max_value`. Throws ValueError for a null model and for a
  /// value that is not above that of the model before.
  void add(double max_value, std::unique_ptr<nn::Layer> model);
  std::size_t size() const { return models_.size(); }  ///< returns the number of models
  const nn::Layer& operator[](std::size_t i) const& { return *models_[i].layer; }
  const nn::Layer& operator[](std::size_t i) const&& = delete;
  /// Returns the size below which `select` takes model i.
  double max_value(std::size_t i) const { return models_[i].max_value; }
  /// Selects the model that runs from now on by a size on the scale of `max_value`: the first one whose max_value is
  /// above `size`, or the last one, which is also the default. A stream keeps the model with which it was made.
  void select(double size);
  /// Returns the position of the model that runs.
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

/// The contents of a `.nam` file.
struct NamModel {
  std::unique_ptr<nn::Layer> layer;     ///< nn::Wavenet, NamLstm or NamContainer: x [B, T, 1] -> [B, T, 1]
  std::optional<double> sample_rate{};  ///< in Hz; empty where the file does not say
  std::string version = "0.5.4";        ///< version of the file format
  std::string metadata{};               ///< the file's object `metadata` as JSON; empty without one
};

/// Parses a `.nam` file in memory: LSTM, WaveNet and SlimmableContainer, of versions 0.5 to 0.7. The layer starts as a
/// host that has not run before: convolutions see zeros, an LSTM its initial states. (The reference runs a model on
/// zeros first: to get the same, give the stream as many zeros as `nn::Wavenet::receptive_field` says.) `metadata`,
/// `slimmable` of a WaveNet's arrays and unknown keys of the root do not change numbers; of these only metadata is
/// kept, and not that of a container's models.
///
/// Throws IoError, its message beginning with `where`: not JSON, more than 32 levels, more than 8192 values beside the
/// weights, texts above 64 KiB, keys that occur twice; another version, architecture, activation, or key of a
/// configuration, each by its name; a condition_dsp that is not a WaveNet or has another sample rate; sizes that do not
/// fit each other; a number of weights that does not follow from the sizes. Memory beyond the bytes is below twice
/// their number plus 1 MiB until sizes and weights have been found to agree.
NamModel parse_nam(std::span<const std::byte> bytes, std::string_view where = "nam");
/// Reads a `.nam` file. Throws IoError as parse_nam, and for a file that cannot be read.
NamModel read_nam(const std::filesystem::path& path);

/// Returns a model as the text of a `.nam` file; parsing it gives a model with the same results bit for bit. The two
/// biases of an LSTM become their sum. Throws IoError for another layer, weights that are not f32 or not finite, and
/// metadata that is not a JSON object.
std::string serialize_nam(const NamModel& model);
/// Writes a `.nam` file. Throws IoError as serialize_nam, and where the file cannot be written.
void save_nam(const NamModel& model, const std::filesystem::path& path);

}  // namespace ferrite::io
