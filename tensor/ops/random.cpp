/// Random numbers: Philox4x32-10, draws as operations, generators.
#include "ferrite/tensor/random.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/generator.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/draws.h"
#include "ferrite/tensor/threads.h"

namespace ferrite {

// ---- Philox, and the numbers drawn from it ----------------------------------------------------------------

namespace {

using PhiloxKey = std::array<std::uint32_t, 2>;

/// Returns a stream as an odd factor. The hash of a name loses its last bit; numbers given by hand are below 2^32 and
/// all remain distinct.
std::uint64_t odd_factor(std::uint64_t stream) {
  const bool is_odd_number = stream >> 32 == 0 && stream % 2 == 1;
  return is_odd_number ? ~(stream - 1) : stream | 1U;
}

/// Returns the key of Philox, mixed from the seed and the stream; call and element form the counter.
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

/// Returns the inputs of Philox. The bits of the call that exceed a word are in the upper half of the element's second
/// word, which they share from 2^48 elements on.
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

// ---- operations -------------------------------------------------------------------------------------------

namespace detail {
namespace {

/// Common constants of all draws.
struct DrawAttrs {
  Shape shape{};
  Dtype dtype = Dtype::f32;
  std::int64_t seed = 0, stream = 0, call = 0;
  static constexpr auto fields =
      attr_list(attr("shape", &DrawAttrs::shape), attr("dtype", &DrawAttrs::dtype), attr("seed", &DrawAttrs::seed),
                attr("stream", &DrawAttrs::stream), attr("call", &DrawAttrs::call));

  static DrawAttrs of(const Shape& shape, const RandomKey& key, Dtype dtype) {
    return {shape, dtype, static_cast<std::int64_t>(key.seed), static_cast<std::int64_t>(key.stream),
            static_cast<std::int64_t>(key.call)};
  }
};

/// Constants of uniform and normal draws; for a normal distribution, `low` and `high` are the mean and the deviation.
struct RandomAttrs : DrawAttrs {
  double low = 0, high = 1;
  static constexpr auto fields =
      DrawAttrs::fields.with(attr("low", &RandomAttrs::low), attr("high", &RandomAttrs::high));
};

struct BernoulliAttrs : DrawAttrs {
  double probability = 0.5;
  static constexpr auto fields = DrawAttrs::fields.with(attr("probability", &BernoulliAttrs::probability));

