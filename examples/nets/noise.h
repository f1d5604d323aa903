#pragma once
/// Noises and rooms: what a microphone hears besides speech.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>
#include <vector>

#include "draw.h"

namespace nets {

using Samples = std::vector<float>;
inline constexpr double kSpeechRate = 16000;

/// Returns the root of the mean square.
inline double root_mean_square(const Samples& x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  return x.empty() ? 0 : std::sqrt(sum / static_cast<double>(x.size()));
}

/// The kinds of noise that `noise` makes. Nets are not trained with the last two, on which they are tested.
enum class Noise { white, pink, brown, hum, fan, clicks, rain, engine, tones, bells, traffic };
inline constexpr int kTrainedNoises = 9, kNoises = 11;
constexpr std::string_view name_of(Noise kind) {
  constexpr std::array<std::string_view, kNoises> names{"white", "pink",   "brown", "hum",   "fan",    "clicks",
                                                        "rain",  "engine", "tones", "bells", "traffic"};
  return names[static_cast<std::size_t>(kind)];
}

namespace detail {

/// A band of noise: a resonance of second order.
class Resonance {
 public:
  Resonance(double hertz, double width) {
    const double r = std::exp(-std::numbers::pi * width / kSpeechRate);
    a1_ = 2 * r * std::cos(2 * std::numbers::pi * hertz / kSpeechRate), a2_ = r * r, gain_ = 1 - r;
  }
  double operator()(double x) {
    const double y = gain_ * x + a1_ * y1_ - a2_ * y2_;
    y2_ = y1_, y1_ = y;
    return y;
  }

 private:
  double a1_ = 0, a2_ = 0, gain_ = 0, y1_ = 0, y2_ = 0;
};

/// Noise whose power falls by 3 dB per octave: a sum of three low passes (P. Kellet's filter).
class Pink {
 public:
  double operator()(double white) {
    a_ = 0.99765 * a_ + white * 0.0990460, b_ = 0.96300 * b_ + white * 0.2965164, c_ = 0.57000 * c_ + white * 1.0526913;
    return a_ + b_ + c_ + white * 0.1848;
  }

