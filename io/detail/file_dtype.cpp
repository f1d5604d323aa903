#include "ferrite/io/detail/file_dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "ferrite/io/detail/text.h"
#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read as they are");
static_assert(sizeof(bool) == 1);

struct Row {
  std::string_view name;
  std::uint64_t bits;
  std::optional<Dtype> loads_as = std::nullopt;
};

constexpr std::array<Row, kFileDtypes> kRows = {{
    {"BOOL", 8, Dtype::boolean},
    {"F4", 4},
    {"F6_E2M3", 6},
    {"F6_E3M2", 6},
    {"U8", 8, Dtype::i32},
    {"I8", 8, Dtype::i32},
    {"F8_E5M2", 8},
    {"F8_E4M3", 8},
    {"F8_E5M2FNUZ", 8},
    {"F8_E4M3FNUZ", 8},
    {"F8_E8M0", 8},
    {"I16", 16, Dtype::i32},
    {"U16", 16},
    {"F16", 16, Dtype::f32},
    {"BF16", 16, Dtype::f32},
    {"I32", 32, Dtype::i32},
    {"U32", 32},
    {"F32", 32, Dtype::f32},
    {"C64", 64},
    {"F64", 64, Dtype::f64},
    {"I64", 64, Dtype::i64},
    {"U64", 64},
}};

const Row& row(FileDtype type) { return kRows[static_cast<std::size_t>(type)]; }

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

/// IEEE binary16 to binary32, exact; NaN payloads are kept.
float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (std::uint32_t{bits} & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

/// The i-th element of a file.
template <class T>
T element(std::span<const std::byte> bytes, std::size_t i, ByteOrder order) {
  std::array<std::byte, sizeof(T)> raw{};
  std::memcpy(raw.data(), bytes.data() + i * sizeof(T), sizeof(T));
  if (order == ByteOrder::big) std::ranges::reverse(raw);
  return std::bit_cast<T>(raw);
}

/// Elements of type From made into To one by one.
template <class To, class From, class F>
Tensor converted(const Shape& shape, std::span<const std::byte> bytes, ByteOrder order, F&& f) {
  return Tensor::build<To>(shape, [&](std::span<To> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = f(element<From>(bytes, i, order));
  });
}

/// Elements as they are in the file.
template <class T>
Tensor copied(const Shape& shape, std::span<const std::byte> bytes, ByteOrder order = ByteOrder::little) {
  if (order == ByteOrder::big) return converted<T, T>(shape, bytes, order, [](T value) { return value; });
  return Tensor::build<T>(shape, [&](std::span<T> out) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  });
}

Tensor checked_bool(const Shape& shape, std::span<const std::byte> bytes, std::string_view where) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto value = std::to_integer<unsigned>(bytes[i]);
    if (value > 1)
      refuse(where, "a BOOL is neither 0 nor 1: " + std::to_string(value) + " at element " + std::to_string(i));
  }
  return copied<bool>(shape, bytes);
}

}  // namespace

std::string_view name_of(FileDtype type) { return row(type).name; }
std::uint64_t bits_of(FileDtype type) { return row(type).bits; }
std::optional<Dtype> loads_as(FileDtype type) { return row(type).loads_as; }

std::optional<FileDtype> file_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name) return static_cast<FileDtype>(i);
  return std::nullopt;
}

FileDtype written_as(Dtype type) {
  switch (type) {
    case Dtype::f32: return FileDtype::f32;
    case Dtype::f64: return FileDtype::f64;
    case Dtype::i32: return FileDtype::i32;
    case Dtype::i64: return FileDtype::i64;
    case Dtype::boolean: break;
  }
  return FileDtype::boolean;
}

std::optional<std::uint64_t> elements_of(std::span<const std::int64_t> shape) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  std::uint64_t product = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    empty = empty || extent == 0;
    const std::uint64_t factor = extent == 0 ? 1 : static_cast<std::uint64_t>(extent);
    if (ferrite::detail::mul_overflows(product, factor, product) || product > kMost) return std::nullopt;
  }
  return empty ? 0 : product;
}

Tensor decode(FileDtype type, const Shape& shape, std::span<const std::byte> bytes, std::string_view where,
              ByteOrder order) {
  switch (type) {
    case FileDtype::f32: return copied<float>(shape, bytes, order);
    case FileDtype::f64: return copied<double>(shape, bytes, order);
    case FileDtype::i32: return copied<std::int32_t>(shape, bytes, order);
    case FileDtype::i64: return copied<std::int64_t>(shape, bytes, order);
    case FileDtype::f16: return converted<float, std::uint16_t>(shape, bytes, order, from_f16);
    case FileDtype::bf16: return converted<float, std::uint16_t>(shape, bytes, order, from_bf16);
    case FileDtype::u8:
      return converted<std::int32_t, std::uint8_t>(shape, bytes, order, [](std::uint8_t v) { return std::int32_t{v}; });
    case FileDtype::i8:
      return converted<std::int32_t, std::int8_t>(shape, bytes, order, [](std::int8_t v) { return std::int32_t{v}; });
    case FileDtype::i16:
      return converted<std::int32_t, std::int16_t>(shape, bytes, order, [](std::int16_t v) { return std::int32_t{v}; });
    case FileDtype::boolean: return checked_bool(shape, bytes, where);
    default: break;
  }
  refuse(where, "unsupported dtype: " + std::string(name_of(type)));
}

Tensor converted(const Tensor& value, Dtype dtype, std::string_view name, std::string_view where) {
  if (value.dtype() == dtype) return value;
  Tensor result = cast(value, dtype);
  if (value.dtype() == Dtype::f64 && dtype == Dtype::f32)
    for (const double v : value.values<double>())
      if (std::isfinite(v) && std::isinf(static_cast<float>(v)))
        refuse(where, quote(name) + " holds a number that f32 cannot: " + Scalar(v).str());
  return result;
}

}  // namespace ferrite::io::detail
