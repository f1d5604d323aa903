/// Recurrent layers of gated cells: parameters, and the choice of a form.
#include "ferrite/nn/recurrent/gated.h"

#include <cmath>

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/recurrent/detail/recurrent_layers.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

using detail::check_dtype;

/// Returns pointers to the present values of the weights, for calls that no recorder sees.
RecurrentWeights<const Tensor*> borrowed(const RecurrentWeights<Parameter>& w) {
  static const Tensor none;
  return w.map([](const Parameter& p) { return p.defined() ? &p.peek() : &none; });
}

/// Returns the layout of a weight in files, where matrices are transposed.
FileLayout layout_of(const Shape& shape) { return shape.rank() == 2 ? FileLayout::transposed : FileLayout::same; }

/// Makes the parameters of one layer and direction, each by make(name, shape, fill), in PyTorch's order.
template <class Make>
RecurrentWeights<Parameter> make_weights(const detail::GatedCell& cell, const RecurrentSizes& sizes,
                                         std::int64_t input_size, const std::string& suffix, const Make& make) {
  const double bound = 1 / std::sqrt(static_cast<double>(sizes.hidden_size));
  const Fill fill = init::uniform(-bound, bound);
  const std::int64_t gates = cell.gates * sizes.hidden_size;
  RecurrentWeights<Parameter> w;
  w.weight_ih = make("weight_ih" + suffix, {input_size, gates}, fill);
  w.weight_hh = make("weight_hh" + suffix, {sizes.state_size(), gates}, fill);
  if (sizes.bias) w.bias_ih = make("bias_ih" + suffix, {gates}, fill);
  if (sizes.bias) w.bias_hh = make("bias_hh" + suffix, {gates}, fill);
  if (sizes.proj_size) w.weight_hr = make("weight_hr" + suffix, {sizes.hidden_size, sizes.proj_size}, fill);
  if (cell.vectors) w.weight_ch = make("weight_ch" + suffix, {cell.vectors * sizes.hidden_size}, fill);
  return w;
}

}  // namespace

RecurrentWeights<Tensor> values_of(const RecurrentWeights<Parameter>& w) { return w.map(detail::value_of); }

// ---- the layer -----------------------------------------------------------------------------------------

GatedRecurrent::GatedRecurrent(const detail::GatedCell& cell, const RecurrentSizes& sizes, const Init& init)
    : Recurrent(cell.name, cell.has_memory, sizes, init, detail::OwnSteps()), cell_(&cell) {
  const detail::ScanForm* const scans = this->sizes().form.scans();
  const auto make = [&](const std::string& name, const Shape& shape, const Fill& fill) {
    return parameter(name, shape, fill, init, layout_of(shape));
  };
  for (std::int64_t k = 0; k < sizes.layers; ++k)
    for (std::int64_t d = 0; d < sizes.directions(); ++d) {
      weights_.push_back(make_weights(cell, sizes, features_into(k), suffix_of(k, d == 1), make));
      if (!scans) continue;
      const RecurrentStep step = [&cell, cells = weights_.back()](const Tensor& x, const RecurrentState& before) {
        const RecurrentWeights<Tensor> w = values_of(cells);
        return cell.functions->step(affine(x, w.weight_ih, w.bias_ih), before, w);
      };
      scans_.push_back(scans->scan_of(zoned(step, sizes, false)));
      if (sizes.zones()) drawn_scans_.push_back(scans->scan_of(zoned(step, sizes, true)));
    }
}

const RecurrentWeights<Parameter>& GatedRecurrent::weights(std::int64_t layer, bool reverse) const& {
  return weights_[index_of("weights", layer, reverse)];
}

