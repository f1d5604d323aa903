/// Causal convolutions, and the step of those with one group and stride 1 for streams (the others: convolution.cpp).
#include "ferrite/nn/layers/causal_conv1d.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/nn/carry.h"
#include "ferrite/nn/detail/input_ring.h"
#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/layers/detail/channels.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

void check(const CausalConv1dOptions& o) {
  const auto refuse = [](const std::string& what) { throw ValueError("causal_conv1d: " + what); };
  if (o.in_channels < 1 || o.out_channels < 1 || o.kernel_size < 1 || o.dilation < 1 || o.stride < 1 || o.groups < 1)
    refuse("channels, stride, kernel_size, dilation and groups must be positive, got " + std::to_string(o.in_channels) +
           " to " + std::to_string(o.out_channels) + ", " + std::to_string(o.stride) + ", " +
           std::to_string(o.kernel_size) + ", " + std::to_string(o.dilation) + " and " + std::to_string(o.groups));
  if (o.in_channels % o.groups != 0 || o.out_channels % o.groups != 0)
    refuse("groups must divide the numbers of channels, got " + std::to_string(o.groups) + " groups of " +
           std::to_string(o.in_channels) + " to " + std::to_string(o.out_channels));
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (o.kernel_size - 1 > kMost / o.dilation)
    refuse("the first tap must be less than 2^31 steps back, got kernel_size " + std::to_string(o.kernel_size) +
           " with dilation " + std::to_string(o.dilation));
}

/// Returns for each step the last step up to it at which the mask is set, i64 [B, T]; -reach if there is none. Looks
/// back at least `reach` steps; each round doubles the number of steps looked at.
Tensor last_resets(const Tensor& mask, std::int64_t B, std::int64_t T, std::int64_t reach) {
  if (mask.dtype() != Dtype::boolean || mask.shape() != Shape{B, T})
    throw ShapeError("causal_conv1d: expects a reset mask bool[" + std::to_string(B) + ", " + std::to_string(T) +
                     "], got " + mask.spec().str());
  Tensor last = where(mask, arange(T), full({}, -reach, Dtype::i64));
  for (std::int64_t n = 1; n < std::min(reach, T); n *= 2)
    last = maximum(last, concat({full({B, n}, -reach, Dtype::i64), slice(last, 1, 0, T - n)}, 1));
  return last;
}

}  // namespace

CausalConv1d::CausalConv1d(const CausalConv1dOptions& o, const Init& init) : LayerOf(o, init, detail::OwnSteps()) {
  check(o);
  const std::int64_t I = o.in_channels / o.groups;
  const double bound = 1 / std::sqrt(static_cast<double>(I) * static_cast<double>(o.kernel_size));
  const Fill fill = init::uniform(-bound, bound);
  weight = parameter("weight", {o.out_channels, I, o.kernel_size}, fill, init);
  if (o.bias) bias = parameter("bias", {o.out_channels}, fill, init);
  if (o.past() > 0) carries("past", o.past(), o.in_channels, init.dtype);
  setting("stride", static_cast<double>(o.stride)), setting("dilation", static_cast<double>(o.dilation));
  setting("padding_left", static_cast<double>(o.past())), setting("padding_right", 0);
}

