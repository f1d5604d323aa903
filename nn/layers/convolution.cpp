/// Convolutions and transposed convolutions, and the steps of those with one group for streams.
#include "ferrite/nn/layers/convolution.h"

#include <cmath>

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/detail/channels.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

/// Checks the sizes of both kinds of layers, and returns one kernel size for each axis.
template <int N>
Shape checked_sizes(std::string_view where, std::int64_t in, std::int64_t out, std::int64_t groups,
                    const Shape& kernel) {
  const auto refuse = [&](const std::string& what) { throw ValueError(std::string(where) + ": " + what); };
  if (in < 1 || out < 1 || groups < 1)
    refuse("channels and groups must be positive, got " + std::to_string(in) + " to " + std::to_string(out) + " and " +
           std::to_string(groups));
  if (in % groups != 0 || out % groups != 0)
    refuse("groups must divide the numbers of channels, got " + std::to_string(groups) + " groups of " +
           std::to_string(in) + " to " + std::to_string(out));
  return detail::for_each_axis<N>(where, "kernel_size", kernel);
}

Shape weight_shape(std::int64_t rows, std::int64_t columns, const Shape& kernel) {
  Shape shape{rows, columns};
  for (const std::int64_t k : kernel) shape.push_back(k);
  return shape;
}

double bound_of(std::int64_t columns, const Shape& kernel) {
  return 1 / std::sqrt(static_cast<double>(columns) * static_cast<double>(kernel.numel()));
}

std::string_view word_for(ConvolutionPadding::Rule rule) {
  switch (rule) {
    case ConvolutionPadding::same: return "same";
    case ConvolutionPadding::valid: return "valid";
    case ConvolutionPadding::causal: return "causal";
    case ConvolutionPadding::numbers: break;
  }
  return "";
}

/// The options as a summary prints them.
struct ConvFields {
  std::int64_t in_channels = 0, out_channels = 0;
  Shape kernel_size{}, stride{}, padding{}, output_padding{};
  Label rule{};
  Shape dilation{};
  std::int64_t groups = 1;
  bool bias = true;
  Label mode = "zeros";
  bool channels_last = false;
  static constexpr auto fields =
      attr_list(attr("in_channels", &ConvFields::in_channels), attr("out_channels", &ConvFields::out_channels),
                attr("kernel_size", &ConvFields::kernel_size), attr("stride", &ConvFields::stride),
                attr("padding", &ConvFields::padding), attr("output_padding", &ConvFields::output_padding),
                attr("padding", &ConvFields::rule), attr("dilation", &ConvFields::dilation),
                attr("groups", &ConvFields::groups), attr("bias", &ConvFields::bias),
                attr("padding_mode", &ConvFields::mode), attr("channels_last", &ConvFields::channels_last));
};

/// Returns which steps an output of a convolution over time sees.
StepWindow window_of(const ConvOptions& o) {
  const auto number = [](const Shape& s, std::int64_t none) { return s.rank() == 0 ? none : s[0]; };
  StepWindow w{.taps = o.kernel_size[0], .dilation = number(o.dilation, 1), .stride = number(o.stride, 1)};
  switch (o.padding.rule) {
    case ConvolutionPadding::numbers: w.before = w.after = number(o.padding.amounts, 0); break;
    case ConvolutionPadding::same:
      w.before = w.reach() / 2;
      w.after = w.reach() - w.before;
      break;
    case ConvolutionPadding::causal: w.before = w.reach(); break;
    case ConvolutionPadding::valid: break;
  }
  return w;
}

}  // namespace

template <int N>
Conv<N>::Conv(const ConvOptions& o, const Init& init) : LayerOf<Conv<N>, ConvOptions, Windowed>(o, init) {
  const Shape kernel = checked_sizes<N>(name, o.in_channels, o.out_channels, o.groups, o.kernel_size);
  const std::int64_t columns = o.in_channels / o.groups;
  const Fill fill = init::uniform(-bound_of(columns, kernel), bound_of(columns, kernel));
  weight = this->parameter("weight", weight_shape(o.out_channels, columns, kernel), fill, init);
  if (o.bias) bias = this->parameter("bias", {o.out_channels}, fill, init);
  if (N != 1 || o.padding_mode != PaddingMode::zeros) return;
  const StepWindow w = window_of(o);
  this->setting("stride", static_cast<double>(w.stride)), this->setting("dilation", static_cast<double>(w.dilation));
  this->setting("padding_left", static_cast<double>(w.before));
  this->setting("padding_right", static_cast<double>(w.after));
}

