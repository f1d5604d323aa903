#pragma once
/// Recurrent layers and cells made of gates: the bases of GRU, LSTM and RNN.
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

/// Returns the present values of the weights of a layer and direction; weights that it does not have are undefined
/// tensors.
RecurrentWeights<Tensor> values_of(const RecurrentWeights<Parameter>& weights);

/// Parameters that hold the first states of a stream, the same for all its rows, [L, H] each; undefined: zeros.
struct InitialStates {
  Parameter h{}, c{};
};

/// The base of recurrent layers whose cells are made of gates. Parameter names and initial values are PyTorch's.
class GatedRecurrent : public Recurrent {
 public:
  /// Returns the weights of a layer and direction. Throws ValueError if there is none.
  const RecurrentWeights<Parameter>& weights(std::int64_t layer = 0, bool reverse = false) const&;
  RecurrentWeights<Parameter> weights(std::int64_t layer = 0, bool reverse = false) const&& {
    return weights(layer, reverse);
  }

  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;
  /// Returns a step for streams with rows `in` whose states begin as the given ones, or null for a bidirectional layer
  /// and with zoneout. A layer that contains this one and learns its first states streams with it.
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
  std::vector<Scan> scans_;                           // in the same order for Form::scan, else empty
  std::vector<Scan> drawn_scans_;                     // with zoneout, for training
};

/// The base of modules that compute one step of a cell: x [B, D], state [B, H] -> state; unbatched [D], [H] -> [H].
/// Parameters are named weight_ih, weight_hh, bias_ih, bias_hh, as in PyTorch's cells.
class RecurrentCell : public Module {
 public:
  const RecurrentWeights<Parameter>& weights() const& { return weights_; }
  RecurrentWeights<Parameter> weights() const&& { return weights_; }
  std::int64_t input_size() const { return weights_.weight_ih.shape()[0]; }
  std::int64_t hidden_size() const { return weights_.weight_hh.shape()[0]; }

 protected:
  RecurrentCell(const detail::GatedCell& cell, std::int64_t input_size, std::int64_t hidden_size, const Init& init,
                bool bias);
  /// Computes the next state; undefined states are zeros. Throws ShapeError or DtypeError for operands that do not fit.
  RecurrentState step(const Tensor& x, const RecurrentState& before) const;

 private:
  RecurrentState advance(const Tensor& x, const RecurrentState& before) const;

  const detail::GatedCell* cell_;
  RecurrentWeights<Parameter> weights_;
};

}  // namespace ferrite::nn
