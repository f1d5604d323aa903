/// Steps of short-time Fourier transforms for streams. The transforms follow plans of their own, since those of a
/// thread are made when it first asks for one; what stands around them are programs.
#include <algorithm>
#include <cmath>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/detail/spectra.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/kernel/fft_plan.h"

namespace ferrite::nn {
namespace {

using detail::WindowFunction;
using ferrite::detail::FftPlan;

/// A window of samples [B, n_fft, C] -> [B, N]: times the window, transformed, as parts or absolute values.
template <class T>
class SpectrumOfWindow final : public WindowFunction {
 public:
  SpectrumOfWindow(const Stft& layer, const StepRows& in)
      : n_fft_(layer.options().n_fft),
        rows_(in.batch * in.width),
        scale_(detail::forward_scale(n_fft_, layer.options().normalized)),
        plan_(ferrite::detail::new_fft_plan<T>(n_fft_, true)) {
    const std::int64_t B = in.batch, F = detail::frequencies_of(n_fft_);
    const Buffer taper = layer.taper;
    const Spectrum spectrum = layer.options().spectrum;
    windowed_ = detail::window_program(layer.kind(), {{B, n_fft_, in.width}, in.dtype}, [&](const Tensor& x) {
      return flatten(transpose(x) * detail::whole_window(taper.value(), n_fft_), 1);
    });
    given_ = detail::window_program(layer.kind(), {{B, in.width, F, 2}, in.dtype}, [&](const Tensor& spectra) {
      return flatten(detail::given_of(spectra, spectrum), 1);
    });
  }
  SpectrumOfWindow(const SpectrumOfWindow& o)
      : WindowFunction(o),
        n_fft_(o.n_fft_),
        rows_(o.rows_),
        scale_(o.scale_),
        plan_(ferrite::detail::new_fft_plan<T>(n_fft_, true)),
        windowed_(o.windowed_->clone()),
        given_(o.given_->clone()) {}

  std::byte* x() override { return windowed_->x(); }
  const std::byte* y() const override { return given_->y(); }
  StepRows result() const override { return given_->result(); }
  void run() override {
    windowed_->run();
    const auto* from = reinterpret_cast<const T*>(windowed_->y());
    auto* to = reinterpret_cast<T*>(given_->x());
    const std::int64_t parts = 2 * detail::frequencies_of(n_fft_);
    for (std::int64_t r = 0; r < rows_; ++r)
      ferrite::detail::fft_in_use.of<T>().rfft(*plan_, from + r * n_fft_, to + r * parts, {scale_, 1});
    given_->run();
  }
  void refresh() override { windowed_->refresh(); }
  std::unique_ptr<WindowFunction> clone() const override { return std::make_unique<SpectrumOfWindow>(*this); }

 private:
  std::int64_t n_fft_, rows_;
  double scale_;
  std::shared_ptr<const FftPlan<T>> plan_;
  std::unique_ptr<WindowFunction> windowed_, given_;
};

/// A frame of frequencies [B, C F 2] -> one in time [B, C n_fft], once for all windows that hold it.
template <class T>
class FrameInTime final : public Step {
 public:
  FrameInTime(const InverseStftOptions& o, std::int64_t batch)
      : batch_(batch), o_(o), plan_(ferrite::detail::new_fft_plan<T>(o.n_fft, true)) {}
  FrameInTime(const FrameInTime& o)
      : Step(o), batch_(o.batch_), o_(o.o_), plan_(ferrite::detail::new_fft_plan<T>(o_.n_fft, true)) {}

  StepRows result() const override { return {batch_, o_.channels * o_.n_fft, dtype_of<T>}; }
  bool commits() const override { return false; }
  void run(Inputs x, void* y) override {
    const auto* from = static_cast<const T*>(x[0]);
    auto* to = static_cast<T*>(y);
    const std::int64_t parts = 2 * detail::frequencies_of(o_.n_fft);
    for (std::int64_t r = 0; r < batch_ * o_.channels; ++r)
      ferrite::detail::fft_in_use.of<T>().irfft(*plan_, from + r * parts, to + r * o_.n_fft,
                                                {detail::backward_scale(o_.n_fft, o_.normalized), 2});
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<FrameInTime>(*this); }

 private:
  std::int64_t batch_;
  InverseStftOptions o_;
  std::shared_ptr<const FftPlan<T>> plan_;
};

template <template <class> class C, class Base, class... A>
std::unique_ptr<Base> of_dtype(Dtype dtype, const A&... a) {
  if (dtype == Dtype::f64) return std::make_unique<C<double>>(a...);
  return std::make_unique<C<float>>(a...);
}

}  // namespace

std::size_t Stft::add_steps(StepGraph& graph, std::size_t x) const {
  if (!streams()) return Layer::add_steps(graph, x);
  const StepRows in = graph.rows(x);
  auto function = of_dtype<SpectrumOfWindow, WindowFunction>(in.dtype, *this, in);
  return graph.add(*this, detail::window_step(*window(), in, std::move(function)), {x});
}

std::size_t InverseStft::add_steps(StepGraph& graph, std::size_t x) const {
  if (!streams()) return Layer::add_steps(graph, x);
  const InverseStftOptions& o = options();
  const StepRows in = graph.rows(x);
  const std::size_t in_time = graph.add(*this, of_dtype<FrameInTime, Step>(in.dtype, o, in.batch), {x});
  const StepRows frames = graph.rows(in_time);
  const StepWindow w = *window();
  const Buffer window_buffer = taper;
  auto joined = detail::window_program(
      kind(), {{in.batch, w.taps, frames.width}, in.dtype}, [&](const Tensor& windows) {  // [B, n, C n_fft]
        const Tensor by_channel = transpose(reshape(windows, {in.batch, w.taps, o.channels, o.n_fft}), 1, 2);
        return select(detail::covered_blocks(by_channel, window_buffer.value(), o.hop_length), 1, 0);
      });
  return graph.add(*this, detail::window_step(w, frames, std::move(joined)), {in_time});
}

}  // namespace ferrite::nn
