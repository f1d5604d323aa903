/// CRC-32 over the tensors and metadata of a file.
#include "ferrite/io/checksum.h"

#include <algorithm>

#include "ferrite/io/detail/crc32.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io {
namespace {

/// A running CRC-32; every part is preceded by its length, so that parts cannot run into each other.
class Crc {
 public:
  void add(std::string_view text) { add(text.data(), text.size()); }
  void add(const Tensor& x) {
    const Tensor dense = contiguous(x.unmarked());
    visit_dtype(dense.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const std::span<const T> values = dense.values<T>();
      add(values.data(), values.size_bytes());
    });
  }
  std::string digits() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string s;
    for (int shift = 28; shift >= 0; shift -= 4) s += kDigits[value_ >> shift & 15];
    return s;
  }

 private:
  void add(const void* bytes, std::size_t size) {
    const std::string length = std::to_string(size) + ":";
    value_ = detail::crc32(std::as_bytes(std::span(length)), value_);
    value_ = detail::crc32({static_cast<const std::byte*>(bytes), size}, value_);
  }
  std::uint32_t value_ = 0;
};

void add_metadata(Crc& crc, const Metadata& metadata) {
  for (const auto& [key, value] : metadata) {
    if (key == "checksum") continue;
    crc.add(key);
    crc.add(value);
  }
}

void add_tensor(Crc& crc, std::string_view name, const Tensor& x) {
  crc.add(name);
  crc.add(x.spec().str());
  crc.add(x);
}

}  // namespace

std::string checksum(std::span<const NamedTensor> tensors, const Metadata& metadata) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& t : tensors) order.push_back(&t);
  std::ranges::sort(order, {}, [](const NamedTensor* t) { return std::string_view(t->name); });
  Crc crc;
  for (const NamedTensor* t : order) add_tensor(crc, t->name, t->tensor);
  add_metadata(crc, metadata);
  return crc.digits();
}

std::string checksum(const TensorFile& file) {
  std::vector<std::string_view> names = file.names();
  std::ranges::sort(names);
  Crc crc;
  for (const std::string_view name : names) add_tensor(crc, name, file.tensor(name, Elements::as_stored));
  add_metadata(crc, file.metadata());
  return crc.digits();
}

}  // namespace ferrite::io
