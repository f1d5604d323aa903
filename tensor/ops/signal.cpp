/// Short-time spectra of signals: windows, frames, transforms, bands.
#include "ferrite/tensor/signal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/kernel/special.h"
#include "ferrite/tensor/mel.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/pointwise.h"

namespace ferrite {

// ---- windows: numbers made once, in f64, and rounded ------------------------------------------------------

namespace {

/// Returns f(i / N) for the elements of a window.
template <class F>
Tensor window(std::string_view where, std::int64_t n, const WindowOptions& o, F f) {
  if (n < 0)
    throw ValueError(std::string(where) + ": the number of elements must not be negative, got " + std::to_string(n));
  if (!is_float(o.dtype)) detail::throw_dtype(where, std::string(name_of(o.dtype)) + " is no float");
  const double steps = static_cast<double>(o.periodic ? n : n - 1);
  const Tensor w = Tensor::build<double>({n}, [&](std::span<double> out) {
    for (std::int64_t i = 0; i < n; ++i)
      out[static_cast<std::size_t>(i)] = n == 1 ? 1 : f(static_cast<double>(i) / steps);
  });
  return cast(w, o.dtype);
}

constexpr double kTurn = 2 * std::numbers::pi;

}  // namespace

Tensor hann_window(std::int64_t n, const WindowOptions& options) {
  return window("hann_window", n, options, [](double t) { return 0.5 - 0.5 * std::cos(kTurn * t); });
}

Tensor hamming_window(std::int64_t n, const WindowOptions& options, double alpha, double beta) {
  return window("hamming_window", n, options, [&](double t) { return alpha - beta * std::cos(kTurn * t); });
}

Tensor blackman_window(std::int64_t n, const WindowOptions& options) {
  return window("blackman_window", n, options,
                [](double t) { return 0.42 - 0.5 * std::cos(kTurn * t) + 0.08 * std::cos(2 * kTurn * t); });
}

Tensor bartlett_window(std::int64_t n, const WindowOptions& options) {
  return window("bartlett_window", n, options, [](double t) { return 1 - std::fabs(2 * t - 1); });
}

Tensor kaiser_window(std::int64_t n, const WindowOptions& options, double beta) {
  if (!(std::fabs(beta) <= 700))
    throw ValueError("kaiser_window: beta must lie in -700..700, got " + Scalar(beta).str());
  return window("kaiser_window", n, options, [&](double t) {
    return detail::bessel_i0(beta * std::sqrt(std::max(0.0, 1 - (2 * t - 1) * (2 * t - 1)))) / detail::bessel_i0(beta);
  });
}

// ---- overlapping frames, and their sum: each the other's adjoint ------------------------------------------

namespace detail {
namespace {

struct FrameAttrs {
  std::int64_t size = 1, hop = 1;
  static constexpr auto fields = attr_list(attr("size", &FrameAttrs::size), attr("hop", &FrameAttrs::hop));
};
struct OverlapAttrs {
  std::int64_t hop = 1, length = 1;  ///< of the result: whole frames, and less than one hop more
  static constexpr auto fields = attr_list(attr("hop", &OverlapAttrs::hop), attr("length", &OverlapAttrs::length));
};

void check_positive(std::string_view where, std::string_view what, std::int64_t n) {
  if (n < 1)
    throw ValueError(std::string(where) + ": the " + std::string(what) + " must be positive, got " + std::to_string(n));
}

/// Returns the positions that the elements of frames come from [frames * size].
Tensor positions(std::int64_t frames, std::int64_t size, std::int64_t hop) {
  return reshape(reshape(arange(frames) * hop, {frames, 1}) + arange(size), {frames * size});
}

Tensor call_frame(const Tensor& x, const FrameAttrs& attrs);
Tensor call_overlap_add(const Tensor& x, const OverlapAttrs& attrs);

struct Framed {
  using Attributes = FrameAttrs;
  static constexpr auto name = "frame", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "`size` elements from 0, hop, 2 hop, ... of the last axis, [..., L] -> [..., T, size]";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_float(in[0], name);
    check_positive(name, "size", a.size);
    check_positive(name, "hop", a.hop);
    Spec s = in[0].spec();
    if (s.shape.rank() < 1 || s.shape[-1] < a.size)
      throw_shape(name, "no frame of " + std::to_string(a.size) + " fits: " + s.shape.str());
    s.shape[-1] = 1 + (s.shape[-1] - a.size) / a.hop;
    s.shape.push_back(a.size);
    return {s};
  }
  template <class T>
  static void run(const Tensor& x, Tensor& out, const Attributes& a) {
    const RowMajor dense(x);
    const std::int64_t L = x.shape()[-1], frames = out.shape()[-2];
    const T* from = dense->data<T>();
    T* to = Writer::data<T>(out);
    for (std::int64_t row = 0; row < x.numel() / L; ++row, from += L)
      for (std::int64_t t = 0; t < frames; ++t, to += a.size) std::copy_n(from + t * a.hop, a.size, to);
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    if (out[0].dtype() == Dtype::f32) return run<float>(in[0], out[0], a);
    run<double>(in[0], out[0], a);
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    return {call_overlap_add(v.grad(), {a.hop, v.in_spec(0).shape[-1]})};
  }
  static Tensors reference(Inputs in, const Attributes& a) {
    Shape s = in[0].shape();
    const std::int64_t frames = 1 + (s[-1] - a.size) / a.hop;
    s[-1] = frames;
    s.push_back(a.size);
    return {reshape(index_select(in[0], in[0].rank() - 1, positions(frames, a.size, a.hop)), s)};
  }
};

struct OverlapAdd {
  using Attributes = OverlapAttrs;
  static constexpr auto name = "overlap_add", onnx = "", stablehlo = "";
  static constexpr auto summary = "frames added up, each one hop after the one before, [..., T, size] -> [..., length]";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_float(in[0], name);
    check_positive(name, "hop", a.hop);
    Spec s = in[0].spec();
    if (s.shape.rank() < 2 || s.shape[-1] < 1 || s.shape[-2] < 1)
      throw_shape(name, "there are no frames [..., T, size]: " + s.shape.str());
    const std::int64_t size = s.shape[-1], frames = s.shape[-2];
    if (a.length < size || (a.length - size) / a.hop != frames - 1)
      throw_shape(name, std::to_string(frames) + " frames of " + std::to_string(size) + ", " + std::to_string(a.hop) +
                            " apart, are not those of " + std::to_string(a.length) + " elements");
    s.shape.erase(s.shape.rank() - 1);
    s.shape[-1] = a.length;
    return {s};
  }
  template <class T>
  static void run(const Tensor& x, Tensor& out, const Attributes& a) {
    const RowMajor dense(x);
    const std::int64_t frames = x.shape()[-2], size = x.shape()[-1];
    const T* from = dense->data<T>();
    T* to = Writer::data<T>(out);
    std::fill_n(to, out.numel(), T(0));
    for (std::int64_t row = 0; row < out.numel() / a.length; ++row, to += a.length)
      for (std::int64_t t = 0; t < frames; ++t, from += size)
        for (std::int64_t j = 0; j < size; ++j) to[t * a.hop + j] += from[j];
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    if (out[0].dtype() == Dtype::f32) return run<float>(in[0], out[0], a);
    run<double>(in[0], out[0], a);
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    return {call_frame(v.grad(), {v.in_spec(0).shape[-1], a.hop})};
  }
  static Tensors reference(Inputs in, const Attributes& a) {
    Shape flat = in[0].shape();
    const std::int64_t frames = flat[-2], size = flat[-1];
    flat.erase(flat.rank() - 1);
    flat[-1] = frames * size;
    Shape whole = flat;
    whole[-1] = a.length;
    const Tensor index = expand(positions(frames, size, a.hop), flat);
    return {scatter_add(zeros(whole, in[0].dtype()), flat.rank() - 1, index, reshape(in[0], flat))};
  }
};

Tensor call_frame(const Tensor& x, const FrameAttrs& attrs) { return call(structured<Framed>, {{&x}}, attrs); }
Tensor call_overlap_add(const Tensor& x, const OverlapAttrs& attrs) {
  return call(structured<OverlapAdd>, {{&x}}, attrs);
}

}  // namespace