  /// Returns the constants of the uniform numbers that the probability is compared with.
  RandomAttrs uniform() const {
    RandomAttrs u{*this, 0, 1};
    u.dtype = Dtype::f64;
    return u;
  }
};

RandomKey key_of(const RandomAttrs& attrs) {
  return {static_cast<std::uint64_t>(attrs.seed), static_cast<std::uint64_t>(attrs.stream),
          static_cast<std::uint64_t>(attrs.call)};
}

/// Checks the operands: none, a counter, or a key and a counter.
Specs infer_random(std::string_view name, Inputs in, const RandomAttrs& attrs) {
  if (!is_float(attrs.dtype)) throw_dtype(name, "dtype must be a float, got " + std::string(name_of(attrs.dtype)));
  if (in.size() > 2) throw_shape(name, "takes a key and a counter, got " + std::to_string(in.size()) + " operands");
  if (in.size() == 2 && in[0].spec() != Spec{{2}, Dtype::i64})
    throw_shape(name, "the key must be i64[2], seed and stream, got " + in[0].spec().str());
  if (in.size() > 0 && (in[in.size() - 1].dtype() != Dtype::i64 || in[in.size() - 1].numel() != 1))
    throw_shape(name, "the counter must be i64 of one element, got " + in[in.size() - 1].spec().str());
  return {{attrs.shape, attrs.dtype}};
}

/// Returns the key of an application: values of its operands take precedence over the constants.
RandomKey key_of(Inputs in, const RandomAttrs& attrs) {
  RandomKey key = key_of(attrs);
  if (in.size() == 2) {
    const Tensor given = dense(in[0]);
    key.seed = static_cast<std::uint64_t>(given.data<std::int64_t>()[0]);
    key.stream = static_cast<std::uint64_t>(given.data<std::int64_t>()[1]);
  }
  if (in.size() > 0) key.call += static_cast<std::uint64_t>(in[in.size() - 1].item<std::int64_t>());
  return key;
}

/// Returns a number in [0, 1) from 53 bits.
double unit_of(std::uint32_t low, std::uint32_t high) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-53;
}

/// Calls f(drawn, to, n) for every n elements that are drawn together.
template <class F>
void fill(Tensor& out, const RandomKey& key, F&& f) {
  constexpr std::int64_t kChunk = 1 << 14;
  const std::int64_t n = out.numel();
  const DrawKernels& kernel = draws_in_use.get();
  const auto run = [&](auto* to) {
    parallel_for((n + kChunk - 1) / kChunk, [&](std::int64_t c) {
      const std::int64_t end = std::min(n, (c + 1) * kChunk);
      constexpr auto kStep = static_cast<std::int64_t>(kDrawn);
      Drawn drawn;
      for (std::int64_t i = c * kChunk; i < end; i += kStep) {
        kernel.words(draw_from(key, static_cast<std::uint64_t>(i)), drawn);
        const std::int64_t m = std::min(kStep, end - i);
        f(drawn, to + i, m);
      }
    });
  };
  if (out.dtype() == Dtype::f32) {
    run(Writer::data<float>(out));
  } else {
    run(Writer::data<double>(out));
  }
}

/// Returns the distribution of uniform numbers, in which rounding must not reach the upper bound, since it is excluded.
template <class T>
UniformNumbers<T> uniform_numbers(double low, double high) {
  const T end = high > low ? static_cast<T>(high) : std::numeric_limits<T>::infinity();
  return {low, high - low, end, std::nextafter(end, static_cast<T>(low))};
}

struct Uniform {
  using Attributes = RandomAttrs;
  static constexpr auto name = "uniform", onnx = "", stablehlo = "";
  static constexpr Effects effects{.draws = true};
  static constexpr auto summary = "uniform in [low, high): Philox4x32-10, one counter for each element";

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_random(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const DrawKernels& kernel = draws_in_use.get();
    const auto single = uniform_numbers<float>(attrs.low, attrs.high);
    const auto twofold = uniform_numbers<double>(attrs.low, attrs.high);
    fill(out[0], key_of(in, attrs), [&](const Drawn& drawn, auto* to, std::int64_t n) {
      if constexpr (std::is_same_v<decltype(to), float*>) {
        kernel.uniform_f32(drawn, single, to, n);
      } else {
        kernel.uniform_f64(drawn, twofold, to, n);
      }
    });
  }
};

struct Normal {
  using Attributes = RandomAttrs;
  static constexpr auto name = "normal", onnx = "", stablehlo = "";
  static constexpr Effects effects{.draws = true};
  static constexpr auto summary = "normal: the inverse distribution function of a 53-bit uniform, in plain f64";

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_random(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RandomKey key = key_of(in, attrs);
    const double mean = attrs.low, deviation = attrs.high;
    fill(out[0], key, [=](const Drawn& drawn, auto* to, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i)
        to[i] = static_cast<std::remove_pointer_t<decltype(to)>>(
            value(unit_of(drawn.words[0][i], drawn.words[1][i]), mean, deviation));
    });
  }

 private:
  static double value(double unit, double mean, double deviation) {
    return mean + deviation * inverse_normal(std::min(unit + 0x1p-54, 1 - 0x1p-53));  // never of 0 or 1
  }
};

struct Bernoulli {
  using Attributes = BernoulliAttrs;
  static constexpr auto name = "bernoulli", onnx = "",
                        summary = "1 where a uniform number lies below the probability, else 0";

  static Tensor parts(Inputs in, const Attributes& a) {
    return cast(lt(call(structured<Uniform>, in, a.uniform()), a.probability), a.dtype);
  }
};

}  // namespace

Family composite_random_family() {
  static constexpr const Primitive* list[] = {&composite<Bernoulli>};
  return list;
}

Family random_family() {
  static constexpr const Primitive* list[] = {&structured<Uniform>, &structured<Normal>};
  return list;
}

}  // namespace detail

namespace {

bool is_finite(double v, Dtype dtype) {
  return std::isfinite(dtype == Dtype::f32 ? static_cast<double>(static_cast<float>(v)) : v);
}

void check_random(const Shape& shape, Dtype dtype, std::string_view where) {
  (void)shape.numel(where);
  if (!is_float(dtype)) detail::throw_dtype(where, "dtype must be a float, got " + std::string(name_of(dtype)));
}

/// The operands of a draw: a key and a counter, a counter alone, or nothing.
class RandomOperands {
 public:
  explicit RandomOperands(const Tensor& counter) : count_(counter.defined() ? 1 : 0) { list_[0] = &counter; }
  RandomOperands(const Tensor& key, const Tensor& counter) : list_{&key, &counter}, count_(2) {}
  operator Inputs() const { return {list_, count_}; }

