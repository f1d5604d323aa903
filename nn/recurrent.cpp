#include "ferrite/nn/recurrent.h"

#include <array>
#include <cmath>

#include "ferrite/nn/carry.h"
#include "ferrite/nn/detail/lengths.h"
#include "ferrite/nn/detail/recurrent_scan.h"

namespace ferrite::nn {
namespace {

std::string text(std::int64_t n) { return std::to_string(n); }

Tensor value_of(const Parameter& p) { return p ? p.value() : Tensor(); }

/// The layer in errors.
std::string title(const CellKind& cell) { return std::string(cell.name); }

void check_sizes(const CellKind& cell, const RecurrentSizes& s) {
  if (s.input_size < 1 || s.hidden_size < 1)
    throw ValueError(title(cell) + ": sizes must be positive, got " + text(s.input_size) + " and " +
                     text(s.hidden_size));
  if (s.layers < 1) throw ValueError(title(cell) + ": needs at least one layer, got " + text(s.layers));
  if (!(s.dropout >= 0 && s.dropout <= 1))
    throw ValueError(title(cell) + ": dropout must lie in [0, 1], got " + std::to_string(s.dropout));
  if (s.proj_size < 0 || s.proj_size >= s.hidden_size)
    throw ValueError(title(cell) + ": proj_size must lie in 0.." + text(s.hidden_size - 1) + ", got " +
                     text(s.proj_size));
}

void check_dtype(const CellKind& cell, const Tensor& x, Dtype dtype, const char* what) {
  if (x.dtype() != dtype)
    throw DtypeError(title(cell) + ": the weights are " + std::string(name_of(dtype)) + ", got " + what + " " +
                     x.spec().str() + "; cast one of them");
}

/// Names of the parameters of a layer and direction: "weight_ih_l1_reverse".
std::string suffix_of(std::int64_t layer, bool reverse) { return "_l" + text(layer) + (reverse ? "_reverse" : ""); }

/// Matrices are turned in files.
FileLayout layout_of(const Shape& shape) { return shape.rank() == 2 ? FileLayout::transposed : FileLayout::same; }

/// The parameters of one layer and direction, each by make(name, shape, fill), in PyTorch's order.
template <class Make>
RecurrentWeights make_weights(const CellKind& cell, const RecurrentSizes& sizes, std::int64_t input_size,
                              const std::string& suffix, const Make& make) {
  const double bound = 1 / std::sqrt(static_cast<double>(sizes.hidden_size));
  const Fill fill = init::uniform(-bound, bound);
  const std::int64_t gates = cell.gates * sizes.hidden_size;
  RecurrentWeights w;
  w.weight_ih = make("weight_ih" + suffix, {input_size, gates}, fill);
  w.weight_hh = make("weight_hh" + suffix, {sizes.state_size(), gates}, fill);
  if (sizes.bias) w.bias_ih = make("bias_ih" + suffix, {gates}, fill);
  if (sizes.bias) w.bias_hh = make("bias_hh" + suffix, {gates}, fill);
  if (sizes.proj_size) w.weight_hr = make("weight_hr" + suffix, {sizes.hidden_size, sizes.proj_size}, fill);
  return w;
}

/// A call's shapes, checked.
class Call {
 public:
  Call(const CellKind& cell, const RecurrentSizes& sizes, const Tensor& x, const Context& context, Dtype dtype)
      : cell_(cell), sizes_(sizes), batched_(x.rank() == 3), batch_first_(sizes.batch_first || !batched_) {
    check_input(x, dtype);
    input = batched_ ? x : unsqueeze(x, 0);
    B = input.shape()[batch_first_ ? 0 : 1];
    T = input.shape()[batch_first_ ? 1 : 0];
    if (T == 0) throw ShapeError(title(cell) + ": the sequence has no steps: " + x.shape().str());
    read_lengths(context.lengths);
    read_resets(context.reset_mask);
  }

  std::int64_t B, T;
  Tensor input;  ///< [B, T, D] or [T, B, D]

  SequenceOptions options(bool reverse) const {
    return {.reverse = reverse,
            .batch_first = batch_first_,
            .lengths = lengths_,
            .resets = resets_,
            .recompute = sizes_.recompute};
  }
  std::int64_t count() const { return sizes_.layers * sizes_.directions(); }
  /// What a state of the given width must look like over all layers.
  Shape all_states(std::int64_t width) const { return {count(), B, width}; }

