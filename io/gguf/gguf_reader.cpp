/// Reads GGUF files: the header, checked and kept in compact tables, then tensors and metadata.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/gguf.h"
#include "ferrite/io/gguf/gguf_format.h"
#include "ferrite/tensor/extents.h"

namespace ferrite::io::detail::gguf {
namespace {

/// The description of a tensor in a file.
struct Description {
  std::string_view name;
  std::array<std::int64_t, kMostDimensions> extents{};  ///< extents, row-major: the first varies slowest
  std::uint32_t rank = 0;
  std::uint32_t type = 0;
  std::uint64_t offset = 0;  ///< position of its bytes in the data
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< number of bytes; 0 for an unknown type

  std::span<const std::int64_t> shape() const { return {extents.data(), rank}; }
};

/// A value of the metadata as its bytes in the file.
struct Value {
  std::string_view key;
  ValueType type{};
  ValueType element{};               ///< type of a list's elements
  std::uint64_t count = 1;           ///< number of a list's elements
  std::span<const std::byte> bytes;  ///< a string without its length, or the elements of a list
};

/// The index of a file. It takes eight bytes for a tensor or key, and four for its place in the order of names;
/// descriptions are read again from the file when they are asked for.
class Index {
 public:
  /// Reads and checks a file. Throws IoError beginning with `where` for everything that parse_gguf refuses.
  Index(std::span<const std::byte> file, std::string_view where);

  std::size_t tensors() const { return tensors_.size(); }
  Description tensor(std::size_t i) const;
  std::string_view name(std::size_t i) const;
  std::optional<std::size_t> find(std::string_view name) const;
  std::size_t keys() const { return keys_.size(); }
  Value value(std::size_t i) const;
  /// Returns the bytes of all tensors.
  std::span<const std::byte> data() const { return data_; }

 private:
  void check_names(std::string_view where);
  void check_places(std::uint64_t alignment, std::string_view where) const;

  std::span<const std::byte> file_, data_;
  std::vector<std::uint64_t> tensors_, keys_;  ///< positions of their descriptions
  std::vector<std::uint32_t> by_name_;         ///< numbers of tensors sorted by their names
};

// ---- the head ------------------------------------------------------------------------------------------

using ferrite::detail::mul_overflows;

/// Takes pieces from the front of the file, and checks that they lie within it.
class Cursor {
 public:
  Cursor(std::span<const std::byte> file, std::string_view where, std::uint64_t at = 0)
      : file_(file), where_(where), at_(at) {}

  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return file_.size() - at_; }

