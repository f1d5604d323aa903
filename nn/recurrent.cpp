#include "ferrite/nn/recurrent.h"

#include <array>
#include <cmath>

#include "ferrite/nn/carry.h"

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

/// Masks of the steps, each [B, 1]; empty where there are none.
struct Masks {
  Tensors valid;  ///< within the length
  Tensors reset;  ///< begins anew
};

/// One direction of one layer over the projected inputs of all steps: the outputs in order of time; `state` goes from
/// the initial to the last one.
Tensors unroll(const CellKind& cell, const Tensors& inputs, const RecurrentValues& w, const Masks& masks, bool reverse,
               RecurrentState& state) {
  const std::size_t T = inputs.size();
  Tensors outputs(T);
  for (std::size_t n = 0; n < T; ++n) {
    const std::size_t t = reverse ? T - 1 - n : n;
    if (!masks.reset.empty() && !(reverse && n == 0)) {
      const Tensor& anew = masks.reset[reverse ? t + 1 : t];  // a border lies before the step that begins anew
      state.h = where(anew, 0, state.h);
      if (cell.has_memory) state.c = where(anew, 0, state.c);
    }
    RecurrentState next = cell.step(inputs[t], state, w);
    if (masks.valid.empty()) {
      outputs[t] = next.h;
      state = std::move(next);
      continue;
    }
    outputs[t] = where(masks.valid[t], next.h, 0);
    state.h = where(masks.valid[t], next.h, state.h);
    if (cell.has_memory) state.c = where(masks.valid[t], next.c, state.c);
  }
  return outputs;
}

/// Names of the parameters of a layer and direction: "weight_ih_l1_reverse".
std::string suffix_of(std::int64_t layer, bool reverse) { return "_l" + text(layer) + (reverse ? "_reverse" : ""); }

/// A call's shapes, checked, and its masks.
class Call {
 public:
  Call(const CellKind& cell, const RecurrentSizes& sizes, const Tensor& x, const Context& context, Dtype dtype)
      : cell_(cell), sizes_(sizes), batched_(x.rank() == 3) {
    check_input(x, dtype);
    const bool batch_first = sizes.batch_first && batched_;
    B = batched_ ? x.shape()[batch_first ? 0 : 1] : 1;
    T = x.shape()[batch_first ? 1 : 0];
    if (T == 0) throw ShapeError(title(cell) + ": the sequence has no steps: " + x.shape().str());
    steps = !batched_ ? unsqueeze(x, 1) : batch_first ? transpose(x, 0, 1) : x;
    read_lengths(context.lengths);
    read_resets(context.reset_mask);
  }

  std::int64_t B, T;
  Tensor steps;  ///< [T, B, D]
  Masks masks;

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
  /// Outputs of the last layer; the steps of each direction joined as the caller wants them.
  Tensor joined(const std::array<Tensors, 2>& directions, bool last) const {
    const int axis = last && batched_ && sizes_.batch_first ? 1 : 0;
    const auto all = [&](const Tensors& steps_of) { return stack(steps_of, axis); };
    const Tensor y = sizes_.bidirectional ? concat({all(directions[0]), all(directions[1])}, -1) : all(directions[0]);
    return last && !batched_ ? squeeze(y, 1) : y;
  }

 private:
  void check_input(const Tensor& x, Dtype dtype) const {
    if ((x.rank() != 3 && x.rank() != 2) || x.shape()[-1] != sizes_.input_size)
      throw ShapeError(title(cell_) + ": expects input " + (sizes_.batch_first ? "[B, T, " : "[T, B, ") +
                       text(sizes_.input_size) + "], got " + x.shape().str());
    check_dtype(cell_, x, dtype, "input");
  }

  /// Values are checked unless they are being traced. What stands in the padding must not reach a product: 0 x NaN
  /// is NaN.
  void read_lengths(const Tensor& lengths) {
    if (!lengths) return;
    if (lengths.dtype() != Dtype::i64 || lengths.shape() != Shape{B})
      throw ShapeError(title(cell_) + ": expects lengths i64[" + text(B) + "], got " + lengths.spec().str());
    if (!lengths.is_abstract())
      for (const std::int64_t n : lengths.to_vector<std::int64_t>())
        if (n < 1 || n > T) throw ShapeError(title(cell_) + ": a length of " + text(n) + " lies outside 1.." + text(T));
    valid_ = less(reshape(arange(T), {T, 1, 1}), reshape(lengths, {1, B, 1}));
    steps = where(valid_, steps, 0);
    masks.valid = unbind(valid_, 0);
  }

