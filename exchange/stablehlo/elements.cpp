/// Elements of constants as MLIR text.
#include <bit>
#include <charconv>
#include <cmath>

#include "ferrite/exchange/stablehlo/hlo_text.h"

namespace ferrite::exchange::detail {
namespace {

template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

template <class T>
Bits<T> bits_of(T v) {
  return std::bit_cast<Bits<T>>(v);
}

constexpr char kDigits[] = "0123456789ABCDEF";

/// The bits of a number as one hexadecimal integer.
template <class T>
std::string hex_number(T v) {
  std::string s = "0x";
  for (int shift = 8 * static_cast<int>(sizeof(T)) - 4; shift >= 0; shift -= 4) s += kDigits[bits_of(v) >> shift & 0xf];
  return s;
}

/// A decimal that reads back as the same double, with the point that MLIR wants.
std::string decimal(double v) {
  char buffer[32];
  std::string s(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
  if (s.find('.') != std::string::npos) return s;
  return s.insert(std::min(s.find('e'), s.size()), ".0");
}

template <class T>
std::string element(T v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(v);
  } else {
    const auto real = static_cast<double>(v);
    return std::isfinite(real) ? decimal(real) : hex_number(v);
  }
}

/// Bytes, the lowest first, whatever the machine's order is.
template <class T>
std::string hex_bytes(const std::vector<T>& values) {
  std::string s = "\"0x";
  s.reserve(s.size() + values.size() * sizeof(T) * 2 + 1);
  for (const T v : values)
    for (std::size_t byte = 0; byte < sizeof(T); ++byte) {
      const auto b = static_cast<unsigned>(bits_of(v) >> 8 * byte & 0xff);
      s += kDigits[b >> 4];
      s += kDigits[b & 0xf];
    }
  return s + '"';
}

/// Nested lists: how a bool is packed into bytes differs between versions of MLIR.
std::string nested(const std::vector<bool>& values, const Shape& shape, int axis, std::size_t& next) {
  if (axis == shape.rank()) return element(static_cast<bool>(values[next++]));
  std::string s = "[";
  for (std::int64_t i = 0; i < shape[axis]; ++i) s += (i ? ", " : "") + nested(values, shape, axis + 1, next);
  return s + "]";
}

template <class T>
bool all_equal(const std::vector<T>& values) {
  for (const T v : values)
    if constexpr (std::is_same_v<T, bool>) {
      if (v != values[0]) return false;
    } else {
      if (bits_of(v) != bits_of(values[0])) return false;
    }
  return true;
}

}  // namespace

std::string hlo_elements(const Tensor& tensor) {
  if (tensor.numel() == 0) return "dense<>";
  return visit_dtype(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> values = tensor.to_vector<T>();
    if (all_equal(values)) return "dense<" + element(static_cast<T>(values[0])) + ">";
    if constexpr (std::is_same_v<T, bool>) {
      std::size_t next = 0;
      return "dense<" + nested(values, tensor.shape(), 0, next) + ">";
    } else {
      return "dense<" + hex_bytes(values) + ">";
    }
  });
}

}  // namespace ferrite::exchange::detail