Family frame_family() {
  static constexpr const Primitive* list[] = {&structured<Framed>, &structured<OverlapAdd>};
  return list;
}

}  // namespace detail

Tensor frame(const Tensor& x, std::int64_t size, std::int64_t hop) { return detail::call_frame(x, {size, hop}); }

Tensor overlap_add(const Tensor& frames, std::int64_t hop) {
  detail::check_positive("overlap_add", "hop", hop);
  if (frames.rank() < 2) return detail::call_overlap_add(frames, {hop, 1});  // throws the error
  const std::int64_t behind = detail::checked_mul(frames.shape()[-2] - 1, hop, "overlap_add");
  return detail::call_overlap_add(frames, {hop, detail::checked_add(frames.shape()[-1], behind, "overlap_add")});
}

// ---- short-time Fourier transforms, composed of frames, windows and transforms ----------------------------

namespace detail {
namespace {

/// Resolved constants of stft: no length is 0.
struct StftAttrs {
  std::int64_t n_fft = 1, hop = 1, window = 1;
  bool center = true;
  int padding = 0;
  bool normalized = false, onesided = true;
  static constexpr auto fields =
      attr_list(attr("n_fft", &StftAttrs::n_fft), attr("hop", &StftAttrs::hop), attr("window", &StftAttrs::window),
                attr("center", &StftAttrs::center), attr("padding", &StftAttrs::padding),
                attr("normalized", &StftAttrs::normalized), attr("onesided", &StftAttrs::onesided));
};
struct IstftAttrs {
  std::int64_t n_fft = 1, hop = 1, window = 1;
  bool center = true, normalized = false;
  std::int64_t length = 0;
  static constexpr auto fields =
      attr_list(attr("n_fft", &IstftAttrs::n_fft), attr("hop", &IstftAttrs::hop), attr("window", &IstftAttrs::window),
                attr("center", &IstftAttrs::center), attr("normalized", &IstftAttrs::normalized),
                attr("length", &IstftAttrs::length));
};

/// Returns the window in the middle of a frame, with zeros around it; ones where there is none.
template <class A>
Tensor window_of(Inputs in, const A& a) {
  const Tensor w = in.size() > 1 ? in[1] : ones({a.window}, in[0].dtype());
  if (a.window == a.n_fft) return w;
  const std::int64_t left = (a.n_fft - a.window) / 2;
  return pad(w, {left}, {a.n_fft - a.window - left});
}

/// Returns x with n more elements at both ends of its last axis.
Tensor padded(const Tensor& x, std::int64_t n, StftPadding padding) {
  const std::int64_t L = x.shape()[-1];
  const auto repeated = [&](std::int64_t at) {
    Shape s = x.shape();
    s[-1] = n;
    return expand(slice(x, -1, at, at + 1), s);
  };
  if (n == 0) return x;
  switch (padding) {
    case StftPadding::constant: {
      Shape around = Shape::filled(x.rank(), 0);
      around[-1] = n;
      return pad(x, around, around);
    }
    case StftPadding::reflect:
      return concat({flip(slice(x, -1, 1, n + 1), {-1}), x, flip(slice(x, -1, L - 1 - n, L - 1), {-1})}, -1);
    case StftPadding::replicate: return concat({repeated(0), x, repeated(L - 1)}, -1);
    case StftPadding::circular: return concat({slice(x, -1, L - n), x, slice(x, -1, 0, n)}, -1);
  }
  return x;
}

struct Stft {
  using Attributes = StftAttrs;
  static constexpr auto name = "stft", onnx = "STFT";
  static constexpr auto summary = "Fourier transforms of windowed frames, [..., L] -> [..., F, T, 2]";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor x = a.center ? padded(in[0], a.n_fft / 2, static_cast<StftPadding>(a.padding)) : in[0];
    const Tensor windowed = frame(x, a.n_fft, a.hop) * window_of(in, a);
    const FftOptions options{.norm = a.normalized ? FftNorm::ortho : FftNorm::backward};
    const Tensor y = a.onesided ? rfft(windowed, options) : fft(stack({windowed, zeros_like(windowed)}, -1), options);
    return transpose(y, -3, -2);
  }
};

/// The range of samples that the frames cover.
struct Covered {
  std::int64_t begin, end;
};
Covered covered(const IstftAttrs& a, std::int64_t frames) {
  const std::int64_t all = a.n_fft + (frames - 1) * a.hop, edge = a.center ? a.n_fft / 2 : 0;
  return {edge, a.length ? std::min(all, edge + a.length) : all - edge};
}

struct Istft {
  using Attributes = IstftAttrs;
  static constexpr auto name = "istft", onnx = "";
  static constexpr auto summary =
      "the signal with that short-time Fourier transform, in the sense of least squares, [..., F, T, 2] -> [..., L]";

