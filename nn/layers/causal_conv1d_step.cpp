/// The step of causal convolutions with one group and an output for each input, for streams.
#include <algorithm>

#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/detail/input_lines.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

using detail::StepMemory;
using ferrite::detail::GateMatrix;
using ferrite::detail::padded;

/// The inputs under the taps are a row of a product with the weights, packed once. Of a single row, all that earlier
/// inputs add to the next output is summed by `commit`, so that a step waits for the sums over its own input alone.
template <class T>
class CausalConvolution final : public Step {
 public:
  CausalConvolution(const CausalConv1d& layer, std::int64_t batch)
      : weight_(layer.weight),
        bias_(layer.bias),
        batch_(batch),
        inputs_(layer.options().in_channels),
        outputs_(layer.options().out_channels),
        past_(batch, inputs_, layer.options().kernel_size, layer.options().dilation),
        at_once_(detail::steps_at_once(batch * std::max(past_.terms(), outputs_) * size_of(dtype_of<T>))),
        in_parts_(batch == 1 && past_.terms() > inputs_ && past_.terms() <= ferrite::detail::kBlockK),
        windows_(at_once_ * batch * past_.terms() + padded<T>(1)),
        packed_(ferrite::detail::gate_pack_size<T>(past_.terms(), 1, outputs_)),
        added_(bias_.defined() ? padded<T>(outputs_) : 0),
        earlier_(in_parts_ ? padded<T>(outputs_) : 0),
        kernels_(&ferrite::detail::kernels().floats<T>()) {
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
        past_(o.past_),
        at_once_(o.at_once_),
        in_parts_(o.in_parts_),
        windows_(o.windows_),
        packed_(o.packed_),
        added_(o.added_),
        earlier_(o.earlier_),
        kernels_(o.kernels_) {
    find_memory();
  }

  StepRows result() const override { return {batch_, outputs_, dtype_of<T>}; }
  void run(const void* x, void* y) override {
    const T* from = static_cast<const T*>(x);
    if (in_parts_) {
      past_.write(0, from);
      return kernels_->packed_part(matrix_, past_.terms() - inputs_, past_.terms(), from, sums_, bias_row_,
                                   static_cast<T*>(y));
    }
    for (std::int64_t b = 0; b < batch_; ++b) past_.write(b, from + b * inputs_);
    multiply(batch_, past_.window(0), past_.distance(), static_cast<T*>(y));
  }
  /// Here rows may be at different steps; `run` is not called any more then.
  Rows run_rows(Rows rows, const void* x, void* y) override {
    for (std::int64_t b = 0; b < batch_; ++b) {
      if (!rows[b]) continue;
      past_.write(b, static_cast<const T*>(x) + b * inputs_);
      multiply(1, past_.window(b), past_.distance(), static_cast<T*>(y) + b * outputs_);
    }
    return rows;
  }
  std::int64_t most_at_once() const override { return at_once_; }
  void run_several(std::int64_t n, const void* x, void* y) override {
    const T* from = static_cast<const T*>(x);
    T* to = windows_.get();
    for (std::int64_t t = 0; t < n; ++t)
      for (std::int64_t b = 0; b < batch_; ++b, from += inputs_, to += past_.terms()) {
        past_.write(b, from);
        std::copy_n(past_.window(b), past_.terms(), to);
        past_.advance(b);
      }
    multiply(n * batch_, windows_.get(), past_.terms(), static_cast<T*>(y));
    sum_earlier();
  }
  void commit() override {
    for (std::int64_t b = 0; b < batch_; ++b) past_.advance(b);
    sum_earlier();
  }
  void commit_rows(Rows rows) override {
    for (std::int64_t b = 0; b < batch_; ++b)
      if (rows[b]) past_.advance(b);
    sum_earlier();
  }
  void refresh() override {
    const NewFrame frame;
    const std::int64_t terms = past_.terms();
    const Tensor w = contiguous(reshape(permute(weight_.peek(), {2, 1, 0}), {terms, outputs_}));
    ferrite::detail::pack_gates(w.data<T>(), outputs_, terms, 1, outputs_, outputs_, packed_.get());
    sum_earlier();
    if (!bias_.defined()) return;
    const Tensor b = contiguous(bias_.peek());
    std::copy_n(b.data<T>(), outputs_, added_.get());
  }
  void reset() override {
    past_.clear();
    sum_earlier();
  }
  void reset_row(std::int64_t row) override {
    past_.clear_row(row);
    sum_earlier();
  }
  /// The inputs before the next one, as StepState `past`.
  void save(std::vector<Tensor>& states) const override {
    if (past_.spec().shape[0] == 0) return;
    Tensor past = Tensor::empty(past_.spec());
    past_.copy_to(reinterpret_cast<T*>(ferrite::detail::Writer::raw(past)));
    states.push_back(past);
  }
  std::size_t restore(std::span<const Tensor> states) override {
    if (past_.spec().shape[0] == 0) return 0;
    if (states.empty()) throw ValueError("stream: fewer states than the model has");
    if (states[0].spec() != past_.spec())
      throw ShapeError("stream: holds a state " + past_.spec().str() + ", got " + states[0].spec().str());
    const Tensor past = contiguous(states[0]);
    past_.copy_from(past.data<T>());
    sum_earlier();
    return 1;
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<CausalConvolution>(*this); }

 private:
  void find_memory() {
    matrix_ = ferrite::detail::packed_gates<T>(packed_.get(), past_.terms(), 1, outputs_);
    sums_ = earlier_.get();
    bias_row_ = bias_.defined() ? added_.get() : nullptr;
  }
  void multiply(std::int64_t rows, const T* from, std::int64_t row, T* y) const {
    kernels_->packed_product(matrix_, rows, from, row, bias_row_, y);
  }
  /// What the inputs that are known add to the next output.
  void sum_earlier() const {
    if (in_parts_) kernels_->packed_part(matrix_, 0, past_.terms() - inputs_, past_.window(0), nullptr, nullptr, sums_);
  }

  Parameter weight_, bias_;
  std::int64_t batch_, inputs_, outputs_;
  detail::InputLines<T> past_;
  std::int64_t at_once_;
  bool in_parts_;
  StepMemory<T> windows_, packed_, added_, earlier_;
  const ferrite::detail::FloatKernels<T>* kernels_;
  /// Where the memory of this step lies: asked for once, since steps are short.
  GateMatrix<T> matrix_;
  T* sums_ = nullptr;
  const T* bias_row_ = nullptr;
};

}  // namespace

std::unique_ptr<Step> CausalConv1d::make_step(const StepRows& in) const {
  if (options().groups > 1 || options().stride > 1) return nullptr;
  if (in.dtype == Dtype::f64) return std::make_unique<CausalConvolution<double>>(*this, in.batch);
  return std::make_unique<CausalConvolution<float>>(*this, in.batch);
}

}  // namespace ferrite::nn
