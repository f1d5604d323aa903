#pragma once
/// The safetensors format: reading, mapping, writing.
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"

/// safetensors: a header of JSON and the bytes of named tensors behind it (huggingface.co/docs/safetensors).
/// Reading is at least as strict as the reference implementation; files that we write equal its own byte for byte.
namespace ferrite::io {

/// Reads a file that is already in memory. The bytes are not copied: they must live and stay as they are for as
/// long as the result or a copy of it lives.
///
/// Throws IoError, its message beginning with `where`, for anything but a sound file: header too short, above 100 MB,
/// beyond the end, not UTF-8, not JSON, no object; names, fields or metadata keys that occur twice; NUL in a name;
/// fields missing or of another type; extents that are no unsigned integers below 2^63, more than 64 dimensions,
/// sizes that overflow; tensors that do not follow each other from byte 0 to the end without gap and overlap, or
/// whose size is not that of their dtype and shape. Tensors of dtypes that we do not support may be there; asking for
/// one throws. Values are not looked at: NaN is fine. Beyond the bytes given, memory stays below ten times the
/// header.
TensorFile parse_safetensors(std::span<const std::byte> bytes, std::string_view where = "safetensors");

/// The same of bytes that the result takes over: parse_safetensors(serialize_safetensors(tensors)).
TensorFile parse_safetensors(std::vector<std::byte>&& bytes, std::string_view where = "safetensors");

/// Reads a file whole: one that changes or shrinks later does no harm. Throws IoError as above, and for what is
/// missing, not readable or no regular file.
///
/// With `options.map` only the header is read, with all of the checks above; the elements stay in the file, which the
/// system reads page by page when they are needed. A tensor in the dtype of its elements in the file is taken without a
/// copy (Tensor::frozen) where its first byte is at a multiple of the size of an element and, behind its last, the file
/// or the rest of its last page has enough bytes for kernels to read; BOOL, other dtypes (F16 for computing) and
/// tensors at other places are copied when they are asked for. The file stays mapped as long as the result, a copy of
/// it or a tensor on it lives. It may be closed, removed and replaced meanwhile: write_safetensors and save write
/// another file and rename it, so that the elements of the old one stay. Who writes into the file itself changes
/// tensors in the middle of a computation, and who cuts it short ends the process when the missing part is read
/// (SIGBUS): map only files that nobody does that to. Throws IoError also where the system cannot map the file.
TensorFile read_safetensors(const std::filesystem::path& path, const ReadOptions& options = {});

/// The bytes of a file that holds the tensors: widest dtype first, then by name, as the reference orders them;
/// metadata in the order of its keys, left out when empty. Dtypes stay: f32 becomes F32, bf16 BF16, bool BOOL; strided
/// tensors are written row-major. Throws IoError for a name that occurs twice, is `__metadata__`, holds a NUL or is not
/// UTF-8, for undefined tensors, and for a header above 100 MB.
std::vector<std::byte> serialize_safetensors(std::span<const NamedTensor> tensors, const Metadata& metadata = {});

/// Writes that file so that an old one is replaced as a whole or not at all (AtomicFile). Throws IoError.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const Metadata& metadata = {});

}  // namespace ferrite::io
