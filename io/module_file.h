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

/// Options of `save` and `contents`.
struct SaveOptions {
  /// Prefix of the name of every parameter and buffer.
  std::string prefix{};
  /// The states of an optimiser, saved unchanged under "optimizer.<name>".
  std::vector<nn::Named<State>> states{};
  /// Saves also the states that the module has registered (`Module::named_states`), such as the counters of dropout,
  /// under "state.<name>".
  bool module_states = false;
  /// Writes a tied variable under each of its names, as PyTorch's state_dict does: for `write_torch`, whose files
  /// PyTorch loads strictly.
  bool every_name = false;
  /// Further entries of `__metadata__`; keys that begin with "alias:" are reserved.
  Metadata metadata{};
};

/// Options of `load`, for modules and states.
struct LoadOptions {
  /// Prefix that the module's names have in the file; other names are ignored. For names that differ in another way:
  /// load(module, file.renamed(f)).
  std::string prefix{};
  /// Treats names that are missing from the file, or that the module does not know, as errors. Otherwise parameters
  /// that the file lacks keep their values.
  bool strict = true;
  /// Converts floats whose width is not the parameter's. Otherwise they are errors.
  bool convert = true;
  /// The states of an optimiser, loaded from "optimizer.<name>". If empty, such names in the file are ignored.
  std::vector<nn::Named<State>> states{};
  /// Loads also the states that the module has registered (`Module::named_states`), from "state.<name>". Otherwise such
  /// names in the file are ignored.
  bool module_states = false;
  /// Options of the reader, for the form of `load` that takes a path.
  ReadOptions read{};
  /// Function that is called with each name in the file and the value that its variable would get, before any variable
  /// changes; `load` lets its exceptions through.
  std::function<void(std::string_view name, const Tensor& value)> check{};
};

/// The names, as in the file, that loading without `strict` skipped.
struct LoadReport {
  std::vector<std::string> missing;     ///< names that the module needs and the file lacks
  std::vector<std::string> unexpected;  ///< names in the file that the module does not know
};

/// Sets the parameters and buffers of a module to the values in a file. F16, BF16, F32 and F64 become the dtype of the
/// parameter; all other dtypes must agree. Tied parameters need only one entry; if they have several, those must be
/// equal.
///
/// Throws one IoError that lists everything that does not fit: names missing from the file (with a suggestion), names
/// that the module does not know, shapes in the file's orientation, dtypes, and settings of the module
/// (nn::Module::settings) for which the file has another number, such as a normalisation's epsilon from from_keras. The
/// module and the states are then unchanged.
LoadReport load(const nn::Module& module, const TensorFile& file, const LoadOptions& options = {});
/// Loads a module from a file in any format that read_tensors knows: safetensors, PyTorch's .pt, npz, JSON. Throws as
/// the other form, and the reader's IoError.
LoadReport load(const nn::Module& module, const std::filesystem::path& path, const LoadOptions& options = {});

/// The tensors and metadata that `save` writes.
struct ModuleContents {
  std::vector<NamedTensor> tensors;
  Metadata metadata;
};
/// Returns the tensors and metadata of a module as `save` writes them, in the layout of files. Throws IoError for a
/// metadata key that begins with "alias:".
ModuleContents contents(const nn::Module& module, const SaveOptions& options = {});

/// Saves a module as a safetensors file; an old file is replaced as a whole or not at all (AtomicFile). Throws IoError
/// as `contents`, and where the file cannot be written.
void save(const nn::Module& module, const std::filesystem::path& path, const SaveOptions& options = {});

}  // namespace ferrite::io