  std::span<const std::byte> take(std::uint64_t n, std::string_view what) {
    if (n > left())
      refuse(where_, std::string(what) + " at byte " + std::to_string(at_) + " reaches beyond the end of the file: " +
                         counted(n, "byte") + " wanted, " + std::to_string(left()) + " left; is it cut short?");
    const auto taken = file_.subspan(static_cast<std::size_t>(at_), static_cast<std::size_t>(n));
    at_ += n;
    return taken;
  }
  template <class T>
  T number(std::string_view what) {
    T value{};
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }
  std::string_view text(std::string_view what) {
    const auto bytes = take(number<std::uint64_t>(what), what);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// Takes a name, a text that errors can show.
  std::string_view name(std::string_view what) {
    const std::string_view s = text(what);
    if (invalid_utf8(s)) refuse(where_, std::string(what) + " is not UTF-8: " + quote(s));
    if (s.find('\0') != std::string_view::npos) refuse(where_, std::string(what) + " holds a NUL: " + quote(s));
    return s;
  }
  /// Takes a number of things of at least `least` bytes each, which the rest of the file can hold.
  std::uint64_t count(std::uint64_t least, std::string_view what) {
    const auto n = number<std::uint64_t>(what);
    if (n > left() / least)
      refuse(where_, std::string(what) + " is more than the file has room for: " + std::to_string(n));
    return n;
  }

 private:
  std::span<const std::byte> file_;
  std::string_view where_;
  std::uint64_t at_;
};

constexpr std::uint64_t kLeastKey = 8 + 4 + 1, kLeastTensor = 8 + 4 + 4 + 8;

ValueType value_type(Cursor& from, std::string_view key, std::string_view where) {
  const auto type = from.number<std::uint32_t>("the type of a value");
  if (type >= kValueTypes)
    refuse(where, "the value of " + quote(key) + " is of an unknown type: " + std::to_string(type));
  return static_cast<ValueType>(type);
}

void check_booleans(std::span<const std::byte> bytes, std::string_view key, std::string_view where) {
  for (const std::byte b : bytes)
    if (std::to_integer<unsigned>(b) > 1)
      refuse(where, "a boolean of " + quote(key) + " is neither 0 nor 1: " + std::to_string(std::to_integer<int>(b)));
}

/// Returns the bytes of a list's elements, which begin at the cursor.
std::span<const std::byte> list_bytes(Cursor& from, const Value& v, std::span<const std::byte> file) {
  const std::uint64_t begin = from.at();
  if (v.element == ValueType::string) {
    for (std::uint64_t i = 0; i < v.count; ++i) (void)from.text("a text of a list");
  } else {
    (void)from.take(v.count * size_of(v.element), "a list");  // the count has been compared with the rest of the file
  }
  return file.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(from.at() - begin));
}

Value read_value(Cursor& from, std::span<const std::byte> file, std::string_view where) {
  Value v;
  v.key = from.name("a key");
  v.type = value_type(from, v.key, where);
  if (v.type == ValueType::string) {
    const std::string_view text = from.text("a text");
    v.bytes = std::as_bytes(std::span(text));
  } else if (v.type == ValueType::list) {
    v.element = value_type(from, v.key, where);
    if (v.element == ValueType::list) refuse(where, quote(v.key) + " is a list of lists, which is not supported");
    v.count = from.count(std::max<std::uint64_t>(size_of(v.element), v.element == ValueType::string ? 8 : 1),
                         "the length of a list");
    v.bytes = list_bytes(from, v, file);
  } else {
    v.bytes = from.take(size_of(v.type), "a value");
  }
  if (v.type == ValueType::boolean || (v.type == ValueType::list && v.element == ValueType::boolean))
    check_booleans(v.bytes, v.key, where);
  return v;
}

/// Returns the number of elements. The product of the extents is checked even where one of them is 0.
std::uint64_t elements_of(const Description& d, std::string_view where) {
  if (const auto n = detail::elements_of(d.shape())) return *n;
  refuse(where, quote(d.name) + " has more elements than can be counted: shape " + bracketed(d.shape()));
}

void size_up(Description& d, std::string_view where) {
  d.elements = elements_of(d, where);
  const TensorType* type = tensor_type(d.type);
  if (!type) return;
  const std::uint64_t row = d.rank == 0 ? 1 : static_cast<std::uint64_t>(d.extents[d.rank - 1]);
  if (row % type->block_elements != 0)
    refuse(where, quote(d.name) + " has rows of " + std::to_string(row) + " elements, which are no whole blocks of " +
                      std::to_string(type->block_elements) + ": " + std::string(type->name));
  if (mul_overflows(d.elements / type->block_elements, std::uint64_t{type->block_bytes}, d.bytes))
    refuse(where, quote(d.name) + " has more bytes than can be counted: shape " + bracketed(d.shape()));
}

Description read_description(Cursor& from, std::string_view where) {
  Description d;
  d.name = from.name("the name of a tensor");
  d.rank = from.number<std::uint32_t>("the number of dimensions");
  if (d.rank > kMostDimensions)
    refuse(where, quote(d.name) + " has too many dimensions: " + std::to_string(d.rank) + ", at most " +
                      std::to_string(kMostDimensions) + " are supported");
  for (std::uint32_t i = d.rank; i-- > 0;) {
    const auto extent = from.number<std::uint64_t>("an extent");
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      refuse(where, quote(d.name) + " has an extent above 2^63 - 1: " + std::to_string(extent));
    d.extents[i] = static_cast<std::int64_t>(extent);
  }
  d.type = from.number<std::uint32_t>("the type of a tensor");
  d.offset = from.number<std::uint64_t>("the offset of a tensor");
  size_up(d, where);
  return d;
}

void check_prologue(Cursor& from, std::span<const std::byte> file, std::string_view where) {
  if (file.size() < kMagic.size() || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0)
    refuse(where, "is no GGUF file: it does not begin with 'GGUF'");
  (void)from.take(kMagic.size(), "the magic");
  const auto version = from.number<std::uint32_t>("the version");
  if (version != 0 && (version & 0xFFFFU) == 0) refuse(where, "is big-endian, which is not supported");
  if (version != 2 && version != kVersion)
    refuse(where, "is GGUF of version " + std::to_string(version) + "; supported are 2 and 3");
}

std::uint64_t alignment_of(const Value& v, std::string_view where) {
  if (v.type != ValueType::u32) refuse(where, "general.alignment is no u32");
  std::uint32_t n = 0;
  std::memcpy(&n, v.bytes.data(), sizeof(n));
  if (n == 0 || (n & (n - 1)) != 0) refuse(where, "general.alignment is not a power of two: " + std::to_string(n));
  return n;
}

Index::Index(std::span<const std::byte> file, std::string_view where) : file_(file) {
  Cursor from(file, where);
  check_prologue(from, file, where);
  const auto count = from.count(kLeastTensor, "the number of tensors");
  const auto keys = from.count(kLeastKey, "the number of keys");
  if (keys > kMostKeys)
    refuse(where, "has " + std::to_string(keys) + " keys, at most " + std::to_string(kMostKeys) + " are read");
  if (count > std::numeric_limits<std::uint32_t>::max())
    refuse(where, "has too many tensors: " + std::to_string(count));
  std::uint64_t alignment = kDefaultAlignment;
  keys_.reserve(static_cast<std::size_t>(keys));
  for (std::uint64_t i = 0; i < keys; ++i) {
    keys_.push_back(from.at());
    const Value v = read_value(from, file, where);
    if (v.key == kAlignmentKey) alignment = alignment_of(v, where);
  }
  tensors_.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    tensors_.push_back(from.at());
    (void)read_description(from, where);
  }
  const std::uint64_t padding = (alignment - from.at() % alignment) % alignment;
  data_ = file.subspan(static_cast<std::size_t>(from.at() + std::min(padding, from.left())));
  check_names(where);
  check_places(alignment, where);
}