Tensor GatedRecurrent::run_direction(std::size_t at, const Tensor& x, const SequenceOptions& options,
                                     RecurrentState& state) const {
  const bool drawn = sizes().zones() && training();
  Tensors all;
  if (sizes().form == Form::fused) {
    const auto run = [&](const RecurrentWeights<const Tensor*>& w) {
      return cell_->functions->sequence(x, state, w, options);
    };
    const bool seen = !ferrite::detail::frame().recorders.empty();  // recorders must see the reads
    all = seen ? run(detail::borrowed(values_of(weights_[at]))) : run(borrowed(weights_[at]));
  } else if (const detail::ScanForm* const scans = sizes().form.scans()) {
    all = scans->run(drawn ? drawn_scans_[at] : scans_[at], with_masks(at, x), state, options);
  } else {
    const RecurrentWeights<Tensor> w = values_of(weights_[at]);
    // The input product does not depend on h, so one product serves all steps.
    const Tensor i =
        affine(ferrite::detail::padding_replaced(x, options.lengths, options.batch_first), w.weight_ih, w.bias_ih);
    const RecurrentStep step = [&](const Tensor& i_t, const RecurrentState& before) {
      return cell_->functions->step(i_t, before, w);
    };
    all = unroll(with_masks(at, i), state, zoned(step, sizes(), drawn), options);
  }
  state.h = std::move(all[1]);
  if (cell_->has_memory) state.c = std::move(all[2]);
  return std::move(all[0]);
}

RecurrentState GatedRecurrent::run_step(std::size_t at, const Tensor& x, const RecurrentState& before) const {
  const RecurrentWeights<Tensor> w = values_of(weights_[at]);
  return cell_->functions->step(affine(x, w.weight_ih, w.bias_ih), before, w);
}

// ---- the cell ------------------------------------------------------------------------------------------

RecurrentCell::RecurrentCell(const detail::GatedCell& cell, std::int64_t input_size, std::int64_t hidden_size,
                             const Init& init, bool bias)
    : cell_(&cell) {
  const RecurrentSizes sizes{.input_size = input_size, .hidden_size = hidden_size, .bias = bias};
  detail::check_sizes(cell.name, sizes);
  weights_ =
      make_weights(cell, sizes, input_size, "", [&](const std::string& name, const Shape& shape, const Fill& fill) {
        return parameter(name, shape, fill, init, layout_of(shape));
      });
}

RecurrentState RecurrentCell::step(const Tensor& x, const RecurrentState& before) const {
  return inside([&] { return advance(x, before); });
}

RecurrentState RecurrentCell::advance(const Tensor& x, const RecurrentState& before) const {
  const bool batched = x.rank() == 2;
  if ((!batched && x.rank() != 1) || x.shape()[-1] != input_size())
    throw ShapeError(std::string(cell_->name) + " cell: expects input [B, " + std::to_string(input_size()) + "], got " +
                     x.shape().str());
  check_dtype(std::string(cell_->name), x, weights_.weight_ih.dtype(), "input");
  const Tensor rows = batched ? x : unsqueeze(x, 0);
  const Shape wanted = {rows.shape()[0], hidden_size()};
  const auto state = [&](const Tensor& given) {
    if (!given.defined()) return zeros(wanted, x.dtype());
    check_dtype(std::string(cell_->name), given, x.dtype(), "a state");
    const Tensor s = batched || given.rank() != 1 ? given : unsqueeze(given, 0);
    if (s.shape() != wanted)
      throw ShapeError(std::string(cell_->name) + " cell: expects a state " + wanted.str() + ", got " +
                       given.shape().str());
    return s;
  };
  const RecurrentWeights<Tensor> w = values_of(weights_);
  const RecurrentState from{state(before.h), cell_->has_memory ? state(before.c) : Tensor()};
  RecurrentState next = cell_->functions->step(affine(rows, w.weight_ih, w.bias_ih), from, w);
  if (!batched) next.h = squeeze(next.h, 0);
  if (!batched && cell_->has_memory) next.c = squeeze(next.c, 0);
  return next;
}

}  // namespace ferrite::nn
