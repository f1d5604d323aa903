#pragma once
/// PyTorch's checkpoint files: reading without Python, and writing.
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"

/// PyTorch's own files, as torch.save writes them: a zip archive of a pickle and raw storages (default since 1.6), or
/// the older form of pickles followed by the storages (pytorch.org/docs/stable/notes/serialization.html).
/// Nothing in a file is ever run: names in the pickle are looked up in a closed table of those that data needs, and
/// objects of other names are skipped, not built.
namespace ferrite::io {

/// Reads a PyTorch checkpoint that is already in memory. The bytes are not copied: they must stay alive and unchanged
/// for as long as the result or a copy of it lives.
///
/// Tensors of nested dictionaries and lists get dotted names: {"model": {"w": t}} gives "model.w", [t] gives "0", a
/// file that is one tensor gives "tensor". With a key, "model" or "a.b", only that part is read and its names begin
/// below it, whatever else the file holds: a Namespace, paths, NumPy arrays, objects, a whole module. Numbers, strings,
/// bools and None next to the tensors become metadata under such names, as Python writes them
/// ("optimizer.param_groups.0.lr" is "0.001"), lists of numbers one string "[0, 1]"; so do dtypes and devices. An Enum
/// is read as its value, where that is one of these, and a NumPy number as its item(). (A call with one value of
/// something that is named like a class is taken for an Enum.) Sets, bytes, complex numbers and the attributes of
/// tensors and dictionaries are ignored.
///
/// `TensorInfo::dtype` is PyTorch's word, "float32". float16 and bfloat16 load as f32, uint8, int8, int16 and uint16 as
/// i32, uint32 and uint64 as i64 (with Elements::as_stored, float16, bfloat16 and int8 as f16, bf16 and i8); complex64
/// and complex128 are float32 and float64 with a last axis of 2, as in torch.view_as_real. A file may hold tensors of
/// complex32 and of 8-bit float types; asking for one throws, as does a uint64 above 2^63 - 1. Strided tensors become
/// row-major, except that axes of stride 0 keep it.
///
/// A module that torch.jit.save wrote (torch.jit.script, torch.jit.trace) gives the parameters and buffers that its
/// classes declare, under the names of its state_dict(), including buffers that are not persistent. Its code is never
/// run; of each class's source only the lists `__parameters__` and `__buffers__` are read. Other attributes are left
/// out; a key may name one that is a tensor, or a submodule. A frozen module has none of these. Refused: a module that
/// restores itself by a __setstate__, classes without source, parameters that are declared but missing.
///
/// Throws IoError, its message beginning with `where`, for anything but a sound file of data: a damaged archive or
/// pickle, opcodes of protocols other than 2 to 5, Python names outside of the table in the part that is asked for
/// (whole modules, NumPy arrays, sparse and quantised tensors, objects of classes), big-endian files of the older form,
/// tensors that reach outside their storage or have more elements than it (except for 2^28 elements by stride 0),
/// storages whose size is not the one claimed, a key that names nothing, more than 100 levels, names that occur twice,
/// values that contain themselves, a compressed storage above `options.most_inflated`. A storage that the archive
/// compresses is checked when a tensor of it is asked for, the others at once. Beyond the bytes given and the tensors,
/// memory stays below 1 MiB plus ten times the pickle and the archive's directory; a scripted module takes four times
/// the pickle more and, while a class is looked up, its source of at most 64 MB.
TensorFile parse_torch(std::span<const std::byte> bytes, std::string_view key = "", std::string_view where = "torch",
                       const ReadOptions& options = {});

/// Reads a PyTorch checkpoint from bytes that the result owns: parse_torch(serialize_torch(tensors)).
TensorFile parse_torch(std::vector<std::byte>&& bytes, std::string_view key = "", std::string_view where = "torch",
                       const ReadOptions& options = {});

/// Reads a whole PyTorch checkpoint file. Throws IoError as parse_torch, and for a file that is missing, unreadable or
/// not regular.
TensorFile read_torch(const std::filesystem::path& path, std::string_view key = "", const ReadOptions& options = {});

/// Returns a file with the names of the older weight_norm and spectral_norm replaced by those of
/// torch.nn.utils.parametrizations: weight_norm's "weight_g" and "weight_v" become "parametrizations.weight.original0"
/// and ".original1"; spectral_norm's "weight_orig", "weight_u" and "weight_v" become
/// "parametrizations.weight.original", ".0._u" and ".0._v", in modules of any depth and for parameters of any name
/// (nn/layers/parametrized.h). Throws IoError where that gives two tensors one name.
TensorFile with_parametrization_names(const TensorFile& file);

/// Returns the bytes of a file that torch.load(path, weights_only=True) loads as a state_dict: an OrderedDict in the
/// order given. Dtypes stay as they are. Tensors that share memory share a storage in the file too, where that is not
/// larger than they are; the others are written row-major. Two calls give the same bytes. Throws IoError for a name
/// that occurs twice, holds a NUL or is not UTF-8, and for undefined tensors.
std::vector<std::byte> serialize_torch(std::span<const NamedTensor> tensors);

/// Writes a PyTorch state_dict file; an old one is replaced as a whole or not at all (AtomicFile). Throws IoError as
/// serialize_torch, and where the file cannot be written.
void write_torch(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace ferrite::io
