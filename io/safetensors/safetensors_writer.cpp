/// Writes safetensors files.
#include <algorithm>
#include <cstring>
#include <functional>
#include <tuple>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/safetensors/safetensors_index.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io {
namespace {

constexpr std::size_t kHeaderAlignment = 8;

using Bytes = std::span<const std::byte>;
using Sink = std::function<void(Bytes)>;

void check_name(std::string_view name, std::string_view where) {
  if (detail::invalid_utf8(name)) detail::refuse(where, "a name is not UTF-8: " + detail::quote(name));
  if (name.find('\0') != std::string_view::npos) detail::refuse(where, "a name holds a NUL: " + detail::quote(name));
}

std::uint64_t bytes_of(const Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.numel()) * static_cast<std::uint64_t>(size_of(tensor.dtype()));
}

/// The tensors in the order of the file: the reference ranks dtypes and takes the highest first.
std::vector<const NamedTensor*> ordered(std::span<const NamedTensor> tensors, std::string_view where) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) {
    check_name(tensor.name, where);
    if (tensor.name == detail::kMetadataName) detail::refuse(where, "a tensor may not be called '__metadata__'");
    if (!tensor.tensor.defined() || tensor.tensor.is_abstract())
      detail::refuse(where, detail::quote(tensor.name) + " has no values: it is undefined or being traced");
    order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, [](const NamedTensor* t) { return std::string_view(t->name); });
  const auto same = [](const NamedTensor* a, const NamedTensor* b) { return a->name == b->name; };
  const auto twice = std::ranges::adjacent_find(order, same);
  if (twice != order.end()) detail::refuse(where, "a name occurs twice: " + detail::quote((*twice)->name));
  const auto rank = [](const NamedTensor* t) { return detail::written_as(t->tensor.dtype()); };
  std::ranges::stable_sort(order, std::greater{}, rank);
  return order;
}

void append_metadata(std::string& header, const Metadata& metadata, std::string_view where) {
  if (metadata.empty()) return;
  header += "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    check_name(key, where);
    if (detail::invalid_utf8(value))
      detail::refuse(where, "the metadata's " + detail::quote(key) + " is not UTF-8: " + detail::quote(value));
    if (header.back() != '{') header += ',';
    detail::append_json_string(header, key);
    header += ':';
    detail::append_json_string(header, value);
  }
  header += '}';
}

void append_tensor(std::string& header, const NamedTensor& tensor, std::uint64_t begin, std::uint64_t end) {
  if (header.back() != '{') header += ',';
  detail::append_json_string(header, tensor.name);
  header += ":{\"dtype\":\"";
  header += detail::name_of(detail::written_as(tensor.tensor.dtype()));
  header += "\",\"shape\":[";
  for (const std::int64_t extent : tensor.tensor.shape()) {
    if (header.back() != '[') header += ',';
    header += std::to_string(extent);
  }
  header += "],\"data_offsets\":[" + std::to_string(begin) + ',' + std::to_string(end) + "]}";
}

/// The first part of the file: the length, the header and the blanks that align what follows.
std::string header_of(const std::vector<const NamedTensor*>& order, const Metadata& metadata, std::string_view where) {
  std::string header = "{";
  append_metadata(header, metadata, where);
  std::uint64_t begin = 0;
  for (const NamedTensor* tensor : order) {
    const std::uint64_t end = begin + bytes_of(tensor->tensor);
    append_tensor(header, *tensor, begin, end);
    begin = end;
  }
  header += '}';
  header.resize((header.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  if (header.size() > detail::kMostHeaderBytes)
    detail::refuse(where, "the header is above the limit of 100000000 bytes: " + std::to_string(header.size()));
  const std::uint64_t length = header.size();
  std::string prefix(detail::kPrefixBytes, '\0');
  std::memcpy(prefix.data(), &length, sizeof(length));
  return prefix + header;
}

void emit(const std::vector<const NamedTensor*>& order, const std::string& header, const Sink& sink) {
  sink(std::as_bytes(std::span(header)));
  for (const NamedTensor* named : order) {
    const Tensor dense = contiguous(named->tensor.unmarked());
    if (dense.numel() > 0) sink({dense.raw(), static_cast<std::size_t>(bytes_of(dense))});
  }
}

}  // namespace

std::vector<std::byte> serialize_safetensors(std::span<const NamedTensor> tensors, const Metadata& metadata) {
  constexpr std::string_view where = "serialize_safetensors";
  const auto order = ordered(tensors, where);
  const std::string header = header_of(order, metadata, where);
  std::size_t total = header.size();
  for (const NamedTensor& tensor : tensors) total += static_cast<std::size_t>(bytes_of(tensor.tensor));
  std::vector<std::byte> bytes;
  bytes.reserve(total);
  emit(order, header, [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); });
  return bytes;
}

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const Metadata& metadata) {
  const std::string where = detail::shown(path);
  const auto order = ordered(tensors, where);
  const std::string header = header_of(order, metadata, where);
  AtomicFile file(path);
  emit(order, header, [&](Bytes part) { file.write(part); });
  file.commit();
}

}  // namespace ferrite::io
