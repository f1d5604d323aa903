#pragma once
/// The types of elements: one table, from which names, sizes, C++ types and the functions that visit them follow.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ferrite/tensor/half.h"

namespace ferrite {

/// The type of an element. f32 is the working type; f64 serves gradient checks. bf16, f16 and i8 are storage types:
/// they exist in storage, views, `cast`, files and constants, and every other operation refuses them. Only their values
/// contain kStorageOnlyBit.
enum class Dtype : std::uint8_t { f32, f64, i32, i64, boolean, bf16 = 8, f16, i8 };

/// The kind of numbers that a dtype holds.
enum class DtypeKind : std::uint8_t { floating, integer, boolean };

namespace detail {

/// A row of the table of dtypes: the C++ type of its elements, its name and its kind.
template <class T>
struct DtypeRow {
  using Type = T;
  Dtype dtype;
  std::string_view name;
  DtypeKind kind;
};

/// The table of dtypes. Types that operations compute with come first, in the order of their values.
inline constexpr std::tuple kDtypeTable{
    DtypeRow<float>{Dtype::f32, "f32", DtypeKind::floating},
    DtypeRow<double>{Dtype::f64, "f64", DtypeKind::floating},
    DtypeRow<std::int32_t>{Dtype::i32, "i32", DtypeKind::integer},
    DtypeRow<std::int64_t>{Dtype::i64, "i64", DtypeKind::integer},
    DtypeRow<bool>{Dtype::boolean, "bool", DtypeKind::boolean},
    DtypeRow<bfloat16>{Dtype::bf16, "bf16", DtypeKind::floating},
    DtypeRow<float16>{Dtype::f16, "f16", DtypeKind::floating},
    DtypeRow<std::int8_t>{Dtype::i8, "i8", DtypeKind::integer},
};
inline constexpr std::size_t kDtypeRows = std::tuple_size_v<decltype(kDtypeTable)>;

/// Returns the results of `of` for all rows of the table, indexed by the value of the dtype.
template <class Fact, class F>
constexpr auto by_dtype(F of) {
  std::array<Fact, 11> facts{};
  const auto put = [&](const auto&... row) { ((facts.at(static_cast<std::size_t>(row.dtype)) = of(row)), ...); };
  std::apply(put, kDtypeTable);
  return facts;
}
template <class T>
constexpr std::int64_t bytes_of_row(const DtypeRow<T>&) {
  return sizeof(T);
}
inline constexpr auto kDtypeBytes = by_dtype<std::int64_t>([](const auto& row) { return bytes_of_row(row); });
inline constexpr auto kDtypeNames = by_dtype<std::string_view>([](const auto& row) { return row.name; });
inline constexpr auto kDtypeKinds = by_dtype<DtypeKind>([](const auto& row) { return row.kind; });

inline constexpr unsigned kStorageOnlyBit = 8;

/// Returns the dtypes of a kind as a set of bits, one for each, so that `is_one_of` reads no memory.
constexpr unsigned dtypes_of_kind(DtypeKind kind, bool stored_only_too) {
  unsigned bits = 0;
  for (unsigned t = 0; t < kDtypeNames.size(); ++t)
    if (!kDtypeNames[t].empty() && kDtypeKinds[t] == kind && (stored_only_too || (t & kStorageOnlyBit) == 0))
      bits |= 1U << t;
  return bits;
}
inline constexpr unsigned kFloatDtypes = dtypes_of_kind(DtypeKind::floating, false);
inline constexpr unsigned kIntegerDtypes = dtypes_of_kind(DtypeKind::integer, false);
inline constexpr unsigned kDtypesWithGradients = dtypes_of_kind(DtypeKind::floating, true);
constexpr bool is_one_of(unsigned dtypes, Dtype t) { return (dtypes >> static_cast<unsigned>(t) & 1) != 0; }

template <class T, std::size_t I = 0>
constexpr Dtype dtype_of_row() {
  static_assert(I < kDtypeRows, "no dtype has elements of this C++ type");
  if constexpr (std::is_same_v<T, typename std::tuple_element_t<I, decltype(kDtypeTable)>::Type>) {
    return std::get<I>(kDtypeTable).dtype;
  } else {
    return dtype_of_row<T, I + 1>();
  }
}

template <std::size_t I, std::size_t End, class F>
constexpr decltype(auto) visit_rows(Dtype t, F& f) {
  if constexpr (I + 1 < End) {
    if (t != std::get<I>(kDtypeTable).dtype) return visit_rows<I + 1, End>(t, f);
  }
  return f(typename std::tuple_element_t<I, decltype(kDtypeTable)>::Type{});
}

}  // namespace detail

/// All dtypes, in the order of the table.
inline constexpr std::array kDtypes =
    std::apply([](const auto&... row) { return std::array{row.dtype...}; }, detail::kDtypeTable);
/// Number of dtypes that operations compute with: f32, f64, i32, i64 and bool. They come first and their values count
/// from 0, so they index tables.
inline constexpr int kComputedDtypes = 5;

/// Returns the position of a dtype in kDtypes.
constexpr std::size_t position_of(Dtype t) {
  const auto value = static_cast<std::size_t>(t);
  return value < kComputedDtypes ? value : value - detail::kStorageOnlyBit + kComputedDtypes;
}

/// Returns the size of one element, in bytes.
constexpr std::int64_t size_of(Dtype t) { return detail::kDtypeBytes[static_cast<std::size_t>(t)]; }
/// Returns the name of a dtype: "f32", "f64", "i32", "i64", "bool", "bf16", "f16" or "i8".
constexpr std::string_view name_of(Dtype t) { return detail::kDtypeNames[static_cast<std::size_t>(t)]; }
constexpr DtypeKind kind_of(Dtype t) { return detail::kDtypeKinds[static_cast<std::size_t>(t)]; }
/// Returns whether only `cast` and the views take this dtype: true for bf16, f16 and i8.
constexpr bool is_storage_only(Dtype t) { return (static_cast<unsigned>(t) & detail::kStorageOnlyBit) != 0; }
/// Returns whether t is f32 or f64, the types that operations on floats take.
constexpr bool is_float(Dtype t) { return detail::is_one_of(detail::kFloatDtypes, t); }
/// Returns whether t is i32 or i64, the types that operations on integers take.
constexpr bool is_integer(Dtype t) { return detail::is_one_of(detail::kIntegerDtypes, t); }
/// Returns whether values of this type have gradients: all floats, including bf16 and f16.
constexpr bool has_gradient(Dtype t) { return detail::is_one_of(detail::kDtypesWithGradients, t); }
/// Returns the dtype of the gradient of values of dtype t: t itself, or f32 for storage types.
constexpr Dtype gradient_dtype(Dtype t) { return is_storage_only(t) ? Dtype::f32 : t; }

/// The dtype of a C++ type: float, double, int32_t, int64_t, bool, bfloat16, float16 or int8_t.
template <class T>
inline constexpr Dtype dtype_of = detail::dtype_of_row<T>();

/// Calls f(T{}) with the C++ type of the elements of dtype t.
template <class F>
constexpr decltype(auto) visit_dtype(Dtype t, F&& f) {
  return detail::visit_rows<0, detail::kDtypeRows>(t, f);
}
/// Calls f(T{}) with the C++ type of a dtype that operations compute with; f is not instantiated for storage types.
template <class F>
constexpr decltype(auto) visit_computed(Dtype t, F&& f) {
  return detail::visit_rows<0, kComputedDtypes>(t, f);
}

static_assert([] {
  for (std::size_t i = 0; i < kDtypes.size(); ++i) {
    const bool computed = i < kComputedDtypes;
    if (is_storage_only(kDtypes[i]) == computed) return false;
    if (position_of(kDtypes[i]) != i) return false;
  }
  return true;
}());

}  // namespace ferrite
