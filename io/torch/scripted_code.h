#pragma once
/// What the code in an archive of torch.jit.save declares of its classes; nothing of it is ever run.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ferrite/io/torch/pickle.h"
#include "ferrite/io/zip/zip.h"

namespace ferrite::io::detail {

/// A class of TorchScript.
struct ScriptedClass {
  bool is_module = false;
  bool restores_itself = false;      ///< by a __setstate__ of its own
  bool lists_buffers = false;        ///< old versions did not
  std::vector<std::string> tensors;  ///< its parameters and buffers, in the order of their names
};

/// The classes of an archive, read where they are asked for: of their sources only the lines
///
///     class Net(Module):
///       __parameters__ = ["weight", "bias", ]
///       __buffers__ = ["mean", ]
///       def __setstate__(self, ...
class ScriptedCode {
 public:
  /// The class "__torch__.models", "Net" has its source at <folder>code/__torch__/models.py. What is kept of all
  /// sources takes at most `most_bytes`. The archive must outlive this.
  ScriptedCode(const ZipArchive& archive, std::string folder, std::string_view where, std::size_t most_bytes)
      : archive_(archive), folder_(std::move(folder)), where_(where), left_(most_bytes) {}

  /// Throws IoError where the archive has no such class, or where a source cannot be understood. Classes of PyTorch's
  /// own in C++, torch.classes, have no source and are no modules.
  const ScriptedClass& of(const Pickle& pickle, PickleValue scripted_class);

 private:
  const ScriptedClass& find(std::string_view module, std::string_view name);
  void read(std::string_view module);
  void charge(std::size_t bytes);

  const ZipArchive& archive_;
  std::string folder_;
  std::string where_;
  std::size_t left_;
  std::unordered_map<std::uint32_t, const ScriptedClass*> by_place_;  ///< of the class in the pickle
  std::set<std::string, std::less<>> read_;                           ///< modules whose source was read
  std::map<std::string, ScriptedClass, std::less<>> by_name_;         ///< "__torch__.models.Net"
};

}  // namespace ferrite::io::detail