Tensor CausalConv1d::forward(const Tensor& x, const Context& context) const {
  const CausalConv1dOptions& o = options();
  if (x.rank() != 3 || x.shape()[2] != o.in_channels)
    throw ShapeError("causal_conv1d: expects [B, T, " + std::to_string(o.in_channels) + "], got " + x.shape().str());
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  if (T == 0) throw ShapeError("causal_conv1d: the sequence has no steps: " + x.shape().str());
  if (x.dtype() != weight.dtype())
    throw DtypeError("causal_conv1d: the weights are " + std::string(name_of(weight.dtype())) + ", got " +
                     x.spec().str() + "; cast the input");
  const std::int64_t past = o.past();
  if (context.carry && o.stride > 1 && (T % o.stride != 0 || context.lengths.defined()))
    throw ValueError("causal_conv1d: pieces of " + std::to_string(T) + " steps end within a stride of " +
                     std::to_string(o.stride) + "; cut at its multiples, rows of one length together");
  if (context.lengths.defined() && (past == 0 || !context.carry))  // only checks them: no output depends on them
    (void)detail::checked_lengths("causal_conv1d: a length of", context.lengths, B, T, 0);
  if (past == 0) return convolved({slice(x, 1, 0, T, o.stride)});
  const Tensor before = context.carry ? transpose(context.carry->states_of(*this, B)[0], 0, 1)
                                      : zeros({B, past, o.in_channels}, x.dtype());
  const Tensor padded = concat({before, x}, 1);
  const Tensor last = context.reset_mask.defined() ? last_resets(context.reset_mask, B, T, past) : Tensor();
  Tensors taps;
  for (std::int64_t at = 0; at <= past; at += o.dilation) {
    const Tensor tap = slice(padded, 1, at, at + T, o.stride);
    const bool cut = last.defined() && at < past;
    const auto of_outputs = [&](const Tensor& t, std::int64_t axis) { return slice(t, axis, 0, T, o.stride); };
    taps.push_back(cut ? where(unsqueeze(lt(of_outputs(arange(T), 0) - (past - at), of_outputs(last, 1)), 2), 0, tap)
                       : tap);
  }
  if (context.carry) carry_on(padded, last, context);
  return convolved(taps);
}

/// Leaves the last steps of `padded` [B, past + T, C], up to the length of each row, to the next piece; steps before
/// the row's last reset become zeros.
void CausalConv1d::carry_on(const Tensor& padded, const Tensor& last_reset, const Context& context) const {
  const std::int64_t past = options().past(), B = padded.shape()[0], T = padded.shape()[1] - past;
  const bool ragged = context.lengths.defined();
  const Tensor lengths =
      ragged ? detail::checked_lengths("causal_conv1d: a length of", context.lengths, B, T) : full({B}, T, Dtype::i64);
  const Tensor steps = unsqueeze(lengths, 1) + arange(past);  // [B, past], indices into `padded`
  Tensor next =
      ragged ? gather(padded, 1, expand(unsqueeze(steps, 2), {B, past, padded.shape()[2]})) : slice(padded, 1, T);
  if (last_reset.defined()) {
    const Tensor reset = gather(last_reset, 1, unsqueeze(lengths - 1, 1));  // [B, 1]
    next = where(unsqueeze(lt(steps - past, reset), 2), 0, next);
  }
  context.carry->states_of(*this, B)[0].assign(contiguous(transpose(next, 0, 1)));
}

std::optional<StepWindow> CausalConv1d::window() const {
  const CausalConv1dOptions& o = options();
  return StepWindow{.taps = o.kernel_size, .dilation = o.dilation, .stride = o.stride, .before = o.past()};
}

Tensor CausalConv1d::over(const Tensor& x) const {
  Tensors taps;
  for (std::int64_t k = 0; k < options().kernel_size; ++k) taps.push_back(select(x, 1, k));
  return convolved(taps);
}

