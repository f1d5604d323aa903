#pragma once
/// Recurrent cells that users write, and layers made of them.
#include <concepts>
#include <functional>
#include <memory>

#include "ferrite/compile/scan.h"
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/recurrent/recurrent.h"

namespace ferrite::nn {

/// The base of recurrent cells that users write: parameters and one step. `Custom` makes a layer of it that trains
/// about as fast as the built-in ones (docs/custom-cells.md).
///
///   struct MinimalGated final : nn::CustomCell {
///     Parameter w_x, w_h, b;
///     MinimalGated(std::int64_t D, std::int64_t H, const nn::Init& init) {
///       const nn::Fill fill = nn::init::xavier_uniform();
///       w_x = parameter("weight_x", {D, 2 * H}, fill, init);
///       w_h = parameter("weight_h", {H, 2 * H}, fill, init);
///       b = parameter("bias", {2 * H}, nn::init::constant(0), init);
///     }
///     std::string kind() const override { return "minimal_gated"; }
///     RecurrentState step(const Tensor& x, const RecurrentState& s) const override { ... return {h}; }
///   };
class CustomCell : public Module {
 public:
  /// Returns the kind of the cell for errors and summaries.
  virtual std::string kind() const = 0;
  /// Returns whether the state has a second part, c, besides h.
  virtual bool has_memory() const { return false; }
  /// Computes the state [B, H] after a step from x [B, D] and the state before; its h is the output of the step.
  virtual RecurrentState step(const Tensor& x, const RecurrentState& before) const = 0;
};

/// Options of a Custom layer: its layers, directions, dropout and zoneout.
struct CustomOptions {
  std::int64_t layers = 1;  ///< number of layers, each of which reads the outputs of the one before
  bool bidirectional = false;
  double dropout = 0;  ///< probability of dropout between layers, while training
  /// Probability p of dropping elements of x and h with masks that are drawn once per sequence while training. Elements
  /// are kept with probability 1 - p and then divided by it (Gal and Ghahramani 2016, arXiv 1512.05287).
  double variational_dropout = 0;
  bool batch_first = true;  ///< whether x is [B, T, D] and y [B, T, H]; else both are [T, B, ...]
  Form form = Form::scan;   ///< Form::scan or Form::unrolled
  Zoneout zoneout{};        ///< the probability with which a unit of h keeps its value: see Recurrent
  Zoneout zoneout_cell{};   ///< the probability with which a unit of c keeps its value, for cells that have one
  static constexpr auto fields = attr_list(
      attr("layers", &CustomOptions::layers), attr("bidirectional", &CustomOptions::bidirectional),
      attr("dropout", &CustomOptions::dropout), attr("variational_dropout", &CustomOptions::variational_dropout),
      attr("batch_first", &CustomOptions::batch_first), attr("zoneout", &CustomOptions::zoneout),
      attr("zoneout_cell", &CustomOptions::zoneout_cell));
};

/// A recurrent layer of a user's cells, with the layers, directions, lengths, resets, states and streams of Recurrent.
/// Its parameters are those of the cells, under "cell_l0.", "cell_l0_reverse.", "cell_l1.", ...
class Custom final : public LayerOf<Custom, CustomOptions, Recurrent> {
 public:
  /// A function that makes the cell of one layer and direction for an input of `input_size` features.
  using Make = std::function<std::unique_ptr<CustomCell>(std::int64_t input_size, const Init& init)>;

  /// Creates the layer and calls `make` once for each layer and direction. Throws ValueError for a `make` that is null
  /// or returns null, for Form::fused and for sizes and options out of range, and whatever `make` throws.
  Custom(Make make, std::int64_t input_size, std::int64_t hidden_size, const CustomOptions& options = {},
         const Init& init = {});

  /// Returns the cell of a layer and direction. Throws ValueError if there is none.
  const CustomCell& cell(std::int64_t layer = 0, bool reverse = false) const&;
  const CustomCell& cell(std::int64_t layer = 0, bool reverse = false) const&& = delete;
  /// Returns a layer with the same cells and options, whose values `clone` fills. If all parameters of this one have
  /// values, it has the seed 0, because a cell may ask for one.
  std::unique_ptr<Custom> another(const Init& init) const;

 private:
  Custom(Make make, std::unique_ptr<CustomCell> first, std::int64_t input_size, std::int64_t hidden_size,
         const CustomOptions& options, const Init& init);
  Dtype dtype() const override { return dtype_; }
  Tensor run_direction(std::size_t at, const Tensor& x, const SequenceOptions& options,
                       RecurrentState& state) const override;
  /// Computes one step. Throws ValueError while training with variational dropout, which draws masks per sequence.
  RecurrentState run_step(std::size_t at, const Tensor& x, const RecurrentState& before) const override;

  Make make_;
  Dtype dtype_;
  std::vector<std::unique_ptr<CustomCell>> cells_;  // layer by layer, forward before backward
  std::vector<Scan> scans_, drawn_scans_;           // the latter with zoneout, for training
  std::vector<Dropout> masks_;                      // the masks of variational dropout
};

/// Creates a recurrent layer whose cells, one for each layer and direction, are C(features of its input, hidden_size,
/// init).
template <std::derived_from<CustomCell> C>
Custom custom(std::int64_t input_size, std::int64_t hidden_size, const CustomOptions& options = {},
              const Init& init = {}) {
  const Custom::Make make = [hidden_size](std::int64_t D, const Init& i) {
    return std::make_unique<C>(D, hidden_size, i);
  };
  return Custom(make, input_size, hidden_size, options, init);
}

/// The cell of a GRU whose sums are normalised over the units of each gate, with scale and shift (Ba, Kiros and Hinton
/// 2016, arXiv 1607.06450):
///
///   r  = sigmoid(LN(x W_ir) + LN(h W_hr)),  z = sigmoid(LN(x W_iz) + LN(h W_hz))
///   n  = tanh(LN(x W_in) + r * LN(h W_hn)),  h' = n + z * (h - n)
///
/// Parameters: weight_ih [D, 3H], weight_hh [H, 3H] (transposed in files), scale_ih, shift_ih, scale_hh, shift_hh [3H].
class LayerNormGruCell final : public CustomCell {
 public:
  /// Creates a cell. Throws ValueError for sizes below 1.
  LayerNormGruCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {});
  std::string kind() const override { return "layer_norm_gru"; }
  RecurrentState step(const Tensor& x, const RecurrentState& before) const override;

 private:
  std::int64_t H_;
  Parameter weight_ih_, weight_hh_, scale_ih_, shift_ih_, scale_hh_, shift_hh_;
};

}  // namespace ferrite::nn
