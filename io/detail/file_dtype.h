#pragma once
/// The dtypes in files, including all of safetensors, in one table that all formats use.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ferrite/io/tensor_file.h"

namespace ferrite::io::detail {

/// The types of elements in files, in ascending rank: the safetensors writer puts the highest rank first.
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

/// Returns a type's name in safetensors, "F32".
std::string_view name_of(FileDtype type);
/// Returns the number of bits of one element.
std::uint64_t bits_of(FileDtype type);
/// Returns the type with a name in safetensors, which is case-sensitive.
std::optional<FileDtype> file_dtype(std::string_view name);
/// Returns the dtype in which elements of a type are loaded, or nothing for an unsupported type. For computing, F16 and
/// BF16 give f32, U8, I8, I16 and U16 i32, U32 and U64 i64; as stored, F16, BF16 and I8 give f16, bf16 and i8.
std::optional<Dtype> dtype_in_memory(FileDtype type, Elements elements);
/// Returns the type in which tensors of a dtype are written, which is the same type.
FileDtype written_as(Dtype type);

/// Returns the number of elements of a shape without negative extents, or nothing above 2^62. An extent of 0 does not
/// hide the others: a shape like [0, 2^62, 4] has no strides.
std::optional<std::uint64_t> elements_of(std::span<const std::int64_t> shape);

/// Returns a value that was read, converted to the dtype of the model. Throws IoError where a finite number is beyond
/// the range of that dtype; the message begins with `where` and names the tensor.
Tensor converted(const Tensor& value, Dtype dtype, std::string_view name, std::string_view where);

enum class ByteOrder : std::uint8_t { little, big };

/// Returns a tensor made from packed elements at any alignment. The type must be supported and `bytes` hold exactly the
/// elements of `shape`. Throws IoError when a BOOL is neither 0 nor 1 and for a U64 above 2^63 - 1; the message begins
/// with `where`.
Tensor decode(FileDtype type, const Shape& shape, std::span<const std::byte> bytes, std::string_view where,
              Elements elements = Elements::for_computing, ByteOrder order = ByteOrder::little);

}  // namespace ferrite::io::detail