/// Computes outputs [..., out_channels] from the taps, kernel_size times [..., in_channels]: as a product of the inputs
/// under all taps, next to each other, with the weights. If each channel is a group, that would be a product of
/// vectors, so the terms are added element by element.
Tensor CausalConv1d::convolved(const Tensors& taps) const {
  const CausalConv1dOptions& o = options();
  const std::int64_t K = o.kernel_size, G = o.groups, I = o.in_channels / G, O = o.out_channels / G;
  Shape shape = taps[0].shape();
  shape[-1] = o.out_channels;
  const auto with_bias = [&](const Tensor& y) { return bias.defined() ? y + bias : y; };
  if (I == 1 && G > 1) {
    const Tensor w = reshape(weight, {G, O, K});
    Tensor y = unsqueeze(taps[0], -1) * select(w, 2, 0);  // [..., G, O]
    for (std::int64_t k = 1; k < K; ++k) y = y + unsqueeze(taps[static_cast<std::size_t>(k)], -1) * select(w, 2, k);
    return with_bias(reshape(y, shape));
  }
  const Tensor inputs = concat(std::span<const Tensor>(taps.data(), taps.size()), -1);
  if (G == 1) return with_bias(matmul(inputs, reshape(permute(weight, {2, 1, 0}), {K * I, O})));
  const std::int64_t rows = taps[0].numel() / o.in_channels;
  const Tensor by_group = reshape(permute(reshape(inputs, {rows, K, G, I}), {2, 0, 1, 3}), {G, rows, K * I});
  const Tensor weights = reshape(permute(reshape(weight, {G, O, I, K}), {0, 3, 2, 1}), {G, K * I, O});
  return with_bias(reshape(permute(matmul(by_group, weights), {1, 0, 2}), shape));
}

template class LayerOf<CausalConv1d, CausalConv1dOptions, Windowed>;

// ---- the step ------------------------------------------------------------------------------------------

namespace {

using detail::ElementFunction;
using detail::StepMemory;
using ferrite::detail::padded;

/// The sums that the inputs so far contribute to later outputs, for a single row. Each input is multiplied once, by the
/// weights of all taps, and an output is complete as soon as the input under its last tap arrives. There is one such
/// memory for each step of the dilation: the outputs that share an input are a dilation apart.
template <class T>
class ComingOutputs {
 public:
  ComingOutputs(std::int64_t taps, std::int64_t dilation, std::int64_t outputs)
      : size_(padded<T>(taps * outputs) + outputs), dilation_(dilation), sums_(dilation * size_ + padded<T>(1)) {}

  /// Returns the sums to which the next input contributes, in the layout of the kernel.
  T* next() const { return sums_.get() + at_; }
  std::int64_t size() const { return size_; }
  /// Returns whether the sums are valid: not if inputs have passed by them since `forget`.
  bool known() const { return known_ >= dilation_; }
  void advance() {
    ++known_;
    at_ += size_;
    if (at_ == dilation_ * size_) at_ = 0;
  }
  void forget() { known_ = 0; }

 private:
  std::int64_t size_, dilation_;
  StepMemory<T> sums_;
  std::int64_t at_ = 0;
  std::int64_t known_ = 0;  ///< number of steps since `forget`
};

/// The common part of both forms of the step.
template <class T>
class ConvolutionStep : public Step {
 public:
  StepRows result() const override { return {batch_, outputs_, dtype_of<T>}; }
  bool never_throws() const override { return true; }
  std::int64_t most_at_once() const override { return at_once_; }
  bool join(const ElementFunction& f) override { return joined_.join(f); }
  bool join_sum(std::unique_ptr<Step>*) override { return joined_.join_sum(); }

 protected:
  ConvolutionStep(const CausalConv1d& layer, std::int64_t batch, std::int64_t values_at_once)
      : weight_(layer.weight),
        bias_(layer.bias),
        batch_(batch),
        inputs_(layer.options().in_channels),
        outputs_(layer.options().out_channels),
        taps_(layer.options().kernel_size),
        at_once_(detail::steps_at_once(values_at_once * size_of(dtype_of<T>))),
        added_(bias_.defined() ? padded<T>(outputs_) : 0) {}

  /// Returns the weights by tap, input and output.
  Tensor weights() const { return contiguous(permute(weight_.peek(), {2, 1, 0})); }
  void refresh_bias() {
    if (!bias_.defined()) return;
    const Tensor b = contiguous(bias_.peek());
    std::copy_n(b.data<T>(), outputs_, added_.get());
  }
  const T* bias_row() const { return bias_.defined() ? added_.get() : nullptr; }
  /// Returns the value that is added to the outputs, or null.
  const T* added(Step::Inputs x) const { return joined_.sums ? static_cast<const T*>(x[1]) : nullptr; }

