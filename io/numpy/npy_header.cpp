/// Reads the header of .npy files by Python's grammar of literals.
#include <algorithm>
#include <array>
#include <cstring>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/numpy/npy.h"
#include "ferrite/tensor/extents.h"

namespace ferrite::io::detail {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;
constexpr std::size_t kMostDimensions = 64;  // NumPy has no more

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The dict of the header, by Python's grammar of literals as far as the format uses it.
class DictReader {
 public:
  DictReader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  void read(NpyHeader& header) {
    if (!text_.ends_with('\n')) refuse(where_, "the header does not end with a newline: " + quote(text_));
    expect('{', "a dict");
    bool first = true;
    while (!accept('}')) {
      if (!first) {
        expect(',', "',' or '}'");
        if (accept('}')) break;
      }
      first = false;
      read_entry(header);
    }
    skip_blanks();
    if (at_ != text_.size()) refuse_at("the end of the header");
    for (std::size_t i = 0; i < kKeys.size(); ++i)
      if (!seen_[i]) refuse(where_, "the header lacks a key: " + quote(kKeys[i]));
  }

 private:
  static constexpr std::array<std::string_view, 3> kKeys = {"descr", "fortran_order", "shape"};

  [[noreturn]] void refuse_at(std::string_view wanted) const {
    const std::string found = at_ < text_.size() ? quote(text_.substr(at_, 20)) : "the end";
    refuse(where_, "the header is not NumPy's: byte " + std::to_string(at_) + " of it should be " +
                       std::string(wanted) + ", it is " + found);
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }

  bool accept(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c, std::string_view wanted) {
    if (!accept(c)) refuse_at(wanted);
  }

  void read_entry(NpyHeader& header) {
    const std::string_view key = string("a key between quotes");
    const auto known = std::ranges::find(kKeys, key);
    if (known == kKeys.end()) refuse(where_, "the header has an unknown key: " + quote(key));
    bool& seen = seen_[static_cast<std::size_t>(known - kKeys.begin())];
    if (seen) refuse(where_, "the header has a key twice: " + quote(key));
    seen = true;
    expect(':', "':'");
    if (key == "descr")
      header.dtype = descr();
    else if (key == "shape")
      header.shape = tuple();
    else
      header.fortran_order = boolean();
  }

  /// Without escapes: no dtype and no key has any.
  std::string_view string(std::string_view wanted) {
    skip_blanks();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) refuse_at(wanted);
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) refuse_at("a string that ends");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find_first_of("\\\n") != std::string_view::npos) refuse_at("a string without escapes");
    at_ = end + 1;
    return inside;
  }

  std::string descr() {
    skip_blanks();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '('))
      refuse(where_, "the dtype is structured: " + quote(text_.substr(at_)) +
                         "; only arrays of plain numbers are read, save every field as an array of its own");
    return std::string(string("a dtype between quotes"));
  }

  bool boolean() {
    skip_blanks();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    refuse_at("True or False");
  }

  /// (), (3,), (2, 3) and (2, 3,), but not (3), which is an integer.
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> extents;
    expect('(', "a tuple");
    bool comma = true;
    while (!accept(')')) {
      if (!comma) refuse_at("',' or ')'");
      if (extents.size() == kMostDimensions)
        refuse(where_, "too many dimensions: more than " + std::to_string(kMostDimensions));
      extents.push_back(extent());
      comma = accept(',');
    }
    if (extents.size() == 1 && !comma)
      refuse(where_, "the shape is no tuple: (" + std::to_string(extents[0]) + ") is an integer");
    return extents;
  }

  /// Python 2 wrote some integers with an L behind them.
  std::int64_t extent() {
    skip_blanks();
    const std::size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') refuse_at("an extent that is not negative");
    std::int64_t value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
      if (ferrite::detail::mul_overflows(value, std::int64_t{10}, value) ||
          ferrite::detail::add_overflows(value, std::int64_t{text_[at_] - '0'}, value))
        refuse(where_, "an extent above 2^63 - 1: " + quote(text_.substr(begin, 40)));
    if (at_ == begin) refuse_at("an integer");
    if (text_[begin] == '0' && at_ - begin > 1) {
      at_ = begin;
      refuse_at("an integer without leading zeros");
    }
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  std::string_view text_;
  std::string_view where_;
  std::size_t at_ = 0;
  std::array<bool, kKeys.size()> seen_{};
};

