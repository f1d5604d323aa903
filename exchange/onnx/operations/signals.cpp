/// Lowers window functions, Fourier transforms, and weights of mel bands.
#include <cmath>
#include <numbers>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

/// Lowers a window function to a - b cos(2 pi i / N) + c cos(4 pi i / N).
Values window(const Call& call) {
  const std::int64_t n = call.known_int(0);
  const auto type = static_cast<ElementType>(call.integer("output_datatype", 1));
  const bool periodic = call.integer("periodic", 1) != 0;
  if (n < 0) call.refuse("a size of " + std::to_string(n));
  check_count(call, static_cast<double>(n));
  const std::string_view name = call.name();
  const double a = name == "HannWindow" ? 0.5 : name == "HammingWindow" ? 25.0 / 46.0 : 0.42;
  const double c = name == "BlackmanWindow" ? 0.08 : 0, b = name == "BlackmanWindow" ? 0.5 : 1 - a;
  const auto period = static_cast<double>(periodic ? n : n - 1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    const double angle = period > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / period : 0;
    values.push_back(a - b * std::cos(angle) + c * std::cos(2 * angle));
  }
  Value y = narrowed(cast(Tensor::from<double>(values, {n}), dtype_for(type)), type);
  y.constant = true;
  return {y};
}

/// Returns the transform of x [..., n, ..., 1 or 2] along an axis of the signal, truncated or padded with zeros to
/// `points`. It is computed in f64, so that terms that cancel give 0 to the last digit of f32.
Tensor transformed(const Call& call, const Tensor& given, int axis, std::int64_t points, bool inverse, bool onesided) {
  Tensor x = cast(given, Dtype::f64);
  if (x.rank() < 2 || x.size(-1) > 2) call.refuse("the last axis must hold real numbers or real and imaginary parts");
  if (axis == x.rank() - 1) call.refuse("the last axis is that of real and imaginary parts");
  const bool real = x.size(-1) == 1;
  FftOptions options{.n = points, .axis = axis};
  if (inverse && onesided) {
    if (real) x = concat({x, zeros_like(x)}, -1);
    return unsqueeze(irfft(x, options), -1);
  }
  if (!inverse && onesided) {
    if (!real) call.refuse("onesided takes real numbers");
    return rfft(squeeze(x, -1), options);
  }
  if (real) x = concat({x, zeros_like(x)}, -1);
  return inverse ? ifft(x, options) : fft(x, options);
}

Values dft(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t given = call.version() < 20 ? call.integer("axis", 1) : call.has(2) ? call.known_int(2) : -2;
  const int axis = axis_of(call, given, x.rank());
  const bool inverse = call.integer("inverse", 0) != 0, onesided = call.integer("onesided", 0) != 0;
  std::int64_t points = call.has(1) ? call.known_int(1) : 0;
  if (call.has(1) && points < 1) call.refuse("dft_length must be above 0");
  return {narrowed(cast(transformed(call, x, axis, points, inverse, onesided), x.dtype()), call.type(0))};
}

Values stft_of(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t hop = call.known_int(1);
  if (x.rank() != 3) call.refuse("its signal must be [batch, length, 1 or 2], got " + x.shape().str());
  const bool windowed = call.has(2);
  std::int64_t size = call.has(3) ? call.known_int(3) : windowed ? call.tensor(2).numel() : x.size(1);
  if (windowed && call.tensor(2).numel() != size) call.refuse("window and frame_length differ");
  if (hop < 1 || size < 1 || size > x.size(1)) call.refuse("no frame fits");
  const bool onesided = call.integer("onesided", 1) != 0;
  if (onesided && call.has_attribute("onesided") && x.size(2) == 2) call.refuse("onesided takes real numbers");
  const std::int64_t frames = 1 + (x.size(1) - size) / hop;
  // [batch, frames, size, parts]
  const Tensor places = reshape(
      reshape(arange(0, frames, 1, Dtype::i64), {frames, 1}) * hop + reshape(arange(0, size, 1, Dtype::i64), {1, size}),
      {frames * size});
  Tensor y = reshape(index_select(x, 1, places), {x.size(0), frames, size, x.size(2)});
  if (windowed) y = y * reshape(call.tensor(2), {1, 1, size, 1});
  y = cast(transformed(call, y, 2, 0, false, onesided && x.size(2) == 1), x.dtype());
  return {narrowed(y, call.type(0))};
}

Values mel_weights(const Call& call) {
  const std::int64_t bands = call.known_int(0), points = call.known_int(1), rate = call.known_int(2);
  const double low = call.known_float(3), high = call.known_float(4);
  const auto type = static_cast<ElementType>(call.integer("output_datatype", 1));
  if (bands < 1 || points < 1 || rate < 1 || bands > (1 << 20) || points > (1 << 24))
    call.refuse("its numbers do not fit");
  const std::int64_t bins = points / 2 + 1;
  check_count(call, static_cast<double>(bins) * static_cast<double>(bands));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  std::vector<std::int64_t> edges;
  for (std::int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    const double edge = std::floor(static_cast<double>(points + 1) * hertz / static_cast<double>(rate));
    if (!(edge >= 0 && edge < static_cast<double>(bins))) call.refuse("a band lies outside of the spectrum");
    edges.push_back(static_cast<std::int64_t>(edge));
  }
  std::vector<double> values(static_cast<std::size_t>(bins * bands));
  const auto at = [&](std::int64_t bin, std::size_t band) -> double& {
    return values[static_cast<std::size_t>(bin * bands) + band];
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(bands); ++i) {
    const std::int64_t left = edges[i], centre = edges[i + 1], right = edges[i + 2];
    if (centre == left) at(centre, i) = 1;
    for (std::int64_t j = left; centre > left && j <= centre; ++j)
      at(j, i) = static_cast<double>(j - left) / static_cast<double>(centre - left);
    for (std::int64_t j = centre; j < right; ++j)
      at(j, i) = static_cast<double>(right - j) / static_cast<double>(right - centre);
  }
  Value y = narrowed(cast(Tensor::from<double>(values, {bins, bands}), dtype_for(type)), type);
  y.constant = true;
  return {y};
}

constexpr Operation kOperations[] = {
    {.name = "HannWindow", .lower = window, .static_inputs = 1},
    {.name = "HammingWindow", .lower = window, .static_inputs = 1},
    {.name = "BlackmanWindow", .lower = window, .static_inputs = 1},
    {.name = "DFT", .lower = dft, .static_inputs = 6},
    {.name = "STFT", .lower = stft_of, .static_inputs = 10},
    {.name = "MelWeightMatrix", .lower = mel_weights, .static_inputs = 31},
};

}  // namespace

Operations signal_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
