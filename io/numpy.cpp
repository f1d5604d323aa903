/// Reads and writes NumPy's formats: npy with its header, and npz, an archive of npy.
#include "ferrite/io/numpy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/file_dtype.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/zip/zip.h"
#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io::detail {
namespace {

/// Largest size of a header in bytes, as in NumPy.
constexpr std::uint64_t kMostNpyHeader = 10'000;

/// Number of bytes that contain the whole header of any sound file: magic, version, length, header.
constexpr std::uint64_t kMostNpyFront = 12 + kMostNpyHeader;

/// The header of an .npy file, read and checked.
struct NpyHeader {
  std::string dtype;              ///< as the file spells it, "<f4"
  std::optional<FileDtype> type;  ///< empty for strings, objects and other types that Ferrite does not know
  ByteOrder order = ByteOrder::little;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;  ///< for complex numbers with a last axis of real and imaginary parts
  bool complex = false;
  std::uint64_t data_begin = 0;  ///< position of the elements in the file
};

// ---- the header of npy ---------------------------------------------------------------------------------

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;
constexpr std::size_t kMostDimensions = 64;  // NumPy's limit

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads the dict of the header, by the part of Python's grammar of literals that the format uses.
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

  /// Reads a string without escapes: no dtype and no key has any.
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
                         "; only arrays of plain numbers are read, save every field as a separate array");
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

  /// Reads a tuple: (), (3,), (2, 3) and (2, 3,), but not (3), which is an integer.
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

  /// Reads an extent; Python 2 wrote some integers with an L at the end.
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
  bool complex = false;  ///< whether an element is two of them
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

/// Sets type and byte order from "<f4", ">f4", "=f4", "f4" or "|u1"; "=", or nothing, is the order of this machine.
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

/// Returns NumPy's name of a type without the byte order, "f4", or nothing where it has none.
std::optional<std::string_view> npy_name(FileDtype type) {
  const auto known = std::ranges::find_if(kNames, [&](const Name& n) { return n.type == type && !n.complex; });
  return known == kNames.end() ? std::nullopt : std::optional(known->kind);
}

/// Reads the header at the front of a file of `file_bytes`. `front` has at least the first kMostNpyFront bytes, or all
/// of them. Throws IoError, also where the type is known and the rest of the file does not have the size for it.
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

// ---- npy -----------------------------------------------------------------------------------------------

constexpr std::size_t kAlignment = 64;  // alignment of the elements
constexpr std::size_t kGrowth = 21;     // NumPy leaves room for so long a first extent
constexpr std::size_t kPrefix = 10;     // size of magic, version, a length of two bytes

/// Returns NumPy's descr of a dtype, "<f4"; that of a byte has no order.
std::string descr_of(Dtype dtype, std::string_view where) {
  const std::optional<std::string_view> name = npy_name(written_as(dtype));
  if (!name)
    refuse(where, "NumPy has no dtype for " + std::string(ferrite::name_of(dtype)) +
                      "; cast the tensor to f32, or write safetensors or .pt");
  return (size_of(dtype) == 1 ? "|" : "<") + std::string(*name);
}

/// Returns a shape as a Python tuple, "()", "(3,)", "(2, 3)".
std::string tuple_of(const Shape& shape) {
  std::string out = "(";
  for (const std::int64_t extent : shape) {
    if (out.size() > 1) out += ' ';
    out += std::to_string(extent) + ',';
  }
  if (shape.rank() > 1) out.pop_back();
  return out + ")";
}

/// Returns the axes from the last to the first.
Shape reversed_axes(std::size_t rank) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = rank; i > 0; --i) axes.push_back(static_cast<std::int64_t>(i) - 1);
  return Shape(axes);
}

/// Throws IoError for types that are not supported and for more than 8 dimensions.
void check_supported(const NpyHeader& header, std::string_view where) {
  if (!header.type || !dtype_in_memory(*header.type, Elements::for_computing))
    refuse(where, "unsupported dtype: " + quote(header.dtype) +
                      "; supported are f4, f8, f2, c8, c16, i8, i4, i2, i1, u8, u4, u2, u1 and b1");
  if (header.shape.size() > Shape::kMaxRank)
    refuse(where, "too many dimensions: " + std::to_string(header.shape.size()) + ", at most " +
                      std::to_string(Shape::kMaxRank) + " are supported");
}

