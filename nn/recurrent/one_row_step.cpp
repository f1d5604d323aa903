/// The step of a small recurrent layer in a stream with a single row. Its product with the state overlaps with the
/// layers after it and with the call that brings the next input; a next layer of one output becomes a part of it.
#include "ferrite/nn/recurrent/detail/one_row_step.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/recurrent/detail/packed_layer.h"
#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/tensor/inline_vector.h"

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::padded;
using T = float;  // f64, which is for checks, uses the step of many rows

/// W_hh in panels of columns, and h W_hh for the states before and after a step.
class CarriedProduct {
 public:
  CarriedProduct(std::int64_t gates, std::int64_t units)
      : K_(units),
        gates_(gates),
        gate_(gate_of(gates, units)),
        packets_(padded<T>((gates - 1) * gate_ + units) / lanes()),
        weight_(K_ * packets_ * lanes(), StepMemory<T>::Unset()),
        products_(2 * packets_ * lanes()) {
    // `pack` leaves out the columns of padding. Nobody reads their results, but denormal numbers there would be slow.
    if (gates_ * K_ != packets_ * lanes()) weight_.clear();
    for (std::int64_t left = (packets_ + kMostPackets - 1) / kMostPackets, first = 0; left > 0; --left) {
      const std::int64_t n = (packets_ - first) / left;
      panels_.push_back({first * lanes(), n * lanes(), recurrence_in_use.of<T>().panels[n - 1]});
      first += n;
    }
  }

  void pack(const Tensor& weight) {
    const T* const from = weight.data<T>();
    for (const Panel& p : panels_)
      for (std::int64_t k = 0; k < K_; ++k) {
        T* const to = weight_.get() + p.begin * K_ + k * p.width;
        for (std::int64_t g = 0; g < gates_; ++g) {
          const std::int64_t first = std::max(g * gate_, p.begin), end = std::min(g * gate_ + K_, p.begin + p.width);
          if (first < end)
            std::copy_n(from + (k * gates_ + g) * K_ + first - g * gate_, end - first, to + first - p.begin);
        }
      }
  }
  T* product(bool which) const { return products_.get() + (which ? packets_ * lanes() : 0); }
  std::int64_t gate() const { return gate_; }
  /// Returns W_hh for a step that computes its product itself if a gate is one packet, else a matrix without data.
  GateMatrix<T> matrix() const {
    if (gate_ != lanes()) return {};
    return {weight_.get(), K_, K_, gates_ * lanes(), K_ * gates_ * lanes(), lanes()};
  }
  /// Computes h W_hh and, if there is a column, h times the column.
  [[gnu::always_inline]] void make(const T* h, bool which, const T* column, T* sum) const {
    T* const y = product(which);
    for (const Panel& p : panels_) {
      p.run(weight_.get() + p.begin * K_, K_, h, y + p.begin, column, sum);
      column = nullptr;
    }
  }

 private:
  static constexpr std::int64_t kMostPackets = 8;  ///< packets of a panel, whose sums stay in registers
  struct Panel {
    std::int64_t begin, width;  ///< columns of the whole product
    RecurrenceKernels<T>::Panel run;
  };
  static std::int64_t lanes() { return padded<T>(1); }
  /// Returns the number of elements from one gate to the next. If all gates fit into few packets, each begins with a
  /// packet, as they are read; otherwise they are adjacent: 24 units of four gates are six packets, not eight.
  static std::int64_t gate_of(std::int64_t gates, std::int64_t units) {
    constexpr std::int64_t kFewPackets = 4;  // the latency of one chain of sums hides four
    return gates * padded<T>(units) <= kFewPackets * lanes() ? padded<T>(units) : units;
  }

  std::int64_t K_, gates_, gate_, packets_;
  StepMemory<T> weight_;
  StepMemory<T> products_;  ///< for the states at 0, then for those at 1
  InlineVector<Panel, 4> panels_{};
};

/// The layer of one output that a step has taken over.
struct JoinedOutput {
  JoinedOutput() = default;
  JoinedOutput(const JoinedOutput& o) : step(o.step ? o.step->clone() : nullptr), then(o.then) {}
  std::unique_ptr<Step> step{};
  std::optional<ElementFunction> then{};  ///< applied to the layer's output

  void run(std::int64_t n, const void* h, void* y) const {
    step->run_several(n, &h, y);
    if (then) (*then)(y, y, n);
  }
};