Description Index::tensor(std::size_t i) const {
  Cursor from(file_, {}, tensors_[i]);
  return read_description(from, {});
}

std::string_view Index::name(std::size_t i) const { return Cursor(file_, {}, tensors_[i]).text({}); }

std::optional<std::size_t> Index::find(std::string_view wanted) const {
  const auto at = std::ranges::lower_bound(by_name_, wanted, {}, [this](std::uint32_t i) { return name(i); });
  return at != by_name_.end() && name(*at) == wanted ? std::optional<std::size_t>(*at) : std::nullopt;
}

Value Index::value(std::size_t i) const {
  Cursor from(file_, {}, keys_[i]);
  return read_value(from, file_, {});
}

void Index::check_names(std::string_view where) {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  const auto name_of = [this](std::uint32_t i) { return name(i); };
  std::ranges::sort(by_name_, {}, name_of);
  const auto twice = std::ranges::adjacent_find(by_name_, {}, name_of);
  if (twice != by_name_.end()) refuse(where, "a name occurs twice: " + quote(name(*twice)));
  std::vector<std::string_view> keys;
  for (std::size_t i = 0; i < keys_.size(); ++i) keys.push_back(Cursor(file_, {}, keys_[i]).text({}));
  std::ranges::sort(keys);
  const auto key = std::ranges::adjacent_find(keys);
  if (key != keys.end()) refuse(where, "a key occurs twice: " + quote(*key));
}

void Index::check_places(std::uint64_t alignment, std::string_view where) const {
  std::vector<std::uint32_t> order = by_name_;
  std::ranges::sort(order, {}, [this](std::uint32_t i) {
    const Description d = tensor(i);
    return std::pair(d.offset, d.bytes);
  });
  std::uint64_t end = 0;
  std::string_view before;
  for (const std::uint32_t i : order) {
    const Description d = tensor(i);
    const std::string place = quote(d.name) + " at offset " + std::to_string(d.offset);
    if (d.offset % alignment != 0)
      refuse(where, place + " is not aligned to " + counted(static_cast<std::size_t>(alignment), "byte"));
    if (d.offset > data_.size() || d.bytes > data_.size() - d.offset)
      refuse(where, place + " reaches beyond the end of the file: " + counted(d.bytes, "byte") + " of " +
                        std::to_string(data_.size()) + "; is it cut short?");
    if (d.offset < end) refuse(where, place + " overlaps " + quote(before));
    end = d.offset + d.bytes;
    before = d.name;
  }
}

}  // namespace

}  // namespace ferrite::io::detail::gguf

// ---- tensors and metadata ------------------------------------------------------------------------------

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

/// Calls f with a zero of the C++ type that a value in the file has; strings and lists have none.
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

/// Returns a number in the fewest digits that read back as the same, a boolean as a word.
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
  std::vector<std::string> words_;  ///< texts of values that are neither strings nor lists
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
