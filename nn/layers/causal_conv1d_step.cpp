/// The step of causal convolutions with one group and an output for each input, for streams.
#include <algorithm>

#include "ferrite/nn/detail/input_ring.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/detail/window_product.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

using detail::StepMemory;
using ferrite::detail::GateMatrix;
using ferrite::detail::padded;

/// What the inputs so far add to the outputs that are to come, of a single row: each input is multiplied once, with the
/// weights of all taps, and an output is there as soon as the input under its last tap is. One such memory for each
/// input within the dilation: the outputs that meet in one input are a dilation apart.
template <class T>
class ComingOutputs {
 public:
  ComingOutputs(std::int64_t taps, std::int64_t dilation, std::int64_t outputs)
      : size_((taps - 1) * padded<T>(outputs)), dilation_(dilation), sums_(dilation * size_) {}

  /// Those that meet in the next input, in the order of its taps from the second one on.
  T* next() const { return sums_.get() + at_; }
  std::int64_t size() const { return size_; }
  /// Whether they are right: not where inputs went by without them since `forget`.
  bool known() const { return known_ >= dilation_; }
  void advance() {
    ++known_;
    at_ += size_;
    if (at_ == sums_.size()) at_ = 0;
  }
  void forget() { known_ = 0; }

 private:
  std::int64_t size_, dilation_;
  StepMemory<T> sums_;
  std::int64_t at_ = 0;
  std::int64_t known_ = 0;  ///< steps since `forget`
};

/// Of several rows or steps, the inputs under the taps are rows of one product with the weights; of a single row, which
/// would wait for a long chain of sums, each input is multiplied when it comes. The weights are packed once, for both.
template <class T>
class CausalConvolution final : public Step {
 public:
  CausalConvolution(const CausalConv1d& layer, std::int64_t batch)
      : weight_(layer.weight),
        bias_(layer.bias),
        batch_(batch),
        inputs_(layer.options().in_channels),
        outputs_(layer.options().out_channels),
        taps_(layer.options().kernel_size),
        terms_(taps_ * inputs_),
        past_({batch, inputs_, dtype_of<T>}, *layer.window()),
        at_once_(detail::steps_at_once(batch * std::max(terms_, outputs_) * size_of(dtype_of<T>))),
        single_(batch == 1 && taps_ > 1 && terms_ <= ferrite::detail::kBlockK),
        windows_(at_once_ * batch * terms_ + padded<T>(1)),
        packed_(ferrite::detail::gate_pack_size<T>(terms_, 1, outputs_)),
        added_(bias_.defined() ? padded<T>(outputs_) : 0),
        by_tap_(single_ ? ferrite::detail::gate_pack_size<T>(inputs_, taps_, outputs_) : 0),
        coming_(single_ ? taps_ : 1, layer.options().dilation, outputs_),
        after_(coming_.size()),
        kernels_(&ferrite::detail::products_in_use.of<T>()) {
    find_memory();
    CausalConvolution::refresh();
  }
  CausalConvolution(const CausalConvolution& o)
      : Step(o),
        weight_(o.weight_),
        bias_(o.bias_),
        batch_(o.batch_),
        inputs_(o.inputs_),
        outputs_(o.outputs_),
        taps_(o.taps_),
        terms_(o.terms_),
        past_(o.past_),
        at_once_(o.at_once_),
        single_(o.single_),
        windows_(o.windows_),
        packed_(o.packed_),
        added_(o.added_),
        by_tap_(o.by_tap_),
        coming_(o.coming_),
        after_(o.after_),
        kernels_(o.kernels_),
        then_(o.then_),
        relu_(o.relu_) {
    find_memory();
  }

