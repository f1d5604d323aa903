#pragma once
/// Loading weights into modules and saving them.
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"
#include "ferrite/nn/module.h"

/// The parameters and buffers of a module in a file, under their dotted names and in PyTorch's layout: matrices whose
/// parameter says so are transposed on the way. A variable that a module holds under two names (tied weights) is
/// written once, under the first; `__metadata__` has "alias:<other name>" = "<first name>". The state of an optimiser
/// lives in the same file under "optimizer.<name>".
namespace ferrite::io {

struct SaveOptions {
  /// Written before the name of every parameter and buffer.
  std::string prefix{};
  /// Of an optimiser, saved as they are under "optimizer.<name>".
  std::vector<nn::Named<State>> states{};
  /// Also the module's own states (the counters of dropout), under "state.<name>".
  bool module_states = false;
  /// A tied variable under each of its names, as PyTorch's state_dict has it: for `write_torch`, whose files PyTorch
  /// loads strictly.
  bool every_name = false;
  /// More strings for `__metadata__`; keys that begin with "alias:" are taken.
  Metadata metadata{};
};

struct LoadOptions {
  /// Names in the file are this and the module's; names that begin otherwise are left alone. For names that differ in
  /// another way: load(module, file.renamed(f)).
  std::string prefix{};
  /// Names that the file lacks or has besides are errors. Otherwise parameters that the file lacks keep their values.
  bool strict = true;
  /// Floats of another width than the parameter's are converted. Otherwise they are errors.
  bool convert = true;
  /// Of an optimiser, loaded from "optimizer.<name>". Without any, such names in the file are left alone.
  std::vector<nn::Named<State>> states{};
  /// Also the module's own states, from "state.<name>". Otherwise such names in the file are left alone.
  bool module_states = false;
  /// How the file is read, where a path is given.
  ReadOptions read{};
  /// Called with each name in the file and the value that its variable would get, before any variable gets one: what it
  /// throws, `load` throws.
  std::function<void(std::string_view name, const Tensor& value)> check{};
};

/// What loading without `strict` passed over, by names in the file.
struct LoadReport {
  std::vector<std::string> missing;     ///< wanted by the module, not in the file
  std::vector<std::string> unexpected;  ///< in the file, not wanted by the module
};

/// Gives a module the values of a file. F16, BF16, F32 and F64 become the dtype of the parameter; all other dtypes
/// must agree. Names of tied parameters need only one entry; if they have several, those must be equal.
///
/// Throws one IoError that lists everything that does not fit: names missing from the file (with what may have been
/// meant), names that the module does not know, shapes in the file's orientation, dtypes, and settings of the module
/// (nn::Module::settings) for which the file has another number, as from_keras says of a normalisation's epsilon. The
/// module and the states are then as they were.
LoadReport load(const nn::Module& module, const TensorFile& file, const LoadOptions& options = {});
/// The same from a file in any format that read_tensors knows: safetensors, PyTorch's .pt, npz, JSON.
LoadReport load(const nn::Module& module, const std::filesystem::path& path, const LoadOptions& options = {});

/// What `save` writes.
struct ModuleContents {
  std::vector<NamedTensor> tensors;
  Metadata metadata;
};
/// The tensors of a module in the layout of files. Throws IoError for a metadata key that begins with "alias:".
ModuleContents contents(const nn::Module& module, const SaveOptions& options = {});

/// Saves a module as a safetensors file; an old file is replaced as a whole or not at all (AtomicFile). Throws
/// IoError.
void save(const nn::Module& module, const std::filesystem::path& path, const SaveOptions& options = {});

}  // namespace ferrite::io
