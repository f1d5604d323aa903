/// ONNX's types of elements, and the dtypes that hold them.
#include "ferrite/exchange/onnx/value.h"

#include <array>
#include <string>

#include "ferrite/exchange/onnx_error.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

/// The properties of a type of elements.
struct TypeRow {
  std::string_view name;
  int bits = 0;
  bool held = false;
  Dtype dtype = Dtype::f32;
};

constexpr std::array<TypeRow, 29> kTypes{{
    {"undefined"},
    {"float", 32, true, Dtype::f32},
    {"uint8", 8, true, Dtype::i32},
    {"int8", 8, true, Dtype::i32},
    {"uint16", 16, true, Dtype::i32},
    {"int16", 16, true, Dtype::i32},
    {"int32", 32, true, Dtype::i32},
    {"int64", 64, true, Dtype::i64},
    {"string"},
    {"bool", 8, true, Dtype::boolean},
    {"float16", 16, true, Dtype::f32},
    {"double", 64, true, Dtype::f64},
    {"uint32", 32, true, Dtype::i64},
    {"uint64", 64, true, Dtype::i64},
    {"complex64", 64},
    {"complex128", 128},
    {"bfloat16", 16, true, Dtype::f32},
    {"float8e4m3fn", 8},
    {"float8e4m3fnuz", 8},
    {"float8e5m2", 8},
    {"float8e5m2fnuz", 8},
    {"uint4", 4, true, Dtype::i32},
    {"int4", 4, true, Dtype::i32},
    {"float4e2m1", 4},
    {"float8e8m0", 8},
    {"uint2", 2, true, Dtype::i32},
    {"int2", 2, true, Dtype::i32},
    {"float6e2m3", 6},
    {"float6e3m2", 6},
}};

const TypeRow& row_of(ElementType type) {
  const auto at = static_cast<std::size_t>(type);
  return at < kTypes.size() ? kTypes[at] : kTypes[0];
}

}  // namespace

Dtype dtype_for(ElementType type, std::string_view where) {
  const TypeRow& row = row_of(type);
  if (!row.held)
    throw OnnxError(std::string(where) + ": elements of type " + std::string(row.name) + " (" +
                    std::to_string(static_cast<int>(type)) + ") are not supported");
  return row.dtype;
}

ElementType type_for(Dtype dtype) {
  // Where a dtype holds several types, the one of the same name comes first.
  constexpr std::array kOwn = {ElementType::f32, ElementType::f64, ElementType::i32, ElementType::i64,
                               ElementType::boolean};
  for (const ElementType type : kOwn)
    if (row_of(type).dtype == dtype) return type;
  if (dtype == Dtype::bf16) return ElementType::bf16;
  if (dtype == Dtype::f16) return ElementType::f16;
  return dtype == Dtype::i8 ? ElementType::i8 : ElementType::undefined;
}

std::string_view name_of(ElementType type) { return row_of(type).name; }
bool is_floating(ElementType type) { return row_of(type).held && is_float(row_of(type).dtype); }
bool is_integral(ElementType type) { return row_of(type).held && is_integer(row_of(type).dtype); }
bool is_unsigned(ElementType type) {
  switch (type) {
    case ElementType::u8:
    case ElementType::u16:
    case ElementType::u32:
    case ElementType::u64:
    case ElementType::uint4:
    case ElementType::uint2: return true;
    default: return false;
  }
}
int bits_of(ElementType type) { return row_of(type).bits; }

Value narrowed(const Tensor& result, ElementType type) {
  if (!result.defined()) return {};
  if (type == ElementType::f16) return {cast(cast(result, Dtype::f16), Dtype::f32), type};
  if (type == ElementType::bf16) return {cast(cast(result, Dtype::bf16), Dtype::f32), type};
  if (!is_integral(type) || type == ElementType::i32 || type == ElementType::i64 || type == ElementType::u64)
    return {result, type};
  const std::int64_t range = std::int64_t{1} << bits_of(type);
  const std::int64_t low = is_unsigned(type) ? 0 : -range / 2;
  // remainder has the sign of the divisor, so this lies in 0..range - 1
  const Tensor wide = cast(result, Dtype::i64);
  return {cast(remainder(wide - low, range) + low, dtype_for(type)), type};
}

Value known_integers(std::span<const std::int64_t> values) {
  return {Tensor::from<std::int64_t>(values, {static_cast<std::int64_t>(values.size())}), ElementType::i64, true};
}

}  // namespace ferrite::onnx::detail
