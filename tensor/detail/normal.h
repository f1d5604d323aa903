#pragma once
/// Random words of Philox, and normal numbers from them.
#include <array>
#include <cstdint>

#include "ferrite/tensor/detail/philox.h"
#include "ferrite/tensor/random.h"

namespace ferrite::detail {

/// The four words of Philox for element `index` of a draw.
std::array<std::uint32_t, 4> words_of(const RandomKey& key, std::uint64_t index);
/// 64 random bits for element `index` of a draw.
std::uint64_t bits64(const RandomKey& key, std::uint64_t index);

/// What those words, and those of the elements behind it, are made from.
DrawFrom draw_from(const RandomKey& key, std::uint64_t index);

/// ln x for normal positive x, in plain f64 arithmetic: the same bits on every machine. Within 2 ULP.
double log_positive(double x);
/// The x with P(normal < x) = p, 0 < p < 1 (Wichura 1988, AS 241, PPND16): relative error about 1e-16.
double inverse_normal(double p);

}  // namespace ferrite::detail
