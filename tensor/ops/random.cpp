#include "ferrite/tensor/random.h"

#include <cmath>
#include <limits>

#include "ferrite/tensor/detail/define.h"
#include "ferrite/tensor/detail/normal.h"
#include "ferrite/tensor/threads.h"

namespace ferrite {
namespace detail {
namespace {

RandomKey key_of(const Attrs& attrs) {
  return {static_cast<std::uint64_t>(attrs.get<std::int64_t>("seed")),
          static_cast<std::uint64_t>(attrs.get<std::int64_t>("stream")),
          static_cast<std::uint32_t>(attrs.get<std::int64_t>("call"))};
}

Specs infer_random(const Attrs& attrs) { return {{attrs.get<Shape>("shape"), attrs.get<Dtype>("dtype")}}; }

/// [0, 1) from 53 bits.
double unit_of(std::uint32_t low, std::uint32_t high) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-53;
}
double unit(const RandomKey& key, std::uint64_t i) { return static_cast<double>(bits64(key, i) >> 11) * 0x1p-53; }

/// [0, 1) from 24 bits.
float unit_float(const RandomKey& key, std::uint64_t i) {
  return static_cast<float>(words_of(key, i)[0] >> 8) * 0x1p-24F;
}

/// f(low word, high word, element) for every element.
template <class F>
void fill(Tensor& out, const RandomKey& key, F&& f) {
  constexpr std::int64_t kChunk = 1 << 14;
  const std::int64_t n = out.numel();
  const auto run = [&](auto* to) {
    parallel_for((n + kChunk - 1) / kChunk, [&](std::int64_t c) {
      const std::int64_t end = std::min(n, (c + 1) * kChunk);
      constexpr auto kStep = static_cast<std::int64_t>(kDrawn);
      Drawn drawn;
      for (std::int64_t i = c * kChunk; i < end; i += kStep) {
        draw(key, static_cast<std::uint64_t>(i), drawn);
        const std::int64_t m = std::min(kStep, end - i);
        for (std::int64_t j = 0; j < m; ++j) f(drawn.words[0][j], drawn.words[1][j], to[i + j]);
      }
    });
  };
  if (out.dtype() == Dtype::f32) {
    run(Writer::data<float>(out));
  } else {
    run(Writer::data<double>(out));
  }
}

template <class F>
void fill_oracle(Dense& out, F&& f) {
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const double v = f(i);
    out.values[i] = out.dtype == Dtype::f32 ? static_cast<float>(v) : v;
  }
}

struct Uniform {
  static constexpr auto name = "uniform", onnx = "", stablehlo = "";
  static constexpr auto summary = "uniform in [low, high): Philox4x32-10, one counter for each element";

  static Specs infer(Inputs in, const Attrs& attrs) {
    if (in.size() && (in[0].dtype() != Dtype::i64 || in[0].numel() != 1))
      throw_shape(name, "the counter must be i64 of one element, got " + in[0].spec().str());
    return infer_random(attrs);
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attrs& attrs) {
    RandomKey key = key_of(attrs);
    if (in.size()) key.call += static_cast<std::uint32_t>(in[0].item<std::int64_t>());
    fill(out[0], key, Values(attrs));
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs) {
    RandomKey key = key_of(attrs);
    if (!in.empty()) key.call += static_cast<std::uint32_t>(in[0].values[0]);
    fill_oracle(out[0], [&](std::uint64_t i) { return value(key, i, out[0].dtype, attrs); });
  }
  static std::vector<Sample> samples() {
    return {{.attrs = random_attrs({3, 5}, {7, 11, 2}, Dtype::f32, -1, 2)},
            {.inputs = {{{}, Dtype::i64}}, .attrs = random_attrs({4}, {7, 11, 2}, Dtype::f32, 0, 1), .indices = {5}},
            {.attrs = random_attrs({150}, {7, 11, 2}, Dtype::f32, 0, 1)},
            {.attrs = random_attrs({150}, {7, 11, 2}, Dtype::f64, 0, 1)}};
  }
  static Attrs random_attrs(const Shape& shape, const RandomKey& key, Dtype dtype, double low, double high) {
    return {{"shape", shape},
            {"dtype", dtype},
            {"seed", static_cast<std::int64_t>(key.seed)},
            {"stream", static_cast<std::int64_t>(key.stream)},
            {"call", std::int64_t{key.call}},
            {"low", low},
            {"high", high}};
  }

