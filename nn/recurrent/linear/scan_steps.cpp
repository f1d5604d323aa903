/// Steps of layers without a product in their loop, for streams: states in place, weights packed once.
#include "ferrite/nn/recurrent/detail/scan_steps.h"

#include <algorithm>

#include "ferrite/tensor/kernel/linear_scan.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {
namespace {

using namespace ferrite::detail;

/// States of all rows, [batch, ...]: what a step reads, and what it leaves until `commit`.
template <class T>
class RowStates {
 public:
  explicit RowStates(const Shape& shape)
      : shape_(shape),
        width_(shape.numel() / std::max<std::int64_t>(shape[0], 1)),
        now_(shape.numel()),
        next_(shape.numel()) {}

  T* now() const { return now_.get(); }
  T* next() const { return next_.get(); }
  void commit() { std::copy_n(next(), now_.size(), now()); }
  void commit_rows(Step::Rows rows) {
    for (std::int64_t b = 0; b < shape_[0]; ++b)
      if (rows[b]) std::copy_n(next() + b * width_, width_, now() + b * width_);
  }
  StateMemory state() const {
    return {.name = "h", .spec = {shape_, dtype_of<T>}, .first = reinterpret_cast<std::byte*>(now())};
  }

 private:
  Shape shape_;
  std::int64_t width_;
  StepMemory<T> now_, next_;
};

/// What the steps here share: one state, a loop over n steps that `Self` runs from one memory of states to another.
template <class Self, class T>
class OneState : public Step {
 public:
  explicit OneState(const Shape& state, std::int64_t at_once) : states_(state), at_once_(at_once) {}

  bool never_throws() const override { return true; }
  void run(Inputs x, void* y) override { self().steps(1, x[0], states_.now(), y, states_.next()); }
  void commit() override { states_.commit(); }
  void commit_rows(Rows rows) override { states_.commit_rows(rows); }
  void advance(Inputs x, void* y) override { self().steps(1, x[0], states_.now(), y, states_.now()); }
  std::int64_t most_at_once() const override { return at_once_; }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    self().steps(n, x[0], states_.now(), y, states_.now());
  }
  void states(const StateVisitor& see) override { see(states_.state()); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<Self>(static_cast<const Self&>(*this)); }

 private:
  Self& self() { return static_cast<Self&>(*this); }

  RowStates<T> states_;
  std::int64_t at_once_;
};

// ---- minimal layers ----------------------------------------------------------------------------------------

template <class T>
class Minimal final : public OneState<Minimal<T>, T> {
 public:
  Minimal(MinimalCell cell, std::int64_t H, std::int64_t batch)
      : OneState<Minimal<T>, T>({batch, H},
                                steps_at_once(batch * gates_of(cell) * H * static_cast<std::int64_t>(sizeof(T)))),
        G_(gates_of(cell)),
        H_(H),
        B_(batch),
        scan_(minimal_kernels<T>(cell).scan) {}

  StepRows result() const override { return {B_, H_, dtype_of<T>}; }
  void steps(std::int64_t n, const void* gates, const T* from, void* h, T* to) const {
    const T* x = static_cast<const T*>(gates);
    T* y = static_cast<T*>(h);
    for (std::int64_t b = 0; b < B_; ++b)
      scan_({n, H_, B_ * G_ * H_, B_ * H_, x + b * G_ * H_, from + b * H_, nullptr}, y + b * H_);
    std::copy_n(y + (n - 1) * B_ * H_, B_ * H_, to);
  }

 private:
  std::int64_t G_, H_, B_;
  decltype(MinimalKernels<T>::scan) scan_;
};

// ---- diagonal recurrences ----------------------------------------------------------------------------------

/// A matrix [K, N], packed.
template <class T>
class Packed {
 public:
  explicit Packed(const Tensor& w) : K_(w.shape()[0]), N_(w.shape()[1]), memory_(gate_pack_size<T>(K_, 1, N_)) {
    take(w);
  }
  void take(const Tensor& w) { pack_columns(contiguous(w), memory_.get()); }
  /// x [rows, K] -> y [rows, N].
  void multiply(std::int64_t rows, const T* x, T* y) const {
    products_in_use.of<T>().packed_product(packed_gates<T>(memory_.get(), K_, 1, N_), rows, x, K_, nullptr, y);
  }
  std::int64_t rows() const { return K_; }
  std::int64_t columns() const { return N_; }