  Parameter weight_, bias_;
  std::int64_t batch_, inputs_, outputs_, taps_;
  std::int64_t at_once_;
  StepMemory<T> added_;
  detail::JoinedSteps joined_{};
};

/// The step for several rows: the inputs under the taps are rows of one product with the weights.
template <class T>
class CausalConvolution final : public ConvolutionStep<T> {
 public:
  using Rows = Step::Rows;
  using Inputs = Step::Inputs;

  CausalConvolution(const CausalConv1d& layer, std::int64_t batch)
      : ConvolutionStep<T>(
            layer, batch,
            batch * std::max(layer.options().kernel_size * layer.options().in_channels, layer.options().out_channels)),
        terms_(taps_ * inputs_),
        past_({batch, inputs_, dtype_of<T>}, *layer.window()),
        windows_(at_once_ * batch * terms_ + padded<T>(1)),
        packed_(ferrite::detail::gate_pack_size<T>(terms_, 1, outputs_)),
        product_(ferrite::detail::products_in_use.of<T>().packed_product) {
    CausalConvolution::refresh();
  }

  void run(Inputs x, void* y) override {
    for (std::int64_t b = 0; b < batch_; ++b)
      take(b, static_cast<const T*>(x[0]) + b * inputs_, windows_.get() + b * terms_);
    multiply(batch_, x, static_cast<T*>(y));
  }
  void commit() override {
    for (std::int64_t b = 0; b < batch_; ++b) past_.advance(b);
  }
  /// Runs the given rows, which may be at different steps.
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    for (std::int64_t b = 0; b < batch_; ++b) {
      if (!rows[0][b]) continue;
      take(b, static_cast<const T*>(x[0]) + b * inputs_, windows_.get());
      const std::array<const void*, 2> of_row{nullptr, joined_.sums ? this->added(x) + b * outputs_ : nullptr};
      multiply(1, of_row.data(), static_cast<T*>(y) + b * outputs_);
    }
    return rows[0];
  }
  void commit_rows(Rows rows) override {
    for (std::int64_t b = 0; b < batch_; ++b)
      if (rows[b]) past_.advance(b);
  }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    const T* from = static_cast<const T*>(x[0]);
    T* to = windows_.get();
    for (std::int64_t t = 0; t < n; ++t)
      for (std::int64_t b = 0; b < batch_; ++b, from += inputs_, to += terms_) {
        take(b, from, to);
        past_.advance(b);
      }
    multiply(n * batch_, x, static_cast<T*>(y));
  }
  void refresh() override {
    const NewFrame frame;
    const Tensor w = this->weights();
    ferrite::detail::pack_gates(w.data<T>(), outputs_, terms_, 1, outputs_, outputs_, packed_.get());
    this->refresh_bias();
  }
  void states(const Step::StateVisitor& see) override {
    if (taps_ > 1) see(past_.past());
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<CausalConvolution>(*this); }

 private:
  using ConvolutionStep<T>::batch_, ConvolutionStep<T>::inputs_, ConvolutionStep<T>::outputs_,
      ConvolutionStep<T>::taps_, ConvolutionStep<T>::at_once_, ConvolutionStep<T>::joined_;

  /// Stores the next input of a row and copies the window that ends with it.
  void take(std::int64_t row, const T* x, T* window) const {
    past_.write(row, x);
    past_.copy_window(row, window);
  }
  /// Computes the outputs of `rows` windows.
  void multiply(std::int64_t rows, Inputs x, T* y) const {
    product_(ferrite::detail::packed_gates<T>(packed_.get(), terms_, 1, outputs_), rows, windows_.get(), terms_,
             this->bias_row(), y);
    joined_.apply(x, y, rows * outputs_);
  }

  std::int64_t terms_;  ///< number of terms of an output's sum
  detail::InputRing past_;
  StepMemory<T> windows_, packed_;
  decltype(ferrite::detail::ProductKernels<T>::packed_product) product_;
};

