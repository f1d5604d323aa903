#pragma once
#include <vector>

#include "ferrite/compile/scan.h"
#include "ferrite/nn/layers.h"

/// What the recurrent layers share: parameters, layers and directions, lengths, resets and states. A kind of cell adds
/// only its step (nn/gru.h, nn/lstm.h, nn/rnn.h).
namespace ferrite::detail {
enum class CellType : std::uint8_t;
}

namespace ferrite::nn {

struct RecurrentResult {
  Tensor output;   ///< [B, T, H], of two directions [B, T, 2H]; time first, if the layer is so
  Tensor state{};  ///< h after the last (valid) step [B, H]; of several layers or directions [L * 2, B, H]
  Tensor cell{};   ///< the LSTM's memory c, likewise
};

using ferrite::RecurrentState;

/// Parameters of one layer in one direction. G gates side by side; D features come in.
struct RecurrentWeights {
  Parameter weight_ih;    ///< [D, G H], in files [G H, D]
  Parameter weight_hh;    ///< [H, G H], in files [G H, H]; of an LSTM with projection [P, G H]
  Parameter bias_ih{};    ///< [G H], or empty
  Parameter bias_hh{};    ///< [G H], or empty
  Parameter weight_hr{};  ///< the LSTM's projection [H, P], in files [P, H], or empty
};

/// The values of these, as one call reads them; undefined where there are none.
SequenceWeights values_of(const RecurrentWeights& weights);

/// How a recurrent layer is run; all give the same values, and gradients within rounding.
enum class Form : std::uint8_t {
  fused,     ///< one operation for all steps of a layer and direction (tensor/ops.h: gru_sequence)
  unrolled,  ///< step by step in operations: the definition
  scan,      ///< one step in operations, traced once and stepped through (compile/scan.h): what any cell can have
};

/// A kind of recurrent cell: what its step computes from i = x W_ih + b_ih [B, G H] and the state before.
struct CellKind {
  using Step = RecurrentState (*)(const Tensor& i, const RecurrentState& before, const SequenceWeights& w);
  using Sequence = Tensors (*)(const Tensor& x, const RecurrentState& before, const SequenceWeights& w,
                               const SequenceOptions& options);
  std::string_view name;  ///< "gru"
  int gates;
  bool has_memory;  ///< whether there is a c
  Step step;
  Sequence sequence;                 ///< all steps as one operation
  ferrite::detail::CellType kernel;  ///< what runs it
};

/// Sizes and options that all kinds know.
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

  std::int64_t directions() const { return bidirectional ? 2 : 1; }
  /// Width of h.
  std::int64_t state_size() const { return proj_size ? proj_size : hidden_size; }
};

/// A recurrent layer. Semantics, names and initial values are PyTorch's.
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
class Recurrent : public Layer {
 public:
  const RecurrentSizes& sizes() const { return sizes_; }
  std::int64_t input_size() const { return sizes_.input_size; }
  std::int64_t hidden_size() const { return sizes_.hidden_size; }
  /// Throws ValueError for a layer or direction that is not there.
  const RecurrentWeights& weights(std::int64_t layer = 0, bool reverse = false) const;

  std::string kind() const override { return std::string(cell_.name); }
  StepInput step_input() const override;
  std::unique_ptr<Step> make_step(const StepRows& in) const override;
  bool causal() const override { return !sizes_.bidirectional; }
  /// The output alone.
  Tensor forward(const Tensor& x, const Context& context) const override { return run(x, context).output; }
  /// Output and last states. Throws ShapeError for another shape of x, states, lengths or mask, for T = 0 and for
  /// lengths outside 1..T; DtypeError for another dtype than the weights'; ValueError for a carry of two directions.
  RecurrentResult run(const Tensor& x, const Context& context = {}) const;

 protected:
  /// Throws ValueError for sizes below 1, dropout outside [0, 1] and a projection that is not smaller than H.
  Recurrent(const CellKind& cell, const RecurrentSizes& sizes, const Init& init);
  /// Gives a new layer of equal sizes the values and modes of this one.
  std::unique_ptr<Layer> copy_to(std::unique_ptr<Recurrent> to) const;
  Init like() const { return {0, {}, weights_[0].weight_ih.dtype()}; }

 private:
  /// One direction of one layer: the outputs; `state` goes from the initial to the last one.
  Tensor run_direction(std::size_t at, const Tensor& x, const SequenceOptions& options, RecurrentState& state) const;
  /// The state cells of a carry, empty without one.
  std::vector<State> carried_states(const Context& context, std::int64_t batch) const;

  CellKind cell_;
  RecurrentSizes sizes_;
  std::vector<RecurrentWeights> weights_;  // layer by layer, forward before backward
  std::vector<Scan> scans_;                // the same for Form::scan, else none
  std::vector<Dropout> dropouts_;          // after all layers but the last
};

/// One step of a kind as a module: x [B, D], state [B, H] -> state; unbatched [D], [H] -> [H]. Parameters are named
/// weight_ih, weight_hh, bias_ih, bias_hh, as PyTorch's cells.
class RecurrentCell : public Module {
 public:
  const RecurrentWeights& weights() const { return weights_; }
  std::int64_t input_size() const { return weights_.weight_ih.shape()[0]; }
  std::int64_t hidden_size() const { return weights_.weight_hh.shape()[0]; }

 protected:
  RecurrentCell(const CellKind& cell, std::int64_t input_size, std::int64_t hidden_size, const Init& init, bool bias);
  /// Undefined states are zeros. Throws ShapeError, DtypeError.
  RecurrentState step(const Tensor& x, const RecurrentState& before) const;

 private:
  CellKind cell_;
  RecurrentWeights weights_;
};

}  // namespace ferrite::nn