 private:
  const Tensor* list_[2] = {};
  std::size_t count_;
};

Tensor draw_uniform(const Shape& shape, const RandomKey& key, double low, double high, Dtype dtype, Inputs in) {
  check_random(shape, dtype, "uniform");
  if (!(low <= high) || !is_finite(low, dtype) || !is_finite(high, dtype) || !is_finite(high - low, dtype))
    throw ValueError("uniform: the bounds must be in order, and they and their distance finite in " +
                     std::string(name_of(dtype)) + ", got " + Scalar(low).str() + " and " + Scalar(high).str());
  return detail::call(detail::structured<detail::Uniform>, in,
                      detail::RandomAttrs{detail::DrawAttrs::of(shape, key, dtype), low, high});
}

Tensor draw_normal(const Shape& shape, const RandomKey& key, double mean, double deviation, Dtype dtype, Inputs in) {
  check_random(shape, dtype, "normal");
  if (!(deviation >= 0) || !is_finite(deviation, dtype) || !is_finite(mean, dtype))
    throw ValueError("normal: mean and deviation must be finite in " + std::string(name_of(dtype)) +
                     ", and the deviation not negative, got " + Scalar(mean).str() + " and " + Scalar(deviation).str());
  return detail::call(detail::structured<detail::Normal>, in,
                      detail::RandomAttrs{detail::DrawAttrs::of(shape, key, dtype), mean, deviation});
}

Tensor draw_bernoulli(const Shape& shape, const RandomKey& key, double probability, Dtype dtype, Inputs in) {
  if (!(probability >= 0 && probability <= 1))
    throw ValueError("bernoulli: the probability must lie in [0, 1], got " + Scalar(probability).str());
  return detail::composed<detail::Bernoulli>(in, {detail::DrawAttrs::of(shape, key, dtype), probability});
}

}  // namespace

Tensor uniform(const Shape& shape, const RandomKey& key, double low, double high, Dtype dtype, const Tensor& counter) {
  return draw_uniform(shape, key, low, high, dtype, RandomOperands(counter));
}
Tensor uniform(const Shape& shape, const Tensor& key, const Tensor& counter, double low, double high, Dtype dtype) {
  return draw_uniform(shape, {}, low, high, dtype, RandomOperands(key, counter));
}

Tensor normal(const Shape& shape, const RandomKey& key, double mean, double deviation, Dtype dtype,
              const Tensor& counter) {
  return draw_normal(shape, key, mean, deviation, dtype, RandomOperands(counter));
}
Tensor normal(const Shape& shape, const Tensor& key, const Tensor& counter, double mean, double deviation,
              Dtype dtype) {
  return draw_normal(shape, {}, mean, deviation, dtype, RandomOperands(key, counter));
}

Tensor bernoulli(const Shape& shape, const RandomKey& key, double probability, Dtype dtype, const Tensor& counter) {
  return draw_bernoulli(shape, key, probability, dtype, RandomOperands(counter));
}
Tensor bernoulli(const Shape& shape, const Tensor& key, const Tensor& counter, double probability, Dtype dtype) {
  return draw_bernoulli(shape, {}, probability, dtype, RandomOperands(key, counter));
}

// ---- generators, whose draws differ in every run of a compiled function -----------------------------------

Generator::Generator(std::uint64_t seed, std::string_view name)
    : calls("calls", full({}, 0, Dtype::i64)),
      key("key", Tensor::from({std::bit_cast<std::int64_t>(seed), std::bit_cast<std::int64_t>(stream_of(name))}, {2})) {
}

/// Calls f(key, number of the call); the next draw has the next number.
template <class F>
Tensor Generator::draw(F&& f) const {
  const Tensor call = calls.value();
  Tensor drawn = f(key.value(), call);
  calls.assign(call + 1);
  return drawn;
}

Tensor Generator::uniform(const Shape& shape, double low, double high, Dtype dtype) const {
  return draw([&](const Tensor& k, const Tensor& call) { return ferrite::uniform(shape, k, call, low, high, dtype); });
}

Tensor Generator::normal(const Shape& shape, double mean, double deviation, Dtype dtype) const {
  return draw(
      [&](const Tensor& k, const Tensor& call) { return ferrite::normal(shape, k, call, mean, deviation, dtype); });
}

Tensor Generator::bernoulli(const Shape& shape, double probability, Dtype dtype) const {
  return draw(
      [&](const Tensor& k, const Tensor& call) { return ferrite::bernoulli(shape, k, call, probability, dtype); });
}

}  // namespace ferrite
