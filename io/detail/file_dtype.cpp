/// The dtypes of files, their dtypes in memory, and the conversion of their elements.
#include "ferrite/io/detail/file_dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ferrite/io/detail/io_text.h"
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
  std::optional<Dtype> stored_as = std::nullopt;  ///< dtype of its bits in memory, where it differs
};

constexpr std::array<Row, kFileDtypes> kRows = {{
    {"BOOL", 8, Dtype::boolean},
    {"F4", 4},
    {"F6_E2M3", 6},
    {"F6_E3M2", 6},
    {"U8", 8, Dtype::i32},
    {"I8", 8, Dtype::i32, Dtype::i8},
    {"F8_E5M2", 8},
    {"F8_E4M3", 8},
    {"F8_E5M2FNUZ", 8},
    {"F8_E4M3FNUZ", 8},
    {"F8_E8M0", 8},
    {"I16", 16, Dtype::i32},
    {"U16", 16, Dtype::i32},
    {"F16", 16, Dtype::f32, Dtype::f16},
    {"BF16", 16, Dtype::f32, Dtype::bf16},
    {"I32", 32, Dtype::i32},
    {"U32", 32, Dtype::i64},
    {"F32", 32, Dtype::f32},
    {"C64", 64},
    {"F64", 64, Dtype::f64},
    {"I64", 64, Dtype::i64},
    {"U64", 64, Dtype::i64},
}};

const Row& row(FileDtype type) { return kRows[static_cast<std::size_t>(type)]; }

/// Returns the i-th element of a file.
template <class T>
T element(std::span<const std::byte> bytes, std::size_t i, ByteOrder order) {
  std::array<std::byte, sizeof(T)> raw{};
  std::memcpy(raw.data(), bytes.data() + i * sizeof(T), sizeof(T));
  if (order == ByteOrder::big) std::ranges::reverse(raw);
  return std::bit_cast<T>(raw);
}

/// Returns elements of type From converted to To one by one.
template <class To, class From, class F>
Tensor converted(const Shape& shape, std::span<const std::byte> bytes, ByteOrder order, F&& f) {
  return Tensor::build<To>(shape, [&](std::span<To> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = f(element<From>(bytes, i, order));
  });
}

/// Returns the elements in the type that they have in the file.
template <class T>
Tensor copied(const Shape& shape, std::span<const std::byte> bytes, ByteOrder order = ByteOrder::little) {
  if (order == ByteOrder::big) return converted<T, T>(shape, bytes, order, [](T value) { return value; });
  return Tensor::build<T>(shape, [&](std::span<T> out) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  });
}

/// Converts elements exactly from a type that operations do not take to one that they take.
template <class From, class To>
Tensor widened(const Shape& shape, std::span<const std::byte> bytes, ByteOrder order) {
  return converted<To, From>(shape, bytes, order, [](From v) { return static_cast<To>(v); });
}

Tensor checked_bool(const Shape& shape, std::span<const std::byte> bytes, std::string_view where) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto value = std::to_integer<unsigned>(bytes[i]);
    if (value > 1)
      refuse(where, "a BOOL is neither 0 nor 1: " + std::to_string(value) + " at element " + std::to_string(i));
  }
  return copied<bool>(shape, bytes);
}

/// Converts u64 to i64. Throws IoError for numbers that i64 cannot hold.
Tensor checked_u64(const Shape& shape, std::span<const std::byte> bytes, std::string_view where, ByteOrder order) {
  return converted<std::int64_t, std::uint64_t>(shape, bytes, order, [&](std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      refuse(where, "an unsigned integer is above 2^63 - 1, the largest i64: " + std::to_string(value));
    return static_cast<std::int64_t>(value);
  });
}

}  // namespace

std::string_view name_of(FileDtype type) { return row(type).name; }
std::uint64_t bits_of(FileDtype type) { return row(type).bits; }

std::optional<FileDtype> file_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name) return static_cast<FileDtype>(i);
  return std::nullopt;
}

std::optional<Dtype> dtype_in_memory(FileDtype type, Elements elements) {
  const Row& r = row(type);
  return elements == Elements::as_stored && r.stored_as ? r.stored_as : r.loads_as;
}

FileDtype written_as(Dtype type) {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const auto file = static_cast<FileDtype>(i);
    if (dtype_in_memory(file, Elements::as_stored) == type &&
        kRows[i].bits == 8 * static_cast<std::uint64_t>(size_of(type)))
      return file;
  }
  throw Error("file: no type of element for " + std::string(ferrite::name_of(type)));
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
              Elements elements, ByteOrder order) {
  const bool as_stored = elements == Elements::as_stored;
  switch (type) {
    case FileDtype::f32: return copied<float>(shape, bytes, order);
    case FileDtype::f64: return copied<double>(shape, bytes, order);
    case FileDtype::i32: return copied<std::int32_t>(shape, bytes, order);
    case FileDtype::i64: return copied<std::int64_t>(shape, bytes, order);
    case FileDtype::f16:
      return as_stored ? copied<float16>(shape, bytes, order) : widened<float16, float>(shape, bytes, order);
    case FileDtype::bf16:
      return as_stored ? copied<bfloat16>(shape, bytes, order) : widened<bfloat16, float>(shape, bytes, order);
    case FileDtype::i8:
      return as_stored ? copied<std::int8_t>(shape, bytes, order)
                       : widened<std::int8_t, std::int32_t>(shape, bytes, order);
    case FileDtype::u8: return widened<std::uint8_t, std::int32_t>(shape, bytes, order);
    case FileDtype::i16: return widened<std::int16_t, std::int32_t>(shape, bytes, order);
    case FileDtype::u16: return widened<std::uint16_t, std::int32_t>(shape, bytes, order);
    case FileDtype::u32: return widened<std::uint32_t, std::int64_t>(shape, bytes, order);
    case FileDtype::u64: return checked_u64(shape, bytes, where, order);
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
