#pragma once
/// Dtypes in files, those that safetensors has among them: one table, which all formats read.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ferrite/io/tensor_file.h"

namespace ferrite::io::detail {

/// Types of elements in files, in the order in which the safetensors writer ranks them: the last come first.
enum class FileDtype : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e5m2fnuz,
  f8_e4m3fnuz,
  f8_e8m0,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};
inline constexpr int kFileDtypes = 22;

/// "F32", as safetensors spells it.
std::string_view name_of(FileDtype type);
/// Bits of one element.
std::uint64_t bits_of(FileDtype type);
/// The type by its name in a file, case and all.
std::optional<FileDtype> file_dtype(std::string_view name);
/// What elements of a type become in memory. For computing F16 and BF16 give f32, U8, I8, I16 and U16 i32, U32
/// and U64 i64; as they are stored F16, BF16 and I8 give f16, bf16 and i8. Unsupported ones give nothing.
std::optional<Dtype> dtype_in_memory(FileDtype type, Elements elements);
/// The type in which a tensor is written: its own.
FileDtype written_as(Dtype type);

/// The number of elements of a shape without negative extents. Nothing above 2^62; an extent of 0 does not hide the
/// others: a shape like [0, 2^62, 4] has no strides.
std::optional<std::uint64_t> elements_of(std::span<const std::int64_t> shape);

/// A value that was read, in the dtype of the model. Throws IoError where a finite number is beyond the range of that
/// dtype; the message begins with `where` and names the tensor.
Tensor converted(const Tensor& value, Dtype dtype, std::string_view name, std::string_view where);

enum class ByteOrder : std::uint8_t { little, big };

/// A tensor from packed elements at any alignment. The type is supported and `bytes` holds exactly the elements of
/// `shape`. Throws IoError when a BOOL is neither 0 nor 1 and for a U64 above 2^63 - 1; the message begins with
/// `where`.
Tensor decode(FileDtype type, const Shape& shape, std::span<const std::byte> bytes, std::string_view where,
              Elements elements = Elements::for_computing, ByteOrder order = ByteOrder::little);

}  // namespace ferrite::io::detail
