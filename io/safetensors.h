#pragma once
/// The safetensors format: reading, mapping and writing files.
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"

/// safetensors: a JSON header followed by the bytes of named tensors (huggingface.co/docs/safetensors).
/// Reading is at least as strict as in the reference implementation; written files equal its own byte for byte.
namespace ferrite::io {

/// Reads a safetensors file that is already in memory. The bytes are not copied: they must stay alive and unchanged for
/// as long as the result or a copy of it lives.
///
/// Throws IoError, its message beginning with `where`, for anything but a sound file: header too short, above 100 MB,
/// beyond the end, not UTF-8, not JSON, not an object; names, fields or metadata keys that occur twice; NUL in a name;
/// fields missing or of another type; extents that are not unsigned integers below 2^63, more than 64 dimensions,
/// sizes that overflow; tensors that do not follow each other from byte 0 to the end without gap and overlap, or
/// whose size is not that of their dtype and shape. A file may hold tensors of unsupported dtypes; asking for one
/// throws. Values are not checked: NaN is fine. Beyond the bytes given, memory stays below ten times the header.
TensorFile parse_safetensors(std::span<const std::byte> bytes, std::string_view where = "safetensors");

/// Reads a safetensors file from bytes that the result owns: parse_safetensors(serialize_safetensors(tensors)).
TensorFile parse_safetensors(std::vector<std::byte>&& bytes, std::string_view where = "safetensors");

/// Reads a whole safetensors file, so that it may change or shrink later. Throws IoError as parse_safetensors, and for
/// a file that is missing, unreadable or not regular.
///
/// With `options.map` only the header is read, with all of the checks above; the elements stay in the file, which the
/// system reads page by page when they are needed. A tensor in the dtype of its elements in the file is taken without a
/// copy (Tensor::frozen) where its first byte is at a multiple of the size of an element and, after its last, the file
/// or the rest of its last page has enough bytes for kernels to read; BOOL, other dtypes (F16 for computing) and
/// unaligned tensors are copied when they are asked for. The file stays mapped as long as the result, a copy of it or a
/// tensor on it lives. It may be closed, removed and replaced meanwhile: write_safetensors and save write another file
/// and rename it, so that the elements of the old one stay. A process that writes into the file itself changes tensors
/// in the middle of a computation, and one that truncates it ends this process when the missing part is read (SIGBUS):
/// map only files that no one modifies. Throws IoError also where the system cannot map the file.
TensorFile read_safetensors(const std::filesystem::path& path, const ReadOptions& options = {});

/// Returns the bytes of a safetensors file: the tensors with the widest dtype first, then by name, as the reference
/// orders them; metadata in the order of its keys, left out when empty. Dtypes stay: f32 becomes F32, bf16 BF16, bool
/// BOOL; strided tensors are written row-major. Throws IoError for a name that occurs twice, is `__metadata__`, holds a
/// NUL or is not UTF-8, for undefined tensors, and for a header above 100 MB.
std::vector<std::byte> serialize_safetensors(std::span<const NamedTensor> tensors, const Metadata& metadata = {});

/// Writes a safetensors file; an old one is replaced as a whole or not at all (AtomicFile). Throws IoError as
/// serialize_safetensors, and where the file cannot be written.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const Metadata& metadata = {});

}  // namespace ferrite::io