  /// An initial state for each layer and direction.
  Tensors initial(const Tensor& given, std::int64_t width, Dtype dtype) const {
    if (!given) {
      const Tensor zero = zeros({B, width}, dtype);
      Tensors all;
      for (std::int64_t i = 0; i < count(); ++i) all.push_back(zero);
      return all;
    }
    check_dtype(cell_, given, dtype, "a state");
    const Shape whole = batched_ ? all_states(width) : Shape{count(), width};
    const Shape single = batched_ ? Shape{B, width} : Shape{width};
    if (given.shape() != whole && given.shape() != all_states(width) && !(count() == 1 && given.shape() == single))
      throw ShapeError(title(cell_) + ": expects a state " + (count() == 1 ? single : whole).str() + ", got " +
                       given.shape().str());
    return unbind(given.shape() == all_states(width) ? given : reshape(given, all_states(width)), 0);
  }

  /// The last states in the shape of the result.
  Tensor collected(const Tensors& states) const {
    if (count() == 1) return batched_ ? states[0] : squeeze(states[0], 0);
    const Tensor all = stack(states);
    return batched_ ? all : squeeze(all, 1);
  }
  Tensor result(const Tensor& output) const { return batched_ ? output : squeeze(output, 0); }

 private:
  void check_input(const Tensor& x, Dtype dtype) const {
    if ((x.rank() != 3 && x.rank() != 2) || x.shape()[-1] != sizes_.input_size)
      throw ShapeError(title(cell_) + ": expects input " + (sizes_.batch_first ? "[B, T, " : "[T, B, ") +
                       text(sizes_.input_size) + "], got " + x.shape().str());
    check_dtype(cell_, x, dtype, "input");
  }

  void read_lengths(const Tensor& lengths) {
    if (!lengths) return;
    detail::check_lengths(cell_.name, lengths, B, T);
    lengths_ = lengths;
  }

  void read_resets(const Tensor& mask) {
    if (!mask) return;
    if (mask.dtype() != Dtype::boolean || mask.shape() != Shape{B, T})
      throw ShapeError(title(cell_) + ": expects a reset mask bool[" + text(B) + ", " + text(T) + "], got " +
                       mask.spec().str());
    resets_ = mask;
  }

