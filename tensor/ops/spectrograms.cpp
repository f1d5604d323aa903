/// Short-time Fourier transforms, composed of frames, windows and transforms.
#include <limits>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/signal.h"

namespace ferrite {
namespace detail {
namespace {

/// Resolved: no length is 0.
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

/// The window in the middle of a frame, zeros around it; ones where there is none.
template <class A>
Tensor window_of(Inputs in, const A& a) {
  const Tensor w = in.size() > 1 ? in[1] : ones({a.window}, in[0].dtype());
  if (a.window == a.n_fft) return w;
  const std::int64_t left = (a.n_fft - a.window) / 2;
  return pad(w, {left}, {a.n_fft - a.window - left});
}

/// x with n more elements at both ends of its last axis.
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

/// The first sample, and how many the frames cover.
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
/// What the options of both functions say of frames, checked.
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

}  // namespace ferrite
