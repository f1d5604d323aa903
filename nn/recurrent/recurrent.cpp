/// The base of all recurrent layers: directions, lengths, resets, states, dropout, and one step for streams, with
/// weights packed once and states in place.
#include "ferrite/nn/recurrent/recurrent.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ferrite/nn/carry.h"
#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/recurrent/detail/one_row_step.h"
#include "ferrite/nn/recurrent/detail/packed_layer.h"
#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/nn/recurrent/detail/recurrent_layers.h"
#include "ferrite/nn/recurrent/gated.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/kernel/pack.h"

namespace ferrite::nn {
namespace {

using detail::check_dtype;

std::string text(std::int64_t n) { return std::to_string(n); }

/// The operands of one call, with checked shapes.
class Call {
 public:
  Call(const std::string& name, Label lengths_name, const RecurrentSizes& sizes, const Tensor& x,
       const Context& context, Dtype dtype)
      : name_(name),
        lengths_name_(lengths_name),
        sizes_(sizes),
        batched_(x.rank() == 3),
        batch_first_(sizes.batch_first || !batched_) {
    check_input(x, dtype);
    input = batched_ ? x : unsqueeze(x, 0);
    B = input.shape()[batch_first_ ? 0 : 1];
    T = input.shape()[batch_first_ ? 1 : 0];
    if (T == 0) throw ShapeError(name + ": the sequence has no steps: " + x.shape().str());
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
  /// Returns the shape of a state of the given width over all layers and directions.
  Shape all_states(std::int64_t width) const { return {count(), B, width}; }

  /// Returns an initial state for each layer and direction.
  Tensors initial(const Tensor& given, std::int64_t width, Dtype dtype) const {
    if (!given.defined()) {
      Tensor zero = zeros({B, width}, dtype);
      Tensors all;
      for (std::int64_t i = 1; i < count(); ++i) all.push_back(zero);
      all.push_back(std::move(zero));
      return all;
    }
    check_dtype(name_, given, dtype, "a state");
    const Shape whole = batched_ ? all_states(width) : Shape{count(), width};
    const Shape single = batched_ ? Shape{B, width} : Shape{width};
    if (given.shape() != whole && given.shape() != all_states(width) && !(count() == 1 && given.shape() == single))
      throw ShapeError(name_ + ": expects a state " + (count() == 1 ? single : whole).str() + ", got " +
                       given.shape().str());
    return unbind(given.shape() == all_states(width) ? given : reshape(given, all_states(width)), 0);
  }

  /// Returns the last states in the shape of the result.
  Tensor collected(Tensors&& states) const {
    if (count() == 1) return batched_ ? std::move(states[0]) : squeeze(states[0], 0);
    const Tensor all = stack(states);
    return batched_ ? all : squeeze(all, 1);
  }
  Tensor result(Tensor output) const { return batched_ ? std::move(output) : squeeze(output, 0); }

 private:
  void check_input(const Tensor& x, Dtype dtype) const {
    if ((x.rank() != 3 && x.rank() != 2) || x.shape()[-1] != sizes_.input_size)
      throw ShapeError(name_ + ": expects input " + (sizes_.batch_first ? "[B, T, " : "[T, B, ") +
                       text(sizes_.input_size) + "], got " + x.shape().str());
    check_dtype(name_, x, dtype, "input");
  }

  void read_lengths(const Tensor& lengths) {
    if (!lengths.defined()) return;
    lengths_ = detail::checked_lengths(lengths_name_, lengths, B, T);
  }

  void read_resets(const Tensor& mask) {
    if (!mask.defined()) return;
    if (mask.dtype() != Dtype::boolean || mask.shape() != Shape{B, T})
      throw ShapeError(name_ + ": expects a reset mask bool[" + text(B) + ", " + text(T) + "], got " +
                       mask.spec().str());
    resets_ = mask;
  }

  const std::string& name_;
  Label lengths_name_;
  const RecurrentSizes& sizes_;
  bool batched_;
  bool batch_first_;
  Tensor lengths_, resets_;
};

}  // namespace

void detail::check_sizes(const std::string& name, const RecurrentSizes& s) {
  if (s.input_size < 1 || s.hidden_size < 1)
    throw ValueError(name + ": sizes must be positive, got " + text(s.input_size) + " and " + text(s.hidden_size));
  if (s.layers < 1) throw ValueError(name + ": needs at least one layer, got " + text(s.layers));
  if (!(s.dropout >= 0 && s.dropout <= 1))
    throw ValueError(name + ": dropout must lie in [0, 1], got " + Scalar(s.dropout).str());
  if (!(s.zoneout >= 0 && s.zoneout <= 1) || !(s.zoneout_cell >= 0 && s.zoneout_cell <= 1))
    throw ValueError(name + ": zoneout must lie in [0, 1], got " + Scalar(double(s.zoneout)).str() + " and " +
                     Scalar(double(s.zoneout_cell)).str());
  if (s.proj_size < 0 || s.proj_size >= s.hidden_size)
    throw ValueError(name + ": proj_size must lie in 0.." + text(s.hidden_size - 1) + ", got " + text(s.proj_size));
}

void detail::check_dtype(const std::string& name, const Tensor& x, Dtype dtype, const char* what) {
  if (x.dtype() != dtype)
    throw DtypeError(name + ": the weights are " + std::string(name_of(dtype)) + ", got " + what + " " +
                     x.spec().str() + "; cast one of them");
}

Recurrent::Recurrent(std::string name, bool has_memory, const RecurrentSizes& sizes, const Init& init)
    : name_(std::move(name)),
      lengths_name_(Label::of(name_ + ": a length of")),
      has_memory_(has_memory),
      sizes_(sizes) {
  set_up(init);
}

Recurrent::Recurrent(std::string name, bool has_memory, const RecurrentSizes& sizes, const Init& init,
                     detail::OwnSteps own)
    : Layer({}, own),
      name_(std::move(name)),
      lengths_name_(Label::of(name_ + ": a length of")),
      has_memory_(has_memory),
      sizes_(sizes) {
  set_up(init);
}

void Recurrent::set_up(const Init& init) {
  const RecurrentSizes& sizes = sizes_;
  detail::check_sizes(name_, sizes);
  if (!has_memory_ && sizes.zoneout_cell > 0)
    throw ValueError(name_ + ": zoneout_cell is of a memory, which this cell has not; give zoneout");
  if (sizes.zones() && sizes.form == Form::fused)
    sizes_.form = sizes.zoneout > 0 ? sizes.zoneout.form() : sizes.zoneout_cell.form();
  if (!sizes.bidirectional) carries("h", sizes.layers, sizes.state_size(), init.dtype);
  if (!sizes.bidirectional && has_memory_) carries("c", sizes.layers, sizes.hidden_size, init.dtype);
  for (std::int64_t k = 0; k + 1 < sizes.layers && sizes.dropout > 0; ++k) {
    const std::string dropout = "dropout_l" + text(k);
    dropouts_.emplace_back(sizes.dropout, init.child(dropout));
    adopt(dropout, dropouts_.back());
  }
  const auto masks = [&](const std::string& kind, double probability, std::vector<Dropout>& list) {
    for (std::int64_t k = 0; k < sizes.layers && probability > 0; ++k)
      for (std::int64_t d = 0; d < sizes.directions(); ++d) {
        const std::string mask = kind + suffix_of(k, d == 1);
        list.emplace_back(probability, init.child(mask));
        adopt(mask, list.back());
      }
  };
  masks("zoneout", sizes.zoneout, zones_h_);
  masks("zoneout_cell", sizes.zoneout_cell, zones_c_);
}

Tensor Recurrent::with_masks(std::size_t at, const Tensor& x) const {
  if (!sizes_.zones() || !training()) return x;
  Tensors all{x};
  const auto add = [&](const std::vector<Dropout>& list, std::int64_t width) {
    if (list.empty()) return;
    Shape shape = x.shape();
    shape[-1] = width;
    all.push_back(list[at](ones(shape, x.dtype())));
  };
  add(zones_h_, sizes_.state_size());
  add(zones_c_, sizes_.hidden_size);
  return concat(std::span<const Tensor>(all.data(), all.size()), -1);
}

RecurrentStep Recurrent::zoned(RecurrentStep step, const RecurrentSizes& s, bool drawn) {
  if (!s.zones()) return step;
  if (!drawn)
    return [=, step = std::move(step)](const Tensor& x, const RecurrentState& before) {
      RecurrentState next = step(x, before);
      const auto expected = [](double z, const Tensor& was, const Tensor& is) { return was * z + is * (1 - z); };
      if (s.zoneout > 0) next.h = expected(s.zoneout, before.h, next.h);
      if (s.zoneout_cell > 0) next.c = expected(s.zoneout_cell, before.c, next.c);
      return next;
    };
  const std::int64_t of_h = s.zoneout > 0 ? s.state_size() : 0, of_c = s.zoneout_cell > 0 ? s.hidden_size : 0;
  return [=, step = std::move(step)](const Tensor& x, const RecurrentState& before) {
    const std::int64_t D = x.shape()[-1] - of_h - of_c;
    RecurrentState next = step(slice(x, -1, 0, D), before);
    const auto keeps = [&](std::int64_t from, std::int64_t n) { return eq(slice(x, -1, from, from + n), 0); };
    if (of_h > 0) next.h = where(keeps(D, of_h), before.h, next.h);
    if (of_c > 0) next.c = where(keeps(D + of_h, of_c), before.c, next.c);
    return next;
  };
}

std::string Recurrent::suffix_of(std::int64_t layer, bool reverse) {
  return "_l" + text(layer) + (reverse ? "_reverse" : "");
}

std::size_t Recurrent::index_of(const char* what, std::int64_t layer, bool reverse) const {
  (void)whole();
  if (layer < 0 || layer >= sizes_.layers || (reverse && !sizes_.bidirectional))
    throw ValueError(name_ + ": has no " + what + suffix_of(layer, reverse) + "; it has " + text(sizes_.layers) +
                     (sizes_.bidirectional ? " bidirectional" : " forward") + " layers");
  return static_cast<std::size_t>(layer * sizes_.directions() + (reverse ? 1 : 0));
}

RecurrentResult Recurrent::run(const Tensor& x, const Context& context) const {
  (void)whole();
  return inside([&] { return run_layers(x, context); });
}

RecurrentResult Recurrent::run_layers(const Tensor& x, const Context& context) const {
  check_goes_on(x, context);
  const Dtype type = dtype();
  Call call(name_, lengths_name_, sizes_, x, context, type);
  const std::span<const State> carried = states_in(context, call.B);
  const bool memory = has_memory_;
  if (context.cell.defined() && !memory)
    throw ValueError(name_ + ": the context has an initial memory (cell), this cell has none; give its state alone");
  Tensors h = call.initial(carried.empty() ? context.state : carried[0].value(), sizes_.state_size(), type);
  Tensors c;
  if (memory) c = call.initial(carried.empty() ? context.cell : carried[1].value(), sizes_.hidden_size, type);

  Tensor y = std::move(call.input);
  for (std::int64_t k = 0; k < sizes_.layers; ++k) {
    std::array<Tensor, 2> outputs;
    for (std::int64_t d = 0; d < sizes_.directions(); ++d) {
      const auto at = static_cast<std::size_t>(k * sizes_.directions() + d);
      RecurrentState state{std::move(h[at]), memory ? std::move(c[at]) : Tensor()};
      outputs[static_cast<std::size_t>(d)] = run_direction(at, y, call.options(d == 1), state);
      h[at] = std::move(state.h);
      if (memory) c[at] = std::move(state.c);
    }
    y = sizes_.bidirectional ? concat({outputs[0], outputs[1]}, -1) : std::move(outputs[0]);
    if (k + 1 < sizes_.layers && !dropouts_.empty()) y = dropouts_[static_cast<std::size_t>(k)](y);
  }
  if (!carried.empty()) carried[0].assign(stack(h));
  if (!carried.empty() && memory) carried[1].assign(stack(c));
  return {call.result(std::move(y)), call.collected(std::move(h)), memory ? call.collected(std::move(c)) : Tensor()};
}

std::vector<StepState> Recurrent::states(const StepRows& in) const {
  if (!causal()) return {};
  const auto state = [&](const char* name, std::int64_t width) {
    return StepState{.name = name, .shape = {sizes_.layers, in.batch, width}, .dtype = dtype(), .rows = 1};
  };
  std::vector<StepState> all = {state("h", sizes_.state_size())};
  if (has_memory_) all.push_back(state("c", sizes_.hidden_size));
  return all;
}

StepResult Recurrent::step(const Tensor& x, const Tensors& states) const {
  if (states.empty()) return {};
  if (x.rank() != 2 || x.shape()[1] != sizes_.input_size)
    throw ShapeError(name_ + ": a step expects input [B, " + text(sizes_.input_size) + "], got " + x.shape().str());
  check_dtype(name_, x, dtype(), "input");
  Tensors h = unbind(states[0], 0), c = has_memory_ ? unbind(states[1], 0) : Tensors();
  Tensor y = x;
  for (std::size_t k = 0; k < h.size(); ++k) {
    const RecurrentStep own = [&](const Tensor& in, const RecurrentState& before) { return run_step(k, in, before); };
    RecurrentState next = zoned(own, sizes_, training())(with_masks(k, y), {h[k], has_memory_ ? c[k] : Tensor()});
    y = h[k] = std::move(next.h);
    if (has_memory_) c[k] = std::move(next.c);
    if (k + 1 < h.size() && !dropouts_.empty()) y = dropouts_[k](y);
  }
  StepResult r{y, {stack(h)}};
  if (has_memory_) r.states.push_back(stack(c));
  return r;
}

std::span<const State> Recurrent::states_in(const Context& context, std::int64_t batch) const {
  if (!context.carry) return {};
  if (!causal()) throw ValueError(name_ + ": a backward direction cannot be carried on");
  if (context.state.defined() || context.cell.defined())
    throw ValueError(name_ + ": the context has both an initial state and a carry; give one of them");
  return context.carry->states_of(*this, batch);
}

// ---- the step of a stream ------------------------------------------------------------------------------

namespace {

using detail::GatedCell;
using detail::KernelWeights;
using detail::PackedLayer;
using detail::StepMemory;
using ferrite::detail::padded;

/// The step of all layers of a recurrent layer in a stream.
template <class T>
class RecurrentStepOf final : public Step {
 public:
  RecurrentStepOf(const GatedCell& cell, const RecurrentSizes& sizes,
                  const std::vector<RecurrentWeights<Parameter>>& weights, const InitialStates& initial,
                  std::int64_t batch)
      : cell_(&cell),
        kernels_(&detail::kernels_of<T>(cell)),
        L_(sizes.layers),
        B_(batch),
        H_(sizes.hidden_size),
        P_(sizes.state_size()),
        initial_(initial),
        h_(L_ * B_ * padded<T>(P_)),
        next_(L_ * B_ * padded<T>(P_)),
        c_(cell.has_memory ? L_ * B_ * padded<T>(H_) : 0),
        c_next_(c_.size()),
        room_(B_ * (cell.gates + 1) * padded<T>(H_) + B_ * padded<T>(P_)),
        at_once_(detail::steps_at_once(B_ * P_ * static_cast<std::int64_t>(sizeof(T)))),
        sequence_(at_once_ > 1 ? 2 * at_once_ * B_ * P_ : 0),
        states_(at_once_ > 1 ? B_ * (P_ + H_) : 0) {
    for (const RecurrentWeights<Parameter>& w : weights) layers_.emplace_back(cell, w);
    if (at_once_ > 1) rows_memory_.emplace(memory_of_a_sequence());
    take_initial();
    detail::begin_states(*this);
  }