  static Tensor parts(Inputs in, const Attributes& a) {
    const std::int64_t frames = in[0].shape()[-2];
    const Covered c = covered(a, frames);
    const Tensor w = window_of(in, a);
    const FftOptions options{.n = a.n_fft, .norm = a.normalized ? FftNorm::ortho : FftNorm::backward};
    const Tensor spectra = transpose(slice(in[0], -3, 0, a.n_fft / 2 + 1), -3, -2);
    const Tensor sum = slice(overlap_add(irfft(spectra, options) * w, a.hop), -1, c.begin, c.end);
    const Tensor squares = overlap_add(expand(square(w), {frames, a.n_fft}), a.hop);
    const Tensor weight = checked(slice(squares, -1, c.begin, c.end), 1e-11, std::numeric_limits<double>::infinity(),
                                  "istft: the windows leave out a sample: their sum of squares");
    const Tensor y = sum / weight;
    const std::int64_t missing = a.length - y.shape()[-1];
    if (a.length == 0 || missing <= 0) return y;
    Shape before = Shape::filled(y.rank(), 0), after = before;
    after[-1] = missing;
    return pad(y, before, after);
  }
};

[[noreturn]] void throw_value(std::string_view where, const std::string& what) {
  throw ValueError(std::string(where) + ": " + what);
}

struct Lengths {
  std::int64_t hop, window;
};
/// Resolves and checks the options on frames of both functions.
Lengths lengths_of(std::string_view where, std::int64_t n_fft, const Tensor& window, std::int64_t hop,
                   std::int64_t win_length, Dtype dtype) {
  if (n_fft < 1) throw_value(where, "n_fft must be positive, got " + std::to_string(n_fft));
  if (hop < 0 || (hop == 0 && n_fft < 4))
    throw_value(where, "hop_length must be positive, got " + std::to_string(hop == 0 ? n_fft / 4 : hop));
  if (!is_float(dtype))
    throw_dtype(where, "dtype " + std::string(name_of(dtype)) + " is not supported; cast it to a float first");
  if (!window.defined()) {
    if (win_length < 0 || win_length > n_fft)
      throw_value(where, "win_length must lie in 1.." + std::to_string(n_fft) + ", got " + std::to_string(win_length));
    return {hop ? hop : n_fft / 4, win_length ? win_length : n_fft};
  }
  const std::int64_t n = window.rank() == 1 ? window.shape()[0] : 0;
  if (n < 1 || n > n_fft || (win_length != 0 && n != win_length))
    throw_shape(where, "the window must be [" +
                           (win_length ? std::to_string(win_length) : "1.." + std::to_string(n_fft)) + "], got " +
                           window.shape().str());
  if (window.dtype() != dtype)
    throw_dtype(where,
                "the window is " + window.spec().str() + " for " + std::string(name_of(dtype)) + "; cast one of them");
  return {hop ? hop : n_fft / 4, n};
}

}  // namespace

