#pragma once
/// The words of the GGUF format: types of values and of tensors, limits; blocks of quantised elements as numbers, and
/// numbers as blocks.
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

/// Types of values, by their numbers in files.
enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, list, u64, i64, f64 };
inline constexpr std::uint32_t kValueTypes = 13;

/// Bytes of a value; 0 for strings and lists.
std::uint64_t size_of(ValueType type);

/// How elements of tensors are packed in blocks that we read.
enum class Packing : std::uint8_t { none, plain, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

/// A type of tensors.
struct TensorType {
  std::uint32_t id = 0;  ///< in files
  std::string_view name;
  std::uint32_t block_elements = 1;
  std::uint32_t block_bytes = 0;
  Packing packing = Packing::none;  ///< none: not supported
  FileDtype plain = FileDtype::f32;
};

/// Nothing for a number that the format does not define.
const TensorType* tensor_type(std::uint32_t id);
const TensorType& tensor_type(Packing packing);

/// The type in which plain elements are written; null: there is none.
const TensorType* tensor_type_of(FileDtype plain);

/// The elements of whole blocks; `blocks` holds exactly those of `out`.
void dequantize(Packing packing, std::span<const std::byte> blocks, std::span<float> out);

/// Blocks of 32 finite elements each as Q8_0 or Q4_0, into exactly their bytes. False where a scale is beyond f16.
bool quantize(Packing packing, std::span<const float> elements, std::span<std::byte> blocks);

}  // namespace ferrite::io::detail::gguf
