/// Collects the tensors of a checkpoint, each under the dotted name of where it is.
#include "ferrite/io/torch/index_builder.h"

#include <algorithm>
#include <numeric>

#include "ferrite/io/detail/io_text.h"

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kFreeBytes = std::size_t{900} << 10;
constexpr std::size_t kMostKey = 20;  ///< digits of a storage's key

/// What a table takes for so much more: where it has to grow, the old memory lives beside the new.
template <class T>
std::size_t taken_by(const T& table, std::size_t more) {
  const std::size_t grown = std::max(2 * table.capacity(), table.size() + more);
  return (table.capacity() + (table.size() + more > table.capacity() ? grown : 0)) * sizeof(*table.data());
}

}  // namespace

IndexBuilder::IndexBuilder(const Pickle& pickle, std::string_view where)
    : pickle_(pickle),
      where_(where),
      most_bytes_(kFreeBytes + 9 * pickle.size() - std::min(pickle.memory(), kFreeBytes + 8 * pickle.size())),
      visits_(1000 + pickle.size()) {}

void IndexBuilder::fail(const std::string& what) const { refuse(place(), what); }
std::string IndexBuilder::place() const { return where_ + ": " + quote(name_); }

void IndexBuilder::count_visit() {
  if (visits_-- == 0) fail("the same values are used again and again: more than the file has bytes");
}

void IndexBuilder::check_level(std::size_t levels) const {
  if (levels == kMostLevels) fail("nested too deeply: more than 100 levels");
}

void IndexBuilder::add_tensor(PickleValue value) {
  check_memory(name_.size() + kMostKey, 1, 0);
  if (name_.find('\0') != std::string::npos) fail("a name holds a NUL");
  TorchTensor tensor = tensor_of(pickle_, value, index_, place());
  tensor.name = pooled(name_);
  index_.tensors.push_back(tensor);
}

void IndexBuilder::add_metadata(std::string_view text) {
  check_memory(name_.size() + text.size(), 0, 1);
  const TextRange key = pooled(name_);
  index_.metadata.push_back({key, pooled(text)});
}

TextRange IndexBuilder::pooled(std::string_view text) {
  const TextRange range{static_cast<std::uint32_t>(index_.pool.size()), static_cast<std::uint32_t>(text.size())};
  index_.pool += text;
  return range;
}

void IndexBuilder::check_memory(std::size_t text, std::size_t tensors, std::size_t values) const {
  const std::size_t bytes = taken_by(index_.pool, text) + taken_by(index_.extents, tensors * 2 * kMostRank) +
                            taken_by(index_.tensors, tensors) + taken_by(index_.metadata, values);
  if (bytes > most_bytes_)
    fail("the names and values need more memory than a file of this size warrants: " + std::to_string(bytes) +
         " bytes; name the part you want by its key");
}

TorchIndex IndexBuilder::finish() {
  index_.by_name.resize(index_.tensors.size());
  std::iota(index_.by_name.begin(), index_.by_name.end(), 0u);
  const auto name = [this](std::uint32_t i) { return index_.name(i); };
  std::ranges::sort(index_.by_name, {}, name);
  const auto twice = std::ranges::adjacent_find(index_.by_name, {}, name);
  if (twice != index_.by_name.end())
    refuse(where_, "a name occurs twice: " + quote(name(*twice)) + "; name the part you want by its key");
  return std::move(index_);
}

}  // namespace ferrite::io::detail