/// The step for a single row, which would wait for a long chain of sums: each input is multiplied when it arrives. For
/// several steps, lanes are steps: outputs do not depend on each other.
template <class T>
class SingleRowConvolution final : public ConvolutionStep<T> {
 public:
  using Rows = Step::Rows;
  using Inputs = Step::Inputs;

  explicit SingleRowConvolution(const CausalConv1d& layer)
      : ConvolutionStep<T>(layer, 1, std::max(layer.options().in_channels, layer.options().out_channels)),
        past_(inputs_, *layer.window()),
        window_(taps_ * inputs_),
        rows_(taps_ * inputs_ * outputs_),
        by_input_(taps_ * inputs_ * outputs_ + padded<T>(1)),
        coming_(taps_, layer.options().dilation, outputs_),
        after_(coming_.size() + padded<T>(1)),
        channels_(ferrite::detail::stream_sums_in_use.of<T>().channels),
        next_(ferrite::detail::stream_sums_in_use.of<T>().next_of(taps_ * outputs_)) {
    find_memory();
    SingleRowConvolution::refresh();
  }
  SingleRowConvolution(const SingleRowConvolution& o)
      : ConvolutionStep<T>(o),
        past_(o.past_),
        window_(o.window_),
        rows_(o.rows_),
        by_input_(o.by_input_),
        coming_(o.coming_),
        after_(o.after_),
        channels_(o.channels_),
        next_(o.next_),
        weights_(o.weights_),
        apart_(o.apart_),
        factor_(o.factor_ ? o.factor_->clone() : nullptr) {
    find_memory();
  }

  bool join(const ElementFunction& f) override {
    if (!ConvolutionStep<T>::join(f)) return false;
    apart_ = !f.joins(weights_.behind);
    return true;
  }
  bool join_sum(std::unique_ptr<Step>* of) override {
    if (!ConvolutionStep<T>::join_sum(nullptr)) return false;
    if (of && (*of)->factors()) factor_ = std::move(*of);
    find_memory();
    return true;
  }
  void run(Inputs x, void* y) override { sum(x, after_.get(), static_cast<T*>(y)); }
  void commit() override {
    std::copy_n(after_.get(), coming_.size(), coming_.next());
    past_.advance();
    coming_.advance();
  }
  void advance(Inputs x, void* y) override {
    sum(x, coming_.next(), static_cast<T*>(y));
    past_.advance();
    coming_.advance();
  }
  Rows run_rows(const Rows* rows, Inputs x, void* y) override {
    if (rows[0][0]) SingleRowConvolution::run(x, y);
    return rows[0];
  }
  void commit_rows(Rows rows) override {
    if (rows[0]) SingleRowConvolution::commit();
  }
  void run_several(std::int64_t n, Inputs x, void* y) override {
    const auto *from = static_cast<const T*>(x[0]), *added = this->added(x);
    auto* to = static_cast<T*>(y);
    for (std::int64_t t = 0; t < n; ++t) {
      const std::array<const void*, 2> now{from + t * inputs_,
                                           joined_.sums ? added + t * (factor_ ? 1 : outputs_) : nullptr};
      SingleRowConvolution::advance(now.data(), to + t * outputs_);
    }
  }
  Step::Channels by_channel() const override { return Step::Channels::faster; }
  void run_channels(std::int64_t n, Inputs x, void* y) override {
    past_.write(n, static_cast<const T*>(x[0]), padded<T>(n));
    channels_(rows_.get(), outputs_, past_.windows(), n, weights_.behind, this->added(x), static_cast<T*>(y));
    if (apart_) (*joined_.then)(y, y, padded<T>(n) * outputs_);
    past_.advance(n);
    coming_.forget();
  }
  void refresh() override {
    const NewFrame frame;
    const Tensor w = this->weights(), by_input = contiguous(permute(flip(weight_.peek(), {2}), {1, 2, 0}));
    std::copy_n(w.data<T>(), rows_.size(), rows_.get());
    std::copy_n(by_input.data<T>(), rows_.size(), by_input_.get());
    this->refresh_bias();
    if (factor_) factor_->refresh();
    coming_.forget();
  }
  void states(const Step::StateVisitor& see) override {
    if (taps_ > 1) see(past_.past());
  }
  void states_changed() override {
    past_.repeat();
    coming_.forget();
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<SingleRowConvolution>(*this); }