constexpr std::int64_t kInputsAtOnce = 8;  // rows of a tile

/// The operands of a layer's steps except input and output: from the states at 0 and from those at 1. They are written
/// once, because a step of a small layer takes hardly longer than writing them.
struct LayerSteps {
  RecurrenceStep<T> step[2];
  const CellKernels<T>* kernels;
  const KernelWeights<T>* weights;
  KernelWeights<T> with_product;  ///< the weights of steps that compute their product themselves, if there are any
  const CarriedProduct* carried;
  bool takes_x;
  T* inputs;  ///< memory for x W_ih of some steps
  T* room;    ///< memory for outputs that only the next layer reads

  std::int64_t features() const { return weights->weight_ih.K; }
  /// Computes the inputs x W_ih of n adjacent rows.
  void make_inputs(std::int64_t n, const T* x) const {
    kernels->input_product(*weights, n, x, features(), inputs, step[0].i_gate, step[0].i_row);
  }
  /// Runs a step from x itself, or from the `made`-th of the inputs that `make_inputs` has computed.
  [[gnu::always_inline]] void gates(const T* x, std::int64_t made, bool from, T* y) {
    gates(step[from], *weights, x, made, y);
  }
  [[gnu::always_inline]] void gates(RecurrenceStep<T>& s, const KernelWeights<T>& w, const T* x, std::int64_t made,
                                    T* y) const {
    if (takes_x) {
      s.x = x;
    } else {
      s.i = inputs + made * s.i_row;
    }
    s.y = y;
    kernels->step(w, s);
  }
  /// Runs n steps x [n, D] -> h [n, H] that compute their products themselves: within a block nothing else could
  /// overlap with them.
  void run_whole(std::int64_t n, const T* x, bool from, T* h) const {
    RecurrenceStep<T> steps[2] = {step[from], step[!from]};
    steps[0].product = steps[1].product = nullptr;
    for (std::int64_t t = 0; t < n; ++t, x += features(), h += step[0].y_row) {
      const std::int64_t made = t % kInputsAtOnce;
      if (!takes_x && made == 0) make_inputs(std::min(n - t, kInputsAtOnce), x);
      gates(steps[t % 2], with_product, x, made, h);
    }
  }
};

StateMemory state(const char* name, std::int64_t layers, std::int64_t units, T* rows, const Tensor& initial) {
  const std::int64_t size = size_of(Dtype::f32), row = padded<T>(units) * size;
  return {.name = name,
          .spec = {{layers, 1, units}, Dtype::f32},
          .rows = 1,
          .first = reinterpret_cast<std::byte*>(rows),
          .strides = {row, row, size},
          .initial = initial};
}

/// The first values of the states.
struct FirstStates {
  InitialStates from;
  Tensor h{}, c{};

  void take() {
    if (from.h.defined()) h = contiguous(from.h.peek());
    if (from.c.defined()) c = contiguous(from.c.peek());
  }
};

/// The steps of all layers, which point into the memory of one object; a copy of that object makes its own.
struct Bound {
  Bound() = default;
  Bound(const Bound&) {}
  std::vector<LayerSteps> layers{};
};

/// The weights of a layer: packed, and W_hh in panels.
struct RowLayer {
  RowLayer(const GatedCell& cell, const RecurrentWeights<Parameter>& w)
      : packed(cell, w, true), carried(cell.gates, w.weight_hh.shape()[0]) {}
  PackedLayer<T> packed;
  CarriedProduct carried;
};

/// The step that `one_row_step` makes.
class OneRowStep final : public Step {
 public:
  OneRowStep(const GatedCell& cell, const RecurrentSizes& sizes,
             const std::vector<RecurrentWeights<Parameter>>& weights, const InitialStates& initial)
      : cell_(&cell),
        L_(sizes.layers),
        H_(sizes.hidden_size),
        first_{initial},
        states_((cell.has_memory ? 4 : 2) * L_ * padded<T>(H_)),
        made_inputs_(L_ == 1 && gates_take_x(cell, sizes.input_size) ? 0 : kInputsAtOnce * cell.gates * padded<T>(H_)),
        inputs_(made_inputs_ + padded<T>(H_)),
        at_once_(steps_at_once(H_ * static_cast<std::int64_t>(sizeof(T)))) {
    layers_.reserve(weights.size());
    if (L_ > 1) make_room();
    for (const RecurrentWeights<Parameter>& w : weights) {
      layers_.emplace_back(cell, w);
      layers_.back().carried.pack(layers_.back().packed.weight_hh());
    }
    first_.take();
    bind();
    begin_states(*this);
  }