  StepRows result() const override { return {B_, P_, dtype_of<T>}; }

  void run(Inputs x, void* y) override {
    const std::int64_t Hp = padded<T>(H_), Pp = padded<T>(P_), G = cell_->gates;
    T* const i = room_.get();
    T* const between = i + B_ * G * Hp;
    const T* at = static_cast<const T*>(x[0]);
    std::int64_t row = layers_[0].weights().weight_ih.K;
    T* const now = h();
    T* const after = swapped_ ? h_.get() : next_.get();
    T* const memory = c();
    T* const memory_after = swapped_ ? c_.get() : c_next_.get();
    for (std::int64_t k = 0; k < L_; ++k) {
      const KernelWeights<T>& w = layers_[static_cast<std::size_t>(k)].weights();
      const std::int64_t state = k * B_ * Pp;
      const std::int64_t of_memory = cell_->has_memory ? k * B_ * Hp : 0;
      const bool takes_x = detail::gates_take_x(*cell_, w.weight_ih.K);
      if (!takes_x) kernels_->input_product(w, B_, at, row, i, Hp, G * Hp);
      kernels_->step(w, detail::RecurrenceStep<T>{.rows = B_,
                                                  .i = i,
                                                  .i_gate = Hp,
                                                  .i_row = G * Hp,
                                                  .x = takes_x ? at : nullptr,
                                                  .x_row = row,
                                                  .save = false,
                                                  .h = now + state,
                                                  .next = after + state,
                                                  .c = memory + of_memory,
                                                  .c_next = memory_after + of_memory,
                                                  .between = between,
                                                  .P_ = Pp,
                                                  .H_ = Hp,
                                                  .y = k + 1 == L_ ? static_cast<T*>(y) : between + B_ * Hp,
                                                  .y_row = P_});
      at = after + state;
      row = Pp;
    }
  }
  void commit() override { swapped_ = !swapped_; }
  bool never_throws() const override { return true; }
  void advance(Inputs x, void* y) override {
    run(x, y);
    commit();
  }
  void commit_rows(Rows rows) override {
    T *const h = this->h(), *const c = this->c();
    commit();
    const auto stay = [&](const T* before, T* now, std::int64_t n) {
      for (std::int64_t k = 0; k < L_ * B_; ++k)
        if (!rows[k % B_]) std::copy_n(before + k * n, n, now + k * n);
    };
    stay(h, this->h(), padded<T>(P_));
    if (cell_->has_memory) stay(c, this->c(), padded<T>(H_));
  }