Family composite_spectrogram_family() {
  static constexpr const Primitive* list[] = {&composite<Stft>, &composite<Istft>};
  return list;
}

}  // namespace detail

Tensor stft(const Tensor& x, std::int64_t n_fft, const Tensor& window, const StftOptions& o) {
  const auto [hop, length] = detail::lengths_of("stft", n_fft, window, o.hop_length, o.win_length, x.dtype());
  const std::int64_t edge = o.center ? n_fft / 2 : 0;
  if (x.rank() < 1) detail::throw_shape("stft", "the signal needs an axis: " + x.shape().str());
  const std::int64_t L = x.shape()[-1];
  const std::int64_t least = edge == 0                            ? 0
                             : o.padding == StftPadding::reflect  ? edge + 1
                             : o.padding == StftPadding::circular ? edge
                                                                  : 1;
  if (L < least)
    detail::throw_shape("stft", "a signal of " + std::to_string(L) + " samples is too short to be padded with " +
                                    std::to_string(edge) + ": " + x.shape().str() + "; pad it with zeros");
  if (L + 2 * edge < n_fft)
    detail::throw_shape("stft", "no frame of " + std::to_string(n_fft) + " fits: " + x.shape().str());
  const detail::StftAttrs attrs{n_fft, hop, length, o.center, static_cast<int>(o.padding), o.normalized, o.onesided};
  if (!window.defined()) return detail::composed<detail::Stft>({{&x}}, attrs);
  return detail::composed<detail::Stft>({{&x, &window}}, attrs);
}

Tensor istft(const Tensor& spectrogram, std::int64_t n_fft, const Tensor& window, const IstftOptions& o) {
  const auto [hop, length] =
      detail::lengths_of("istft", n_fft, window, o.hop_length, o.win_length, spectrogram.dtype());
  const Shape& s = spectrogram.shape();
  const std::int64_t frequencies = o.onesided ? n_fft / 2 + 1 : n_fft;
  if (s.rank() < 3 || s[-1] != 2 || s[-2] < 1 || s[-3] != frequencies)
    detail::throw_shape(
        "istft", "the spectrogram must be [..., " + std::to_string(frequencies) + ", frames, 2], got " + s.str());
  if (o.length < 0) detail::throw_value("istft", "length must not be negative, got " + std::to_string(o.length));
  const detail::IstftAttrs attrs{n_fft, hop, length, o.center, o.normalized, o.length};
  const std::int64_t all = detail::checked_add(n_fft, detail::checked_mul(s[-2] - 1, hop, "istft"), "istft");
  if (o.center && o.length == 0 && all <= 2 * (n_fft / 2))
    detail::throw_shape("istft", "one frame holds no sample between its padding: " + s.str() + "; give length");
  if (!window.defined()) return detail::composed<detail::Istft>({{&spectrogram}}, attrs);
  return detail::composed<detail::Istft>({{&spectrogram, &window}}, attrs);
}