template <int N>
std::string Conv<N>::summary() const {
  const ConvOptions& o = this->options();
  return detail::summary_of(std::string(name), {},
                            Attrs(ConvFields{.in_channels = o.in_channels,
                                             .out_channels = o.out_channels,
                                             .kernel_size = o.kernel_size,
                                             .stride = o.stride,
                                             .padding = o.padding.amounts,
                                             .rule = Label::of(word_for(o.padding.rule)),
                                             .dilation = o.dilation,
                                             .groups = o.groups,
                                             .bias = o.bias,
                                             .mode = Label::of(detail::word_for(o.padding_mode)),
                                             .channels_last = o.channels_last}),
                            Attrs(ConvFields{}));
}

template <int N>
Tensor Conv<N>::forward(const Tensor& given, const Context& context) const {
  const ConvOptions& o = this->options();
  const Tensor x = detail::within_lengths(*this, window(), given, context, o.padding_mode == PaddingMode::zeros, 0);
  const ConvolutionOptions how{o.stride, o.padding, o.dilation, o.groups, o.padding_mode};
  return detail::with_channels_first<N>(name, x, o.channels_last, [&](const Tensor& first) {
    detail::check_channels(name, x, first, o.in_channels, weight.dtype());
    const Tensor b = detail::value_of(bias);
    if constexpr (N == 1) return conv1d(first, weight, b, how);
    if constexpr (N == 2) return conv2d(first, weight, b, how);
    if constexpr (N == 3) return conv3d(first, weight, b, how);
  });
}

template <int N>
bool Conv<N>::causal() const {
  const std::optional<StepWindow> w = window();
  return w && w->after == 0 && this->options().padding_mode == PaddingMode::zeros;
}

template <int N>
bool Conv<N>::streams() const {
  const std::optional<StepWindow> w = window();
  return w && w->before <= w->reach() && this->options().padding_mode == PaddingMode::zeros;
}

template <int N>
std::optional<StepWindow> Conv<N>::window() const {
  const ConvOptions& o = this->options();
  if (N != 1 || !o.channels_last) return {};
  return window_of(o);
}

template <int N>
Tensor Conv<N>::over(const Tensor& x) const {
  if constexpr (N == 1) {
    const std::int64_t B = x.shape()[0], G = this->options().groups, O = weight.shape()[0] / G;
    const std::int64_t terms = weight.shape()[1] * weight.shape()[2];
    const Tensor inputs = reshape(transpose(x, 1, 2), {B, G, terms});
    const Tensor y = matmul(permute(inputs, {1, 0, 2}), transpose(reshape(weight, {G, O, terms})));  // [G, B, O]
    const Tensor joined = reshape(permute(y, {1, 0, 2}), {B, G * O});
    return bias.defined() ? joined + bias : joined;
  }
  throw ValueError(std::string(name) + ": its windows are not over the steps of sequences");
}

template <int N>
ConvTranspose<N>::ConvTranspose(const ConvTransposeOptions& o, const Init& init)
    : LayerOf<ConvTranspose<N>, ConvTransposeOptions>(o, init) {
  const Shape kernel = checked_sizes<N>(name, o.in_channels, o.out_channels, o.groups, o.kernel_size);
  const std::int64_t columns = o.out_channels / o.groups;
  const Fill fill = init::uniform(-bound_of(columns, kernel), bound_of(columns, kernel));
  weight = this->parameter("weight", weight_shape(o.in_channels, columns, kernel), fill, init);
  if (o.bias) bias = this->parameter("bias", {o.out_channels}, fill, init);
}

template <int N>
std::string ConvTranspose<N>::summary() const {
  const ConvTransposeOptions& o = this->options();
  return detail::summary_of(std::string(name), {},
                            Attrs(ConvFields{.in_channels = o.in_channels,
                                             .out_channels = o.out_channels,
                                             .kernel_size = o.kernel_size,
                                             .stride = o.stride,
                                             .padding = o.padding,
                                             .output_padding = o.output_padding,
                                             .dilation = o.dilation,
                                             .groups = o.groups,
                                             .bias = o.bias,
                                             .channels_last = o.channels_last}),
                            Attrs(ConvFields{}));
}

