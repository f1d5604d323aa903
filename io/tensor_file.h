#pragma once
/// The named tensors of a file of any format.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::io {

/// A tensor under its name in a file.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// The strings, by key, that a file carries in addition to its tensors.
using Metadata = std::map<std::string, std::string>;

/// The dtype in which the elements of a file are loaded.
enum class Elements : std::uint8_t {
  for_computing,  ///< a dtype that operations take: F16 and BF16 become f32, U8, I8, I16 and U16 i32, U32 and U64
                  ///< i64, the others stay
  as_stored,      ///< the file's own dtype where Ferrite has it, so that F16, BF16 and I8 become f16, bf16 and i8
};

/// The description of a tensor in a file.
struct TensorInfo {
  std::string dtype;               ///< dtype as the file spells it, "BF16"
  std::optional<Dtype> loads_as;   ///< dtype that `tensor` returns; empty where the file's is not supported
  std::optional<Dtype> stored_as;  ///< dtype that `tensor` returns with Elements::as_stored; empty where `loads_as` is
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;  ///< size of the elements as the file's dtype stores them
};

/// Options and limits of readers.
struct ReadOptions {
  /// Number of bytes that a compressed member of an archive (npz, .pt) may inflate to, by default 4 GiB. It is compared
  /// with the size that the member declares, before memory is allocated. The ratio is not limited, as zeros deflate
  /// 1000 to 1. What is not compressed is bounded by the file.
  std::uint64_t most_inflated = std::uint64_t{4} << 30;
  /// Maps a safetensors file instead of reading it; read_safetensors has the details. Other formats are read.
  bool map = false;
};

/// The interface to the reader of one format. Tensors are numbered in the order of the file.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual std::size_t size() const = 0;  ///< returns the number of tensors
  virtual std::string_view name(std::size_t i) const = 0;
  /// Returns the number of the tensor with a name; nullopt if there is none.
  virtual std::optional<std::size_t> find(std::string_view name) const = 0;
  virtual TensorInfo info(std::size_t i) const = 0;
  virtual Tensor tensor(std::size_t i, Elements elements) const = 0;
  virtual std::vector<std::pair<std::string_view, std::string_view>> metadata() const = 0;
};

/// The tensors of a file that has been read and checked. A cheap handle: copies share the contents, which do not
/// change. Tensors are made when asked for. Several threads may read one file.
class TensorFile {
 public:
  TensorFile(std::string where, std::shared_ptr<const TensorSource> source)
      : where_(std::move(where)), source_(std::move(source)) {
    (void)source_of();
  }

  /// Returns the name of the file in error messages, usually its path.
  const std::string& where() const& { return where_; }
  std::string where() const&& { return where_; }
  std::size_t size() const { return source_of().size(); }  ///< returns the number of tensors
  /// Returns the names of all tensors, in the order of the file. They are valid as long as the file or a copy of it
  /// lives.
  std::vector<std::string_view> names() const&;
  std::vector<std::string_view> names() const&& = delete;  // name the file first
  bool contains(std::string_view name) const { return source_of().find(name).has_value(); }
  /// Returns the description of a tensor. Throws IoError for an unknown name.
  TensorInfo info(std::string_view name) const;
  /// Returns a new tensor, in a dtype that operations take unless `elements` says as_stored. Throws IoError for an
  /// unknown name, a dtype that is not supported, more than 8 dimensions, a BOOL that is neither 0 nor 1, and a U64
  /// above 2^63 - 1.
  Tensor tensor(std::string_view name, Elements elements = Elements::for_computing) const;

  /// Returns the strings, by key, that the file carries in addition to its tensors.
  Metadata metadata() const;

  /// Returns a file of the same tensors, renamed by `f`; those for which it returns "" are left out. Throws IoError
  /// when two get one name, ValueError for a null function.
  TensorFile renamed(const std::function<std::string(std::string_view)>& f) const;

  /// Returns this file with ownership of the bytes that it was parsed from: they live as long as the result or a copy.
  TensorFile keeping(std::vector<std::byte> bytes) const;

 private:
  std::size_t index_of(std::string_view name) const;
  /// Returns the reader. Throws Error for a file that was moved from or constructed with a null source.
  const TensorSource& source_of() const;

  std::string where_;
  std::shared_ptr<const TensorSource> source_;
};

/// Returns tensors in memory as if they had been read from a file. Throws IoError when two have one name.
TensorFile tensor_file_of(std::vector<NamedTensor> tensors, std::string where, Metadata metadata = {});

}  // namespace ferrite::io