 private:
  using ConvolutionStep<T>::weight_, ConvolutionStep<T>::inputs_, ConvolutionStep<T>::outputs_,
      ConvolutionStep<T>::taps_, ConvolutionStep<T>::joined_;

  void find_memory() {
    const std::int64_t columns = taps_ * outputs_;
    weights_ = {by_input_.get(), inputs_, columns, columns, outputs_, outputs_, weights_.behind};
    weights_.behind.bias = this->bias_row();
    weights_.behind.factors = factor_ ? static_cast<const T*>(factor_->factors()) : nullptr;
  }
  /// Computes the output of a single step, and in `next` the contents of `coming_` after it.
  void sum(Inputs x, T* next, T* y) {
    const auto* const input = static_cast<const T*>(x[0]);
    if (!coming_.known()) [[unlikely]]
      find_coming(y);
    past_.write(input);
    next_(weights_, input, coming_.next(), next, this->added(x), y);
    if (apart_) (*joined_.then)(y, y, outputs_);
  }
  /// Recomputes `coming_` from the earlier inputs that are under taps of the same outputs.
  void find_coming(T* unused) {
    past_.settle();
    past_.copy_window(window_.get());
    for (std::int64_t k = 0; k + 1 < taps_; ++k)
      next_(weights_, window_.get() + k * inputs_, coming_.next(), coming_.next(), nullptr, unused);
  }

  detail::ChannelRing<T> past_;
  StepMemory<T> window_;
  StepMemory<T> rows_;      ///< weights by tap, input and output
  StepMemory<T> by_input_;  ///< weights by input; for each one those of all taps, the last tap first
  ComingOutputs<T> coming_;
  StepMemory<T> after_;  ///< what `commit` copies into `coming_`
  decltype(ferrite::detail::StreamSums<T>::channels) channels_;
  typename ferrite::detail::StreamSums<T>::Next next_;
  ferrite::detail::NextWeights<T> weights_{};  ///< addresses of the weights
  bool apart_ = false;                         ///< whether the joined function runs after the kernel
  std::unique_ptr<Step> factor_{};             ///< a product with one number, which the second input then is
};

template <class T>
std::unique_ptr<Step> convolution_step(const CausalConv1d& layer, std::int64_t batch) {
  const bool one_chain = layer.options().kernel_size * layer.options().in_channels <= ferrite::detail::kBlockK;
  if (batch == 1 && one_chain) return std::make_unique<SingleRowConvolution<T>>(layer);
  return std::make_unique<CausalConvolution<T>>(layer, batch);
}

}  // namespace

std::size_t CausalConv1d::add_steps(StepGraph& graph, std::size_t x) const {
  const StepRows in = graph.rows(x);
  if (options().groups > 1)
    return graph.add(*this, detail::window_groups_step(*window(), weight, bias, options().groups, in), {x});
  if (options().stride > 1)
    return graph.add(*this, detail::window_product_step(*window(), weight, bias, in, detail::TermOrder::taps), {x});
  if (in.dtype == Dtype::f64) return graph.add(*this, convolution_step<double>(*this, in.batch), {x});
  return graph.add(*this, convolution_step<float>(*this, in.batch), {x});
}

}  // namespace ferrite::nn
