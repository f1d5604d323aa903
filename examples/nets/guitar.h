#pragma once
/// Plucked strings that play at random, and test signals: what the amplifier net hears while it is trained and tested.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "draw.h"

namespace nets {

/// The way in which a string is plucked.
struct Pluck {
  double hertz = 110;
  double level = 0.3;       ///< loudness, peak in volt
  double decay = 3;         ///< seconds until the sound has lost 60 dB
  double brightness = 0.5;  ///< 0: soft; 1: hard
  double place = 0.15;      ///< place of the pick, as a part of the string
};

/// Adds a plucked string to a recording from sample `begin` on, for `length` samples (K. Karplus and A. Strong,
/// "Digital synthesis of plucked-string and drum timbres", Computer Music Journal 7, 1983).
inline void pluck(std::vector<float>& to, std::size_t begin, std::size_t length, double rate, const Pluck& p,
                  Draw& draw) {
  const double period = rate / p.hertz - 0.5;  // the averaging below delays by half a sample
  const auto whole = static_cast<std::size_t>(period);
  const double part = period - static_cast<double>(whole);
  std::vector<double> line(whole + 2), shape(line.size());
  double low = 0;
  for (double& v : shape) low += (0.15 + 0.8 * p.brightness) * (draw(-1, 1) - low), v = low;
  const auto comb = static_cast<std::size_t>(p.place * period);
  double largest = 1e-9;
  for (std::size_t i = 0; i < line.size(); ++i) {
    line[i] = shape[i] - shape[(i + line.size() - comb) % line.size()];
    largest = std::max(largest, std::fabs(line[i]));
  }
  const double loss = std::pow(0.001, 1 / (p.hertz * p.decay));
  double last = 0;
  std::size_t at = 0;
  for (std::size_t t = begin; t < std::min(begin + length, to.size()); ++t) {
    const std::size_t n = line.size(), one = (at + n - whole % n) % n, two = (at + n - (whole + 1) % n) % n;
    const double delayed = (1 - part) * line[one] + part * line[two];
    const double y = loss * 0.5 * (delayed + last);
    last = delayed;
    line[at] = y;
    at = (at + 1) % n;
    const double fade = std::min(1.0, static_cast<double>(std::min(begin + length, to.size()) - t) / (0.005 * rate));
    to[t] += static_cast<float>(p.level / largest * y * fade);
  }
}

/// Returns `seconds` of playing: notes, strummed chords and damped notes of different loudness, through the resonance
/// of a pickup.
inline std::vector<float> playing(double seconds, double rate, std::uint64_t seed) {
  std::vector<float> dry(static_cast<std::size_t>(seconds * rate), 0.0F);
  Draw draw(seed);
  constexpr double open[] = {82.41, 110, 146.83, 196, 246.94, 329.63};  // the strings, from low to high
  for (double at = 0.05; at < seconds;) {
    const double length = std::pow(2, draw(-3, 0.8)), level = 0.9 * std::pow(10, draw(-32, 0) / 20);
    const int style = draw.below(4);
    const int strings = style == 0 ? 3 + draw.below(4) : 1 + (style == 1 ? 1 : 0), first = draw.below(7 - strings);
    const int fret = draw.below(13);
    const double strum = draw(0.002, 0.03), brightness = draw(0, 1), place = draw(0.05, 0.4);
    for (int s = 0; s < strings; ++s) {
      const double hertz = open[first + s] * std::pow(2, (fret + (style == 0 ? draw.below(3) : 0)) / 12.0);
      pluck(dry, static_cast<std::size_t>((at + s * strum) * rate), static_cast<std::size_t>(length * rate), rate,
            {hertz, level / std::sqrt(strings), style == 3 ? draw(0.15, 0.5) : draw(1.5, 6), brightness, place}, draw);
    }
    at += length * draw(0.5, 1.05) + (draw.below(8) == 0 ? 0.4 : 0);
  }
  return dry;
}

/// Returns a sine whose frequency rises from 20 Hz to 12 kHz.
inline std::vector<float> sweep(double seconds, double rate, double level) {
  std::vector<float> x(static_cast<std::size_t>(seconds * rate));
  const double ratio = std::log(12000.0 / 20);
  for (std::size_t t = 0; t < x.size(); ++t) {
    const double s = static_cast<double>(t) / static_cast<double>(x.size());
    x[t] =
        static_cast<float>(level * std::sin(2 * std::numbers::pi * 20 * seconds / ratio * (std::exp(ratio * s) - 1)));
  }
  return x;
}

}  // namespace nets