  std::int64_t most_at_once() const override { return at_once_; }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    detail::Rows<const T*> from{static_cast<const T*>(x[0]), B_ * layers_[0].weights().weight_ih.K,
                                layers_[0].weights().weight_ih.K};
    for (std::int64_t k = 0; k < L_; ++k) {
      const bool last = k + 1 == L_;
      T* const to = last ? static_cast<T*>(y) : sequence_.get() + k % 2 * at_once_ * B_ * P_;
      run_layer(k, n, from, {to, B_ * P_, P_});
      from = {to, B_ * P_, P_};
    }
  }

  void refresh() override {
    for (PackedLayer<T>& l : layers_) l.refresh();
    take_initial();
  }
  void states(const StateVisitor& see) override {
    see(state("h", h(), P_, first_.h));
    if (cell_->has_memory) see(state("c", c(), H_, first_.c));
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<RecurrentStepOf>(*this); }

 private:
  detail::Recurrence<T> sequence(std::int64_t k, std::int64_t n, detail::Rows<const T*> x) {
    return {.cell = cell_,
            .T_ = n,
            .B = B_,
            .D = layers_[static_cast<std::size_t>(k)].weights().weight_ih.K,
            .H = H_,
            .P = P_,
            .reverse = false,
            .x = x,
            .w = layers_[static_cast<std::size_t>(k)].weights(),
            .h0 = states_.get(),
            .c0 = cell_->has_memory ? states_.get() + B_ * P_ : nullptr,
            .lengths = nullptr,
            .resets = {}};
  }
  /// Returns the results of n steps; the states after them replace those before in `states_`.
  detail::RecurrenceOut<T> out_of(const detail::Recurrence<T>& r, detail::Rows<T*> y) {
    return {.y = y, .h = states_.get(), .c = r.c0 ? states_.get() + B_ * P_ : nullptr, .saved = nullptr};
  }
  /// Returns the memory of the layer that needs most; the first may need less, because its gates multiply x themselves.
  std::int64_t memory_of_a_sequence() {
    std::int64_t most = 0;
    for (std::int64_t k = 0; k < L_; ++k) {
      const detail::Recurrence<T> r = sequence(k, at_once_, {});
      most = std::max(most, detail::recurrence_in_use.of<T>().memory(r, out_of(r, {}), B_));
    }
    return most;
  }

