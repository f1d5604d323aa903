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

/// Parameters of one layer in one direction. G gates side by side; D features come in.
struct RecurrentWeights {
  Parameter weight_ih;    ///< [D, G H], in files [G H, D]
  Parameter weight_hh;    ///< [H, G H], in files [G H, H]; of an LSTM with projection [P, G H]
  Parameter bias_ih{};    ///< [G H], or empty
  Parameter bias_hh{};    ///< [G H], or empty
  Parameter weight_hr{};  ///< the LSTM's projection [H, P], in files [P, H], or empty
  Parameter weight_ch{};  ///< weights of single units [V H]: an LSTM's peepholes [3H]; or empty
};

/// The values of these, as one call reads them; undefined where there are none.
SequenceWeights values_of(const RecurrentWeights& weights);

/// A recurrent layer of one of these cells. Names and initial values are PyTorch's.
class GatedRecurrent : public Recurrent {
 public:
  /// Throws ValueError for a layer or direction that is not there.
  const RecurrentWeights& weights(std::int64_t layer = 0, bool reverse = false) const&;
  RecurrentWeights weights(std::int64_t layer = 0, bool reverse = false) const&& { return weights(layer, reverse); }

  std::unique_ptr<Step> make_step(const StepRows& in) const override;

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
  std::vector<RecurrentWeights> weights_;  // layer by layer, forward before backward
  std::vector<Scan> scans_;                // the same for Form::scan, else none
  std::vector<Scan> drawn_scans_;          // and with zoneout, for training
};

/// One step of a cell as a module: x [B, D], state [B, H] -> state; unbatched [D], [H] -> [H]. Parameters are named
/// weight_ih, weight_hh, bias_ih, bias_hh, as PyTorch's cells.
class RecurrentCell : public Module {
 public:
  const RecurrentWeights& weights() const& { return weights_; }
  RecurrentWeights weights() const&& { return weights_; }
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
  RecurrentWeights weights_;
};

}  // namespace ferrite::nn