/// Reads the tensor that follows a header. Throws IoError for types that are not supported, for more than 8 dimensions
/// and for a bool that is neither 0 nor 1.
Tensor read_npy_data(const NpyHeader& header, std::span<const std::byte> data, std::string_view where,
                     Elements elements) {
  check_supported(header, where);
  if (!header.fortran_order) return decode(*header.type, Shape(header.shape), data, where, elements, header.order);
  const std::ptrdiff_t parts = header.complex ? 1 : 0;  // the parts stay the last axis
  std::vector<std::int64_t> reversed(header.shape.rbegin() + parts, header.shape.rend());
  Shape axes = reversed_axes(reversed.size());
  if (header.complex) reversed.push_back(2), axes.push_back(axes.rank());
  return permute(decode(*header.type, Shape(reversed), data, where, elements, header.order), axes);
}

/// Returns magic, version, length and header, as numpy.save writes them. Throws IoError for a dtype that NumPy lacks.
std::string npy_front(const Tensor& tensor, std::string_view where) {
  std::string header = "{'descr': '" + descr_of(tensor.dtype(), where) +
                       "', 'fortran_order': False, 'shape': " + tuple_of(tensor.shape()) + ", }";
  if (tensor.rank() > 0) header.append(kGrowth - std::to_string(tensor.shape()[0]).size(), ' ');
  header.append(kAlignment - (kPrefix + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::string front("\x93NUMPY\x01\x00", 8);
  front += static_cast<char>(header.size() & 0xff);
  front += static_cast<char>(header.size() >> 8);
  return front + header;
}

/// Returns a tensor in C order. Throws IoError for one that is undefined or being traced.
Tensor npy_data(const Tensor& tensor, std::string_view where) {
  if (!tensor.defined() || tensor.is_abstract())
    refuse(where, "the tensor has no values: it is undefined or being traced");
  return contiguous(tensor.unmarked());
}

/// Returns the bytes of a tensor in C order.
std::span<const std::byte> npy_bytes(const Tensor& dense) {
  const auto size = static_cast<std::size_t>(dense.numel()) * static_cast<std::size_t>(size_of(dense.dtype()));
  return size > 0 ? std::span(dense.raw(), size) : std::span<const std::byte>();
}

}  // namespace

}  // namespace ferrite::io::detail

// ---- npz -----------------------------------------------------------------------------------------------

namespace ferrite::io {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr std::size_t kAlignment = 64;

using detail::Block;
using detail::NpyHeader;
using detail::ZipArchive;
using detail::ZipEntry;
using Bytes = std::span<const std::byte>;

/// Returns the headers of all members, in the order of the archive.
std::vector<NpyHeader> read_headers(const ZipArchive& archive, std::string_view where) {
  std::vector<NpyHeader> headers;
  headers.reserve(archive.entries().size());
  for (const ZipEntry& entry : archive.entries()) {
    if (!entry.name.ends_with(kSuffix)) detail::refuse(where, "a member is no npy file: " + detail::quote(entry.name));
    const std::string place = std::string(where) + ": " + detail::quote(entry.name);
    headers.push_back(detail::read_npy_header(archive.front(entry, detail::kMostNpyFront).bytes(), entry.size, place));
  }
  return headers;
}

class NpzSource final : public TensorSource {
 public:
  NpzSource(Bytes bytes, std::string_view where, const ReadOptions& options)
      : where_(where), archive_(bytes, where, options.most_inflated), headers_(read_headers(archive_, where)) {}
  NpzSource(Block owned, std::string_view where, const ReadOptions& options)
      : where_(where),
        owned_(std::move(owned)),
        archive_(owned_.span(), where, options.most_inflated),
        headers_(read_headers(archive_, where)) {}

  std::size_t size() const override { return headers_.size(); }

  std::string_view name(std::size_t i) const override {
    const std::string_view member = archive_.entries()[i].name;
    return member.substr(0, member.size() - kSuffix.size());
  }

  std::optional<std::size_t> find(std::string_view name) const override {
    const ZipEntry* entry = archive_.find(std::string(name) + std::string(kSuffix));
    if (entry == nullptr) return std::nullopt;
    return static_cast<std::size_t>(entry - archive_.entries().data());
  }

  TensorInfo info(std::size_t i) const override {
    const NpyHeader& header = headers_[i];
    return {.dtype = header.dtype,
            .loads_as = header.type ? detail::dtype_in_memory(*header.type, Elements::for_computing) : std::nullopt,
            .stored_as = header.type ? detail::dtype_in_memory(*header.type, Elements::as_stored) : std::nullopt,
            .shape = header.shape,
            .bytes = archive_.entries()[i].size - header.data_begin};
  }