  StepRows result() const override { return {batch_, outputs_, dtype_of<T>}; }
  bool join(const Primitive& op) override {
    if (then_) return false;
    relu_ = &op == ferrite::detail::ops::relu;
    then_ = op.block(dtype_of<T>);
    return true;
  }
  void run(Inputs x, void* y) override {
    if (single_) return sum(static_cast<const T*>(x[0]), after_.get(), static_cast<T*>(y));
    for (std::int64_t b = 0; b < batch_; ++b)
      take(b, static_cast<const T*>(x[0]) + b * inputs_, windows_.get() + b * terms_);
    multiply(batch_, static_cast<T*>(y));
  }
  void commit() override {
    if (single_) std::copy_n(after_.get(), coming_.size(), coming_.next());
    for (std::int64_t b = 0; b < batch_; ++b) past_.advance(b);
    coming_.advance();
  }
  bool never_throws() const override { return true; }
  void advance(Inputs x, void* y) override {
    if (!single_) return Step::advance(x, y);
    sum(static_cast<const T*>(x[0]), coming_.next(), static_cast<T*>(y));
    past_.advance(0);
    coming_.advance();
  }
  /// Here rows may be at different steps; `run` is not called any more then.
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    if (single_) {
      if (rows[0][0]) CausalConvolution::run(x, y);
      return rows[0];
    }
    for (std::int64_t b = 0; b < batch_; ++b) {
      if (!rows[0][b]) continue;
      take(b, static_cast<const T*>(x[0]) + b * inputs_, windows_.get());
      multiply(1, static_cast<T*>(y) + b * outputs_);
    }
    return rows[0];
  }
  void commit_rows(Rows rows) override {
    if (single_ && rows[0]) return CausalConvolution::commit();
    for (std::int64_t b = 0; b < batch_; ++b)
      if (rows[b]) past_.advance(b);
  }
  std::int64_t most_at_once() const override { return at_once_; }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    const T* from = static_cast<const T*>(x[0]);
    T* to = windows_.get();
    for (std::int64_t t = 0; t < n; ++t)
      for (std::int64_t b = 0; b < batch_; ++b, from += inputs_, to += terms_) {
        take(b, from, to);
        past_.advance(b);
      }
    multiply(n * batch_, static_cast<T*>(y));
    coming_.forget();
  }
  void refresh() override {
    const NewFrame frame;
    const Tensor w = contiguous(permute(weight_.peek(), {2, 1, 0}));
    ferrite::detail::pack_gates(w.data<T>(), outputs_, terms_, 1, outputs_, outputs_, packed_.get());
    if (single_)
      ferrite::detail::pack_gates(w.data<T>(), outputs_, inputs_, taps_, outputs_, inputs_ * outputs_, by_tap_.get());
    coming_.forget();
    if (!bias_.defined()) return;
    const Tensor b = contiguous(bias_.peek());
    std::copy_n(b.data<T>(), outputs_, added_.get());
  }
  void states(const StateVisitor& see) override {
    if (taps_ > 1) see(past_.past());
  }
  void states_changed() override { coming_.forget(); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<CausalConvolution>(*this); }

 private:
  void find_memory() {
    matrix_ = ferrite::detail::packed_gates<T>(packed_.get(), terms_, 1, outputs_);
    taps_matrix_ = ferrite::detail::packed_gates<T>(by_tap_.get(), inputs_, taps_, outputs_);
    bias_row_ = bias_.defined() ? added_.get() : nullptr;
  }
  /// The next input of a row, and the window that ends with it.
  void take(std::int64_t row, const T* x, T* window) const {
    past_.write(row, x);
    past_.copy_window(row, window);
  }
  /// The outputs of so many windows.
  void multiply(std::int64_t rows, T* y) const {
    kernels_->packed_product(matrix_, rows, windows_.get(), terms_, bias_row_, y);
    if (then_) apply(rows, y);
  }
  /// The output of a single row, and `next`: what is in `coming_` behind this step.
  void sum(const T* x, T* next, T* y) const {
    past_.write(0, x);
    if (!coming_.known()) [[unlikely]]
      find_coming(y);
    kernels_->next_sums(taps_matrix_, taps_, x, coming_.next(), next, bias_row_, relu_, y);
    if (then_ && !relu_) apply(1, y);
  }
  /// The operation behind the convolution.
  void apply(std::int64_t rows, T* y) const {
    const void* const from = y;
    const std::ptrdiff_t run = 1;
    then_(&from, &run, y, rows * outputs_);
  }
  /// By the earlier inputs that are under taps of the same outputs, once more.
  void find_coming(T* unused) const {
    past_.copy_window(0, windows_.get());
    for (std::int64_t k = 0; k + 1 < taps_; ++k)
      kernels_->next_sums(taps_matrix_, taps_, windows_.get() + k * inputs_, coming_.next(), coming_.next(), nullptr,
                          false, unused);
  }

  Parameter weight_, bias_;
  std::int64_t batch_, inputs_, outputs_, taps_;
  std::int64_t terms_;  ///< of an output's sum
  detail::InputRing past_;
  std::int64_t at_once_;
  bool single_;
  StepMemory<T> windows_, packed_, added_;
  StepMemory<T> by_tap_;  ///< the weights again, of each input those of all taps together
  ComingOutputs<T> coming_;
  StepMemory<T> after_;  ///< what `commit` puts in its place
  const ferrite::detail::ProductKernels<T>* kernels_;
  ferrite::detail::Block then_ = nullptr;  ///< the pointwise operation of the layer behind
  bool relu_ = false;                      ///< whether that is relu
  /// Where the memory of this step lies: asked for once, since steps are short.
  GateMatrix<T> matrix_, taps_matrix_;
  const T* bias_row_ = nullptr;
};

}  // namespace

std::size_t CausalConv1d::add_steps(StepGraph& graph, std::size_t x) const {
  if (options().groups > 1) return Windowed::add_steps(graph, x);
  const StepRows in = graph.rows(x);
  if (options().stride > 1)
    return graph.add(*this, detail::window_product_step(*window(), weight, bias, in, detail::TermOrder::taps), {x});
  if (in.dtype == Dtype::f64)
    return graph.add(*this, std::make_unique<CausalConvolution<double>>(*this, in.batch), {x});
  return graph.add(*this, std::make_unique<CausalConvolution<float>>(*this, in.batch), {x});
}

}  // namespace ferrite::nn