 private:
  std::int64_t K_, N_;
  StepMemory<T> memory_;
};

template <class T>
class DiagonalStep final : public OneState<DiagonalStep<T>, T> {
 public:
  DiagonalStep(std::function<Diagonal()> compute, std::vector<Parameter> parameters, std::int64_t batch)
      : DiagonalStep(computed(compute, parameters), compute, parameters, batch) {}

  StepRows result() const override { return {B_, out_.columns(), dtype_of<T>}; }
  void steps(std::int64_t n, const void* inputs, const T* from, void* outputs, T* to) const {
    const T* x = static_cast<const T*>(inputs);
    T *y = static_cast<T*>(outputs), *driven = room_.get(), *h = driven + room_.size() / 2;
    const std::int64_t W = in_.columns(), N = out_.columns();
    in_.multiply(n * B_, x, driven);
    for (std::int64_t b = 0; b < B_; ++b)
      scan_({n, B_ * W, W, false, true, true, nullptr, decay_.get(), from + b * W}, driven + b * W, h + b * W);
    std::copy_n(h + (n - 1) * B_ * W, B_ * W, to);
    out_.multiply(n * B_, h, y);
    for (std::int64_t r = 0; r < n * B_; ++r)
      for (std::int64_t k = 0; k < N; ++k) y[r * N + k] = y[r * N + k] + skip_.get()[k] * x[r * N + k];
  }
  void refresh() override {
    const Diagonal d = computed(compute_, parameters_);
    in_.take(d.in);
    out_.take(d.out);
    take_vectors(d);
  }

 private:
  DiagonalStep(const Diagonal& d, const std::function<Diagonal()>& compute, const std::vector<Parameter>& parameters,
               std::int64_t batch)
      : DiagonalStep(d, compute, parameters, batch,
                     steps_at_once(batch * d.in.shape()[1] * static_cast<std::int64_t>(sizeof(T)))) {}
  DiagonalStep(const Diagonal& d, const std::function<Diagonal()>& compute, const std::vector<Parameter>& parameters,
               std::int64_t batch, std::int64_t at_once)
      : OneState<DiagonalStep<T>, T>({batch, d.decay.shape()[0], 2}, at_once),
        compute_(compute),
        parameters_(parameters),
        B_(batch),
        in_(d.in),
        out_(d.out),
        decay_(d.decay.numel()),
        skip_(d.skip.numel()),
        room_(2 * (at_once * batch * d.in.shape()[1] + padded<T>(1))),
        scan_(linear_scan_in_use.of<T>().scan) {
    take_vectors(d);
  }

  static Diagonal computed(const std::function<Diagonal()>& compute, const std::vector<Parameter>& parameters) {
    for (const Parameter& p : parameters) (void)p.peek();  // throws where a value would become a constant of a program
    const NewFrame frame;
    return compute();
  }
  void take_vectors(const Diagonal& d) {
    const Tensor decay = contiguous(d.decay), skip = contiguous(d.skip);
    std::copy_n(decay.data<T>(), decay.numel(), decay_.get());
    std::copy_n(skip.data<T>(), skip.numel(), skip_.get());
  }

  std::function<Diagonal()> compute_;
  std::vector<Parameter> parameters_;
  std::int64_t B_;
  Packed<T> in_, out_;
  StepMemory<T> decay_, skip_, room_;
  decltype(LinearScanKernels<T>::scan) scan_;
};

}  // namespace

std::unique_ptr<Step> minimal_step(MinimalCell cell, std::int64_t H, const StepRows& gates) {
  if (gates.dtype == Dtype::f64) return std::make_unique<Minimal<double>>(cell, H, gates.batch);
  return std::make_unique<Minimal<float>>(cell, H, gates.batch);
}

std::unique_ptr<Step> diagonal_step(std::function<Diagonal()> compute, std::vector<Parameter> parameters,
                                    const StepRows& in) {
  if (in.dtype == Dtype::f64)
    return std::make_unique<DiagonalStep<double>>(std::move(compute), std::move(parameters), in.batch);
  return std::make_unique<DiagonalStep<float>>(std::move(compute), std::move(parameters), in.batch);
}

}  // namespace ferrite::nn::detail
