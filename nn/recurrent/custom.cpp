/// Layers of cells that users write, and the GRU with layer norm.
#include "ferrite/nn/recurrent/custom.h"

#include <algorithm>
#include <cmath>

#include "ferrite/nn/recurrent/detail/recurrent_layers.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

RecurrentSizes sizes_of(std::int64_t input_size, std::int64_t hidden_size, const CustomOptions& o) {
  return {.input_size = input_size,
          .hidden_size = hidden_size,
          .layers = o.layers,
          .bidirectional = o.bidirectional,
          .dropout = o.dropout,
          .batch_first = o.batch_first,
          .form = o.form,
          .zoneout = o.zoneout,
          .zoneout_cell = o.zoneout_cell};
}

std::unique_ptr<CustomCell> made(const Custom::Make& make, std::int64_t input_size, const Init& init) {
  if (!make) throw ValueError("custom: the function that makes cells is null");
  std::unique_ptr<CustomCell> cell = make(input_size, init);
  if (!cell) throw ValueError("custom: the function that makes cells gave null for '" + init.prefix + "'");
  return cell;
}

}  // namespace

Custom::Custom(Make make, std::int64_t input_size, std::int64_t hidden_size, const CustomOptions& options,
               const Init& init)
    : Custom(make, made(make, input_size, init.child("cell_l0")), input_size, hidden_size, options, init) {}

Custom::Custom(Make make, std::unique_ptr<CustomCell> first, std::int64_t input_size, std::int64_t hidden_size,
               const CustomOptions& options, const Init& init)
    : LayerOf(options, first->kind(), first->has_memory(), sizes_of(input_size, hidden_size, options), init),
      make_(std::move(make)),
      dtype_(init.dtype) {
  if (options.form == Form::fused)
    throw ValueError(kind() + ": there is no fused kernel for a custom cell; use Form::scan or Form::unrolled");
  if (!(options.variational_dropout >= 0 && options.variational_dropout <= 1))
    throw ValueError(kind() + ": variational_dropout must lie in [0, 1], got " +
                     Scalar(options.variational_dropout).str());
  for (std::int64_t k = 0; k < options.layers; ++k)
    for (std::int64_t d = 0; d < sizes().directions(); ++d) {
      const std::string name = "cell" + suffix_of(k, d == 1);
      cells_.push_back(first ? std::move(first) : made(make_, features_into(k), init.child(name)));
      adopt(name, *cells_.back());
      const CustomCell* const cell = cells_.back().get();
      const RecurrentStep step = [cell](const Tensor& x, const RecurrentState& before) {
        return cell->step(x, before);
      };
      scans_.push_back(detail::scan_of(zoned(step, sizes(), false)));
      if (sizes().zones()) drawn_scans_.push_back(detail::scan_of(zoned(step, sizes(), true)));
    }
  for (std::size_t i = 0; options.variational_dropout > 0 && i < 2 * cells_.size(); ++i) {
    const std::string name = "mask_" + std::to_string(i);
    masks_.emplace_back(options.variational_dropout, init.child(name));
    adopt(name, masks_.back());
  }
}

const CustomCell& Custom::cell(std::int64_t layer, bool reverse) const& {
  return *cells_[index_of("cell", layer, reverse)];
}

std::unique_ptr<Custom> Custom::another(const Init& init) const {
  const auto& all = named_parameters();
  const bool drawn = std::all_of(all.begin(), all.end(), [](const auto& p) { return p.variable.drawn(); });
  Init seeded{.seed = init.seed, .prefix = init.prefix, .dtype = dtype_};
  if (drawn) seeded.seed = 0;
  return std::make_unique<Custom>(make_, input_size(), hidden_size(), options(), seeded);
}

