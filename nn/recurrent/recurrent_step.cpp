/// One step of a recurrent layer for streams: its weights packed once, its states in place.
#include <algorithm>
#include <optional>

#include "ferrite/nn/detail/states.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/recurrent/detail/pack_weights.h"
#include "ferrite/nn/recurrent/detail/recurrence_kernels.h"
#include "ferrite/nn/recurrent/detail/recurrent_scan.h"
#include "ferrite/nn/recurrent/gated.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/kernel/pack.h"

namespace ferrite::nn {
namespace {

using detail::EarlyAndLate;
using detail::GatedCell;
using detail::KernelWeights;
using detail::RowMajor;
using detail::StepMemory;
using ferrite::detail::padded;

/// The weights of one layer, packed into memory of their own.
template <class T>
class PackedLayer {
 public:
  PackedLayer(const GatedCell& cell, const RecurrentWeights<Parameter>& cells)
      : cell_(&cell), cells_(cells), memory_(pack(nullptr)) {
    refresh();
  }
  void refresh() { pack(memory_.get()); }

  const KernelWeights<T>& weights() const { return weights_; }
  PackedLayer(PackedLayer&&) = default;
  PackedLayer(const PackedLayer& o) : cell_(o.cell_), cells_(o.cells_), weights_(o.weights_), memory_(o.memory_) {
    const std::ptrdiff_t moved = memory_.get() - o.memory_.get();
    EarlyAndLate<T>& hh = weights_.weight_hh;
    for (auto* w : {&weights_.weight_ih, &hh.early, &hh.late, &weights_.weight_hr})
      if (w->data) w->data += moved;
    for (const T** b : {&weights_.bias_ih, &weights_.bias_hh, &weights_.weight_ch})
      if (*b) *b += moved;
  }

 private:
  /// Packs them to there, or to nowhere; returns how many elements they take.
  std::int64_t pack(T* to) {
    static const Tensor none;
    const auto row_major = [](const Parameter& p) { return RowMajor(p.defined() ? p.peek() : none); };
    std::int64_t n = 0;
    weights_ = pack_weights<T>(*cell_, cells_.map(row_major), {true, true, true, true, true, true},
                               [&](const Tensor&, const auto&, std::int64_t elements, const auto& fill) -> const T* {
                                 T* const at = to ? to + n : nullptr;
                                 if (at) fill(at);
                                 n += elements;
                                 return at;
                               });
    return n;
  }

  const GatedCell* cell_;
  RecurrentWeights<Parameter> cells_;
  KernelWeights<T> weights_{};
  StepMemory<T> memory_;
};

/// One step of all layers of a recurrent layer.
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
  /// Where the states after n steps go: where those before stood.
  detail::RecurrenceOut<T> out_of(const detail::Recurrence<T>& r, detail::Rows<T*> y) {
    return {.y = y, .h = states_.get(), .c = r.c0 ? states_.get() + B_ * P_ : nullptr, .saved = nullptr};
  }
  /// What the layer that needs most of it needs: the first one may multiply its input within the gates.
  std::int64_t memory_of_a_sequence() {
    std::int64_t most = 0;
    for (std::int64_t k = 0; k < L_; ++k) {
      const detail::Recurrence<T> r = sequence(k, at_once_, {});
      most = std::max(most, detail::recurrence_in_use.of<T>().memory(r, out_of(r, {}), B_));
    }
    return most;
  }

  /// n steps of layer k.
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

  /// The states as the next step reads them.
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
  } first_;  ///< what the states begin with
  std::vector<PackedLayer<T>> layers_;
  StepMemory<T> h_, next_, c_, c_next_;
  StepMemory<T> room_;
  std::int64_t at_once_;    ///< steps that there is room for
  StepMemory<T> sequence_;  ///< rows between two layers in so many steps
  StepMemory<T> states_;    ///< of a layer, without the padding of rows
  std::optional<StepMemory<T>> rows_memory_{};
  bool swapped_ = false;  ///< the states stand in `next_` and `c_next_`
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
  if (in.dtype == Dtype::f64)
    return std::make_unique<RecurrentStepOf<double>>(*cell_, sizes(), weights_, initial, in.batch);
  return std::make_unique<RecurrentStepOf<float>>(*cell_, sizes(), weights_, initial, in.batch);
}

}  // namespace ferrite::nn
