/// Random draws as operations.
#include "ferrite/tensor/random.h"

#include <cmath>
#include <limits>

#include "ferrite/tensor/detail/normal.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/threads.h"

namespace ferrite {
namespace detail {
namespace {

/// What every draw is given.
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

/// Of a normal distribution, `low` and `high` are the mean and the deviation.
struct RandomAttrs : DrawAttrs {
  double low = 0, high = 1;
  static constexpr auto fields =
      DrawAttrs::fields.with(attr("low", &RandomAttrs::low), attr("high", &RandomAttrs::high));
};

struct BernoulliAttrs : DrawAttrs {
  double probability = 0.5;
  static constexpr auto fields = DrawAttrs::fields.with(attr("probability", &BernoulliAttrs::probability));

  /// Of the uniform numbers that the probability is compared with.
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

/// Operands: none, a counter, or a key and a counter.
Specs infer_random(std::string_view name, Inputs in, const RandomAttrs& attrs) {
  if (!is_float(attrs.dtype)) throw_dtype(name, "dtype must be a float, got " + std::string(name_of(attrs.dtype)));
  if (in.size() > 2) throw_shape(name, "takes a key and a counter, got " + std::to_string(in.size()) + " operands");
  if (in.size() == 2 && in[0].spec() != Spec{{2}, Dtype::i64})
    throw_shape(name, "the key must be i64[2], seed and stream, got " + in[0].spec().str());
  if (in.size() > 0 && (in[in.size() - 1].dtype() != Dtype::i64 || in[in.size() - 1].numel() != 1))
    throw_shape(name, "the counter must be i64 of one element, got " + in[in.size() - 1].spec().str());
  return {{attrs.shape, attrs.dtype}};
}

/// The key of an application: the values of its operands go before the constants.
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

/// [0, 1) from 53 bits.
double unit_of(std::uint32_t low, std::uint32_t high) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-53;
}

/// f(drawn, to, n) for every n elements that are drawn together.
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

/// Rounding must not reach the upper bound, which a draw leaves out.
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

}  // namespace

namespace {

/// What a draw takes: a key and a counter, a counter alone, or nothing.
class Operands {
 public:
  explicit Operands(const Tensor& counter) : count_(counter.defined() ? 1 : 0) { list_[0] = &counter; }
  Operands(const Tensor& key, const Tensor& counter) : list_{&key, &counter}, count_(2) {}
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
  return draw_uniform(shape, key, low, high, dtype, Operands(counter));
}
Tensor uniform(const Shape& shape, const Tensor& key, const Tensor& counter, double low, double high, Dtype dtype) {
  return draw_uniform(shape, {}, low, high, dtype, Operands(key, counter));
}

Tensor normal(const Shape& shape, const RandomKey& key, double mean, double deviation, Dtype dtype,
              const Tensor& counter) {
  return draw_normal(shape, key, mean, deviation, dtype, Operands(counter));
}
Tensor normal(const Shape& shape, const Tensor& key, const Tensor& counter, double mean, double deviation,
              Dtype dtype) {
  return draw_normal(shape, {}, mean, deviation, dtype, Operands(key, counter));
}

Tensor bernoulli(const Shape& shape, const RandomKey& key, double probability, Dtype dtype, const Tensor& counter) {
  return draw_bernoulli(shape, key, probability, dtype, Operands(counter));
}
Tensor bernoulli(const Shape& shape, const Tensor& key, const Tensor& counter, double probability, Dtype dtype) {
  return draw_bernoulli(shape, {}, probability, dtype, Operands(key, counter));
}

}  // namespace ferrite
