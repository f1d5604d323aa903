#pragma once
/// Recurrent cells that users write, and the layers made of them.
#include <concepts>
#include <functional>
#include <memory>

#include "ferrite/compile/scan.h"
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/recurrent/recurrent.h"

namespace ferrite::nn {

/// A recurrent cell that a user writes: parameters and one step. `Custom` makes a layer of it that trains at about the
/// speed of the built-in ones (docs/custom-cells.md).
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
  /// The word for it in errors and summaries.
  virtual std::string kind() const = 0;
  /// Whether the state has a second part, c, besides h.
  virtual bool has_memory() const { return false; }
  /// x [B, D], the state before [B, H] -> the state after; its h is the output of the step.
  virtual RecurrentState step(const Tensor& x, const RecurrentState& before) const = 0;
};

struct CustomOptions {
  std::int64_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;  ///< between layers, while training
  /// While training, x and h of every step are multiplied by masks that are drawn once for a sequence, each element
  /// kept with probability 1 - p and then divided by it (Gal and Ghahramani 2016, arXiv 1512.05287).
  double variational_dropout = 0;
  bool batch_first = true;
  Form form = Form::scan;  ///< or unrolled
  Zoneout zoneout{};       ///< with this probability a unit of h stays what it was: see Recurrent
  Zoneout zoneout_cell{};  ///< likewise a unit of c, of a cell that has one
  static constexpr auto fields = attr_list(
      attr("layers", &CustomOptions::layers), attr("bidirectional", &CustomOptions::bidirectional),
      attr("dropout", &CustomOptions::dropout), attr("variational_dropout", &CustomOptions::variational_dropout),
      attr("batch_first", &CustomOptions::batch_first), attr("zoneout", &CustomOptions::zoneout),
      attr("zoneout_cell", &CustomOptions::zoneout_cell));
};

/// A recurrent layer of a user's cell: layers, directions, lengths, resets, states and streams are those of Recurrent.
/// Parameters are those of the cells under "cell_l0.", "cell_l0_reverse.", "cell_l1.", ...
class Custom final : public LayerOf<Custom, CustomOptions, Recurrent> {
 public:
  /// Makes the cell of one layer and direction for an input of so many features.
  using Make = std::function<std::unique_ptr<CustomCell>(std::int64_t input_size, const Init& init)>;

  /// Throws ValueError for a `make` that is null or gives null, for Form::fused and for sizes and options out of range;
  /// what `make` throws.
  Custom(Make make, std::int64_t input_size, std::int64_t hidden_size, const CustomOptions& options = {},
         const Init& init = {});

  /// Throws ValueError for a layer or direction that is not there.
  const CustomCell& cell(std::int64_t layer = 0, bool reverse = false) const&;
  const CustomCell& cell(std::int64_t layer = 0, bool reverse = false) const&& = delete;
  /// One without values of its own; a cell may ask for its seed.
  std::unique_ptr<Custom> another(const Init& init) const;

 private:
  Custom(Make make, std::unique_ptr<CustomCell> first, std::int64_t input_size, std::int64_t hidden_size,
         const CustomOptions& options, const Init& init);
  Dtype dtype() const override { return dtype_; }
  Tensor run_direction(std::size_t at, const Tensor& x, const SequenceOptions& options,
                       RecurrentState& state) const override;
  /// Throws ValueError while training with variational dropout: its masks are those of a whole sequence.
  RecurrentState run_step(std::size_t at, const Tensor& x, const RecurrentState& before) const override;

  Make make_;
  Dtype dtype_;
  std::vector<std::unique_ptr<CustomCell>> cells_;  // layer by layer, forward before backward
  std::vector<Scan> scans_, drawn_scans_;           // the latter with zoneout, for training
  std::vector<Dropout> masks_;                      // of variational dropout
};

/// A layer of cells C(input_size, hidden_size, init).
template <std::derived_from<CustomCell> C>
Custom custom(std::int64_t input_size, std::int64_t hidden_size, const CustomOptions& options = {},
              const Init& init = {}) {
  const Custom::Make make = [hidden_size](std::int64_t D, const Init& i) {
    return std::make_unique<C>(D, hidden_size, i);
  };
  return Custom(make, input_size, hidden_size, options, init);
}

/// A GRU whose sums are normalised over the units of each gate, with scale and shift (Ba, Kiros and Hinton 2016, arXiv
/// 1607.06450):
///
///   r  = sigmoid(LN(x W_ir) + LN(h W_hr)),  z = sigmoid(LN(x W_iz) + LN(h W_hz))
///   n  = tanh(LN(x W_in) + r * LN(h W_hn)),  h' = n + z * (h - n)
///
/// Parameters: weight_ih [D, 3H], weight_hh [H, 3H] (in files transposed), scale_ih, shift_ih, scale_hh, shift_hh [3H].
class LayerNormGruCell final : public CustomCell {
 public:
  /// Throws ValueError for sizes below 1.
  LayerNormGruCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {});
  std::string kind() const override { return "layer_norm_gru"; }
  RecurrentState step(const Tensor& x, const RecurrentState& before) const override;

 private:
  std::int64_t H_;
  Parameter weight_ih_, weight_hh_, scale_ih_, shift_ih_, scale_hh_, shift_hh_;
};

}  // namespace ferrite::nn
