#pragma once
/// NumPy's files: .npy and .npz.
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"

/// NumPy's .npy, a short header and one array (numpy.org/doc/stable/reference/generated/numpy.lib.format.html), and
/// .npz, a zip archive of such files (numpy.savez and numpy.savez_compressed).
///
/// f4, f8, i4, i8 and b1 keep their dtype, f2 becomes f32, u1, i1, i2 and u2 i32, and u4 and u8 i64 (with
/// Elements::as_stored, f2 becomes f16 and i1 i8); a u8 above 2^63 - 1 is refused. Complex numbers, c8 and c16, become
/// f32 and f64 with one more axis at the end, of extent 2: the real and the imaginary part, as in torch.view_as_real
/// and tensor/signal.h. Big-endian files are swapped, and Fortran order gives the same tensor as C order. All other
/// dtypes are refused, Python objects (pickles) among them: nothing in a file is ever executed. The header is parsed by
/// its grammar alone: a dict of 'descr' (a string), 'fortran_order' and 'shape' (a tuple of integers), in any order.
namespace ferrite::io {

/// Reads a .npy file that is already in memory; the tensor is a copy.
///
/// Throws IoError, its message beginning with `where`, for anything but a sound file: not NumPy's magic, versions
/// other than 1.0, 2.0 and 3.0, a header that is cut short, above 10000 bytes (NumPy's own limit) or not of the
/// grammar, keys missing, unknown or twice; unsupported dtypes, more than 8 dimensions (that of complex parts
/// included), sizes that overflow, bytes missing or left over, a bool that is neither 0 nor 1. Memory: the tensor, and
/// ten times the header.
Tensor parse_npy(std::span<const std::byte> bytes, std::string_view where = "npy",
                 Elements elements = Elements::for_computing);

/// Reads a whole .npy file. Throws IoError as parse_npy, and for a file that is missing, unreadable or not regular.
Tensor read_npy(const std::filesystem::path& path, Elements elements = Elements::for_computing);

/// Returns the bytes that numpy.save writes for the same array in C order: version 1.0, little-endian. Throws IoError
/// for a tensor that is undefined or being traced, and for bf16, which NumPy does not have.
std::vector<std::byte> serialize_npy(const Tensor& tensor);

/// Writes a .npy file; an old one is replaced as a whole or not at all (AtomicFile). Throws IoError as serialize_npy,
/// and where the file cannot be written.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

/// Reads a .npz archive that is already in memory. The bytes are not copied: they must stay alive and unchanged for as
/// long as the result or a copy of it lives. A tensor's name is that of its member without ".npy".
///
/// Throws IoError, its message beginning with `where`, for archives that are damaged or ambiguous (members encrypted,
/// overlapping, twice, or with an absolute or climbing name), for a member that is not a ".npy", and for headers that
/// parse_npy refuses. An archive may hold tensors of unsupported dtypes; asking for one throws, as does asking for a
/// member whose checksum is wrong or that declares more than `options.most_inflated` bytes. Beyond the bytes given and
/// the tensor asked for, memory stays below ten times the headers and the archive's directory, plus the inflated size
/// of a compressed member while its tensor is made.
TensorFile parse_npz(std::span<const std::byte> bytes, std::string_view where = "npz", const ReadOptions& options = {});

/// Reads a .npz archive from bytes that the result owns: parse_npz(serialize_npz(tensors)).
TensorFile parse_npz(std::vector<std::byte>&& bytes, std::string_view where = "npz", const ReadOptions& options = {});

/// Reads a whole .npz file (it is not mapped: a file that shrinks later does no harm). Throws IoError as parse_npz, and
/// for a file that is missing, unreadable or not regular.
TensorFile read_npz(const std::filesystem::path& path, const ReadOptions& options = {});

/// Returns the bytes of an uncompressed .npz archive of the tensors in the order given, every member as serialize_npy
/// writes it and with its elements at a multiple of 64. Equal tensors give equal bytes. Throws IoError for a name that
/// occurs twice or that parse_npz would refuse, for undefined tensors and for bf16, which NumPy does not have.
std::vector<std::byte> serialize_npz(std::span<const NamedTensor> tensors);

/// Writes a .npz file; an old one is replaced as a whole or not at all (AtomicFile). Throws IoError as serialize_npz,
/// and where the file cannot be written.
void write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace ferrite::io
