/// Writes PyTorch files that `torch.load(weights_only=True)` reads: finds the tensors that share a storage, and writes
/// the archive and pickles of protocol 2 as CPython and PyTorch do.
#include "ferrite/io/torch/torch_writer.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/torch.h"
#include "ferrite/io/torch/pickle.h"
#include "ferrite/io/zip/zip.h"
#include "ferrite/tensor/ops.h"

// ---- storages ------------------------------------------------------------------------------------------

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kAlignment = 64;  ///< alignment of the storages in the file, as in PyTorch
constexpr std::string_view kFolder = "archive/";

using Key = std::pair<const void*, Dtype>;

std::int64_t bytes_of(const Tensor& t) { return t.numel() * size_of(t.dtype()); }

/// Returns the number of elements from the first to the last in memory; strides are not negative.
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

/// Places tensors on one block of memory in one storage, unless it would be larger than they are.
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

// ---- pickles -------------------------------------------------------------------------------------------

void PickleWriter::tensor(const Window& window) {
  const Tensor& t = window.tensor;
  const Range& range = storages_.ranges()[window.storage];
  global("torch._utils", "_rebuild_tensor_v2");
  out_ += "((";
  text("storage");
  global("torch", storage_class_of(written_as(range.dtype)));
  text(std::to_string(window.storage));
  text("cpu");
  integer(range.bytes / size_of(range.dtype));
  out_ += "tQ";
  integer(storages_.offset(window));
  integers(t.shape());
  integers(t.strides());
  boolean(false);
  ordered_dictionary();
  out_ += "tR";
}

void PickleWriter::ordered_dictionary() {
  global("collections", "OrderedDict");
  out_ += ")R";
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  out_ += 'c';
  out_ += module;
  out_ += '\n';
  out_ += name;
  out_ += '\n';
}

void PickleWriter::little_endian(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_ += static_cast<char>((value >> (8 * i)) & 0xff);
}

void PickleWriter::text(std::string_view text) {
  out_ += 'X';
  little_endian(text.size(), 4);
  out_ += text;
}

void PickleWriter::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value < 256) {
    out_ += 'K';
    little_endian(bits, 1);
  } else if (value < 65536) {
    out_ += 'M';
    little_endian(bits, 2);
  } else if (value < (std::int64_t{1} << 31)) {
    out_ += 'J';
    little_endian(bits, 4);
  } else {
    out_ += "\x8a\x08";
    little_endian(bits, 8);
  }
}

void PickleWriter::real(double value) {
  out_ += 'G';
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 7; i >= 0; --i) out_ += static_cast<char>((bits >> (8 * i)) & 0xff);  // the one big-endian opcode
}

void PickleWriter::integers(const Shape& values) {
  mark();
  for (const std::int64_t value : values) integer(value);
  tuple();
}

std::string PickleWriter::finish() {
  out_ += '.';
  return std::move(out_);
}

}  // namespace ferrite::io::detail

// ---- files ---------------------------------------------------------------------------------------------

namespace ferrite::io {
namespace {

std::vector<std::byte> archive_of(std::span<const NamedTensor> tensors, std::string_view where) {
  const detail::Storages storages(tensors, where);
  detail::PickleWriter pickle(storages);
  pickle.ordered_dictionary();
  pickle.mark();
  for (const detail::Window& window : storages.windows()) {
    pickle.text(window.name);
    pickle.tensor(window);
  }
  pickle.set_items();
  return detail::torch_archive(pickle.finish(), storages, where);
}

}  // namespace

std::vector<std::byte> serialize_torch(std::span<const NamedTensor> tensors) {
  return archive_of(tensors, "serialize_torch");
}

void write_torch(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  write_atomically(path, archive_of(tensors, detail::shown(path)));
}

}  // namespace ferrite::io
