#pragma once
/// Philox4x32-10 for any number of counters in parallel. Its functions are always inlined, since kernels of several
/// instruction sets must not share functions.
#include <cstddef>
#include <cstdint>

namespace ferrite::detail {

/// The inputs from which the words of an element and of those after it are made.
struct DrawFrom {
  std::uint64_t index;   ///< index of the first element
  std::uint32_t beyond;  ///< combined by xor with the upper half of the index in the second word of the counter
  std::uint32_t call, stream;
  std::uint32_t key[2];
};

/// Sets the counters of N elements: two words of the element, one of the call and one of the stream.
template <std::size_t N>
[[gnu::always_inline]] inline void set_counters(const DrawFrom& from, std::uint32_t (&c)[4][N]) {
  for (std::size_t n = 0; n < N; ++n) {
    c[0][n] = static_cast<std::uint32_t>(from.index + n);
    c[1][n] = static_cast<std::uint32_t>((from.index + n) >> 32) ^ from.beyond;
    c[2][n] = from.call;
    c[3][n] = from.stream;
  }
}

/// Runs all rounds for N counters in parallel, c[0..3][n].
template <std::size_t N>
[[gnu::always_inline]] inline void philox_rounds(std::uint32_t (&c)[4][N], std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    for (std::size_t n = 0; n < N; ++n) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0][n];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2][n];
      c[0][n] = static_cast<std::uint32_t>(p1 >> 32) ^ c[1][n] ^ key0;
      c[1][n] = static_cast<std::uint32_t>(p1);
      c[2][n] = static_cast<std::uint32_t>(p0 >> 32) ^ c[3][n] ^ key1;
      c[3][n] = static_cast<std::uint32_t>(p0);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

}  // namespace ferrite::detail
