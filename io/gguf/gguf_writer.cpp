/// Writes GGUF files of version 3.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/gguf.h"
#include "ferrite/io/gguf/gguf_format.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io {
namespace {

namespace gguf = detail::gguf;
using gguf::Packing;
using gguf::TensorType;
using gguf::ValueType;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kMostDimensions = 4, kLongestName = 63, kLongestKey = 65535;
constexpr std::uint32_t kLargestAlignment = 1U << 20;  // limited, as every tensor is padded to it

template <class T>
constexpr ValueType kTypeOf = ValueType::string;
template <>
constexpr ValueType kTypeOf<std::uint8_t> = ValueType::u8;
template <>
constexpr ValueType kTypeOf<std::int8_t> = ValueType::i8;
template <>
constexpr ValueType kTypeOf<std::uint16_t> = ValueType::u16;
template <>
constexpr ValueType kTypeOf<std::int16_t> = ValueType::i16;
template <>
constexpr ValueType kTypeOf<std::uint32_t> = ValueType::u32;
template <>
constexpr ValueType kTypeOf<std::int32_t> = ValueType::i32;
template <>
constexpr ValueType kTypeOf<float> = ValueType::f32;
template <>
constexpr ValueType kTypeOf<bool> = ValueType::boolean;
template <>
constexpr ValueType kTypeOf<std::uint64_t> = ValueType::u64;
template <>
constexpr ValueType kTypeOf<std::int64_t> = ValueType::i64;
template <>
constexpr ValueType kTypeOf<double> = ValueType::f64;

template <class T>
void append(Bytes& out, T value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}
void append(Bytes& out, const std::string& text) {
  append(out, static_cast<std::uint64_t>(text.size()));
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

struct AppendValue {
  Bytes& out;

  template <class T>
  void operator()(const T& value) const {
    append(out, static_cast<std::uint32_t>(kTypeOf<T>));
    append(out, value);
  }
  template <class T>
  void operator()(const std::vector<T>& values) const {
    append(out, static_cast<std::uint32_t>(ValueType::list));
    append(out, static_cast<std::uint32_t>(kTypeOf<T>));
    append(out, static_cast<std::uint64_t>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) append(out, T(values[i]));
  }
};

void check_name(std::string_view name, std::size_t longest, std::string_view where) {
  if (name.empty()) detail::refuse(where, "a name is empty: ''");
  if (name.size() > longest)
    detail::refuse(where, detail::quote(name) + " is too long: " + detail::counted(name.size(), "byte") + ", at most " +
                              std::to_string(longest));
  if (detail::invalid_utf8(name)) detail::refuse(where, "a name is not UTF-8: " + detail::quote(name));
  if (name.find('\0') != std::string_view::npos) detail::refuse(where, "a name holds a NUL: " + detail::quote(name));
}

std::uint64_t alignment_of(const GgufMetadata& metadata, std::string_view where) {
  const auto at = metadata.find(gguf::kAlignmentKey);
  if (at == metadata.end()) return gguf::kDefaultAlignment;
  const auto* n = std::get_if<std::uint32_t>(&at->second);
  if (!n || *n == 0 || (*n & (*n - 1)) != 0 || *n > kLargestAlignment)
    detail::refuse(where, "general.alignment is no u32 power of two up to " + std::to_string(kLargestAlignment));
  return *n;
}

/// A tensor with the type in which it is written.
struct Planned {
  const NamedTensor* named = nullptr;
  GgufType as = GgufType::same;
  const TensorType* type = nullptr;
  std::uint64_t bytes = 0;
};

const TensorType* type_for(const NamedTensor& t, GgufType as) {
  if (as == GgufType::q8_0) return &gguf::tensor_type(Packing::q8_0);
  if (as == GgufType::q4_0) return &gguf::tensor_type(Packing::q4_0);
  const Dtype dtype = as == GgufType::f16 ? Dtype::f16 : as == GgufType::bf16 ? Dtype::bf16 : t.tensor.dtype();
  return gguf::tensor_type_of(detail::written_as(dtype));
}

Planned planned(const NamedTensor& t, const GgufTypeOf& type_of, const std::string& where) {
  check_name(t.name, kLongestName, where);
  const std::string place = where + ": " + detail::quote(t.name);
  if (!t.tensor.defined() || t.tensor.is_abstract())
    detail::refuse(place, "has no values: it is undefined or being traced");
  const Shape& shape = t.tensor.shape();
  if (static_cast<std::size_t>(shape.rank()) > kMostDimensions)
    detail::refuse(place, "has too many dimensions: " + shape.str() + ", the format has 4");
  Planned p{&t, type_of ? type_of(t) : GgufType::same};
  if (p.as != GgufType::same && t.tensor.dtype() != Dtype::f32)
    detail::refuse(place, "is no f32, so that it is written only as it is: " + t.tensor.spec().str());
  p.type = type_for(t, p.as);
  if (!p.type) detail::refuse(place, "has a dtype that the format does not have: " + t.tensor.spec().str());
  const std::int64_t row = shape.rank() == 0 ? 1 : shape[-1];
  if (row % p.type->block_elements != 0)
    detail::refuse(place, "has rows of " + std::to_string(row) + " elements, which are no whole blocks of " +
                              std::to_string(p.type->block_elements) + ": " + std::string(p.type->name));
  p.bytes = static_cast<std::uint64_t>(shape.numel()) / p.type->block_elements * p.type->block_bytes;
  return p;
}

bool finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
}

/// Returns the bytes of a tensor in the type in which it is written.
Bytes data_of(const Planned& p, const std::string& where) {
  const std::string place = where + ": " + detail::quote(p.named->name);
  Tensor dense = contiguous(p.named->tensor.unmarked());
  Bytes bytes(static_cast<std::size_t>(p.bytes));
  if (bytes.empty()) return bytes;
  const bool blocks = p.as == GgufType::q8_0 || p.as == GgufType::q4_0;
  if (blocks) {
    if (!finite(dense.values<float>())) detail::refuse(place, "holds infinity or NaN, which blocks cannot hold");
    if (!gguf::quantize(p.type->packing, dense.values<float>(), bytes))
      detail::refuse(place, "holds numbers whose scale f16 cannot hold");
    return bytes;
  }
  if (p.as == GgufType::f16 || p.as == GgufType::bf16) {
    const Tensor narrow = cast(dense, p.as == GgufType::f16 ? Dtype::f16 : Dtype::bf16);
    const Tensor back = cast(narrow, Dtype::f32);
    const auto before = dense.values<float>(), after = back.values<float>();
    for (std::size_t i = 0; i < before.size(); ++i)
      if (std::isfinite(before[i]) && !std::isfinite(after[i]))
        detail::refuse(place,
                       "holds a number that " + std::string(p.type->name) + " cannot: " + Scalar(before[i]).str());
    dense = narrow;
  }
  std::memcpy(bytes.data(), dense.raw(), bytes.size());
  return bytes;
}

void pad(Bytes& out, std::uint64_t alignment) {
  out.resize(static_cast<std::size_t>((out.size() + alignment - 1) / alignment * alignment));
}

/// Returns the keys in the order in which they are written: the architecture first, as in the reference.
std::vector<const GgufMetadata::value_type*> ordered(const GgufMetadata& metadata) {
  std::vector<const GgufMetadata::value_type*> order;
  for (const auto& entry : metadata) order.push_back(&entry);
  std::stable_partition(order.begin(), order.end(), [](const auto* e) { return e->first == gguf::kArchitectureKey; });
  return order;
}

Bytes serialized(std::span<const NamedTensor> tensors, const GgufMetadata& metadata, const GgufTypeOf& type_of,
                 const std::string& where) {
  const std::uint64_t alignment = alignment_of(metadata, where);
  if (metadata.size() > gguf::kMostKeys)
    detail::refuse(where, "has " + std::to_string(metadata.size()) + " keys, at most " +
                              std::to_string(gguf::kMostKeys) + " are written");
  std::vector<Planned> plan;
  std::vector<std::string_view> names;
  for (const NamedTensor& t : tensors) {
    plan.push_back(planned(t, type_of, where));
    names.emplace_back(t.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) detail::refuse(where, "a name occurs twice: " + detail::quote(*twice));

  const auto magic = std::as_bytes(std::span(gguf::kMagic));
  Bytes out(magic.begin(), magic.end());
  append(out, gguf::kVersion);
  append(out, static_cast<std::uint64_t>(plan.size()));
  append(out, static_cast<std::uint64_t>(metadata.size()));
  for (const auto* entry : ordered(metadata)) {
    check_name(entry->first, kLongestKey, where);
    append(out, entry->first);
    std::visit(AppendValue{out}, entry->second);
  }
  std::uint64_t offset = 0;
  for (const Planned& p : plan) {
    const Shape& shape = p.named->tensor.shape();
    append(out, p.named->name);
    append(out, static_cast<std::uint32_t>(shape.rank()));
    for (int i = shape.rank(); i-- > 0;) append(out, static_cast<std::uint64_t>(shape[i]));
    append(out, p.type->id);
    append(out, offset);
    offset += (p.bytes + alignment - 1) / alignment * alignment;
  }
  pad(out, alignment);
  out.reserve(out.size() + static_cast<std::size_t>(offset));
  for (const Planned& p : plan) {
    const Bytes data = data_of(p, where);
    out.insert(out.end(), data.begin(), data.end());
    pad(out, alignment);
  }
  return out;
}

}  // namespace

std::vector<std::byte> serialize_gguf(std::span<const NamedTensor> tensors, const GgufMetadata& metadata,
                                      const GgufTypeOf& type_of) {
  return serialized(tensors, metadata, type_of, "serialize_gguf");
}

void write_gguf(const std::filesystem::path& path, std::span<const NamedTensor> tensors, const GgufMetadata& metadata,
                const GgufTypeOf& type_of) {
  write_atomically(path, serialized(tensors, metadata, type_of, detail::shown(path)));
}

}  // namespace ferrite::io
