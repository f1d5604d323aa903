#pragma once
/// The GRU layer and its cell.
#include "ferrite/nn/recurrent/gated.h"

namespace ferrite::nn {

/// Computes one step of a GRU (arXiv 1406.1078, PyTorch's form) from i = x W_ih + b_ih [B, 3H], columns r, z, n; h
/// [B, H]; w_hh [H, 3H] and b_hh [3H], or undefined -> h' [B, H]. Composed of operations, it defines the GRU.
Tensor gru_step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh);
/// Computes one step of a GRU with the reset gate before the product: n = tanh(i_n + (r h) W_hn + b_hn), as in Cho's
/// first form and Keras's `reset_after=False`. Operands and result are those of gru_step.
Tensor gru_step_reset_before(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh);
/// Runs all steps of a GRU layer in one direction as one operation: x [T, B, D] (or batch first), h0 [B, H] -> {y
/// [T, B, H], last h [B, H]}. `reset_after` is that of GruOptions. It multiplies the inputs of all steps at once; then
/// each step is one product, whose gates are finished before the next units begin. Values are bit for bit those of
/// `gru_step`. The gradient runs as one operation, too; second derivatives are those of the steps. Throws ShapeError,
/// also for a length outside 0..T, and DtypeError.
Tensors gru_sequence(const Tensor& x, const RecurrentWeights<Tensor>& w, const Tensor& h0,
                     const SequenceOptions& options = {}, bool reset_after = true);

namespace detail {
const GatedCell& gru_cell();
const GatedCell& gru_reset_before_cell();
}  // namespace detail

/// A bool that says whether a GRU's reset gate multiplies the product h W_hn + b_hn, not h itself. Only programs that
/// say false link the cell with the gate before the product.
class ResetAfter {
 public:
  constexpr ResetAfter(bool after = true) : cell_(after ? detail::gru_cell : detail::gru_reset_before_cell) {}
  constexpr operator bool() const { return cell_ == detail::gru_cell; }
  const detail::GatedCell& cell() const { return cell_(); }

 private:
  const detail::GatedCell& (*cell_)();
};

}  // namespace ferrite::nn

namespace ferrite::detail {
template <>
struct AttrMember<nn::ResetAfter> {
  using Stored = bool;
  static constexpr bool optional = false;
};
}  // namespace ferrite::detail

namespace ferrite::nn {

/// Options of a Gru layer: its layers, directions, biases, dropout, zoneout, reset gate, and how it runs.
struct GruOptions {
  std::int64_t layers = 1;  ///< number of layers, each of which reads the outputs of the one before
  bool bidirectional = false;
  double dropout = 0;  ///< probability of dropout between layers, while training
  bool bias = true;
  bool batch_first = true;  ///< whether x is [B, T, D] and y [B, T, H]; else both are [T, B, ...]
  Form form = Form::fused;  ///< how the layer runs; other forms are for tests and experts
  bool recompute = false;   ///< the gradient recomputes the gates instead of keeping them: less memory, more time
  /// Whether the reset gate multiplies h W_hn + b_hn, as in PyTorch. False: n = tanh(x W_in + b_in + (r * h) W_hn +
  /// b_hn), the GRU of arXiv 1406.1078v1, of Keras with reset_after=False and of ONNX with linear_before_reset = 0.
  ResetAfter reset_after{};
  Zoneout zoneout{};  ///< the probability with which a unit of h keeps its value: see Recurrent
  static constexpr auto fields =
      attr_list(attr("layers", &GruOptions::layers), attr("bidirectional", &GruOptions::bidirectional),
                attr("dropout", &GruOptions::dropout), attr("bias", &GruOptions::bias),
                attr("batch_first", &GruOptions::batch_first), attr("recompute", &GruOptions::recompute),
                attr("reset_after", &GruOptions::reset_after), attr("zoneout", &GruOptions::zoneout));
};

/// The gated recurrent unit (arXiv 1406.1078), like torch.nn.GRU(input_size, hidden_size, batch_first=True).
///
///   r  = sigmoid(x W_ir + b_ir + h W_hr + b_hr)
///   z  = sigmoid(x W_iz + b_iz + h W_hz + b_hz)
///   n  = tanh   (x W_in + b_in + r * (h W_hn + b_hn))
///   h' = n + z * (h - n)                                   = (1 - z) * n + z * h
///
/// Parameters, with blocks of columns r, z, n: weight_ih_l0 [D, 3H], weight_hh_l0 [H, 3H] (in files [3H, D] and
/// [3H, H]), bias_ih_l0 [3H], bias_hh_l0 [3H], then _l0_reverse, _l1, ...; all start as U(-1/sqrt(H), 1/sqrt(H)). See
/// Recurrent for shapes, lengths, resets and states.
class Gru final : public LayerOf<Gru, GruOptions, GatedRecurrent> {
 public:
  Gru(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {})
      : Gru(input_size, hidden_size, GruOptions{}, init) {}
  Gru(std::int64_t input_size, std::int64_t hidden_size, const GruOptions& options, const Init& init = {});

  bool reset_after() const { return options().reset_after; }
};

/// One step of a GRU as a module, like torch.nn.GRUCell.
class GruCell final : public RecurrentCell {
 public:
  GruCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {}, bool bias = true);
  /// Computes the next state from x [B, D] and h [B, H], zeros if undefined.
  Tensor operator()(const Tensor& x, const Tensor& h = {}) const { return step(x, {h}).h; }
};

extern template class LayerOf<Gru, GruOptions, GatedRecurrent>;

}  // namespace ferrite::nn

namespace ferrite {
using nn::gru_sequence, nn::gru_step, nn::gru_step_reset_before;
}  // namespace ferrite
