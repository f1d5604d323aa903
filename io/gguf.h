#pragma once
/// The GGUF format: reading tensors and metadata, quantised ones included, and writing.
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

/// Reads a file that is already in memory, versions 2 and 3, little-endian. The bytes are not copied: they must live
/// and stay as they are for as long as the result or a copy of it lives.
///
/// Shapes are row-major as everywhere here: the extents of the file, whose first one varies fastest, in reverse. F32,
/// F64, F16, BF16, I8, I16, I32 and I64 come as from other formats. Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K
/// come as f32, with the bits of `gguf.quants.dequantize` of the PyPI package gguf. A tensor of another type may be
/// there; asking for it throws. Metadata: strings as they are, numbers and booleans in words; lists are left to
/// `parse_gguf_metadata`.
///
/// Throws IoError, its message beginning with `where`, for anything but a sound file: another magic, version or byte
/// order; what reaches beyond the end; a name or key that occurs twice, holds a NUL or is not UTF-8; more than 4096
/// keys; a value of an unknown type, lists of lists, a boolean that is neither 0 nor 1; an alignment that is no u32
/// power of two; more than 8 dimensions, extents above 2^63 - 1, sizes that overflow, rows that are no whole blocks;
/// offsets that are not aligned, tensors that overlap. Memory beyond the bytes given is below those bytes and 1 MiB.
TensorFile parse_gguf(std::span<const std::byte> bytes, std::string_view where = "gguf");
/// Reads a file whole. Throws IoError as above, and for what is missing, not readable or no regular file.
TensorFile read_gguf(const std::filesystem::path& path);

/// A value of the metadata in the type that it has in the file; a list has one type of element.
using GgufValue =
    std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, float, bool,
                 std::string, std::uint64_t, std::int64_t, double, std::vector<std::uint8_t>, std::vector<std::int8_t>,
                 std::vector<std::uint16_t>, std::vector<std::int16_t>, std::vector<std::uint32_t>,
                 std::vector<std::int32_t>, std::vector<float>, std::vector<bool>, std::vector<std::string>,
                 std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;
using GgufMetadata = std::map<std::string, GgufValue, std::less<>>;

/// All metadata of a file, lists of tokens included. Throws IoError as parse_gguf does.
GgufMetadata parse_gguf_metadata(std::span<const std::byte> bytes, std::string_view where = "gguf");
GgufMetadata read_gguf_metadata(const std::filesystem::path& path);

/// In which type the elements of an f32 tensor are written; `same` for any dtype: f32 becomes F32, f16 F16, bf16 BF16,
/// f64 F64, i8 I8, i32 I32, i64 I64.
enum class GgufType : std::uint8_t { same, f16, bf16, q8_0, q4_0 };
/// The type for a tensor by its name; a null function is `same` for all.
using GgufTypeOf = std::function<GgufType(const NamedTensor&)>;

/// The bytes of a file of version 3 that holds the tensors in their order and the metadata by key, general.architecture
/// first; aligned to `general.alignment` where the metadata has it (u32), else to 32. Quantised blocks have the bits
/// of `gguf.quants.quantize`. Throws IoError for a name that occurs twice, is empty, has more than 63 bytes, a NUL or
/// is not UTF-8, likewise keys of more than 65535 bytes; undefined tensors, more than 4 dimensions, a dtype without a
/// type (bool); for a type other than `same` where the tensor is not f32, where a row is no whole number of blocks of
/// 32, and for values that the type cannot hold: infinity and NaN in blocks, finite ones beyond the range of f16.
std::vector<std::byte> serialize_gguf(std::span<const NamedTensor> tensors, const GgufMetadata& metadata = {},
                                      const GgufTypeOf& type_of = {});
/// Writes that file so that an old one is replaced as a whole or not at all (AtomicFile). Throws IoError.
void write_gguf(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                const GgufMetadata& metadata = {}, const GgufTypeOf& type_of = {});

}  // namespace ferrite::io