  StepRows result() const override { return {1, output_.step ? 1 : H_, Dtype::f32}; }
  bool never_throws() const override { return true; }
  void run(Inputs x, void* y) override {
    std::vector<LayerSteps>& layers = bound();
    const T* from = static_cast<const T*>(x[0]);
    T* const to = static_cast<T*>(y);
    for (LayerSteps& l : layers) {
      if (!l.takes_x) l.make_inputs(1, from);
      l.gates(from, 0, swapped_, &l == &layers.back() && !column_ ? to : l.room);
      from = l.step[swapped_].next;
    }
    for (LayerSteps& l : layers) carry(l, !swapped_, &l == &layers.back() ? to : nullptr);
  }
  void commit() override { swapped_ = !swapped_; }
  void advance(Inputs x, void* y) override {
    if (L_ == 1 && made_ && bound_.layers[0].takes_x) {
      LayerSteps& l = bound_.layers[0];
      T* const to = static_cast<T*>(y);
      l.gates(static_cast<const T*>(x[0]), 0, swapped_, column_ ? l.room : to);
      carry(l, !swapped_, to);
    } else {
      OneRowStep::run(x, y);
    }
    swapped_ = !swapped_;
  }
  void commit_rows(Rows rows) override {
    if (rows[0]) swapped_ = !swapped_;
  }

