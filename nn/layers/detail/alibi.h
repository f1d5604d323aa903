#pragma once
/// Scores that fall with the distance (arXiv 2108.12409).
#include <cmath>
#include <cstdint>
#include <vector>

namespace ferrite::nn::detail {

/// By how much the scores of each head fall from step to step: 2^(-8/H), 2^(-16/H), ...; of other numbers than powers
/// of two those of the power below, then every other one of the power above.
inline std::vector<double> alibi_slopes(std::int64_t heads) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  for (std::int64_t i = 0; i < heads; ++i) {
    const auto n = static_cast<double>(i < power ? i + 1 : 2 * (i - power) + 1);
    slopes.push_back(std::exp2(-8 * n / static_cast<double>(i < power ? power : 2 * power)));
  }
  return slopes;
}

}  // namespace ferrite::nn::detail