  /// Runs n steps of layer k.
  void run_layer(std::int64_t k, std::int64_t n, detail::Rows<const T*> x, detail::Rows<T*> y) {
    const detail::Recurrence<T> r = sequence(k, n, x);
    const detail::RecurrenceOut<T> out = out_of(r, y);
    T* const h = this->h() + k * B_ * padded<T>(P_);
    T* const c = this->c() + k * B_ * padded<T>(H_);
    for (std::int64_t b = 0; b < B_; ++b) {
      std::copy_n(h + b * padded<T>(P_), P_, out.h + b * P_);
      if (out.c) std::copy_n(c + b * padded<T>(H_), H_, out.c + b * H_);
    }
    detail::recurrence_in_use.of<T>().rows(*kernels_, r, out, 0, B_, rows_memory_->get());
    for (std::int64_t b = 0; b < B_; ++b) {
      std::copy_n(out.h + b * P_, P_, h + b * padded<T>(P_));
      if (out.c) std::copy_n(out.c + b * H_, H_, c + b * padded<T>(H_));
    }
  }

  /// Returns the states that the next step reads.
  T* h() const { return swapped_ ? next_.get() : h_.get(); }
  T* c() const { return swapped_ ? c_next_.get() : c_.get(); }
  void take_initial() {
    if (initial_.h.defined()) first_.h = contiguous(initial_.h.peek());
    if (initial_.c.defined()) first_.c = contiguous(initial_.c.peek());
  }
  StateMemory state(const char* name, T* rows, std::int64_t width, const Tensor& initial) const {
    const std::int64_t size = size_of(dtype_of<T>), row = padded<T>(width) * size;
    return {.name = name,
            .spec = {{L_, B_, width}, dtype_of<T>},
            .rows = 1,
            .first = reinterpret_cast<std::byte*>(rows),
            .strides = {B_ * row, row, size},
            .initial = initial};
  }

