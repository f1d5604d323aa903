#pragma once
/// The base class of recurrent layers: a cell run over sequences, in layers and directions.
#include <span>
#include <vector>

#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/form.h"
#include "ferrite/nn/recurrent/steps.h"

namespace ferrite::nn {

struct RecurrentResult {
  Tensor output;   ///< [B, T, H], of two directions [B, T, 2H]; time first, if the layer is so
  Tensor state{};  ///< h after the last (valid) step [B, H]; of several layers or directions [L * 2, B, H]
  Tensor cell{};   ///< the second state of a cell that has one (the LSTM's memory c), likewise
};

/// Sizes and options that all recurrent layers know.
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

  /// Whether units of the state may stay what they were.
  bool zones() const { return zoneout > 0 || zoneout_cell > 0; }
  std::int64_t directions() const { return bidirectional ? 2 : 1; }
  /// Width of h.
  std::int64_t state_size() const { return proj_size ? proj_size : hidden_size; }
};

/// A recurrent layer: a cell run over sequences, in layers and directions. Semantics are PyTorch's.
///
/// x [B, T, D] -> [B, T, H] ([T, B, D] -> [T, B, H] with batch_first = false; unbatched [T, D] -> [T, H], states
/// without the batch axis then). Between layers come dropout (while training) and, of two directions, forward and
/// backward outputs side by side: [.., 2H]. The order of states is layer by layer, in each forward, then backward.
///
/// context.lengths i64 [B] (sorted or not) is PyTorch's packed sequence: outputs past the end are 0, the state is the
/// one at the last valid step, the backward direction starts there, no gradient reaches the padding, whatever it
/// holds. context.reset_mask bool [B, T]: before a step where it is set the state starts anew from 0, and no gradient
/// crosses (backward: after it). context.state, context.cell: initial states, zeros if undefined. context.carry: the
/// states are taken from there and left there instead.
///
/// With zoneout (Krueger et al. 2016, arXiv 1606.01305) a unit of h keeps its former value at a step with probability
/// z, drawn for each unit, row and step while training; in evaluation h becomes the expectation z h + (1 - z) h', where
/// h' is what the cell gives; so does c of a cell that has one, by a probability of its own (h' is made of the c that
/// the cell gives). Draws are those of `Dropout`, of modules zoneout_l0, zoneout_cell_l0, ...: the same for any number
/// of threads, another one in each call. Such a layer is never fused: Form::fused is taken as Form::scan, and streams
/// run the program of its step.
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
  /// The output alone.
  Tensor forward(const Tensor& x, const Context& context) const override { return run(x, context).output; }
  /// Output and last states. Throws ShapeError for another shape of x, states, lengths or mask, for T = 0 and for
  /// lengths outside 1..T; DtypeError for another dtype than the weights'; ValueError for a carry of two directions and
  /// for an initial memory of a cell that has none.
  RecurrentResult run(const Tensor& x, const Context& context = {}) const;
  StepInput step_input() const override { return {sizes_.input_size, dtype()}; }
  /// h [layers, B, H], then c of a cell that has one. None of a layer of two directions.
  std::vector<StepState> states(const StepRows& in) const override;
  /// Dropout between layers is drawn for each step while training. Throws ShapeError, DtypeError for an x that does not
  /// fit.
  StepResult step(const Tensor& x, const Tensors& states) const override;

 protected:
  /// Throws ValueError for sizes below 1, probabilities outside [0, 1], zoneout of a c that there is not, and a
  /// projection that is not smaller than H.
  Recurrent(std::string name, bool has_memory, const RecurrentSizes& sizes, const Init& init);
  /// Of a layer whose `add_steps` adds all steps of streams.
  Recurrent(std::string name, bool has_memory, const RecurrentSizes& sizes, const Init& init, detail::OwnSteps);
  bool has_memory() const { return has_memory_; }
  /// Features that come into a layer.
  std::int64_t features_into(std::int64_t layer) const {
    return layer == 0 ? sizes_.input_size : sizes_.state_size() * sizes_.directions();
  }

  /// What one direction takes with zoneout: while training the masks of this call stand behind the features of x
  /// [..., D], 0 where a unit keeps its value, and the step made by `zoned` takes them off; else x itself.
  Tensor with_masks(std::size_t at, const Tensor& x) const;
  /// A step of the cell with zoneout, by masks behind the features of its x (`drawn`) or by expectation.
  static RecurrentStep zoned(RecurrentStep step, const RecurrentSizes& sizes, bool drawn);

  /// "_l1_reverse", as the names of what belongs to a layer and direction end.
  static std::string suffix_of(std::int64_t layer, bool reverse);
  /// Where it stands, layer by layer, forward before backward. Throws ValueError for one that is not there.
  std::size_t index_of(const char* what, std::int64_t layer, bool reverse) const;

  virtual Dtype dtype() const = 0;
  /// One direction of one layer (counted layer by layer, forward before backward): the outputs; `state` goes from the
  /// initial to the last one.
  virtual Tensor run_direction(std::size_t at, const Tensor& x, const SequenceOptions& options,
                               RecurrentState& state) const = 0;
  /// One step of it: x [B, D], the state before -> the state after.
  virtual RecurrentState run_step(std::size_t at, const Tensor& x, const RecurrentState& before) const = 0;

 private:
  void set_up(const Init& init);
  RecurrentResult run_layers(const Tensor& x, const Context& context) const;
  /// The variables of a carry for this layer, empty without one.
  std::span<const State> states_in(const Context& context, std::int64_t batch) const;

  std::string name_;
  Label lengths_name_;  ///< what an error calls a length
  bool has_memory_;
  RecurrentSizes sizes_;
  std::vector<Dropout> dropouts_;           // after all layers but the last
  std::vector<Dropout> zones_h_, zones_c_;  // the masks of zoneout, by layer and direction
};

}  // namespace ferrite::nn
