/// Steps of convolutions with one group for streams: a window times the weights, packed once.
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/convolution.h"
#include "ferrite/nn/layers/detail/window_product.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

using detail::StepMemory;
using detail::TermOrder;
using ferrite::detail::GateMatrix;

/// [rows, taps, D] -> [rows, D, taps]: in a product the taps are the inner index, as in the layers.
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

/// Windows [B, taps, D] -> [B, N] with weight [N, D, taps].
template <class T>
class ProductOfWindow final : public detail::WindowFunction {
 public:
  ProductOfWindow(const Parameter& weight, const Parameter& bias, std::int64_t batch, TermOrder order)
      : weight_(weight),
        bias_(bias),
        order_(order),
        batch_(batch),
        N_(weight.shape()[0]),
        D_(weight.shape()[1]),
        taps_(weight.shape()[2]),
        at_once_(detail::steps_at_once(batch * std::max(taps_ * D_, N_) * size_of(dtype_of<T>))),
        x_(at_once_ * batch * taps_ * D_ + kLine),
        terms_(at_once_ * batch * taps_ * D_ + kLine),
        y_(at_once_ * batch * N_ + kLine),
        packed_(ferrite::detail::gate_pack_size<T>(taps_ * D_, 1, N_)),
        added_(bias.defined() ? N_ : 0),
        product_(ferrite::detail::products_in_use.of<T>().packed_product) {
    ProductOfWindow::refresh();
  }

  std::byte* x() override { return reinterpret_cast<std::byte*>(x_.get()); }
  const std::byte* y() const override { return reinterpret_cast<const std::byte*>(y_.get()); }
  StepRows result() const override { return {batch_, N_, dtype_of<T>}; }
  void run() override { ProductOfWindow::run_several(1); }
  std::int64_t most_at_once() const override { return at_once_; }
  void run_several(std::int64_t n) override {
    const std::int64_t terms = taps_ * D_;
    const bool in_order = order_ == TermOrder::taps || taps_ == 1 || D_ == 1;
    if (!in_order) taps_inside(x_.get(), n * batch_, taps_, D_, terms_.get());
    product_(ferrite::detail::packed_gates<T>(packed_.get(), terms, 1, N_), n * batch_,
             in_order ? x_.get() : terms_.get(), terms, bias_.defined() ? added_.get() : nullptr, y_.get());
  }
  void refresh() override {
    const NewFrame frame;
    const std::int64_t terms = taps_ * D_;
    const Tensor by_order = order_ == TermOrder::taps ? transpose(weight_.peek(), 1, 2) : weight_.peek();
    const Tensor w = contiguous(transpose(reshape(by_order, {N_, terms})));
    ferrite::detail::pack_gates(w.data<T>(), N_, terms, 1, N_, N_, packed_.get());
    if (!bias_.defined()) return;
    const Tensor b = contiguous(bias_.peek());
    std::copy_n(b.data<T>(), N_, added_.get());
  }
  std::unique_ptr<WindowFunction> clone() const override { return std::make_unique<ProductOfWindow>(*this); }

 private:
  static constexpr std::int64_t kLine = 64 / sizeof(T);  ///< packets are read and written beyond the ends

  Parameter weight_, bias_;
  TermOrder order_;
  std::int64_t batch_, N_, D_, taps_, at_once_;
  StepMemory<T> x_, terms_, y_, packed_, added_;
  decltype(ferrite::detail::ProductKernels<T>::packed_product) product_;
};

}  // namespace

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
