// Functions give the same bits at every instruction set that rounds a multiply-add once: AVX2, AVX-512 and NEON. Each
// program computes 10^7 values of every function of f32 (4 10^6 of f64), arguments spread over all bits (so all
// exponents and signs), and compares their hash with the one in bits.inc, which the AVX2 program wrote:
// FERRITE_REGENERATE=1 prints that file.
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "../support/sanitized.h"
#include "ferrite/tensor/kernel/packet_exp.h"
#include "ferrite/tensor/kernel/packet_log.h"
#include "ferrite/tensor/kernel/packet_math.h"
#include "ferrite/tensor/kernel/packet_trigonometry.h"

namespace {

using namespace ferrite::detail::FERRITE_LEVEL;
using P = Packet<float>;
using D = Packet<double>;

constexpr std::uint32_t kValues = 10'000'000;
constexpr std::uint32_t kStride = 429;  // 2^32 / 10^7, odd

/// A hash of all values in the order in which they were added; all NaNs count as one value.
class Hash {
 public:
  void add(P y) {
    alignas(64) float v[static_cast<std::size_t>(P::width)];
    y.store(v);
    for (const float x : v) {
      const std::uint32_t bits = x == x ? std::bit_cast<std::uint32_t>(x) : 0x7fc00000U;
      state_ = (state_ ^ bits) * 0x9e3779b97f4a7c15U;
      state_ ^= state_ >> 29;
    }
  }
  void add(D y) {
    alignas(64) double v[static_cast<std::size_t>(D::width)];
    y.store(v);
    for (const double x : v) {
      const std::uint64_t bits = x == x ? std::bit_cast<std::uint64_t>(x) : 0x7ff8000000000000U;
      state_ = (state_ ^ bits) * 0x9e3779b97f4a7c15U;
      state_ ^= state_ >> 29;
    }
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

P arguments(std::uint32_t first, std::uint32_t stride) {
  alignas(64) float v[static_cast<std::size_t>(P::width)];
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(P::width); ++i)
    v[i] = std::bit_cast<float>((first + i) * stride);
  return P::load(v);
}

/// Returns numbers of which every second one is from 2^-32 to 2^31 in size, where most functions are neither equal to
/// their argument nor at their ends.
D doubles(std::uint64_t first, std::uint64_t stride = 1) {
  alignas(64) double v[static_cast<std::size_t>(D::width)];
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(D::width); ++i) {
    const std::uint64_t at = (first + i) * stride;  // independent of the number of lanes
    const std::uint64_t all = at * 0x9e3779b97f4a7c15U, exponent = 991 + at / 2 % 64;
    v[i] = std::bit_cast<double>(at % 2 == 0 ? all : (all & 0x800fffffffffffffU) | exponent << 52);
  }
  return D::load(v);
}

std::uint64_t hash_of(D (*f)(D)) {
  Hash hash;
  for (std::uint64_t i = 0; i < 4'000'000; i += static_cast<std::uint64_t>(D::width)) hash.add(f(doubles(i)));
  return hash.value();
}
/// Hashes a function with bases of which every second is from 2^-32 to 2^31 in size, and exponents of all sizes.
std::uint64_t hash_of(D (*f)(D, D)) {
  Hash hash;
  for (std::uint64_t i = 0; i < 4'000'000; i += static_cast<std::uint64_t>(D::width))
    hash.add(f(doubles(i), doubles(i, 5)));
  return hash.value();
}
std::uint64_t hash_of(P (*f)(P)) {
  Hash hash;
  for (std::uint32_t i = 0; i < kValues; i += static_cast<std::uint32_t>(P::width)) hash.add(f(arguments(i, kStride)));
  return hash.value();
}
/// Hashes a function of pairs; the second number of a pair takes all bits in another order.
std::uint64_t hash_of(P (*f)(P, P)) {
  Hash hash;
  for (std::uint32_t i = 0; i < kValues; i += static_cast<std::uint32_t>(P::width))
    hash.add(f(arguments(i, kStride), arguments(i, 2654435761U)));
  return hash.value();
}

struct Known {
  std::string_view name;
  std::uint64_t hash;
};
constexpr Known kKnown[] = {
#include "bits.inc"
};

template <class F>
void check(const char* name, F f) {
  const std::uint64_t hash = hash_of(f);
  if (std::getenv("FERRITE_REGENERATE") != nullptr) {
    std::cout << "    {\"" << name << "\", 0x" << std::hex << hash << std::dec << "U},\n";
    return;
  }
  for (const Known& known : kKnown)
    if (known.name == name) {
      BOOST_TEST(known.hash == hash, name << " has other bits than with AVX2");
      return;
    }
  BOOST_ERROR("no hash of " << name);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bits)

BOOST_AUTO_TEST_CASE(functions_of_f32_are_the_same_wherever_a_multiply_add_rounds_once,
                     *boost::unit_test::enable_if<kRoundsOnce && !support::kSanitized>()) {
#define FERRITE_ONE(name) \
  check(                  \
      #name, +[](P x) { return ferrite::detail::FERRITE_LEVEL::name(x); });
#define FERRITE_TWO(name) \
  check(                  \
      #name, +[](P x, P y) { return ferrite::detail::FERRITE_LEVEL::name(x, y); });
  FERRITE_ONE(exp)
  FERRITE_ONE(exp2)
  FERRITE_ONE(expm1)
  FERRITE_ONE(log)
  FERRITE_ONE(log2)
  FERRITE_ONE(log10)
  FERRITE_ONE(log1p)
  FERRITE_ONE(sin)
  FERRITE_ONE(cos)
  FERRITE_ONE(tan)
  FERRITE_ONE(asin)
  FERRITE_ONE(acos)
  FERRITE_ONE(atan)
  FERRITE_ONE(sinh)
  FERRITE_ONE(cosh)
  FERRITE_ONE(tanh)
  FERRITE_ONE(asinh)
  FERRITE_ONE(acosh)
  FERRITE_ONE(atanh)
  FERRITE_ONE(sqrt)
  FERRITE_ONE(sigmoid)
  FERRITE_ONE(silu)
  FERRITE_ONE(softplus)
  FERRITE_ONE(erf)
  FERRITE_ONE(erfc)
  FERRITE_ONE(erfinv)
  FERRITE_ONE(gelu)
  FERRITE_ONE(gelu_slope)
  FERRITE_ONE(sinc)
  FERRITE_ONE(lgamma)
  FERRITE_ONE(digamma)
  FERRITE_ONE(trigamma)
  FERRITE_TWO(pow)
  FERRITE_TWO(atan2)
  FERRITE_TWO(hypot)
  FERRITE_TWO(fmod)
  FERRITE_TWO(remainder)
  FERRITE_TWO(floor_divide)
#undef FERRITE_ONE
#undef FERRITE_TWO
}

/// The functions are those that the C library does not provide.
BOOST_AUTO_TEST_CASE(functions_of_f64_are_the_same_wherever_a_multiply_add_rounds_once,
                     *boost::unit_test::enable_if<kRoundsOnce && !support::kSanitized>()) {
#define FERRITE_ONE(name) \
  check(                  \
      #name " of doubles", +[](D x) { return ferrite::detail::FERRITE_LEVEL::name(x); });
  FERRITE_ONE(exp)
  FERRITE_ONE(exp2)
  FERRITE_ONE(expm1)
  FERRITE_ONE(tanh)
  FERRITE_ONE(sigmoid)
  FERRITE_ONE(silu)
  FERRITE_ONE(softplus)
  FERRITE_ONE(log)
  FERRITE_ONE(log2)
  FERRITE_ONE(log10)
  FERRITE_ONE(log1p)
  FERRITE_ONE(sin)
  FERRITE_ONE(cos)
  FERRITE_ONE(tan)
  FERRITE_ONE(sinc)
  check(
      "pow of doubles", +[](D x, D y) { return pow(x, y); });
#undef FERRITE_ONE
}

BOOST_AUTO_TEST_SUITE_END()