struct Name {
  std::string_view kind;
  FileDtype type;
  bool complex = false;  ///< two of them each
};
constexpr std::array<Name, 14> kNames = {{{"b1", FileDtype::boolean},
                                          {"i1", FileDtype::i8},
                                          {"u1", FileDtype::u8},
                                          {"i2", FileDtype::i16},
                                          {"u2", FileDtype::u16},
                                          {"f2", FileDtype::f16},
                                          {"i4", FileDtype::i32},
                                          {"u4", FileDtype::u32},
                                          {"f4", FileDtype::f32},
                                          {"c8", FileDtype::f32, true},
                                          {"f8", FileDtype::f64},
                                          {"i8", FileDtype::i64},
                                          {"u8", FileDtype::u64},
                                          {"c16", FileDtype::f64, true}}};

/// Type and byte order of "<f4", ">f4", "=f4", "f4" and "|u1"; "=", and nothing, is the order of this machine.
void read_dtype(NpyHeader& header) {
  std::string_view kind = header.dtype;
  char order = '=';
  if (!kind.empty() && std::string_view("<>=|").find(kind.front()) != std::string_view::npos) {
    order = kind.front();
    kind.remove_prefix(1);
  }
  const auto known = std::ranges::find(kNames, kind, &Name::kind);
  if (known == kNames.end() || (order == '|' && bits_of(known->type) > 8)) return;
  header.type = known->type;
  header.order = order == '>' ? ByteOrder::big : ByteOrder::little;
  header.complex = known->complex;
  if (known->complex) header.shape.push_back(2);
}

void check_size(const NpyHeader& header, std::uint64_t data_bytes, std::string_view where) {
  const std::string spec = quote(header.dtype) + " " + bracketed(header.shape);
  const auto elements = elements_of(header.shape);
  std::uint64_t wanted = 0;
  if (!elements || ferrite::detail::mul_overflows(*elements, bits_of(*header.type) / 8, wanted))
    refuse(where, "more elements than can be counted: " + spec);
  if (wanted != data_bytes)
    refuse(where, "the array has " + counted(data_bytes, "byte") + ", its dtype and shape need " +
                      std::to_string(wanted) + ": " + spec +
                      (data_bytes < wanted ? "; the file is cut short" : "; something follows the array"));
}

}  // namespace

std::optional<std::string_view> npy_name(FileDtype type) {
  const auto known = std::ranges::find_if(kNames, [&](const Name& n) { return n.type == type && !n.complex; });
  return known == kNames.end() ? std::nullopt : std::optional(known->kind);
}

NpyHeader read_npy_header(std::span<const std::byte> front, std::uint64_t file_bytes, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(front.data()), front.size());
  if (file_bytes < kVersionEnd + 2) refuse(where, "too short to be an npy file: " + counted(file_bytes, "byte"));
  if (!text.starts_with(kMagic)) refuse(where, "not an npy file: it begins with " + quote(text.substr(0, 6)));
  const auto major = static_cast<unsigned char>(text[6]);
  const auto minor = static_cast<unsigned char>(text[7]);
  if (major < 1 || major > 3 || minor != 0)
    refuse(where, "an unknown version of the format: " + std::to_string(major) + "." + std::to_string(minor) +
                      "; known are 1.0, 2.0 and 3.0");
  const std::size_t prefix = kVersionEnd + (major == 1 ? 2 : 4);
  if (file_bytes < prefix) refuse(where, "too short to be an npy file: " + counted(file_bytes, "byte"));
  std::uint32_t length = 0;
  std::memcpy(&length, front.data() + kVersionEnd, prefix - kVersionEnd);
  if (length > file_bytes - prefix)
    refuse(where, "the header reaches beyond the end of the file: " + counted(length, "byte") + " of header, " +
                      counted(file_bytes, "byte") + " of file");
  if (length > kMostNpyHeader)
    refuse(where, "the header's length is above the limit of " + std::to_string(kMostNpyHeader) +
                      " bytes: " + std::to_string(length));
  NpyHeader header;
  DictReader(text.substr(prefix, length), where).read(header);
  header.data_begin = prefix + length;
  read_dtype(header);
  if (header.type) check_size(header, file_bytes - header.data_begin, where);
  return header;
}

}  // namespace ferrite::io::detail
