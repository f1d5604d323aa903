/// Operations that create tensors: full, arange.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite {
namespace detail {
namespace {

struct Full {
  using Attributes = FullAttrs;
  static constexpr auto name = "full", onnx = "ConstantOfShape", stablehlo = "constant";
  static constexpr auto summary = "a tensor of one value";
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs, const Attributes& attrs) {
    check_literal(name, attrs.value, attrs.dtype);
    return {{attrs.shape, attrs.dtype}};
  }
  static void eval(Inputs, std::span<Tensor> out, const Attributes& attrs) {
    visit_dtype(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T value = attrs.value.as<T>();
      const auto n = static_cast<std::size_t>(out[0].numel());
      T* const to = Writer::data<T>(out[0]);
      // The C library fills with bytes as fast as the processor can, on any.
      constexpr std::array<std::byte, sizeof(T)> kZero{};
      if (std::memcmp(&value, &kZero, sizeof(T)) == 0) {
        if (n > 0) std::memset(to, 0, n * sizeof(T));
      } else {
        std::fill_n(to, n, value);
      }
    });
  }
};

/// begin + i step, computed in f64 (integers exactly).
struct Arange {
  using Attributes = ArangeAttrs;
  static constexpr auto name = "arange", onnx = "Range", stablehlo = "iota";
  static constexpr auto summary = "count values begin + i step";

  static Specs infer(Inputs, const Attributes& attrs) { return {{{attrs.count}, attrs.dtype}}; }
  static void eval(Inputs, std::span<Tensor> out, const Attributes& attrs) {
    const Scalar begin = attrs.begin;
    const Scalar step = attrs.step;
    const std::int64_t n = out[0].numel();
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* to = Writer::data<T>(out[0]);
      if (begin.is_floating() || step.is_floating()) {
        for (std::int64_t i = 0; i < n; ++i)
          to[i] = static_cast<T>(begin.real() + static_cast<double>(i) * step.real());
      } else {
        // Unsigned: the product may wrap on the way to a sum that fits.
        const auto first = static_cast<std::uint64_t>(begin.integer()),
                   each = static_cast<std::uint64_t>(step.integer());
        for (std::int64_t i = 0; i < n; ++i)
          to[i] = static_cast<T>(static_cast<std::int64_t>(first + static_cast<std::uint64_t>(i) * each));
      }
    });
  }
};

bool are_integers(std::same_as<Scalar> auto... s) { return !(s.is_floating() || ...); }

std::int64_t arange_count(Scalar begin, Scalar end, Scalar step) {
  if (step.real() == 0) throw ValueError("arange: step must not be 0");
  double n = std::ceil((end.real() - begin.real()) / step.real());
  if (are_integers(begin, end, step)) {
    // Unsigned: the distance of two integers may have 64 bits.
    const auto from = static_cast<std::uint64_t>(begin.integer()), to = static_cast<std::uint64_t>(end.integer());
    const auto by = static_cast<std::uint64_t>(step.integer());
    const bool up = step.integer() > 0;
    const bool some = up ? begin.integer() < end.integer() : begin.integer() > end.integer();
    n = some ? static_cast<double>(((up ? to - from : from - to) - 1) / (up ? by : 0 - by)) + 1 : 0;
  }
  if (!(n <= static_cast<double>(kMostStored)))
    throw ValueError("arange: too many values from " + begin.str() + " to " + end.str() + " by " + step.str());
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(n));
}

/// Throws ValueError unless an integer dtype holds the first and the last value, and so all of them.
void check_range(Scalar begin, Scalar step, std::int64_t count, Dtype dtype) {
  if (!is_integer(dtype) || count == 0) return;
  const bool narrow = dtype == Dtype::i32;
  double low = begin.real(), high = low + static_cast<double>(count - 1) * step.real();
  if (low > high) std::swap(low, high);
  const double bound = narrow ? 0x1p31 : 0x1p63;
  if (!narrow && are_integers(begin, step)) return;  // between two numbers of 64 bits
  if (low <= (narrow ? -bound - 1 : -bound * (1 + 0x1p-52)) || high >= bound)
    throw ValueError("arange: " + std::string(name_of(dtype)) + " cannot hold " + begin.str() + " and " +
                     std::to_string(count - 1) + " times " + step.str() + " more");
}

}  // namespace

namespace ops {
constinit const Primitive* const full = &structured<Full>;
}  // namespace ops

Family creation_family() {
  static constexpr const Primitive* list[] = {&structured<Full>, &structured<Arange>};
  return list;
}

}  // namespace detail

Tensor full(const Shape& shape, Scalar value, Dtype dtype) {
  return detail::call(detail::structured<detail::Full>, {}, detail::FullAttrs{shape, value, dtype});
}
Tensor zeros(const Shape& shape, Dtype dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, Dtype dtype) { return full(shape, 1, dtype); }
Tensor zeros_like(const Tensor& x) { return full(x.shape(), 0, x.dtype()); }
Tensor ones_like(const Tensor& x) { return full(x.shape(), 1, x.dtype()); }

Tensor arange(Scalar end) { return arange(0, end, 1); }
Tensor arange(Scalar begin, Scalar end, Scalar step) {
  const bool real = begin.is_floating() || end.is_floating() || step.is_floating();
  return arange(begin, end, step, real ? Dtype::f32 : Dtype::i64);
}
Tensor arange(Scalar begin, Scalar end, Scalar step, Dtype dtype) {
  const std::int64_t count = detail::arange_count(begin, end, step);
  detail::check_range(begin, step, count, dtype);
  return detail::call(detail::structured<detail::Arange>, {}, detail::ArangeAttrs{begin, step, count, dtype});
}

}  // namespace ferrite
