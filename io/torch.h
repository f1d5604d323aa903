#pragma once
/// PyTorch's checkpoint files: reading without Python, and writing.
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"

/// PyTorch's own files, as torch.save writes them: a zip archive of a pickle and raw storages (default since 1.6), or
/// the older form of pickles with the storages behind them (pytorch.org/docs/stable/notes/serialization.html).
/// Nothing in a file is ever run: names in the pickle are looked up in a closed table of what data needs, and what
/// others make is skipped, not built.
namespace ferrite::io {

/// Reads a checkpoint that is already in memory. The bytes are not copied: they must live and stay as they are for as
/// long as the result or a copy of it lives.
///
/// Tensors of nested dictionaries and lists get dotted names: {"model": {"w": t}} gives "model.w", [t] gives "0", a
/// file that is one tensor gives "tensor". With a key, "model" or "a.b", only that part is looked at and its names
/// begin below it, whatever stands beside it: a Namespace, paths, NumPy arrays, objects, a whole module. Numbers,
/// strings, bools and None beside the tensors are metadata under such names in Python's words
/// ("optimizer.param_groups.0.lr" is "0.001"), lists of numbers as one string "[0, 1]"; dtypes and devices too. An Enum
/// is its value, where that is one of these, and a number of NumPy is what its item() is. (What is called with one
/// value and has a name like a class is taken for an Enum.) Sets, bytes and complex numbers are passed over, and so are
/// the attributes of tensors and dictionaries.
///
/// `TensorInfo::dtype` is PyTorch's word, "float32". float16 and bfloat16 load as f32, uint8, int8, int16 and uint16 as
/// i32, uint32 and uint64 as i64 (float16, bfloat16 and int8 asked for as they are stored: f16, bf16 and i8); complex64
/// and complex128 are float32 and float64 with a last axis of 2, as torch.view_as_real gives them. Tensors of complex32
/// and of 8-bit float types may be there, asking for one throws, as for a uint64 above 2^63 - 1. Strided tensors become
/// row-major, but axes of stride 0 stay that.
///
/// Of a module that torch.jit.save wrote (torch.jit.script, torch.jit.trace): the parameters and buffers that its
/// classes declare, under the names of its state_dict(), those of buffers that are not persistent too. Its code is
/// never run; of each class's source only the lists `__parameters__` and `__buffers__` are read. Other attributes are
/// left out; a key may name one that is a tensor, or a module in the module. A frozen module has none of these.
/// Refused: a module that restores itself by a __setstate__, classes without source, parameters that are declared and
/// not there.
///
/// Throws IoError, its message beginning with `where`, for anything but a sound file of data: a damaged archive or
/// pickle, opcodes of other protocols than 2 to 5, in the part that is asked for Python names outside of the table
/// (whole modules, NumPy arrays, sparse and quantised tensors, objects of classes), big-endian files of the older form,
/// tensors that are not inside of their storage or show its elements more often than it has (2^28 elements by stride 0
/// apart), storages whose size is not the one claimed, a key that names nothing, more than 100 levels, names that occur
/// twice, values that contain themselves, a compressed storage above `options.most_inflated`. A storage that the
/// archive compresses is checked when a tensor of it is asked for, the others at once. Beyond the bytes given, memory
/// stays below 1 MiB and ten times the pickle and the archive's directory, but for the tensors; of a scripted module
/// four times the pickle more, and while a class is looked up its source, of at most 64 MB.
TensorFile parse_torch(std::span<const std::byte> bytes, std::string_view key = "", std::string_view where = "torch",
                       const ReadOptions& options = {});

/// The same of bytes that the result takes over: parse_torch(serialize_torch(tensors)).
TensorFile parse_torch(std::vector<std::byte>&& bytes, std::string_view key = "", std::string_view where = "torch",
                       const ReadOptions& options = {});

/// Reads a file whole. Throws IoError as above, and for what is missing, not readable or no regular file.
TensorFile read_torch(const std::filesystem::path& path, std::string_view key = "", const ReadOptions& options = {});

/// The same tensors under the names of torch.nn.utils.parametrizations, where a file has those of the functions before
/// them: of weight_norm "weight_g" and "weight_v" become "parametrizations.weight.original0" and ".original1", of
/// spectral_norm "weight_orig", "weight_u" and "weight_v" become "parametrizations.weight.original", ".0._u" and
/// ".0._v", in modules of any depth and for parameters of any name (nn/layers/parametrized.h). Throws IoError where
/// that gives two tensors one name.
TensorFile with_parametrization_names(const TensorFile& file);

/// The bytes of a file that torch.load(path, weights_only=True) takes for a state_dict: an OrderedDict in the order
/// given. Dtypes stay as they are. Tensors that share memory share a storage in the file too, where that is not larger
/// than they are; the others are written row-major. Two calls give the same bytes. Throws IoError for a name that
/// occurs twice, holds a NUL or is not UTF-8, and for undefined tensors.
std::vector<std::byte> serialize_torch(std::span<const NamedTensor> tensors);

/// Writes that file so that an old one is replaced as a whole or not at all (AtomicFile). Throws IoError.
void write_torch(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace ferrite::io