  const CellKind& cell_;
  const RecurrentSizes& sizes_;
  bool batched_;
  bool batch_first_;
  Tensor lengths_, resets_;
};

}  // namespace

SequenceWeights values_of(const RecurrentWeights& w) {
  return {w.weight_ih.value(), w.weight_hh.value(), value_of(w.bias_ih), value_of(w.bias_hh), value_of(w.weight_hr)};
}

// ---- the layer -----------------------------------------------------------------------------------------

Recurrent::Recurrent(const CellKind& cell, const RecurrentSizes& sizes, const Init& init) : cell_(cell), sizes_(sizes) {
  check_sizes(cell, sizes);
  const auto make = [&](const std::string& name, const Shape& shape, const Fill& fill) {
    return parameter(name, shape, fill, init, layout_of(shape));
  };
  for (std::int64_t k = 0; k < sizes.layers; ++k) {
    const std::int64_t input = k == 0 ? sizes.input_size : sizes.state_size() * sizes.directions();
    for (std::int64_t d = 0; d < sizes.directions(); ++d) {
      weights_.push_back(make_weights(cell, sizes, input, suffix_of(k, d == 1), make));
      if (sizes.form == Form::scan) scans_.push_back(detail::scan_of(cell, weights_.back()));
    }
  }
  for (std::int64_t k = 0; k + 1 < sizes.layers && sizes.dropout > 0; ++k) {
    const std::string name = "dropout_l" + text(k);
    dropouts_.emplace_back(sizes.dropout, init.child(name));
    adopt(name, dropouts_.back());
  }
}

const RecurrentWeights& Recurrent::weights(std::int64_t layer, bool reverse) const {
  if (layer < 0 || layer >= sizes_.layers || (reverse && !sizes_.bidirectional))
    throw ValueError(title(cell_) + ": has no weights" + suffix_of(layer, reverse) + "; it has " + text(sizes_.layers) +
                     (sizes_.bidirectional ? " bidirectional" : " forward") + " layers");
  return weights_[static_cast<std::size_t>(layer * sizes_.directions() + (reverse ? 1 : 0))];
}

RecurrentResult Recurrent::run(const Tensor& x, const Context& context) const {
  const Dtype dtype = weights_[0].weight_ih.dtype();
  Call call(cell_, sizes_, x, context, dtype);
  const std::vector<State> carried = carried_states(context, call.B);
  const bool memory = cell_.has_memory;
  Tensors h = call.initial(carried.empty() ? context.state : carried[0].value(), sizes_.state_size(), dtype);
  Tensors c;
  if (memory) c = call.initial(carried.empty() ? context.cell : carried[1].value(), sizes_.hidden_size, dtype);

  Tensor y = call.input;
  for (std::int64_t k = 0; k < sizes_.layers; ++k) {
    std::array<Tensor, 2> outputs;
    for (std::int64_t d = 0; d < sizes_.directions(); ++d) {
      const auto at = static_cast<std::size_t>(k * sizes_.directions() + d);
      RecurrentState state{h[at], memory ? c[at] : Tensor()};
      outputs[static_cast<std::size_t>(d)] = run_direction(at, y, call.options(d == 1), state);
      h[at] = std::move(state.h);
      if (memory) c[at] = std::move(state.c);
    }
    y = sizes_.bidirectional ? concat({outputs[0], outputs[1]}, -1) : outputs[0];
    if (k + 1 < sizes_.layers && !dropouts_.empty()) y = dropouts_[static_cast<std::size_t>(k)](y);
  }
  if (!carried.empty()) carried[0].assign(stack(h));
  if (!carried.empty() && memory) carried[1].assign(stack(c));
  return {call.result(y), call.collected(h), memory ? call.collected(c) : Tensor()};
}

Tensor Recurrent::run_direction(std::size_t at, const Tensor& x, const SequenceOptions& options,
                                RecurrentState& state) const {
  Tensors all;
  if (sizes_.form == Form::fused) {
    all = cell_.sequence(x, state, values_of(weights_[at]), options);
  } else if (sizes_.form == Form::scan) {
    all = detail::run_scan(scans_[at], x, state, options);
  } else {
    const SequenceWeights w = values_of(weights_[at]);
    // The input product does not depend on h: one for all steps.
    const Tensor i = affine(without_padding(x, options), w.w_ih, w.b_ih);
    const auto step = [&](const Tensor& i_t, const RecurrentState& before) { return cell_.step(i_t, before, w); };
    all = unroll(i, state, step, options);
  }
  state.h = std::move(all[1]);
  if (cell_.has_memory) state.c = std::move(all[2]);
  return std::move(all[0]);
}

std::vector<State> Recurrent::carried_states(const Context& context, std::int64_t batch) const {
  if (!context.carry) return {};
  if (!causal()) throw ValueError(title(cell_) + ": a backward direction cannot be carried on");
  if (context.state || context.cell)
    throw ValueError(title(cell_) + ": the context has both an initial state and a carry; give one of them");
  const Dtype dtype = weights_[0].weight_ih.dtype();
  const std::array<Spec, 2> specs = {Spec{{sizes_.layers, batch, sizes_.state_size()}, dtype},
                                     Spec{{sizes_.layers, batch, sizes_.hidden_size}, dtype}};
  return context.carry->states_of(this, std::span(specs).first(cell_.has_memory ? 2 : 1));
}

std::unique_ptr<Layer> Recurrent::copy_to(std::unique_ptr<Recurrent> to) const {
  copy_values(*this, *to);
  to->copy_modes(*this);
  return to;
}

// ---- the cell ------------------------------------------------------------------------------------------

RecurrentCell::RecurrentCell(const CellKind& cell, std::int64_t input_size, std::int64_t hidden_size, const Init& init,
                             bool bias)
    : cell_(cell) {
  const RecurrentSizes sizes{.input_size = input_size, .hidden_size = hidden_size, .bias = bias};
  check_sizes(cell, sizes);
  weights_ =
      make_weights(cell, sizes, input_size, "", [&](const std::string& name, const Shape& shape, const Fill& fill) {
        return parameter(name, shape, fill, init, layout_of(shape));
      });
}

RecurrentState RecurrentCell::step(const Tensor& x, const RecurrentState& before) const {
  const bool batched = x.rank() == 2;
  if ((!batched && x.rank() != 1) || x.shape()[-1] != input_size())
    throw ShapeError(title(cell_) + " cell: expects input [B, " + text(input_size()) + "], got " + x.shape().str());
  check_dtype(cell_, x, weights_.weight_ih.dtype(), "input");
  const Tensor rows = batched ? x : unsqueeze(x, 0);
  const Shape wanted = {rows.shape()[0], hidden_size()};
  const auto state = [&](const Tensor& given) {
    if (!given) return zeros(wanted, x.dtype());
    check_dtype(cell_, given, x.dtype(), "a state");
    const Tensor s = batched || given.rank() != 1 ? given : unsqueeze(given, 0);
    if (s.shape() != wanted)
      throw ShapeError(title(cell_) + " cell: expects a state " + wanted.str() + ", got " + given.shape().str());
    return s;
  };
  const SequenceWeights w = values_of(weights_);
  const RecurrentState from{state(before.h), cell_.has_memory ? state(before.c) : Tensor()};
  RecurrentState next = cell_.step(affine(rows, w.w_ih, w.b_ih), from, w);
  if (!batched) next.h = squeeze(next.h, 0);
  if (!batched && cell_.has_memory) next.c = squeeze(next.c, 0);
  return next;
}

}  // namespace ferrite::nn
