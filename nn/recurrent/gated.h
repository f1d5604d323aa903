#pragma once
/// Recurrent layers and cells made of gates: what GRU, LSTM and RNN share.
#include <vector>

#include "ferrite/compile/scan.h"
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/recurrent/recurrent.h"

/// The layers whose cells are gates of x W_ih + b_ih and h W_hh + b_hh: nn/recurrent/gru.h, nn/recurrent/lstm.h,
/// nn/recurrent/peephole_lstm.h, nn/recurrent/rnn.h.
namespace ferrite::nn {

namespace detail {
struct GatedCell;
}

/// Reads the values of a layer's weights for one call: undefined tensors where there are none.
RecurrentWeights<Tensor> values_of(const RecurrentWeights<Parameter>& weights);

/// What the states of a stream begin with, [L, H] each; undefined: with zeros.
struct InitialStates {
  Parameter h{}, c{};
};

/// A recurrent layer of one of these cells. Names and initial values are PyTorch's.
class GatedRecurrent : public Recurrent {
 public:
  /// Throws ValueError for a layer or direction that is not there.
  const RecurrentWeights<Parameter>& weights(std::int64_t layer = 0, bool reverse = false) const&;
  RecurrentWeights<Parameter> weights(std::int64_t layer = 0, bool reverse = false) const&& {
    return weights(layer, reverse);
  }

  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;
  /// The same from states of another layer's: how a layer streams that begins this one from parameters of its own.
  std::unique_ptr<Step> step_from(const InitialStates& initial, const StepRows& in) const;

 protected:
  GatedRecurrent(const detail::GatedCell& cell, const RecurrentSizes& sizes, const Init& init);

 private:
  Dtype dtype() const override {
    (void)whole();
    return weights_[0].weight_ih.dtype();
  }
  Tensor run_direction(std::size_t at, const Tensor& x, const SequenceOptions& options,
                       RecurrentState& state) const override;
  RecurrentState run_step(std::size_t at, const Tensor& x, const RecurrentState& before) const override;

  const detail::GatedCell* cell_;
  std::vector<RecurrentWeights<Parameter>> weights_;  // layer by layer, forward before backward
  std::vector<Scan> scans_;                           // the same for Form::scan, else none
  std::vector<Scan> drawn_scans_;                     // and with zoneout, for training
};

/// One step of a cell as a module: x [B, D], state [B, H] -> state; unbatched [D], [H] -> [H]. Parameters are named
/// weight_ih, weight_hh, bias_ih, bias_hh, as PyTorch's cells.
class RecurrentCell : public Module {
 public:
  const RecurrentWeights<Parameter>& weights() const& { return weights_; }
  RecurrentWeights<Parameter> weights() const&& { return weights_; }
  std::int64_t input_size() const { return weights_.weight_ih.shape()[0]; }
  std::int64_t hidden_size() const { return weights_.weight_hh.shape()[0]; }

 protected:
  RecurrentCell(const detail::GatedCell& cell, std::int64_t input_size, std::int64_t hidden_size, const Init& init,
                bool bias);
  /// Undefined states are zeros. Throws ShapeError, DtypeError.
  RecurrentState step(const Tensor& x, const RecurrentState& before) const;

 private:
  RecurrentState advance(const Tensor& x, const RecurrentState& before) const;

  const detail::GatedCell* cell_;
  RecurrentWeights<Parameter> weights_;
};

}  // namespace ferrite::nn