  Tensor tensor(std::size_t i, Elements elements) const override {
    const ZipEntry& entry = archive_.entries()[i];
    const std::string place = where_ + ": " + detail::quote(name(i));
    detail::check_supported(headers_[i], place);
    const detail::ZipData contents = archive_.read(entry, entry.size);
    return detail::read_npy_data(
        headers_[i], contents.bytes().subspan(static_cast<std::size_t>(headers_[i].data_begin)), place, elements);
  }

  std::vector<std::pair<std::string_view, std::string_view>> metadata() const override { return {}; }

 private:
  std::string where_;
  Block owned_;
  ZipArchive archive_;
  std::vector<NpyHeader> headers_;
};

std::vector<std::byte> archive_of(std::span<const NamedTensor> tensors, std::string_view where) {
  std::uint64_t total = 0;
  for (const NamedTensor& named : tensors)
    if (named.tensor.defined())
      total += static_cast<std::uint64_t>(named.tensor.numel() * size_of(named.tensor.dtype())) + kAlignment;
  detail::ZipWriter writer(kAlignment, where);
  writer.reserve(total, tensors.size());
  for (const NamedTensor& named : tensors) {
    const std::string place = std::string(where) + ": " + detail::quote(named.name);
    const Tensor dense = detail::npy_data(named.tensor, place);
    const std::string front = detail::npy_front(dense, place);
    writer.add(named.name + std::string(kSuffix), std::as_bytes(std::span(front)), detail::npy_bytes(dense));
  }
  return writer.finish();
}

}  // namespace

TensorFile parse_npz(std::span<const std::byte> bytes, std::string_view where, const ReadOptions& options) {
  return {std::string(where), std::make_shared<NpzSource>(bytes, where, options)};
}

TensorFile parse_npz(std::vector<std::byte>&& bytes, std::string_view where, const ReadOptions& options) {
  return parse_npz(std::span<const std::byte>(bytes), where, options).keeping(std::move(bytes));
}

TensorFile read_npz(const std::filesystem::path& path, const ReadOptions& options) {
  detail::WholeFile file = detail::read_whole(path);
  const std::size_t size = file.bytes.span().size();
  auto source = std::make_shared<NpzSource>(std::move(file.bytes), file.where, options);
  ferrite::detail::log_debug(file.where + ": read " + detail::counted(source->size(), "tensor") + ", " +
                             detail::counted(size, "byte"));
  return {std::move(file.where), std::move(source)};
}

std::vector<std::byte> serialize_npz(std::span<const NamedTensor> tensors) {
  return archive_of(tensors, "serialize_npz");
}

void write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  write_atomically(path, archive_of(tensors, detail::shown(path)));
}

// ---- files ---------------------------------------------------------------------------------------------

Tensor parse_npy(std::span<const std::byte> bytes, std::string_view where, Elements elements) {
  const detail::NpyHeader header = detail::read_npy_header(bytes, bytes.size(), where);
  return detail::read_npy_data(header, bytes.subspan(static_cast<std::size_t>(header.data_begin)), where, elements);
}

Tensor read_npy(const std::filesystem::path& path, Elements elements) {
  detail::InputFile file(path);
  const std::string& where = file.where();
  // The header is checked before memory is allocated for the rest: the file may be anything.
  detail::Block front(std::min(file.size(), detail::kMostNpyFront), where);
  file.read(front.span());
  const detail::NpyHeader header = detail::read_npy_header(front.span(), file.size(), where);
  detail::Block data(file.size() - header.data_begin, where);
  const auto begun = front.span().subspan(static_cast<std::size_t>(header.data_begin));
  std::ranges::copy(begun, data.span().begin());
  file.read(data.span().subspan(begun.size()));
  file.expect_end();
  ferrite::detail::log_debug(where + ": read " + detail::counted(data.span().size(), "byte"));
  return detail::read_npy_data(header, data.span(), where, elements);
}

std::vector<std::byte> serialize_npy(const Tensor& tensor) {
  const Tensor dense = detail::npy_data(tensor, "serialize_npy");
  const std::string front = detail::npy_front(dense, "serialize_npy");
  const std::span<const std::byte> data = detail::npy_bytes(dense);
  std::vector<std::byte> bytes;
  bytes.reserve(front.size() + data.size());
  for (const auto part : {std::as_bytes(std::span(front)), data}) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const Tensor dense = detail::npy_data(tensor, detail::shown(path));
  const std::string front = detail::npy_front(dense, detail::shown(path));
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(front)));
  file.write(detail::npy_bytes(dense));
  file.commit();
}

}  // namespace ferrite::io
