/// The kernels of arithmetic, functions, logic, conversions and mathematics: the tables of all families except
/// activations, whose functions the compiler inlines less often when they share a source with these.
#include <limits>

#include "ferrite/tensor/kernel/block.h"
#include "ferrite/tensor/kernel/packet_log.h"
#include "ferrite/tensor/kernel/packet_math.h"
#include "ferrite/tensor/kernel/packet_trigonometry.h"

namespace ferrite::detail::FERRITE_LEVEL {

// ---- conversions ------------------------------------------------------------------------------------------

#ifndef FERRITE_ABOVE_AVX2

namespace {

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;

/// Converts a number. Floats that do not fit an integer saturate; NaN gives 0. (The C++ conversion would be undefined.)
/// Integers that do not fit a narrower one lose their high bits. Floats are rounded once, to nearest even.
template <class To, class From>
To convert(From v) {
  if constexpr (kIsHalf<From> && (std::is_same_v<To, bool> || std::is_same_v<To, double>)) {
    return static_cast<To>(v);  // not by way of a float, which may be a denormal
  } else if constexpr (kIsHalf<From>) {
    return convert<To>(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From high = static_cast<From>(std::numeric_limits<To>::max());
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    if (!(v == v)) return 0;
    if (v >= high) return std::numeric_limits<To>::max();
    return v <= low ? std::numeric_limits<To>::min() : static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

/// Converts a run of values, or one value repeated.
template <class From, class To>
void convert_run(const void* const* in, const std::ptrdiff_t* step, void* out, std::int64_t n) {
  const From* from = static_cast<const From*>(in[0]);
  To* to = static_cast<To*>(out);
  if (step[0] == 1) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
  } else {
    const To value = convert<To>(*from);
    for (std::int64_t i = 0; i < n; ++i) to[i] = value;
  }
}

template <class From>
constexpr Conversions::Row conversions_from() {
  Conversions::Row row{};
  const auto put = [&]<class... To>(const DtypeRow<To>&...) {
    std::size_t i = 0;
    ((row.to[i++] = convert_run<From, To>), ...);
  };
  std::apply(put, kDtypeTable);
  return row;
}

constexpr Conversions all_conversions() {
  Conversions all{};
  const auto put = [&]<class... From>(const DtypeRow<From>&...) {
    std::size_t i = 0;
    ((all.between[i++] = conversions_from<From>()), ...);
  };
  std::apply(put, kDtypeTable);
  return all;
}

}  // namespace

constinit const Conversions conversions = all_conversions();
#endif

// ---- the families -----------------------------------------------------------------------------------------

extern const decltype(whole_family<2>(Logic{})) logic;
constinit const decltype(whole_family<2>(Logic{})) logic = whole_family<2>(Logic{});

extern const decltype(whole_family<0>(Arithmetic{})) arithmetic;
constinit const decltype(whole_family<0>(Arithmetic{})) arithmetic = whole_family<0>(Arithmetic{});

extern const decltype(whole_family<1>(Functions{})) functions;
constinit const decltype(whole_family<1>(Functions{})) functions = whole_family<1>(Functions{});

extern const decltype(whole_family<3>(Math{})) math;
constinit const decltype(whole_family<3>(Math{})) math = whole_family<3>(Math{});

}  // namespace ferrite::detail::FERRITE_LEVEL