// ---- triangles on the mel scale, and cosines: numbers made once, in f64, and rounded ----------------------

namespace {

const double kLogStep = std::log(6.4) / 27;  // of Slaney's scale

double mel_of(double hertz, MelScale scale) {
  if (scale == MelScale::htk) return 2595 * std::log10(1 + hertz / 700);
  return hertz < 1000 ? hertz * 3 / 200 : 15 + std::log(hertz / 1000) / kLogStep;
}
double hertz_of(double mel, MelScale scale) {
  if (scale == MelScale::htk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < 15 ? mel * 200 / 3 : 1000 * std::exp(kLogStep * (mel - 15));
}

void check_float(std::string_view where, Dtype dtype) {
  if (!is_float(dtype)) detail::throw_dtype(where, std::string(name_of(dtype)) + " is no float");
}

}  // namespace

Tensor mel_filter_bank(std::int64_t n_frequencies, std::int64_t n_mels, double sample_rate, const MelOptions& o) {
  const double highest = o.highest == 0 ? sample_rate / 2 : o.highest;
  if (n_frequencies < 1 || n_mels < 1)
    throw ValueError("mel_filter_bank: the numbers of frequencies and mels must be positive, got " +
                     std::to_string(n_frequencies) + " and " + std::to_string(n_mels));
  if (!(sample_rate > 0) || !std::isfinite(sample_rate))
    throw ValueError("mel_filter_bank: the sample rate must be positive, got " + Scalar(sample_rate).str());
  if (!(o.lowest >= 0 && o.lowest < highest && std::isfinite(highest)))
    throw ValueError("mel_filter_bank: the lowest frequency must lie below the highest: " + Scalar(o.lowest).str() +
                     " and " + Scalar(highest).str());
  check_float("mel_filter_bank", o.dtype);
  const double first = mel_of(o.lowest, o.scale), last = mel_of(highest, o.scale);
  std::vector<double> corners;
  for (std::int64_t i = 0; i < n_mels + 2; ++i)
    corners.push_back(
        hertz_of(first + (last - first) * static_cast<double>(i) / static_cast<double>(n_mels + 1), o.scale));
  const Tensor bank = Tensor::build<double>({n_frequencies, n_mels}, [&](std::span<double> out) {
    std::size_t at = 0;
    for (std::int64_t k = 0; k < n_frequencies; ++k) {
      const double hertz =
          n_frequencies == 1 ? 0 : sample_rate / 2 * static_cast<double>(k) / static_cast<double>(n_frequencies - 1);
      for (std::size_t m = 0; m < static_cast<std::size_t>(n_mels); ++m) {
        const double rise = (hertz - corners[m]) / (corners[m + 1] - corners[m]);
        const double fall = (corners[m + 2] - hertz) / (corners[m + 2] - corners[m + 1]);
        const double scale = o.unit_area ? 2 / (corners[m + 2] - corners[m]) : 1;
        out[at++] = scale * std::max(0.0, std::min(rise, fall));
      }
    }
  });
  return cast(bank, o.dtype);
}

Tensor cosine_basis(std::int64_t n, std::int64_t count, bool orthonormal, Dtype dtype) {
  if (n < 1 || count < 1 || count > n)
    throw ValueError("cosine_basis: the number of vectors must lie in 1.." + std::to_string(n) + ", got " +
                     std::to_string(count));
  check_float("cosine_basis", dtype);
  const double length = static_cast<double>(n);
  const Tensor basis = Tensor::build<double>({n, count}, [&](std::span<double> out) {
    std::size_t at = 0;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = 0; k < count; ++k) {
        const double scale = !orthonormal ? 2 : std::sqrt((k == 0 ? 1 : 2) / length);
        out[at++] = scale * std::cos(std::numbers::pi * static_cast<double>((2 * i + 1) * k % (4 * n)) / (2 * length));
      }
  });
  return cast(basis, dtype);
}

}  // namespace ferrite
