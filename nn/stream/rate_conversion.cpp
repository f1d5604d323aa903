/// Conversion of sample rates: weighted sums of rows around the time of each result.
#include "ferrite/nn/detail/rate_conversion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "ferrite/tensor/kernel/special.h"

namespace ferrite::nn::detail {

namespace {

constexpr std::int64_t kLanes = 8;  ///< partial sums, added at the end in pairs
constexpr double kBeta = 8;         ///< of the Kaiser window: 80 dB

double sinc(double x) { return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }

/// Returns half of the terms of a sum, in rows of `from`: whole lanes.
std::int64_t half_of(std::int64_t from, std::int64_t to) {
  const std::int64_t half = RateConversion::kTerms / 2, n = from <= to ? half : (half * from + to - 1) / to;
  return (n + kLanes / 2 - 1) / (kLanes / 2) * (kLanes / 2);
}

}  // namespace

bool RateConversion::possible(std::int64_t from, std::int64_t to) {
  if (from < 1 || to < 1 || std::max(from, to) > kMostRatio * std::min(from, to)) return false;
  return to / std::gcd(from, to) <= kMostWeights / (2 * half_of(from, to));
}

RateConversion::RateConversion(std::int64_t from, std::int64_t to, std::int64_t width, std::int64_t ahead)
    : width_(width),
      half_(half_of(from, to)),
      terms_(2 * half_),
      up_(to / std::gcd(from, to)),
      down_(from / std::gcd(from, to)),
      length_(terms_ + ahead),
      weights_(std::make_unique<float[]>(static_cast<std::size_t>(up_ * terms_))),
      held_(std::make_unique<float[]>(static_cast<std::size_t>(width_ * 2 * length_))) {
  const double lower = std::min(1.0, static_cast<double>(to) / static_cast<double>(from));  // in rates of the input
  const double reach = static_cast<double>(half_), of_window = ferrite::detail::bessel_i0(kBeta);
  for (std::int64_t p = 0; p < up_; ++p) {
    float* const w = weights_.get() + p * terms_;
    const double time = static_cast<double>(p) / static_cast<double>(up_);
    double sum = 0;
    const auto weight = [&](std::int64_t k) {  // of the row k - half + 1, counted from the one before the result
      const double distance = static_cast<double>(k - half_ + 1) - time, part = distance / reach;
      return std::abs(part) >= 1
                 ? 0.0
                 : sinc(lower * distance) * ferrite::detail::bessel_i0(kBeta * std::sqrt(1 - part * part)) / of_window;
    };
    for (std::int64_t k = 0; k < terms_; ++k) sum += weight(k);
    for (std::int64_t k = 0; k < terms_; ++k) w[k] = static_cast<float>(weight(k) / sum);
  }
  reset();
}

void RateConversion::push(const float* row) {
  for (std::int64_t d = 0; d < width_; ++d) {
    float* const held = held_.get() + d * 2 * length_;
    held[at_] = held[at_ + length_] = row[d];
  }
  at_ = at_ + 1 == length_ ? 0 : at_ + 1;
  --missing_;
}

void RateConversion::pull(float* row) {
  // The last row of the sum was pushed -missing_ rows before the last one.
  std::int64_t first = at_ - terms_ + missing_;
  if (first < 0) first += length_;
  const float* const w = weights_.get() + phase_ * terms_;
  for (std::int64_t d = 0; d < width_; ++d) {
    const float* const x = held_.get() + d * 2 * length_ + first;
    std::array<float, kLanes> sums{};
    for (std::int64_t k = 0; k < terms_; k += kLanes)
      for (std::int64_t i = 0; i < kLanes; ++i) sums[static_cast<std::size_t>(i)] += w[k + i] * x[k + i];
    row[d] = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
  }
  phase_ += down_;
  missing_ += phase_ / up_;
  phase_ %= up_;
}

void RateConversion::reset() {
  std::fill_n(held_.get(), width_ * 2 * length_, 0.0F);
  at_ = phase_ = 0;
  missing_ = half_ + 1;
}

}  // namespace ferrite::nn::detail
