#pragma once
/// The GGUF format: reading tensors (quantised ones included) and metadata, and writing them.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ferrite/io/tensor_file.h"

/// GGUF: typed metadata, descriptions of tensors and their aligned bytes (github.com/ggml-org/ggml, docs/gguf.md).
namespace ferrite::io {

/// Reads a GGUF file that is already in memory, versions 2 and 3, little-endian. The bytes are not copied: they must
/// stay alive and unchanged for as long as the result or a copy of it lives.
///
/// Shapes are row-major as everywhere in Ferrite: the file's extents, whose first one varies fastest, in reverse. F32,
/// F64, F16, BF16, I8, I16, I32 and I64 load as in other formats. Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K
/// load as f32, bit for bit as `gguf.quants.dequantize` of the PyPI package gguf gives them. A file may hold tensors of
/// other types; asking for one throws. In the metadata, numbers and booleans become text, and lists are left out:
/// `parse_gguf_metadata` returns them.
///
/// Throws IoError, its message beginning with `where`, for anything but a sound file: another magic, version or byte
/// order; data that reaches beyond the end; a name or key that occurs twice, holds a NUL or is not UTF-8; more than
/// 4096 keys; a value of an unknown type, lists of lists, a boolean that is neither 0 nor 1; an alignment that is not a
/// u32 power of two; more than 8 dimensions, extents above 2^63 - 1, sizes that overflow, rows that are not whole
/// blocks; offsets that are not aligned, tensors that overlap. Memory beyond the bytes given is below their number plus
/// 1 MiB.
TensorFile parse_gguf(std::span<const std::byte> bytes, std::string_view where = "gguf");
/// Reads a whole GGUF file. Throws IoError as parse_gguf, and for a file that is missing, unreadable or not regular.
TensorFile read_gguf(const std::filesystem::path& path);

/// A metadata value in the type that it has in the file; the elements of a list have one type.
using GgufValue =
    std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, float, bool,
                 std::string, std::uint64_t, std::int64_t, double, std::vector<std::uint8_t>, std::vector<std::int8_t>,
                 std::vector<std::uint16_t>, std::vector<std::int16_t>, std::vector<std::uint32_t>,
                 std::vector<std::int32_t>, std::vector<float>, std::vector<bool>, std::vector<std::string>,
                 std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;
/// All metadata of a GGUF file, by key.
using GgufMetadata = std::map<std::string, GgufValue, std::less<>>;

/// Returns all metadata of a GGUF file in memory, lists of tokens included. Throws IoError as parse_gguf does.
GgufMetadata parse_gguf_metadata(std::span<const std::byte> bytes, std::string_view where = "gguf");
/// Reads all metadata of a GGUF file. Throws IoError as read_gguf does.
GgufMetadata read_gguf_metadata(const std::filesystem::path& path);

/// The type in which the elements of a tensor are written. `same` is for any dtype (f32 becomes F32, f16 F16, bf16
/// BF16, f64 F64, i8 I8, i32 I32, i64 I64), the others are for f32 tensors only.
enum class GgufType : std::uint8_t { same, f16, bf16, q8_0, q4_0 };
/// A function that chooses the type in which a tensor is written; a null function means `GgufType::same`,
/// the tensor's own dtype, for all.
using GgufTypeOf = std::function<GgufType(const NamedTensor&)>;

/// Returns the bytes of a GGUF file of version 3 with the tensors in their order and the metadata by key,
/// general.architecture first. Data is aligned to `general.alignment` where the metadata has it (u32, a power of two up
/// to 2^20), else to 32. Quantised blocks are bit for bit those of `gguf.quants.quantize`. Throws IoError for a name
/// that occurs twice, is empty, has more than 63 bytes, a NUL or is not UTF-8, for a key with such a fault or of more
/// than 65535 bytes, more than 4096 keys; undefined tensors, more than 4 dimensions, bool; for a type other than
/// `same` where the tensor is not f32 or its rows are not whole blocks of 32, and for values that the type cannot hold:
/// infinity and NaN in blocks, finite ones beyond the range of f16.
std::vector<std::byte> serialize_gguf(std::span<const NamedTensor> tensors, const GgufMetadata& metadata = {},
                                      const GgufTypeOf& type_of = {});
/// Writes a GGUF file; an old one is replaced as a whole or not at all (AtomicFile). Throws IoError as serialize_gguf,
/// and where the file cannot be written.
void write_gguf(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                const GgufMetadata& metadata = {}, const GgufTypeOf& type_of = {});

}  // namespace ferrite::io