Tensor Custom::run_direction(std::size_t at, const Tensor& x, const SequenceOptions& options,
                             RecurrentState& state) const {
  const CustomCell& cell = *cells_[at];
  RecurrentStep step = [&cell](const Tensor& x_t, const RecurrentState& before) { return cell.step(x_t, before); };
  const bool masked = !masks_.empty() && training();
  if (masked) {
    const std::int64_t B = state.h.shape()[0];
    const Tensor of_x = masks_[2 * at](ones({B, x.shape()[-1]}, dtype_));
    const Tensor of_h = masks_[2 * at + 1](ones({B, state.h.shape()[1]}, dtype_));
    step = [&cell, of_x, of_h](const Tensor& x_t, const RecurrentState& before) {
      return cell.step(x_t * of_x, {before.h * of_h, before.c});
    };
  }
  const bool drawn = sizes().zones() && training();
  const auto with_zones = [&] { return zoned(step, sizes(), drawn); };
  Tensors all;
  if (sizes().form == Form::unrolled) {
    const Tensor in = with_masks(at, ferrite::detail::padding_replaced(x, options.lengths, options.batch_first));
    all = unroll(in, state, with_zones(), options);
  } else if (masked) {
    all = detail::run_scan(detail::scan_of(with_zones()), with_masks(at, x), state, options);
  } else {
    all = detail::run_scan(drawn ? drawn_scans_[at] : scans_[at], with_masks(at, x), state, options);
  }
  state.h = std::move(all[1]);
  if (has_memory()) state.c = std::move(all[2]);
  return std::move(all[0]);
}

RecurrentState Custom::run_step(std::size_t at, const Tensor& x, const RecurrentState& before) const {
  if (!masks_.empty() && training())
    throw ValueError(kind() + ": variational dropout is drawn for a whole sequence; call eval before single steps");
  if (sizes().form == Form::scan && !sizes().zones()) {
    Tensors carry{before.h};
    if (has_memory()) carry.push_back(before.c);
    if (scans_[at].is_linear(carry, {unsqueeze(x, 0)})) {  // rounds like the whole sequence
      const Tensors all = detail::run_scan(scans_[at], unsqueeze(x, 1), before, {.batch_first = true});
      return {all[1], has_memory() ? all[2] : Tensor()};
    }
  }
  return cells_[at]->step(x, before);
}

// ---- a cell --------------------------------------------------------------------------------------------

LayerNormGruCell::LayerNormGruCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init)
    : H_(hidden_size) {
  detail::check_sizes("layer_norm_gru", {.input_size = input_size, .hidden_size = hidden_size});
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  const Fill fill = init::uniform(-bound, bound), one = init::constant(1), zero = init::constant(0);
  const Shape gates{3 * hidden_size};
  weight_ih_ = parameter("weight_ih", {input_size, 3 * hidden_size}, fill, init, FileLayout::transposed);
  weight_hh_ = parameter("weight_hh", {hidden_size, 3 * hidden_size}, fill, init, FileLayout::transposed);
  scale_ih_ = parameter("scale_ih", gates, one, init);
  shift_ih_ = parameter("shift_ih", gates, zero, init);
  scale_hh_ = parameter("scale_hh", gates, one, init);
  shift_hh_ = parameter("shift_hh", gates, zero, init);
}

RecurrentState LayerNormGruCell::step(const Tensor& x, const RecurrentState& before) const {
  const auto normalised = [&](const Tensor& sums, const Parameter& scale, const Parameter& shift) {
    const Tensor gates = layer_norm(reshape(sums, {-1, 3, H_}));
    return split(reshape(gates, {-1, 3 * H_}) * scale.value() + shift.value(), H_, 1);
  };
  const Tensor& h = before.h;
  const Tensors i = normalised(matmul(x, weight_ih_), scale_ih_, shift_ih_);
  const Tensors g = normalised(matmul(h, weight_hh_), scale_hh_, shift_hh_);
  const Tensor r = sigmoid(i[0] + g[0]), z = sigmoid(i[1] + g[1]);
  const Tensor n = tanh(i[2] + r * g[2]);
  return {n + z * (h - n)};
}

}  // namespace ferrite::nn
