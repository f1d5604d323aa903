// Oracles and samples of tensor/ops/signal.cpp.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/signal.h"

namespace oracles::spectrograms {
namespace {

/// The resolved constants of a spectrogram: no length is 0.
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

/// Computes the window in double.
template <class A>
std::vector<double> window_values(std::span<const Dense> in, const A& a) {
  std::vector<double> w(static_cast<std::size_t>(a.n_fft), 0);
  const std::int64_t left = (a.n_fft - a.window) / 2;
  for (std::int64_t i = 0; i < a.window; ++i) w[static_cast<std::size_t>(left + i)] = in.size() > 1 ? in[1].at({i}) : 1;
  return w;
}

/// Returns the element of x at place j of the padded signal; -1 for a zero.
std::int64_t padded_index(std::int64_t j, std::int64_t L, StftPadding padding) {
  if (j >= 0 && j < L) return j;
  switch (padding) {
    case StftPadding::constant: return -1;
    case StftPadding::reflect: return j < 0 ? -j : 2 * (L - 1) - j;
    case StftPadding::replicate: return j < 0 ? 0 : L - 1;
    case StftPadding::circular: return (j + L) % L;
  }
  return -1;
}

double angle_of(std::int64_t j, std::int64_t k, std::int64_t n) {
  return 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
}

double normal_scale(bool normalized, std::int64_t n) { return normalized ? std::sqrt(static_cast<double>(n)) : 1; }

struct Stft {
  using Attributes = StftAttrs;
  static constexpr auto name = "stft";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::vector<double> w = window_values(in, a);
    const std::int64_t L = in[0].shape[-1];
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      from.erase(from.rank() - 1);
      from.erase(from.rank() - 1);
      double total = 0;
      for (std::int64_t j = 0; j < a.n_fft; ++j) {
        const std::int64_t at = i[-2] * a.hop + j - (a.center ? a.n_fft / 2 : 0);
        from[-1] = padded_index(at, L, static_cast<StftPadding>(a.padding));
        if (from[-1] < 0) continue;
        const double angle = angle_of(j, i[-3], a.n_fft), x = in[0].at(from) * w[static_cast<std::size_t>(j)];
        total += i[-1] == 0 ? x * std::cos(angle) : -x * std::sin(angle);
      }
      out[0].at(i) = total / normal_scale(a.normalized, a.n_fft);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 11}}, {{6}}}, .attrs = StftAttrs{6, 2, 6}},
            {.inputs = {{{9}}}, .attrs = StftAttrs{5, 3, 4, true, 1}},
            {.inputs = {{{9}}}, .attrs = StftAttrs{4, 1, 4, true, 2, true}},
            {.inputs = {{{1, 9}}, {{3}}}, .attrs = StftAttrs{6, 2, 3, true, 3, false, false}},
            {.inputs = {{{8}}, {{8}}}, .attrs = StftAttrs{8, 8, 8, false}},
            {.inputs = {{{0, 8}}}, .attrs = StftAttrs{4, 2, 4}}};
  }
};

/// The first sample that the frames cover, and how many they cover.
struct Covered {
  std::int64_t begin, end;
};

Covered covered(const IstftAttrs& a, std::int64_t frames) {
  const std::int64_t all = a.n_fft + (frames - 1) * a.hop, edge = a.center ? a.n_fft / 2 : 0;
  return {edge, a.length ? std::min(all, edge + a.length) : all - edge};
}

struct Istft {
  using Attributes = IstftAttrs;
  static constexpr auto name = "istft";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::vector<double> w = window_values(in, a);
    const std::int64_t frames = in[0].shape[-2];
    const Covered c = covered(a, frames);
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      from.push_back(0);
      from.push_back(0);
      double total = 0, weight = 0;
      for (std::int64_t t = 0; t < frames; ++t) {
        const std::int64_t j = c.begin + i[-1] - t * a.hop;
        if (j < 0 || j >= a.n_fft || c.begin + i[-1] >= c.end) continue;
        double x = 0;
        for (std::int64_t k = 0; k <= a.n_fft / 2; ++k) {
          const bool inner = k != 0 && 2 * k != a.n_fft;
          from[-3] = k, from[-2] = t, from[-1] = 0;
          x += (inner ? 2 : 1) * in[0].at(from) * std::cos(angle_of(j, k, a.n_fft));
          from[-1] = 1;
          if (inner) x -= 2 * in[0].at(from) * std::sin(angle_of(j, k, a.n_fft));
        }
        const double own = w[static_cast<std::size_t>(j)];
        total += own * x / static_cast<double>(a.n_fft) * normal_scale(a.normalized, a.n_fft);
        weight += own * own;
      }
      out[0].at(i) = weight == 0 ? 0 : total / weight;
    });
  }
  static std::vector<Sample> samples() {
    const Range window{0.3, 1};  // samples that few windows cover have steep gradients
    return {{.inputs = {{{4, 5, 2}}, {{6}}}, .attrs = IstftAttrs{6, 2, 6}, .range = window},
            {.inputs = {{{2, 3, 4, 2}}}, .attrs = IstftAttrs{5, 3, 5, true, true}},
            {.inputs = {{{3, 3, 2}}}, .attrs = IstftAttrs{4, 4, 4, false}},
            {.inputs = {{{3, 4, 2}}}, .attrs = IstftAttrs{4, 1, 4, true, false, 8}},
            {.inputs = {{{6, 4, 2}}}, .attrs = IstftAttrs{4, 1, 3, true, false, 4}},
            {.inputs = {{{0, 3, 3, 2}}}, .attrs = IstftAttrs{4, 2, 4}}};
  }
};

const Added added = add<Stft, Istft>();

}  // namespace
}  // namespace oracles::spectrograms