  const GatedCell* cell_;
  const detail::CellKernels<T>* kernels_;
  std::int64_t L_, B_, H_, P_;
  InitialStates initial_;
  struct {
    Tensor h{}, c{};
  } first_;  ///< the first values of the states
  std::vector<PackedLayer<T>> layers_;
  StepMemory<T> h_, next_, c_, c_next_;
  StepMemory<T> room_;
  std::int64_t at_once_;    ///< steps that there is room for
  StepMemory<T> sequence_;  ///< rows between two layers for these steps
  StepMemory<T> states_;    ///< the states of one layer, without the padding of rows
  std::optional<StepMemory<T>> rows_memory_{};
  bool swapped_ = false;  ///< whether the states are in `next_` and `c_next_`
};

}  // namespace

std::size_t GatedRecurrent::add_steps(StepGraph& graph, std::size_t x) const {
  const StepRows in = graph.rows(x);
  std::string why;
  std::unique_ptr<Step> step = step_from({}, in);
  if (!step && causal() && sizes().form.scans()) step = sizes().form.scans()->traced_step(*this, in, why);
  return step ? graph.add(*this, std::move(step), {x}) : Layer::add_steps(graph, x);
}

std::unique_ptr<Step> GatedRecurrent::step_from(const InitialStates& initial, const StepRows& in) const {
  if (!causal() || sizes().zones()) return nullptr;
  if (auto step = detail::one_row_step(*cell_, sizes(), weights_, initial, in)) return step;
  if (in.dtype == Dtype::f64)
    return std::make_unique<RecurrentStepOf<double>>(*cell_, sizes(), weights_, initial, in.batch);
  return std::make_unique<RecurrentStepOf<float>>(*cell_, sizes(), weights_, initial, in.batch);
}

}  // namespace ferrite::nn