template <int N>
Tensor ConvTranspose<N>::forward(const Tensor& given, const Context& context) const {
  const ConvTransposeOptions& o = this->options();
  const Tensor x = detail::within_lengths(*this, {}, given, context, false, 0);
  const TransposedOptions how{o.stride, o.padding, o.output_padding, o.groups, o.dilation};
  return detail::with_channels_first<N>(name, x, o.channels_last, [&](const Tensor& first) {
    detail::check_channels(name, x, first, o.in_channels, weight.dtype());
    const Tensor b = detail::value_of(bias);
    if constexpr (N == 1) return conv_transpose1d(first, weight, b, how);
    if constexpr (N == 2) return conv_transpose2d(first, weight, b, how);
    if constexpr (N == 3) return conv_transpose3d(first, weight, b, how);
  });
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;
template class LayerOf<Conv<1>, ConvOptions, Windowed>;
template class LayerOf<Conv<2>, ConvOptions, Windowed>;
template class LayerOf<Conv<3>, ConvOptions, Windowed>;
template class LayerOf<ConvTranspose<1>, ConvTransposeOptions>;
template class LayerOf<ConvTranspose<2>, ConvTransposeOptions>;
template class LayerOf<ConvTranspose<3>, ConvTransposeOptions>;

// Steps of convolutions with one group for streams: a window times the weights, packed once.

namespace {

using detail::StepMemory;
using detail::TermOrder;
using ferrite::detail::GateMatrix;

/// Transposes [rows, taps, D] to [rows, D, taps]: in a product the taps are the inner index, as in the layers.
template <class T, std::int64_t taps>
void taps_inside(const T* from, std::int64_t rows, std::int64_t D, T* to) {
  for (; rows > 0; --rows, from += taps * D, to += taps * D)
    for (std::int64_t d = 0; d < D; ++d)
      for (std::int64_t k = 0; k < taps; ++k) to[d * taps + k] = from[k * D + d];
}
template <class T>
void taps_inside(const T* from, std::int64_t rows, std::int64_t taps, std::int64_t D, T* to) {
  switch (taps) {
    case 2: return taps_inside<T, 2>(from, rows, D, to);
    case 3: return taps_inside<T, 3>(from, rows, D, to);
    case 4: return taps_inside<T, 4>(from, rows, D, to);
    case 5: return taps_inside<T, 5>(from, rows, D, to);
    default: break;
  }
  for (; rows > 0; --rows, from += taps * D, to += taps * D)
    for (std::int64_t k = 0; k < taps; ++k)
      for (std::int64_t d = 0; d < D; ++d) to[d * taps + k] = from[k * D + d];
}

/// A function of windows [B, taps, groups I] -> [B, N]: sums of products with weight [N, I, taps], and a bias [N] or
/// none.
template <class T>
class SumsOfWindow : public detail::WindowFunction {
 public:
  std::byte* x() override { return reinterpret_cast<std::byte*>(x_.get()); }
  const std::byte* y() const override { return reinterpret_cast<const std::byte*>(y_.get()); }
  StepRows result() const override { return {batch_, N_, dtype_of<T>}; }
  void run() override { this->run_several(1); }
  std::int64_t most_at_once() const override { return at_once_; }

 protected:
  SumsOfWindow(const Parameter& weight, const Parameter& bias, std::int64_t groups, std::int64_t batch)
      : weight_(weight),
        bias_(bias),
        batch_(batch),
        N_(weight.shape()[0]),
        I_(weight.shape()[1]),
        taps_(weight.shape()[2]),
        at_once_(detail::steps_at_once(batch * std::max(taps_ * I_ * groups, N_) * size_of(dtype_of<T>))),
        x_(at_once_ * batch * taps_ * I_ * groups + kLine),
        terms_(at_once_ * batch * taps_ * I_ + kLine),
        y_(at_once_ * batch * N_ + kLine),
        added_(bias.defined() ? N_ : 0),
        product_(ferrite::detail::products_in_use.of<T>().packed_product) {}

  void refresh_bias() {
    if (!bias_.defined()) return;
    const Tensor b = contiguous(bias_.peek());
    std::copy_n(b.data<T>(), N_, added_.get());
  }

  static constexpr std::int64_t kLine = 64 / sizeof(T);  ///< padding: packets are read and written beyond the ends

  Parameter weight_, bias_;
  std::int64_t batch_, N_, I_, taps_, at_once_;
  StepMemory<T> x_, terms_, y_, added_;  ///< terms_: of one group, next to each other
  decltype(ferrite::detail::ProductKernels<T>::packed_product) product_;
};

/// The product of windows with all weights.
template <class T>
class ProductOfWindow final : public SumsOfWindow<T> {
 public:
  ProductOfWindow(const Parameter& weight, const Parameter& bias, std::int64_t batch, TermOrder order)
      : SumsOfWindow<T>(weight, bias, 1, batch),
        order_(order),
        packed_(ferrite::detail::gate_pack_size<T>(taps_ * I_, 1, N_)) {
    ProductOfWindow::refresh();
  }

  void run_several(std::int64_t n) override {
    const std::int64_t terms = taps_ * I_;
    const bool in_order = order_ == TermOrder::taps || taps_ == 1 || I_ == 1;
    if (!in_order) taps_inside(x_.get(), n * batch_, taps_, I_, terms_.get());
    product_(ferrite::detail::packed_gates<T>(packed_.get(), terms, 1, N_), n * batch_,
             in_order ? x_.get() : terms_.get(), terms, bias_.defined() ? added_.get() : nullptr, y_.get());
  }
  void refresh() override {
    const NewFrame frame;
    const std::int64_t terms = taps_ * I_;
    const Tensor by_order = order_ == TermOrder::taps ? transpose(weight_.peek(), 1, 2) : weight_.peek();
    const Tensor w = contiguous(transpose(reshape(by_order, {N_, terms})));
    ferrite::detail::pack_gates(w.data<T>(), N_, terms, 1, N_, N_, packed_.get());
    this->refresh_bias();
  }
  std::unique_ptr<detail::WindowFunction> clone() const override { return std::make_unique<ProductOfWindow>(*this); }

 private:
  using SumsOfWindow<T>::weight_, SumsOfWindow<T>::bias_, SumsOfWindow<T>::batch_, SumsOfWindow<T>::N_,
      SumsOfWindow<T>::I_, SumsOfWindow<T>::taps_, SumsOfWindow<T>::x_, SumsOfWindow<T>::terms_, SumsOfWindow<T>::y_,
      SumsOfWindow<T>::added_, SumsOfWindow<T>::product_;

  TermOrder order_;
  StepMemory<T> packed_;
};

/// The sums of a causal convolution of several groups, with the bits of CausalConv1d::forward: a product for each
/// group, or of one channel each, element by element.
template <class T>
class GroupsOfWindow final : public SumsOfWindow<T> {
 public:
  GroupsOfWindow(const Parameter& weight, const Parameter& bias, std::int64_t groups, std::int64_t batch)
      : SumsOfWindow<T>(weight, bias, groups, batch),
        groups_(groups),
        sums_(at_once_ * batch * (N_ / groups) + SumsOfWindow<T>::kLine),
        weights_(I_ == 1 ? taps_ * N_ : 0) {
    for (std::int64_t g = 0; I_ > 1 && g < groups; ++g)
      packed_.emplace_back(ferrite::detail::gate_pack_size<T>(taps_ * I_, 1, N_ / groups));
    GroupsOfWindow::refresh();
  }

  void run_several(std::int64_t n) override {
    const std::int64_t rows = n * batch_;
    for (std::int64_t g = 0; g < groups_; ++g)
      if (I_ > 1) multiply(g, rows);
    for (std::int64_t r = 0; r < rows; ++r) {
      if (I_ == 1) add_up(x_.get() + r * taps_ * groups_, y_.get() + r * N_);
      for (std::int64_t o = 0; bias_.defined() && o < N_; ++o) y_.get()[r * N_ + o] += added_.get()[o];
    }
  }
  void refresh() override {
    const NewFrame frame;
    const std::int64_t O = N_ / groups_, terms = taps_ * I_;
    const Tensor weight = weight_.peek();
    if (I_ == 1) {
      const Tensor w = contiguous(transpose(reshape(weight, {N_, taps_})));
      std::copy_n(w.data<T>(), taps_ * N_, weights_.get());
    }
    for (std::size_t g = 0; g < packed_.size(); ++g) {
      const std::int64_t first = static_cast<std::int64_t>(g) * O;
      const Tensor w = contiguous(reshape(permute(slice(weight, 0, first, first + O), {2, 1, 0}), {terms, O}));
      ferrite::detail::pack_gates(w.data<T>(), O, terms, 1, O, O, packed_[g].get());
    }
    this->refresh_bias();
  }
  std::unique_ptr<detail::WindowFunction> clone() const override { return std::make_unique<GroupsOfWindow>(*this); }

 private:
  using SumsOfWindow<T>::weight_, SumsOfWindow<T>::bias_, SumsOfWindow<T>::batch_, SumsOfWindow<T>::N_,
      SumsOfWindow<T>::I_, SumsOfWindow<T>::taps_, SumsOfWindow<T>::at_once_, SumsOfWindow<T>::x_,
      SumsOfWindow<T>::terms_, SumsOfWindow<T>::y_, SumsOfWindow<T>::added_, SumsOfWindow<T>::product_;

  /// Computes the sums of a group, whose terms it places next to each other.
  void multiply(std::int64_t group, std::int64_t rows) {
    const std::int64_t O = N_ / groups_, terms = taps_ * I_;
    const T* from = x_.get() + group * I_;
    for (std::int64_t t = 0; t < rows * taps_; ++t, from += groups_ * I_) std::copy_n(from, I_, terms_.get() + t * I_);
    product_(ferrite::detail::packed_gates<T>(packed_[static_cast<std::size_t>(group)].get(), terms, 1, O), rows,
             terms_.get(), terms, nullptr, sums_.get());
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(sums_.get() + r * O, O, y_.get() + r * N_ + group * O);
  }
  /// Adds up the taps of channels that are groups by themselves.
  void add_up(const T* x, T* y) const {
    const std::int64_t O = N_ / groups_;
    for (std::int64_t k = 0; k < taps_; ++k, x += groups_) {
      const T* const w = weights_.get() + k * N_;
      for (std::int64_t g = 0; g < groups_; ++g)
        for (std::int64_t o = g * O; o < (g + 1) * O; ++o) y[o] = k == 0 ? x[g] * w[o] : y[o] + x[g] * w[o];
    }
  }

  std::int64_t groups_;
  StepMemory<T> sums_;                 ///< of one group
  StepMemory<T> weights_;              ///< [taps, N], of groups of one channel
  std::vector<StepMemory<T>> packed_;  ///< by group, of others
};

}  // namespace

std::unique_ptr<Step> detail::window_groups_step(const StepWindow& window, const Parameter& weight,
                                                 const Parameter& bias, std::int64_t groups, const StepRows& in) {
  if (in.dtype == Dtype::f64)
    return window_step(window, in, std::make_unique<GroupsOfWindow<double>>(weight, bias, groups, in.batch));
  return window_step(window, in, std::make_unique<GroupsOfWindow<float>>(weight, bias, groups, in.batch));
}

std::unique_ptr<Step> detail::window_product_step(const StepWindow& window, const Parameter& weight,
                                                  const Parameter& bias, const StepRows& in, TermOrder order) {
  std::unique_ptr<detail::WindowFunction> function;
  if (in.dtype == Dtype::f64) {
    function = std::make_unique<ProductOfWindow<double>>(weight, bias, in.batch, order);
  } else {
    function = std::make_unique<ProductOfWindow<float>>(weight, bias, in.batch, order);
  }
  return detail::window_step(window, in, std::move(function));
}

template <int N>
std::size_t Conv<N>::add_steps(StepGraph& graph, std::size_t x) const {
  const std::optional<StepWindow> w = window();
  if (!w || !streams() || this->options().groups > 1) return Windowed::add_steps(graph, x);
  return graph.add(*this, detail::window_product_step(*w, weight, bias, graph.rows(x), detail::TermOrder::channels),
                   {x});
}

template std::size_t Conv<1>::add_steps(StepGraph&, std::size_t) const;
template std::size_t Conv<2>::add_steps(StepGraph&, std::size_t) const;
template std::size_t Conv<3>::add_steps(StepGraph&, std::size_t) const;

}  // namespace ferrite::nn