  std::int64_t most_at_once() const override { return at_once_; }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    const T* from = static_cast<const T*>(x[0]);
    for (LayerSteps& l : bound()) {
      const bool last = &l == &bound_.layers.back();
      T* const to = last ? static_cast<T*>(y) : between_->get() + (&l - bound_.layers.data()) % 2 * at_once_ * H_;
      const bool outputs = last && column_;
      if (l.with_product.weight_hh.early.data) {
        T* const h = outputs ? between_->get() + (L_ - 1) % 2 * at_once_ * H_ : to;
        l.run_whole(n, from, swapped_, h);
        if (outputs) output_.run(n, h, to);
        made_ = false;
      } else {
        run_layer(l, n, from, to, outputs);
      }
      from = to;
    }
    if (n % 2 == 1) swapped_ = !swapped_;
  }

  bool join_output(std::unique_ptr<Step>& next) override {
    if (output_.step || !next->single_output()) return false;
    output_.step = std::move(next);
    if (!between_) make_room();
    bind();
    return true;
  }
  bool join(const ElementFunction& f) override {
    if (!output_.step || output_.then) return false;
    output_.then = f;
    return true;
  }
  void refresh() override {
    for (RowLayer& l : layers_) l.packed.refresh(), l.carried.pack(l.packed.weight_hh());
    if (output_.step) output_.step->refresh();
    first_.take();
    made_ = false;
  }
  void each(const StepVisitor& see) override {
    see(*this);
    if (output_.step) see(*output_.step);
  }
  void states(const StateVisitor& see) override {
    see(state("h", L_, H_, h(swapped_), first_.h));
    if (cell_->has_memory) see(state("c", L_, H_, c(swapped_), first_.c));
  }
  void states_changed() override { made_ = false; }
  std::unique_ptr<Step> clone() const override {
    auto copy = std::make_unique<OneRowStep>(*this);
    copy->bind();
    return copy;
  }

 private:
  /// Returns the steps, after computing the products of the present states if they are not known.
  std::vector<LayerSteps>& bound() {
    if (!made_) [[unlikely]]
      for (const LayerSteps& l : bound_.layers) l.carried->make(l.step[swapped_].h, swapped_, nullptr, nullptr);
    made_ = true;
    return bound_.layers;
  }
  void make_room() { between_.emplace((L_ == 1 ? 1 : 2) * at_once_ * H_ + padded<T>(1), StepMemory<T>::Unset()); }
  void bind() {
    bound_.layers.clear();
    for (std::int64_t k = 0; k < L_; ++k) bound_.layers.push_back(steps_of(k));
    const SingleOutput* const output = output_.step ? output_.step->single_output() : nullptr;
    column_ = output ? static_cast<const T*>(output->column) : nullptr;
    bias_ = output ? static_cast<const T*>(output->bias) : nullptr;
  }
  T* h(bool which) const { return states_.get() + (which ? L_ * padded<T>(H_) : 0); }
  T* c(bool which) const { return cell_->has_memory ? states_.get() + (which ? 3 : 2) * L_ * padded<T>(H_) : h(which); }
  LayerSteps steps_of(std::int64_t k) {
    const std::int64_t Hp = padded<T>(H_), at = k * Hp;
    const RowLayer& layer = layers_[static_cast<std::size_t>(k)];
    const KernelWeights<T>& w = layer.packed.weights();
    T* const room = inputs_.get() + made_inputs_;
    const auto from = [&](bool which) -> RecurrenceStep<T> {
      return {.rows = 1,
              .i = inputs_.get(),
              .i_gate = Hp,
              .i_row = cell_->gates * Hp,
              .save = false,
              .h = h(which) + at,
              .next = h(!which) + at,
              .c = c(which) + at,
              .c_next = c(!which) + at,
              .between = room,
              .P_ = Hp,
              .H_ = Hp,
              .y = room,
              .y_row = H_,
              .whole_y = true,
              .product = layer.carried.product(which),
              .product_gate = layer.carried.gate()};
    };
    KernelWeights<T> with_product = w;
    with_product.weight_hh.early = layer.carried.matrix();
    return {.step = {from(false), from(true)},
            .kernels = &kernels_of<T>(*cell_),
            .weights = &w,
            .with_product = with_product,
            .carried = &layer.carried,
            .takes_x = gates_take_x(*cell_, w.weight_ih.K),
            .inputs = inputs_.get(),
            .room = room};
  }

  /// Computes the product of the states at `which`, and the output of a joined layer if there is memory for it.
  [[gnu::always_inline]] void carry(const LayerSteps& l, bool which, T* output) {
    const T* const column = output ? column_ : nullptr;
    l.carried->make(l.step[which].h, which, column, output);
    if (!column) return;
    if (bias_) *output += *bias_;
    if (output_.then) (*output_.then)(output, output, 1);
  }
  /// Runs n steps of a layer: x [n, D] -> y [n, H], or [n, 1] of the joined layer.
  void run_layer(LayerSteps& l, std::int64_t n, const T* x, T* y, bool outputs) {
    const std::int64_t D = l.features(), width = outputs ? 1 : H_;
    bool from = swapped_;
    for (std::int64_t t = 0; t < n; ++t, x += D, y += width) {
      const std::int64_t made = t % kInputsAtOnce;
      if (!l.takes_x && made == 0) l.make_inputs(std::min(n - t, kInputsAtOnce), x);
      l.gates(x, made, from, outputs ? l.room : y);
      from = !from;
      carry(l, from, outputs ? y : nullptr);
    }
  }

  const GatedCell* cell_;
  std::int64_t L_, H_;
  FirstStates first_;
  std::vector<RowLayer> layers_;
  StepMemory<T> states_;                    ///< h of all layers twice, then c twice if there is one
  std::int64_t made_inputs_;                ///< elements of the inputs that are computed before their steps
  StepMemory<T> inputs_;                    ///< these inputs, then an output that only the next layer reads
  std::int64_t at_once_;                    ///< steps that there is room for
  std::optional<StepMemory<T>> between_{};  ///< rows between two layers for these steps, in two alternating halves
  JoinedOutput output_{};
  Bound bound_{};
  const T *column_ = nullptr, *bias_ = nullptr;  ///< the weights of the joined layer
  bool swapped_ = false;                         ///< whether the states are at 1
  bool made_ = false;                            ///< whether the products are those of the present states
};

}  // namespace

std::unique_ptr<Step> one_row_step(const GatedCell& cell, const RecurrentSizes& sizes,
                                   const std::vector<RecurrentWeights<Parameter>>& weights,
                                   const InitialStates& initial, const StepRows& in) {
  constexpr std::int64_t kFirstCache = 50 * 1024;  // bytes
  const std::int64_t H = sizes.hidden_size, bytes = H * H * cell.gates * static_cast<std::int64_t>(sizeof(T));
  if (in.batch != 1 || in.dtype != Dtype::f32 || bytes > kFirstCache) return nullptr;
  if (cell.late_gates > 0 || sizes.proj_size > 0) return nullptr;
  const bool narrower = H % padded<T>(1) != 0;  // than gates that begin with a packet each
  if (!narrower && bytes > kFirstCache / 2 && (cell.gates > 3 || sizes.input_size > 1)) return nullptr;
  return std::make_unique<OneRowStep>(cell, sizes, weights, initial);
}

}  // namespace ferrite::nn::detail
