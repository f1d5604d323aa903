/// Philox4x32-10 and the numbers drawn from it.
#include "ferrite/tensor/random.h"

#include <bit>
#include <cmath>

#include "ferrite/tensor/detail/normal.h"
#include "ferrite/tensor/error.h"

namespace ferrite {
namespace {

using PhiloxKey = std::array<std::uint32_t, 2>;

/// A stream as an odd factor. The hash of a name goes without its last bit; numbers that people give by hand are below
/// 2^32 and all told apart.
std::uint64_t odd_factor(std::uint64_t stream) {
  const bool is_odd_number = stream >> 32 == 0 && stream % 2 == 1;
  return is_odd_number ? ~(stream - 1) : stream | 1U;
}

/// The seed and the stream, mixed; call and element make the counter.
PhiloxKey philox_key(const RandomKey& key) {
  std::uint64_t k = key.seed + 0x9E3779B97F4A7C15U * odd_factor(key.stream);
  k = (k ^ (k >> 30)) * 0xBF58476D1CE4E5B9U;
  k = (k ^ (k >> 27)) * 0x94D049BB133111EBU;
  k ^= k >> 31;
  return {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32)};
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, PhiloxKey key) {
  std::uint32_t c[4][1] = {{counter[0]}, {counter[1]}, {counter[2]}, {counter[3]}};
  detail::philox_rounds(c, key[0], key[1]);
  return {c[0][0], c[1][0], c[2][0], c[3][0]};
}

std::uint64_t stream_of(std::string_view name) {
  std::uint64_t h = 14695981039346656037U;
  for (const char c : name) {
    h ^= static_cast<unsigned char>(c);
    h *= 1099511628211U;
  }
  return h;
}

namespace detail {

/// What of the call exceeds a word stands in the upper half of the element's second one, from 2^48 elements on shared.
DrawFrom draw_from(const RandomKey& key, std::uint64_t index) {
  const PhiloxKey k = philox_key(key);
  const std::uint32_t beyond = std::rotl(static_cast<std::uint32_t>(key.call >> 32), 16);
  const auto call = static_cast<std::uint32_t>(key.call);
  return {index, beyond, call, static_cast<std::uint32_t>(key.stream >> 32), {k[0], k[1]}};
}

std::array<std::uint32_t, 4> words_of(const RandomKey& key, std::uint64_t index) {
  const DrawFrom from = draw_from(key, index);
  std::uint32_t c[4][1];
  set_counters(from, c);
  philox_rounds(c, from.key[0], from.key[1]);
  return {c[0][0], c[1][0], c[2][0], c[3][0]};
}

std::uint64_t bits64(const RandomKey& key, std::uint64_t index) {
  const auto w = words_of(key, index);
  return (std::uint64_t{w[1]} << 32) | w[0];
}

double log_positive(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFU) | 0x3FF0000000000000U);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double series = 0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * z;
  return 2 * (s + s * series) + exponent * 0.69314718055994530942;
}

namespace {

template <std::size_t N>
double polynomial(const double (&c)[N], double x) {
  double y = c[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) y = y * x + c[i];
  return y;
}

}  // namespace

double inverse_normal(double p) {
  constexpr double a[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                          1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                          3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double b[] = {1.0,
                          4.2313330701600911252e1,
                          6.8718700749205790830e2,
                          5.3941960214247511077e3,
                          2.1213794301586595867e4,
                          3.9307895800092710610e4,
                          2.8729085735721942674e4,
                          5.2264952788528545610e3};
  constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                          3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                          2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double d[] = {1.0,
                          2.05319162663775882187e0,
                          1.67638483018380384940e0,
                          6.89767334985100004550e-1,
                          1.48103976427480074590e-1,
                          1.51986665636164571966e-2,
                          5.47593808499534494600e-4,
                          1.05075007164441684324e-9};
  constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                          2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                          2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double f[] = {1.0,
                          5.99832206555887937690e-1,
                          1.36929880922735805310e-1,
                          1.48753612908506148525e-2,
                          7.86869131145613259100e-4,
                          1.84631831751005468180e-5,
                          1.42151175831644588870e-7,
                          2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r);
  }
  const double tail = std::sqrt(-log_positive(q < 0 ? p : 1 - p));
  const double r = tail <= 5 ? tail - 1.6 : tail - 5;
  const double x = tail <= 5 ? polynomial(c, r) / polynomial(d, r) : polynomial(e, r) / polynomial(f, r);
  return q < 0 ? -x : x;
}

}  // namespace detail

Tensor permutation(std::int64_t n, const RandomKey& key) {
  if (n < 0) throw ValueError("permutation: the length must not be negative, got " + std::to_string(n));
  return Tensor::build<std::int64_t>({n}, [&](std::span<std::int64_t> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int64_t>(i);
    std::uint64_t draw = 0;
    for (std::uint64_t i = out.size(); i > 1; --i) {
      const std::uint64_t limit = UINT64_MAX - UINT64_MAX % i;  // a multiple of i: no bias
      std::uint64_t r = detail::bits64(key, draw++);
      while (r >= limit) r = detail::bits64(key, draw++);
      std::swap(out[i - 1], out[r % i]);
    }
  });
}

}  // namespace ferrite
