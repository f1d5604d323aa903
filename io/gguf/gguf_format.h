#pragma once
/// The constants and types of the GGUF format, and the conversion between blocks of quantised elements and numbers.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ferrite/io/detail/file_dtype.h"

namespace ferrite::io::detail::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr std::uint32_t kVersion = 3;
inline constexpr std::uint32_t kDefaultAlignment = 32;
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr std::string_view kArchitectureKey = "general.architecture";
inline constexpr std::uint64_t kMostKeys = 4096;
inline constexpr std::uint32_t kMostDimensions = 8;

/// The types of metadata values, by their numbers in files.
enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, list, u64, i64, f64 };
inline constexpr std::uint32_t kValueTypes = 13;

/// Returns the size of a value in bytes; 0 for strings and lists.
std::uint64_t size_of(ValueType type);

/// The packings of tensor elements in blocks that can be read.
enum class Packing : std::uint8_t { none, plain, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

/// A type of tensors.
struct TensorType {
  std::uint32_t id = 0;  ///< number of the type in files
  std::string_view name;
  std::uint32_t block_elements = 1;
  std::uint32_t block_bytes = 0;
  Packing packing = Packing::none;  ///< `none` for unsupported types
  FileDtype plain = FileDtype::f32;
};

/// Returns the type with a number in files, or null for a number that the format does not define.
const TensorType* tensor_type(std::uint32_t id);
/// Returns the type with a packing.
const TensorType& tensor_type(Packing packing);

/// Returns the type in which plain elements are written, or null.
const TensorType* tensor_type_of(FileDtype plain);

/// Converts whole blocks to floats; `blocks` holds exactly the blocks of `out`.
void dequantize(Packing packing, std::span<const std::byte> blocks, std::span<float> out);

/// Converts finite elements to blocks of 32 as Q8_0 or Q4_0, which fill `blocks` exactly. Returns false where a scale
/// is beyond f16.
bool quantize(Packing packing, std::span<const float> elements, std::span<std::byte> blocks);

}  // namespace ferrite::io::detail::gguf