 private:
  /// The elements from words: `value`, its constants ready.
  struct Values {
    explicit Values(const Attrs& attrs)
        : low(attrs.get<double>("low")),
          width(attrs.get<double>("high") - low),
          end(width > 0 ? static_cast<float>(attrs.get<double>("high")) : std::numeric_limits<float>::infinity()),
          last(std::nextafter(end, static_cast<float>(low))) {}
    void operator()(std::uint32_t word, std::uint32_t, float& to) const {
      const float unit = static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24F;
      const auto v = static_cast<float>(low + width * static_cast<double>(unit));
      to = v >= end ? last : v;
    }
    void operator()(std::uint32_t word, std::uint32_t high_word, double& to) const {
      to = low + width * unit_of(word, high_word);
    }
    double low, width;
    float end, last;
  };

  static double value(const RandomKey& key, std::uint64_t i, Dtype dtype, const Attrs& attrs) {
    const double low = attrs.get<double>("low");
    const double width = attrs.get<double>("high") - low;
    if (dtype == Dtype::f64) return low + width * unit(key, i);
    const auto v = static_cast<float>(low + width * static_cast<double>(unit_float(key, i)));
    const auto high = static_cast<float>(attrs.get<double>("high"));
    return width > 0 && v >= high ? std::nextafter(high, static_cast<float>(low)) : v;  // rounding must not reach high
  }
};

struct Normal {
  static constexpr auto name = "normal", onnx = "", stablehlo = "";
  // The constants `low` and `high` are the mean and the deviation.
  static constexpr auto summary = "normal: the inverse distribution function of a 53-bit uniform, in plain f64";

  static Specs infer(Inputs, const Attrs& attrs) { return infer_random(attrs); }
  static void eval(Inputs, std::span<Tensor> out, const Attrs& attrs) {
    const RandomKey key = key_of(attrs);
    const double mean = attrs.get<double>("low"), deviation = attrs.get<double>("high");
    fill(out[0], key, [=](std::uint32_t low, std::uint32_t high, auto& to) {
      to = static_cast<std::remove_reference_t<decltype(to)>>(value(unit_of(low, high), mean, deviation));
    });
  }
  static void oracle(std::span<const Dense>, std::span<Dense> out, const Attrs& attrs) {
    const RandomKey key = key_of(attrs);
    fill_oracle(out[0], [&](std::uint64_t i) {
      return value(unit(key, i), attrs.get<double>("low"), attrs.get<double>("high"));
    });
  }
  static std::vector<Sample> samples() {
    return {{.attrs = Uniform::random_attrs({3, 5}, {7, 11, 2}, Dtype::f32, 0, 1)},
            {.attrs = Uniform::random_attrs({150}, {8, 11, 2}, Dtype::f64, -3, 2)}};
  }

 private:
  static double value(double unit, double mean, double deviation) {
    return mean + deviation * inverse_normal(unit + 0x1p-54);  // never of 0 or 1
  }
};

}  // namespace

Family random_family() {
  static constexpr const Primitive* list[] = {&structured<Uniform>, &structured<Normal>};
  return list;
}

}  // namespace detail

namespace {

void check_random(const Shape& shape, Dtype dtype, std::string_view where) {
  (void)shape.numel();
  if (!is_float(dtype)) detail::throw_dtype(where, "dtype must be a float, got " + std::string(name_of(dtype)));
}

}  // namespace

Tensor uniform(const Shape& shape, const RandomKey& key, double low, double high, Dtype dtype, const Tensor& counter) {
  check_random(shape, dtype, "uniform");
  if (!(low <= high))
    throw ValueError("uniform: low must not exceed high, got " + std::to_string(low) + " and " + std::to_string(high));
  const Tensor* in[] = {&counter};
  return detail::call(detail::structured<detail::Uniform>, Inputs(in, counter ? 1 : 0),
                      detail::Uniform::random_attrs(shape, key, dtype, low, high));
}

Tensor normal(const Shape& shape, const RandomKey& key, double mean, double deviation, Dtype dtype) {
  check_random(shape, dtype, "normal");
  if (!(deviation >= 0))
    throw ValueError("normal: the deviation must not be negative, got " + std::to_string(deviation));
  return detail::call(detail::structured<detail::Normal>, {},
                      detail::Uniform::random_attrs(shape, key, dtype, mean, deviation));
}

Tensor bernoulli(const Shape& shape, const RandomKey& key, double probability, Dtype dtype, const Tensor& counter) {
  if (!(probability >= 0 && probability <= 1))
    throw ValueError("bernoulli: the probability must lie in [0, 1], got " + std::to_string(probability));
  return cast(less(uniform(shape, key, 0, 1, Dtype::f64, counter), probability), dtype);
}

}  // namespace ferrite
