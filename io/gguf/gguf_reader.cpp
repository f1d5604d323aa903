/// Tensors and metadata of GGUF files.
#include <charconv>
#include <cstring>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/gguf.h"
#include "ferrite/io/gguf/blocks.h"
#include "ferrite/io/gguf/gguf_index.h"

namespace ferrite::io {
namespace {

using detail::gguf::Description;
using detail::gguf::Index;
using detail::gguf::Packing;
using detail::gguf::TensorType;
using detail::gguf::Value;
using detail::gguf::ValueType;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// f with a value of the C++ type of a value of the file; strings and lists are none.
template <class F>
auto with_type(ValueType type, F&& f) {
  switch (type) {
    case ValueType::u8: return f(std::uint8_t{});
    case ValueType::i8: return f(std::int8_t{});
    case ValueType::u16: return f(std::uint16_t{});
    case ValueType::i16: return f(std::int16_t{});
    case ValueType::u32: return f(std::uint32_t{});
    case ValueType::i32: return f(std::int32_t{});
    case ValueType::f32: return f(float{});
    case ValueType::u64: return f(std::uint64_t{});
    case ValueType::i64: return f(std::int64_t{});
    case ValueType::f64: return f(double{});
    case ValueType::boolean:
    case ValueType::string:
    case ValueType::list: break;
  }
  return f(bool{});
}

template <class T>
T element(std::span<const std::byte> bytes, std::uint64_t i) {
  T value{};
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

/// A number in the fewest digits that read back as the same, a boolean in a word.
std::string words_of(const Value& v) {
  return with_type(v.type, [&](auto zero) {
    using T = decltype(zero);
    const T value = element<T>(v.bytes, 0);
    if constexpr (std::is_same_v<T, bool>) {
      return std::string(value ? "true" : "false");
    } else {
      char digits[32];
      return std::string(std::begin(digits), std::to_chars(std::begin(digits), std::end(digits), value).ptr);
    }
  });
}

class GgufSource final : public TensorSource {
 public:
  GgufSource(std::string where, std::span<const std::byte> bytes) : where_(std::move(where)), index_(bytes, where_) {
    collect_words();
  }
  explicit GgufSource(detail::WholeFile&& file)
      : where_(std::move(file.where)), owned_(std::move(file.bytes)), index_(owned_.span(), where_) {
    collect_words();
  }

  std::size_t size() const override { return index_.tensors(); }
  std::string_view name(std::size_t i) const override { return index_.name(i); }
  std::optional<std::size_t> find(std::string_view name) const override { return index_.find(name); }

  TensorInfo info(std::size_t i) const override {
    const Description d = index_.tensor(i);
    const TensorType* type = detail::gguf::tensor_type(d.type);
    return {.dtype = name_of(d.type),
            .loads_as = dtype_of(type, Elements::for_computing),
            .stored_as = dtype_of(type, Elements::as_stored),
            .shape = {d.shape().begin(), d.shape().end()},
            .bytes = d.bytes};
  }

  Tensor tensor(std::size_t i, Elements elements) const override {
    const Description d = index_.tensor(i);
    const std::string place = where_ + ": " + detail::quote(d.name);
    const TensorType* type = detail::gguf::tensor_type(d.type);
    if (!dtype_of(type, elements))
      detail::refuse(place, "unsupported type: " + name_of(d.type) +
                                "; supported are F32, F64, F16, BF16, I64, I32, I16, I8, Q4_0, Q4_1, Q5_0, Q5_1, "
                                "Q8_0, Q4_K, Q5_K and Q6_K");
    const auto bytes = index_.data().subspan(static_cast<std::size_t>(d.offset), static_cast<std::size_t>(d.bytes));
    const Shape shape(d.shape());
    if (type->packing == Packing::plain) return detail::decode(type->plain, shape, bytes, place, elements);
    return Tensor::build<float>(shape,
                                [&](std::span<float> out) { detail::gguf::dequantize(type->packing, bytes, out); });
  }

  std::vector<std::pair<std::string_view, std::string_view>> metadata() const override {
    std::vector<std::pair<std::string_view, std::string_view>> all;
    for (std::size_t i = 0; i < index_.keys(); ++i) {
      const Value v = index_.value(i);
      if (v.type != ValueType::list)
        all.emplace_back(v.key, v.type == ValueType::string ? as_text(v.bytes) : words_[i]);
    }
    return all;
  }

 private:
  static std::string name_of(std::uint32_t type) {
    const TensorType* known = detail::gguf::tensor_type(type);
    return known ? std::string(known->name) : "type " + std::to_string(type);
  }
  static std::optional<Dtype> dtype_of(const TensorType* type, Elements elements) {
    if (!type || type->packing == Packing::none) return std::nullopt;
    return type->packing == Packing::plain ? detail::dtype_in_memory(type->plain, elements) : Dtype::f32;
  }
  void collect_words() {
    words_.resize(index_.keys());
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const Value v = index_.value(i);
      if (v.type != ValueType::string && v.type != ValueType::list) words_[i] = words_of(v);
    }
  }

  std::string where_;
  detail::Block owned_;
  Index index_;
  std::vector<std::string> words_;  ///< of values that are neither strings nor lists
};

std::vector<std::string> texts_of(const Value& v) {
  std::vector<std::string> texts;
  texts.reserve(static_cast<std::size_t>(v.count));
  for (std::size_t at = 0; texts.size() < v.count;) {
    const auto n = static_cast<std::size_t>(element<std::uint64_t>(v.bytes.subspan(at), 0));
    texts.emplace_back(as_text(v.bytes.subspan(at + 8, n)));
    at += 8 + n;
  }
  return texts;
}

GgufValue value_of(const Value& v) {
  if (v.type == ValueType::string) return std::string(as_text(v.bytes));
  if (v.type == ValueType::list && v.element == ValueType::string) return texts_of(v);
  if (v.type != ValueType::list)
    return with_type(v.type, [&](auto zero) { return GgufValue(element<decltype(zero)>(v.bytes, 0)); });
  return with_type(v.element, [&](auto zero) {
    std::vector<decltype(zero)> all(static_cast<std::size_t>(v.count));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = element<decltype(zero)>(v.bytes, i);
    return GgufValue(std::move(all));
  });
}

}  // namespace

TensorFile parse_gguf(std::span<const std::byte> bytes, std::string_view where) {
  return {std::string(where), std::make_shared<GgufSource>(std::string(where), bytes)};
}

TensorFile read_gguf(const std::filesystem::path& path) {
  detail::WholeFile file = detail::read_whole(path);
  const std::string where = file.where;
  return {where, std::make_shared<GgufSource>(std::move(file))};
}

GgufMetadata parse_gguf_metadata(std::span<const std::byte> bytes, std::string_view where) {
  const Index index(bytes, where);
  GgufMetadata all;
  for (std::size_t i = 0; i < index.keys(); ++i) {
    const Value v = index.value(i);
    all.emplace(v.key, value_of(v));
  }
  return all;
}

GgufMetadata read_gguf_metadata(const std::filesystem::path& path) {
  const detail::WholeFile file = detail::read_whole(path);
  return parse_gguf_metadata(file.bytes.span(), file.where);
}

}  // namespace ferrite::io