 private:
  double a_ = 0, b_ = 0, c_ = 0;
};

/// Sounds that begin now and then and fade: tones with overtones, or bells, whose overtones are not harmonic.
inline void add_tones(Samples& x, bool bells, Draw& draw) {
  for (double at = draw(0, 0.5); at * kSpeechRate < static_cast<double>(x.size()); at += draw(0.1, bells ? 1.5 : 0.8)) {
    const double pitch = draw(bells ? 300 : 150, bells ? 2500 : 1500), decay = bells ? draw(0.2, 1.5) : draw(0.05, 0.5);
    const double level = draw(0.2, 1), ratio = bells ? draw(1.3, 2.9) : 1, depth = draw(0.5, 3);
    const auto begin = static_cast<std::size_t>(at * kSpeechRate);
    const auto end = std::min(x.size(), begin + static_cast<std::size_t>(4 * decay * kSpeechRate));
    for (std::size_t t = begin; t < end; ++t) {
      const double s = static_cast<double>(t - begin) / kSpeechRate, p = 2 * std::numbers::pi * pitch * s;
      const double fade = std::min(1.0, s / 0.005) * std::exp(-s / decay);
      x[t] += static_cast<float>(level * fade * std::sin(p + depth * fade * std::sin(ratio * p)));
    }
  }
}

/// Short bursts through a resonance: keys, cups, doors.
inline void add_clicks(Samples& x, Draw& draw) {
  for (double at = draw(0, 0.3); at * kSpeechRate < static_cast<double>(x.size()); at += draw(0.04, 0.7)) {
    Resonance body(draw(200, 5000), draw(30, 800));
    const double level = std::pow(10, draw(-1, 0.5)), burst = draw(0.001, 0.01);
    const auto begin = static_cast<std::size_t>(at * kSpeechRate);
    for (std::size_t t = begin; t < std::min(x.size(), begin + 3200); ++t)
      x[t] += static_cast<float>(level * body(static_cast<double>(t - begin) < burst * kSpeechRate ? draw(-1, 1) : 0));
  }
}

}  // namespace detail

/// Returns n samples of a noise, whose root mean square is 1.
inline Samples noise(Noise kind, std::size_t n, Draw& draw) {
  Samples x(n, 0.0F);
  const double a = draw(0, 1), b = draw(0, 1), c = draw(0, 1), pi = std::numbers::pi;
  detail::Pink pink;
  detail::Resonance low(100 + 900 * a, 50 + 400 * b), high(1000 + 4000 * b, 200 + 1500 * c);
  double brown = 0, phase = 0, gust = 1, target = 1;
  if (kind == Noise::clicks) detail::add_clicks(x, draw);
  if (kind == Noise::tones || kind == Noise::bells) detail::add_tones(x, kind == Noise::bells, draw);
  for (std::size_t t = 0; t < n; ++t) {
    const double white = draw(-1, 1), s = static_cast<double>(t) / kSpeechRate;
    if (t % 4000 == 0) target = draw(0.2, 1.8);
    gust += 3e-4 * (target - gust);
    double v = x[t] + 0.003 * white;
    switch (kind) {
      case Noise::white: v = white; break;
      case Noise::pink: v = pink(white); break;
      case Noise::brown: v = (brown += 0.005 * (5 * white - brown)) * gust; break;
      case Noise::hum:
        for (int k = 1; k <= 7; k += (a < 0.5 ? 1 : 2)) v += std::sin(2 * pi * (b < 0.5 ? 50 : 60) * k * s + k * c) / k;
        v += 0.05 * white;
        break;
      case Noise::fan: v = low(white) * 4 + high(white) * (1 + 0.3 * std::sin(2 * pi * (5 + 20 * c) * s)); break;
      case Noise::rain: v = high(white) + (draw(0, 1) < 0.004 * (0.2 + a) ? 6 * draw(-1, 1) : 0) + 0.2 * white; break;
      case Noise::engine:
        phase += (15 + 70 * a) * (1 + 0.4 * std::sin(2 * pi * 0.3 * c * s)) / kSpeechRate;
        v = low(std::fmod(phase, 1.0) < 0.2 ? 1 + 0.5 * white : 0.1 * white) + 0.02 * white;
        break;
      case Noise::traffic:
        v = pink(white) * 0.2 * gust * gust + 3 * low(white) * (1 + std::sin(2 * pi * 0.2 * s + 6 * a));
        break;
      default: break;
    }
    x[t] = static_cast<float>(v);
  }
  const double level = root_mean_square(x);
  for (float& v : x) v = static_cast<float>(v / (level + 1e-9));
  return x;
}

/// Adds the reflections of a room: four combs and two all-passes with random delays (M. Schroeder, "Natural sounding
/// artificial reverberation", 1962). `wet` is the amplitude of the reflections, `seconds` the time in which they fade
/// by 60 dB.
inline void add_room(Samples& x, double wet, double seconds, Draw& draw) {
  Samples sum(x.size(), 0.0F);
  for (int comb = 0; comb < 4; ++comb) {
    const auto delay = static_cast<std::size_t>(draw(0.011, 0.05) * kSpeechRate);
    const auto back = static_cast<float>(std::pow(0.001, static_cast<double>(delay) / kSpeechRate / seconds));
    Samples line(delay, 0.0F);
    for (std::size_t t = 0, at = 0; t < x.size(); ++t, at = (at + 1) % delay) {
      sum[t] += 0.25F * line[at];
      line[at] = x[t] + back * line[at];
    }
  }
  for (int pass = 0; pass < 2; ++pass) {
    const auto delay = static_cast<std::size_t>(draw(0.001, 0.006) * kSpeechRate);
    Samples line(delay, 0.0F);
    for (std::size_t t = 0, at = 0; t < x.size(); ++t, at = (at + 1) % delay) {
      const float in = sum[t] + 0.7F * line[at], out = line[at] - 0.7F * in;
      line[at] = in, sum[t] = out;
    }
  }
  for (std::size_t t = 0; t < x.size(); ++t) x[t] += static_cast<float>(wet) * sum[t];
}

}  // namespace nets
