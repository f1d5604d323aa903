/// Which tensors of a PyTorch file share a storage, and the archive that holds them.
#include "ferrite/io/torch/storages.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/zip/zip.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kAlignment = 64;  ///< of the storages in the file, as PyTorch has it
constexpr std::string_view kFolder = "archive/";

using Key = std::pair<const void*, Dtype>;

std::int64_t bytes_of(const Tensor& t) { return t.numel() * size_of(t.dtype()); }

/// Elements from the first to the last in memory; strides are not negative.
std::int64_t reach_of(const Tensor& t) {
  std::int64_t reach = 1;
  for (int i = 0; i < t.rank(); ++i) {
    if (t.shape()[i] == 0) return 0;
    reach += (t.shape()[i] - 1) * t.strides()[i];
  }
  return reach;
}

bool has_negative_stride(const Tensor& t) {
  return std::ranges::any_of(t.strides(), [](std::int64_t stride) { return stride < 0; });
}

void check(std::span<const NamedTensor> tensors, std::string_view where) {
  std::vector<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    if (invalid_utf8(named.name)) refuse(where, "a name is not UTF-8: " + quote(named.name));
    if (named.name.find('\0') != std::string::npos) refuse(where, "a name holds a NUL: " + quote(named.name));
    if (!named.tensor.defined() || named.tensor.is_abstract())
      refuse(where, quote(named.name) + " has no values: it is undefined or being traced");
    names.push_back(named.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) refuse(where, "a name occurs twice: " + quote(*twice));
}

}  // namespace

Storages::Storages(std::span<const NamedTensor> tensors, std::string_view where) {
  check(tensors, where);
  for (const NamedTensor& named : tensors) {
    Tensor tensor = named.tensor.unmarked();
    if (has_negative_stride(tensor)) tensor = contiguous(tensor);
    windows_.push_back({named.name, std::move(tensor), 0});
  }
  std::map<Key, std::vector<std::size_t>> groups;
  std::vector<Key> order;
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    const Tensor& t = windows_[i].tensor;
    const Key key(t.impl()->storage, t.dtype());
    if (groups[key].empty()) order.push_back(key);
    groups[key].push_back(i);
  }
  for (const Key& key : order) place(groups[key]);
}

std::int64_t Storages::offset(const Window& window) const {
  if (window.tensor.numel() == 0) return 0;
  return (window.tensor.raw() - ranges_[window.storage].begin) / size_of(window.tensor.dtype());
}

/// Tensors on one block of memory: one storage for all, unless it would be larger than they are.
void Storages::place(const std::vector<std::size_t>& group) {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  std::int64_t own = 0;
  for (const std::size_t i : group) {
    const Tensor& t = windows_[i].tensor;
    if (t.numel() == 0) continue;
    const std::byte* last = t.raw() + reach_of(t) * size_of(t.dtype());
    begin = begin == nullptr ? t.raw() : std::min(begin, t.raw());
    end = end == nullptr ? last : std::max(end, last);
    own += bytes_of(t);
  }
  const Dtype dtype = windows_[group.front()].tensor.dtype();
  if (begin == nullptr || end - begin <= own) {
    for (const std::size_t i : group) windows_[i].storage = ranges_.size();
    ranges_.push_back({begin, begin == nullptr ? 0 : end - begin, dtype});
    return;
  }
  for (const std::size_t i : group) {
    Window& window = windows_[i];
    window.tensor = contiguous(window.tensor);
    window.storage = ranges_.size();
    ranges_.push_back({window.tensor.raw(), bytes_of(window.tensor), dtype});
  }
}

std::vector<std::byte> torch_archive(std::string_view pickle, const Storages& storages, std::string_view where) {
  if (pickle.size() > 100'000'000)
    refuse(where, "the names are above the limit of 100000000 bytes: " + std::to_string(pickle.size()));
  const std::string folder(kFolder);
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  std::uint64_t total = pickle.size();
  for (const Range& range : storages.ranges()) total += static_cast<std::uint64_t>(range.bytes);
  ZipWriter writer(kAlignment, where);
  writer.reserve(total, storages.ranges().size() + 3);
  writer.add(folder + "data.pkl", bytes(pickle));
  writer.add(folder + "byteorder", bytes("little"));
  for (std::size_t i = 0; i < storages.ranges().size(); ++i) {
    const Range& range = storages.ranges()[i];
    writer.add(folder + "data/" + std::to_string(i), {range.begin, static_cast<std::size_t>(range.bytes)});
  }
  writer.add(folder + "version", bytes("3\n"));
  return writer.finish();
}

}  // namespace ferrite::io::detail