  void read_resets(const Tensor& mask) {
    if (!mask) return;
    if (mask.dtype() != Dtype::boolean || mask.shape() != Shape{B, T})
      throw ShapeError(title(cell_) + ": expects a reset mask bool[" + text(B) + ", " + text(T) + "], got " +
                       mask.spec().str());
    const Tensor resets = unsqueeze(transpose(mask), 2);
    masks.reset = unbind(valid_ ? logical_and(resets, valid_) : resets, 0);
  }

  const CellKind& cell_;
  const RecurrentSizes& sizes_;
  bool batched_;
  Tensor valid_;  // [T, B, 1]
};

}  // namespace

RecurrentValues::RecurrentValues(const RecurrentWeights& w)
    : weight_ih(w.weight_ih),
      weight_hh(w.weight_hh),
      bias_ih(value_of(w.bias_ih)),
      bias_hh(value_of(w.bias_hh)),
      weight_hr(value_of(w.weight_hr)) {}

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = matmul(x, weight);
  return bias ? y + bias : y;
}

// ---- the layer -----------------------------------------------------------------------------------------

Recurrent::Recurrent(const CellKind& cell, const RecurrentSizes& sizes, const Init& init) : cell_(cell), sizes_(sizes) {
  check_sizes(cell, sizes);
  const double bound = 1 / std::sqrt(static_cast<double>(sizes.hidden_size));
  const Fill fill = init::uniform(-bound, bound);
  const std::int64_t gates = cell.gates * sizes.hidden_size;
  const std::int64_t state = sizes.state_size();
  for (std::int64_t k = 0; k < sizes.layers; ++k) {
    const std::int64_t input = k == 0 ? sizes.input_size : state * sizes.directions();
    for (std::int64_t d = 0; d < sizes.directions(); ++d) {
      const std::string suffix = suffix_of(k, d == 1);
      RecurrentWeights w;
      w.weight_ih = parameter("weight_ih" + suffix, {input, gates}, fill, init, FileLayout::transposed);
      w.weight_hh = parameter("weight_hh" + suffix, {state, gates}, fill, init, FileLayout::transposed);
      if (sizes.bias) w.bias_ih = parameter("bias_ih" + suffix, {gates}, fill, init);
      if (sizes.bias) w.bias_hh = parameter("bias_hh" + suffix, {gates}, fill, init);
      if (sizes.proj_size)
        w.weight_hr = parameter("weight_hr" + suffix, {sizes.hidden_size, state}, fill, init, FileLayout::transposed);
      weights_.push_back(std::move(w));
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

  Tensor output;
  for (std::int64_t k = 0; k < sizes_.layers; ++k) {
    std::array<Tensors, 2> outputs;
    for (std::int64_t d = 0; d < sizes_.directions(); ++d) {
      const auto at = static_cast<std::size_t>(k * sizes_.directions() + d);
      const RecurrentValues w(weights_[at]);
      // The input product does not depend on h: one for all steps, the rows of one step adjacent.
      const Tensors inputs = unbind(affine(call.steps, w.weight_ih, w.bias_ih), 0);
      RecurrentState state{h[at], memory ? c[at] : Tensor()};
      outputs[static_cast<std::size_t>(d)] = unroll(cell_, inputs, w, call.masks, d == 1, state);
      h[at] = std::move(state.h);
      if (memory) c[at] = std::move(state.c);
    }
    const bool last = k + 1 == sizes_.layers;
    output = call.joined(outputs, last);
    if (!last) call.steps = dropouts_.empty() ? output : dropouts_[static_cast<std::size_t>(k)](output);
  }
  if (!carried.empty()) carried[0].assign(stack(h));
  if (!carried.empty() && memory) carried[1].assign(stack(c));
  return {output, call.collected(h), memory ? call.collected(c) : Tensor()};
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
  check_sizes(cell, {.input_size = input_size, .hidden_size = hidden_size});
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  const Fill fill = init::uniform(-bound, bound);
  const std::int64_t gates = cell.gates * hidden_size;
  weights_.weight_ih = parameter("weight_ih", {input_size, gates}, fill, init, FileLayout::transposed);
  weights_.weight_hh = parameter("weight_hh", {hidden_size, gates}, fill, init, FileLayout::transposed);
  if (bias) weights_.bias_ih = parameter("bias_ih", {gates}, fill, init);
  if (bias) weights_.bias_hh = parameter("bias_hh", {gates}, fill, init);
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
  const RecurrentValues w(weights_);
  const RecurrentState from{state(before.h), cell_.has_memory ? state(before.c) : Tensor()};
  RecurrentState next = cell_.step(affine(rows, w.weight_ih, w.bias_ih), from, w);
  if (!batched) next.h = squeeze(next.h, 0);
  if (!batched && cell_.has_memory) next.c = squeeze(next.c, 0);
  return next;
}

}  // namespace ferrite::nn
