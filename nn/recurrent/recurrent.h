#pragma once
/// The base class of recurrent layers: a cell run over sequences, in layers and directions.
#include <span>
#include <vector>

#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/form.h"
#include "ferrite/nn/recurrent/steps.h"

namespace ferrite::nn {

/// The result of `run` of a layer over sequences: its output and its last states.
struct RecurrentResult {
  Tensor output;   ///< [B, T, H], of a bidirectional layer [B, T, 2H]; [T, B, ...] with batch_first = false
  Tensor state{};  ///< h after the last (valid) step, [B, H]; of several layers or directions [L * directions, B, H]
  Tensor cell{};   ///< the memory c of an LSTM after the last (valid) step, shaped like `state`; else undefined
};

/// Sizes and options that all recurrent layers have, with the meanings of GruOptions and LstmOptions.
struct RecurrentSizes {
  std::int64_t input_size = 1;
  std::int64_t hidden_size = 1;
  std::int64_t layers = 1;
  bool bidirectional = false;
  bool bias = true;
  double dropout = 0;
  bool batch_first = true;
  std::int64_t proj_size = 0;
  Form form = Form::fused;
  bool recompute = false;
  Zoneout zoneout{};
  Zoneout zoneout_cell{};

  /// Returns whether the layer has zoneout.
  bool zones() const { return zoneout > 0 || zoneout_cell > 0; }
  std::int64_t directions() const { return bidirectional ? 2 : 1; }
  /// Returns the width of h: the projection's, or H without one.
  std::int64_t state_size() const { return proj_size ? proj_size : hidden_size; }
};

/// A recurrent layer: a cell run over sequences, in layers and directions, with PyTorch's semantics.
///
/// x [B, T, D] -> [B, T, H]; [T, B, D] -> [T, B, H] with batch_first = false; unbatched [T, D] -> [T, H], and states
/// have no batch axis. Dropout acts between layers while training. A bidirectional layer concatenates forward and
/// backward outputs: [.., 2H]. States are ordered layer by layer, the forward before the backward one.
///
/// context.lengths i64 [B], sorted or not, acts like PyTorch's packed sequence: outputs past the end are 0, the state
/// is that of the last valid step, the backward direction starts there, and no gradient reaches the padding, whatever
/// it holds. context.reset_mask bool [B, T]: before a step where it is set, the state starts over from 0 and no
/// gradient crosses (backward: after it). context.state and context.cell are the initial states, zeros if undefined.
/// context.carry: the layer takes its states from there and leaves them there instead.
///
/// With zoneout (Krueger et al. 2016, arXiv 1606.01305) a unit of h keeps its former value at a step with probability
/// z, drawn for each unit, row and step while training; in evaluation h becomes the expectation z h + (1 - z) h', where
/// h' is the cell's result. c has its own probability (h' is computed from the cell's c, before zoneout). The draws are
/// those of `Dropout` modules zoneout_l0, zoneout_cell_l0, ...: the same for any number of threads, different in each
/// call. Such a layer is never fused: Form::fused becomes Form::scan, and streams run the program of its step.
class Recurrent : public Layer {
 public:
  const RecurrentSizes& sizes() const& { return sizes_; }
  RecurrentSizes sizes() const&& { return sizes_; }
  std::int64_t input_size() const { return sizes_.input_size; }
  std::int64_t hidden_size() const { return sizes_.hidden_size; }

  std::string kind() const override { return name_; }
  bool causal() const override { return !sizes_.bidirectional; }
  bool takes_state() const override { return true; }
  bool reads_lengths() const override { return true; }
  /// Returns the output of `run` without the states.
  Tensor forward(const Tensor& x, const Context& context) const override { return run(x, context).output; }
  /// Returns the output and the last states. Throws ShapeError for another shape of x, states, lengths or mask, for
  /// T = 0 and for lengths outside 1..T; DtypeError for another dtype than the weights'; ValueError for a carry in a
  /// bidirectional layer, for both an initial state and a carry, and for an initial memory of a cell that has none.
  RecurrentResult run(const Tensor& x, const Context& context = {}) const;
  StepInput step_input() const override { return {sizes_.input_size, dtype()}; }
  /// Describes the states of a stream: h [layers, B, H], then c if the cell has one; a bidirectional layer has none.
  std::vector<StepState> states(const StepRows& in) const override;
  /// Computes one step of all layers; dropout between layers is drawn for each step while training. Throws ShapeError
  /// or DtypeError for an x that does not fit.
  StepResult step(const Tensor& x, const Tensors& states) const override;

 protected:
  /// Creates a layer. Throws ValueError for sizes below 1, probabilities outside [0, 1], zoneout of c in a cell without
  /// c, and a projection that is not smaller than H.
  Recurrent(std::string name, bool has_memory, const RecurrentSizes& sizes, const Init& init);
  /// Creates a layer whose `add_steps` adds all steps of streams.
  Recurrent(std::string name, bool has_memory, const RecurrentSizes& sizes, const Init& init, detail::OwnSteps);
  bool has_memory() const { return has_memory_; }
  /// Returns the number of features of a layer's input.
  std::int64_t features_into(std::int64_t layer) const {
    return layer == 0 ? sizes_.input_size : sizes_.state_size() * sizes_.directions();
  }

  /// Returns the input of a direction with zoneout. While training, the masks of this call follow the features of x
  /// [..., D], 0 where a unit keeps its value, and the step made by `zoned` removes them; otherwise it is x itself.
  Tensor with_masks(std::size_t at, const Tensor& x) const;
  /// Returns a step of the cell with zoneout, by the masks after the features of its x (`drawn`) or by expectation.
  static RecurrentStep zoned(RecurrentStep step, const RecurrentSizes& sizes, bool drawn);

  /// Returns the suffix of names that belong to a layer and direction, such as those of parameters: "_l1",
  /// "_l1_reverse".
  static std::string suffix_of(std::int64_t layer, bool reverse);
  /// Returns the position of a layer and direction, layer by layer, forward before backward. Throws ValueError if there
  /// is none.
  std::size_t index_of(const char* what, std::int64_t layer, bool reverse) const;

  virtual Dtype dtype() const = 0;
  /// Runs one direction of one layer (numbered layer by layer, forward before backward) and returns its outputs;
  /// `state` changes from the initial state to the last one.
  virtual Tensor run_direction(std::size_t at, const Tensor& x, const SequenceOptions& options,
                               RecurrentState& state) const = 0;
  /// Computes one step of one direction of one layer: x [B, D] and the state before -> the state after.
  virtual RecurrentState run_step(std::size_t at, const Tensor& x, const RecurrentState& before) const = 0;

 private:
  void set_up(const Init& init);
  RecurrentResult run_layers(const Tensor& x, const Context& context) const;
  /// Returns the variables of this layer in the context's carry, none without a carry.
  std::span<const State> states_in(const Context& context, std::int64_t batch) const;

  std::string name_;
  Label lengths_name_;  ///< the name of a length in errors
  bool has_memory_;
  RecurrentSizes sizes_;
  std::vector<Dropout> dropouts_;           // after all layers but the last
  std::vector<Dropout> zones_h_, zones_c_;  // the masks of zoneout, by layer and direction
};

}  // namespace ferrite::nn
