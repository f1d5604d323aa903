#pragma once
#include <cstdint>
#include <string_view>

namespace ferrite {

/// Types of elements. f32 is the working type; f64 serves gradient checks.
enum class Dtype : std::uint8_t { f32, f64, i32, i64, boolean };

inline constexpr int kDtypes = 5;

/// Bytes of one element.
constexpr std::int64_t size_of(Dtype t) {
  constexpr std::int64_t bytes[kDtypes] = {4, 8, 4, 8, 1};
  return bytes[static_cast<int>(t)];
}
constexpr bool is_float(Dtype t) { return t == Dtype::f32 || t == Dtype::f64; }
constexpr bool is_integer(Dtype t) { return t == Dtype::i32 || t == Dtype::i64; }

/// "f32", "f64", "i32", "i64" or "bool".
constexpr std::string_view name_of(Dtype t) {
  constexpr std::string_view names[kDtypes] = {"f32", "f64", "i32", "i64", "bool"};
  return names[static_cast<int>(t)];
}

namespace detail {
template <class T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::f32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::f64;
};
template <>
struct DtypeOf<std::int32_t> {
  static constexpr Dtype value = Dtype::i32;
};
template <>
struct DtypeOf<std::int64_t> {
  static constexpr Dtype value = Dtype::i64;
};
template <>
struct DtypeOf<bool> {
  static constexpr Dtype value = Dtype::boolean;
};
}  // namespace detail

/// The Dtype of a C++ type: float, double, int32_t, int64_t or bool.
template <class T>
inline constexpr Dtype dtype_of = detail::DtypeOf<T>::value;

/// Calls f(T{}) with the C++ type that stands for t.
template <class F>
constexpr decltype(auto) visit_dtype(Dtype t, F&& f) {
  switch (t) {
    case Dtype::f32: return f(float{});
    case Dtype::f64: return f(double{});
    case Dtype::i32: return f(std::int32_t{});
    case Dtype::i64: return f(std::int64_t{});
    case Dtype::boolean: break;
  }
  return f(bool{});
}

}  // namespace ferrite
