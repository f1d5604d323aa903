/// Builds and searches the index of a safetensors header.
#include "ferrite/io/safetensors/safetensors_index.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/tensor/extents.h"

namespace ferrite::io::detail {
namespace {

std::uint32_t hash_of(std::string_view name) { return static_cast<std::uint32_t>(std::hash<std::string_view>{}(name)); }

/// The checks across the tensors of one file.
class IndexChecker {
 public:
  IndexChecker(SafetensorsIndex& index, std::string_view where) : index_(index), where_(where) {}

  void check(std::uint64_t data_bytes) {
    sort_tensors();
    sort_names();
    std::uint64_t expected = 0;
    for (const TensorEntry& tensor : index_.tensors) {
      check_place(tensor, expected);
      check_size(tensor);
      expected = tensor.end;
    }
    if (expected != data_bytes)
      refuse(where_, "the tensors end at byte " + std::to_string(expected) + " of the data, which has " +
                         counted(data_bytes, "byte") +
                         (expected > data_bytes ? "; the file is cut short" : "; something follows the tensors"));
    sort_metadata();
  }

 private:
  [[noreturn]] void refuse_tensor(const TensorEntry& tensor, std::string_view what) const {
    refuse(where_, quote(index_.name(tensor)) + " " + std::string(what));
  }

  /// By bytes, and empty tensors at one place by name.
  void sort_tensors() {
    const auto place = [this](const TensorEntry& t) { return std::tuple(t.begin, t.end, index_.name(t)); };
    if (!std::ranges::is_sorted(index_.tensors, {}, place)) std::ranges::sort(index_.tensors, {}, place);
  }

  void sort_names() {
    index_.by_hash.reserve(index_.tensors.size());
    for (std::uint32_t i = 0; i < index_.tensors.size(); ++i)
      index_.by_hash.push_back({hash_of(index_.name(index_.tensors[i])), i});
    const auto name = [this](const NameHash& h) { return index_.name(index_.tensors[h.tensor]); };
    std::ranges::sort(index_.by_hash, [&](const NameHash& a, const NameHash& b) {
      return a.hash != b.hash ? a.hash < b.hash : name(a) < name(b);
    });
    const auto same = [&](const NameHash& a, const NameHash& b) { return a.hash == b.hash && name(a) == name(b); };
    const auto twice = std::ranges::adjacent_find(index_.by_hash, same);
    if (twice != index_.by_hash.end()) refuse(where_, "a name occurs twice: " + quote(name(*twice)));
  }

  void sort_metadata() {
    const auto key = [this](const MetadataEntry& entry) { return index_.text(entry.key); };
    std::ranges::sort(index_.metadata, {}, key);
    const auto twice = std::ranges::adjacent_find(index_.metadata, {}, key);
    if (twice != index_.metadata.end()) refuse(where_, "the metadata has a key twice: " + quote(key(*twice)));
  }

  void check_place(const TensorEntry& tensor, std::uint64_t expected) const {
    if (tensor.begin == expected && tensor.end >= tensor.begin) return;
    refuse_tensor(tensor, "has data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) +
                              "], the tensor before it ends at " + std::to_string(expected) +
                              "; tensors must follow each other without gaps and overlaps");
  }

  std::uint64_t elements(const TensorEntry& tensor) const {
    if (const auto elements = elements_of(index_.shape(tensor))) return *elements;
    refuse_tensor(tensor, "has more elements than can be counted: shape " + bracketed(index_.shape(tensor)));
  }

  void check_size(const TensorEntry& tensor) const {
    std::uint64_t bits = 0;
    if (ferrite::detail::mul_overflows(elements(tensor), bits_of(tensor.dtype), bits))
      refuse_tensor(tensor, "has more bits than can be counted: shape " + bracketed(index_.shape(tensor)));
    if (bits % 8 != 0) refuse_tensor(tensor, "does not end at a byte: " + std::to_string(bits) + " bits");
    if (bits / 8 != tensor.end - tensor.begin)
      refuse_tensor(tensor, "has " + counted(tensor.end - tensor.begin, "byte") + ", its dtype and shape need " +
                                std::to_string(bits / 8) + ": " + std::string(name_of(tensor.dtype)) + " " +
                                bracketed(index_.shape(tensor)));
  }

  SafetensorsIndex& index_;
  std::string_view where_;
};

}  // namespace

std::optional<std::size_t> SafetensorsIndex::find(std::string_view wanted) const {
  const auto key = [this](const NameHash& h) { return std::pair(h.hash, name(tensors[h.tensor])); };
  const std::pair<std::uint32_t, std::string_view> sought(hash_of(wanted), wanted);
  const auto found = std::ranges::lower_bound(by_hash, sought, {}, key);
  if (found == by_hash.end() || key(*found) != sought) return std::nullopt;
  return found->tensor;
}

std::uint64_t header_length(std::span<const std::byte> first, std::uint64_t file_bytes, std::string_view where) {
  if (file_bytes < kPrefixBytes || first.size() < kPrefixBytes)
    refuse(where, "too short to be a safetensors file: " + counted(file_bytes, "byte"));
  std::uint64_t length = 0;
  std::memcpy(&length, first.data(), sizeof(length));
  if (length > kMostHeaderBytes)
    refuse(where, "the header's length is above the limit of 100000000 bytes: " + std::to_string(length) +
                      "; is this a safetensors file?");
  if (length > file_bytes - kPrefixBytes)
    refuse(where, "the header reaches beyond the end of the file: " + counted(length, "byte") + " of header, " +
                      counted(file_bytes, "byte") + " of file; is it cut short?");
  return length;
}

SafetensorsIndex read_index(std::string_view header, std::uint64_t data_bytes, std::string_view where) {
  SafetensorsIndex index = read_header(header, where);
  IndexChecker(index, where).check(data_bytes);
  return index;
}

}  // namespace ferrite::io::detail
