/// Reads safetensors files, mapped or not, with the header as a stream of events instead of a tree, and writes them.
#include "ferrite/io/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/detail/json_parser.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/safetensors/safetensors_index.h"
#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/log.h"
#include "ferrite/tensor/ops.h"

// ---- the header ----------------------------------------------------------------------------------------

namespace ferrite::io::detail {
namespace {

constexpr int kDeepest = 128;  // as in the reference
constexpr std::size_t kLongestNumber = 1000;

class HeaderReader final : public JsonHandler {
 public:
  HeaderReader(std::string_view header, std::string_view where) : header_(header), where_(where) {}

  SafetensorsIndex take() { return std::move(index_); }

  // ---- the events of the parser; every refusal is thrown -----------------------------------------------------

  void null() override {
    if (at_ == At::header && in_metadata_) return leave_metadata();
    scalar("null");
  }
  void boolean(bool value) override { scalar(value ? "true" : "false"); }
  void negative(std::int64_t value) override { scalar(std::to_string(value)); }
  void real(double, const std::string& text) override { scalar(text); }
  void natural(std::uint64_t value) override {
    if (at_ == At::shape) return add_extent(value);
    if (at_ == At::offsets) return add_offset(value);
    scalar(std::to_string(value));
  }
  void string(const std::string& value) override {
    if (at_ == At::metadata) return add_metadata(value);
    if (at_ == At::tensor && field_ == Field::dtype) return set_dtype(value);
    scalar("a string");
  }
  void key(const std::string& name) override;
  void begin_object() override;
  void end_object() override;
  void begin_list() override;
  void end_list() override;
  void error(std::size_t position, bool) override {
    refuse(where_, "the header is not JSON: stopped at byte " + std::to_string(position) + " of " +
                       std::to_string(header_.size()));
  }

 private:
  enum class At { outside, header, metadata, tensor, shape, offsets, ignored };
  enum class Field { none, dtype, shape, offsets, other };

  [[noreturn]] void refuse_tensor(std::string_view what) const {
    refuse(where_, quote(index_.text(tensor_.name)) + " " + std::string(what));
  }
  void scalar(std::string_view found);
  void ignore();
  void leave_metadata();
  void add_extent(std::uint64_t value);
  void add_offset(std::uint64_t value);
  void add_metadata(std::string_view value);
  void set_dtype(std::string_view name);
  void begin_tensor();
  void finish_tensor();
  void set_field(std::string_view name);
  TextRange keep(std::string_view text);

  std::string_view header_;
  std::string_view where_;
  SafetensorsIndex index_;
  At at_ = At::outside;
  TensorEntry tensor_;         // the tensor that is being read
  TextRange key_;              // key of the metadata entry that is being read
  Field field_ = Field::none;  // field whose value comes next
  bool has_dtype_ = false;
  bool has_shape_ = false;
  int offsets_ = -1;          // number of offsets read; -1: no such field yet
  bool in_metadata_ = false;  // whether the next value is the metadata's
  bool had_metadata_ = false;
  int ignored_depth_ = 0;
};

TextRange HeaderReader::keep(std::string_view text) {
  const TextRange range{static_cast<std::uint32_t>(index_.pool.size()), static_cast<std::uint32_t>(text.size())};
  index_.pool += text;
  return range;
}

/// Handles a single value of a kind that is not allowed where it occurs.
void HeaderReader::scalar(std::string_view found) {
  const std::string value =
      found.size() > 40 ? "a number of " + counted(found.size(), "character") : std::string(found);
  switch (at_) {
    case At::outside: refuse(where_, "the header is not a JSON object: it is " + value);
    case At::header:
      if (in_metadata_) refuse(where_, "the metadata is not an object: it is " + value);
      refuse_tensor("is not an object: it is " + value);
    case At::metadata: refuse(where_, "the metadata's " + quote(index_.text(key_)) + " is not a string: " + value);
    case At::shape: refuse_tensor("has a shape that is not made of unsigned integers: " + value);
    case At::offsets: refuse_tensor("has data_offsets that are not two unsigned integers: " + value);
    case At::ignored: return;
    case At::tensor: break;
  }
  if (field_ == Field::dtype) refuse_tensor("has a dtype that is not a string: " + value);
  if (field_ == Field::shape) refuse_tensor("has a shape that is not a list: " + value);
  if (field_ == Field::offsets) refuse_tensor("has data_offsets that are not a list: " + value);
}

void HeaderReader::key(const std::string& name) {
  if (at_ == At::ignored) return;
  if (at_ == At::tensor) {
    set_field(name);
    return;
  }
  if (name.find('\0') != std::string::npos) refuse(where_, "a name holds a NUL: " + quote(name));
  in_metadata_ = at_ == At::header && name == kMetadataName;
  if (in_metadata_ && had_metadata_) refuse(where_, "__metadata__ occurs twice");
  if (in_metadata_) return;
  if (at_ == At::metadata) {
    key_ = keep(name);
    return;
  }
  tensor_ = {};
  tensor_.name = keep(name);
}

void HeaderReader::begin_object() {
  switch (at_) {
    case At::outside: at_ = At::header; return;
    case At::header:
      if (!in_metadata_) begin_tensor();
      at_ = in_metadata_ ? At::metadata : At::tensor;
      return;
    case At::tensor:
      if (field_ == Field::other) return ignore();
      return scalar("an object");
    case At::ignored: return ignore();
    default: return scalar("an object");
  }
}

void HeaderReader::begin_list() {
  if (at_ == At::ignored) return ignore();
  if (at_ != At::tensor) return scalar("a list");
  if (field_ == Field::other) return ignore();
  if (field_ == Field::dtype) return scalar("a list");
  at_ = field_ == Field::shape ? At::shape : At::offsets;
  if (at_ == At::offsets) offsets_ = 0;
}

void HeaderReader::end_object() {
  switch (at_) {
    case At::ignored: return end_list();
    case At::metadata: return leave_metadata();
    case At::tensor:
      finish_tensor();
      at_ = At::header;
      return;
    default: at_ = At::outside; return;
  }
}

void HeaderReader::end_list() {
  if (at_ == At::ignored) {
    if (--ignored_depth_ == 0) at_ = At::tensor;
    return;
  }
  if (at_ == At::offsets && offsets_ != 2)
    refuse_tensor("has data_offsets that are not two unsigned integers: it has " + std::to_string(offsets_));
  at_ = At::tensor;
}

/// Enters the value of an unknown field, which is ignored.
void HeaderReader::ignore() {
  at_ = At::ignored;
  if (++ignored_depth_ > kDeepest)
    refuse_tensor("has an unknown field nested too deeply: more than " + std::to_string(kDeepest) + " levels");
}

void HeaderReader::leave_metadata() {
  at_ = At::header;
  in_metadata_ = false;
  had_metadata_ = true;
}

void HeaderReader::add_extent(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    refuse_tensor("has an extent above 2^63 - 1: " + std::to_string(value));
  if (tensor_.rank == kMostDimensions)
    refuse_tensor("has too many dimensions: more than " + std::to_string(kMostDimensions));
  index_.extents.push_back(static_cast<std::int64_t>(value));
  ++tensor_.rank;
}

void HeaderReader::add_offset(std::uint64_t value) {
  if (offsets_ == 2) refuse_tensor("has data_offsets that are not two unsigned integers: it has more");
  (offsets_ == 0 ? tensor_.begin : tensor_.end) = value;
  ++offsets_;
}

void HeaderReader::add_metadata(std::string_view value) { index_.metadata.push_back({key_, keep(value)}); }

void HeaderReader::set_dtype(std::string_view name) {
  const std::optional<FileDtype> dtype = file_dtype(name);
  if (!dtype) refuse_tensor("has an unknown dtype: " + quote(name));
  tensor_.dtype = *dtype;
}

void HeaderReader::begin_tensor() {
  tensor_.extents_at = static_cast<std::uint32_t>(index_.extents.size());
  field_ = Field::none;
  has_dtype_ = false;
  has_shape_ = false;
  offsets_ = -1;
}

void HeaderReader::set_field(std::string_view name) {
  const auto once = [&](bool had) {
    if (had) refuse_tensor("has a field twice: " + quote(name));
  };
  if (name == "dtype") {
    once(has_dtype_);
    field_ = Field::dtype;
    has_dtype_ = true;
  } else if (name == "shape") {
    once(has_shape_);
    field_ = Field::shape;
    has_shape_ = true;
  } else if (name == "data_offsets") {
    once(offsets_ >= 0);
    field_ = Field::offsets;
  } else {
    field_ = Field::other;
  }
}

void HeaderReader::finish_tensor() {
  if (!has_dtype_) refuse_tensor("has no dtype");
  if (!has_shape_) refuse_tensor("has no shape");
  if (offsets_ < 0) refuse_tensor("has no data_offsets");
  index_.tensors.push_back(tensor_);
}

/// Returns the position after the closing quote of the string that begins at `quote_at`, or the end.
std::size_t behind_string(std::string_view text, std::size_t quote_at) {
  std::size_t i = text.find_first_of("\"\\", quote_at + 1);
  while (i < text.size() && text[i] == '\\') i = text.find_first_of("\"\\", i + 2);
  return i < text.size() ? i + 1 : text.size();
}

/// Returns whether a number is longer than any legitimate one: the parser keeps several copies of it.
bool has_endless_number(std::string_view text) {
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t string = std::min(text.find('"', from), text.size());
    for (std::size_t last = from; last < string;) {
      const std::size_t next = std::min(text.find_first_of(" \t\r\n,[]{}:", last), string);
      if (next - last > kLongestNumber) return true;
      last = next + 1;
    }
    from = string == text.size() ? string : behind_string(text, string);
  }
  return false;
}

/// Checks the text before it is read as JSON: the parser takes a NUL for the end and a BOM for a blank.
void check_text(std::string_view header, std::string_view where) {
  if (const auto at = invalid_utf8(header)) refuse(where, "the header is not UTF-8: byte " + std::to_string(*at));
  const std::size_t nul = header.find('\0');
  if (nul != std::string_view::npos) refuse(where, "the header holds a NUL: byte " + std::to_string(nul));
  const std::size_t first = header.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) refuse(where, "the header is empty");
  if (header[first] != '{')
    refuse(where, "the header is not a JSON object: byte " + std::to_string(first) + " is not '{'");
  if (has_endless_number(header)) refuse(where, "the header holds a number of more than 1000 characters");
}

}  // namespace

SafetensorsIndex read_header(std::string_view header, std::string_view where) {
  check_text(header, where);
  HeaderReader reader(header, where);
  parse_json(header, reader);
  return reader.take();
}

// ---- the index -----------------------------------------------------------------------------------------

namespace {

std::uint32_t hash_of(std::string_view name) { return static_cast<std::uint32_t>(std::hash<std::string_view>{}(name)); }

/// The checks across the tensors of one file.
class IndexChecker {
 public:
  IndexChecker(SafetensorsIndex& index, std::string_view where) : index_(index), where_(where) {}

  void check(std::uint64_t data_bytes) {
    sort_tensors();
    sort_names();
    std::uint64_t expected = 0;
    for (const TensorEntry& tensor : index_.tensors) {
      check_place(tensor, expected);
      check_size(tensor);
      expected = tensor.end;
    }
    if (expected != data_bytes)
      refuse(where_, "the tensors end at byte " + std::to_string(expected) + " of the data, which has " +
                         counted(data_bytes, "byte") +
                         (expected > data_bytes ? "; the file is cut short" : "; something follows the tensors"));
    sort_metadata();
  }

 private:
  [[noreturn]] void refuse_tensor(const TensorEntry& tensor, std::string_view what) const {
    refuse(where_, quote(index_.name(tensor)) + " " + std::string(what));
  }

  /// Sorts tensors by their bytes, and empty tensors at one place by name.
  void sort_tensors() {
    const auto place = [this](const TensorEntry& t) { return std::tuple(t.begin, t.end, index_.name(t)); };
    if (!std::ranges::is_sorted(index_.tensors, {}, place)) std::ranges::sort(index_.tensors, {}, place);
  }

  void sort_names() {
    index_.by_hash.reserve(index_.tensors.size());
    for (std::uint32_t i = 0; i < index_.tensors.size(); ++i)
      index_.by_hash.push_back({hash_of(index_.name(index_.tensors[i])), i});
    const auto name = [this](const NameHash& h) { return index_.name(index_.tensors[h.tensor]); };
    std::ranges::sort(index_.by_hash, [&](const NameHash& a, const NameHash& b) {
      return a.hash != b.hash ? a.hash < b.hash : name(a) < name(b);
    });
    const auto same = [&](const NameHash& a, const NameHash& b) { return a.hash == b.hash && name(a) == name(b); };
    const auto twice = std::ranges::adjacent_find(index_.by_hash, same);
    if (twice != index_.by_hash.end()) refuse(where_, "a name occurs twice: " + quote(name(*twice)));
  }

  void sort_metadata() {
    const auto key = [this](const MetadataEntry& entry) { return index_.text(entry.key); };
    std::ranges::sort(index_.metadata, {}, key);
    const auto twice = std::ranges::adjacent_find(index_.metadata, {}, key);
    if (twice != index_.metadata.end()) refuse(where_, "the metadata has a key twice: " + quote(key(*twice)));
  }

  void check_place(const TensorEntry& tensor, std::uint64_t expected) const {
    if (tensor.begin == expected && tensor.end >= tensor.begin) return;
    refuse_tensor(tensor, "has data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) +
                              "], the tensor before it ends at " + std::to_string(expected) +
                              "; tensors must follow each other without gaps and overlaps");
  }

  std::uint64_t elements(const TensorEntry& tensor) const {
    if (const auto elements = elements_of(index_.shape(tensor))) return *elements;
    refuse_tensor(tensor, "has more elements than can be counted: shape " + bracketed(index_.shape(tensor)));
  }

  void check_size(const TensorEntry& tensor) const {
    std::uint64_t bits = 0;
    if (ferrite::detail::mul_overflows(elements(tensor), bits_of(tensor.dtype), bits))
      refuse_tensor(tensor, "has more bits than can be counted: shape " + bracketed(index_.shape(tensor)));
    if (bits % 8 != 0) refuse_tensor(tensor, "does not end at a byte: " + std::to_string(bits) + " bits");
    if (bits / 8 != tensor.end - tensor.begin)
      refuse_tensor(tensor, "has " + counted(tensor.end - tensor.begin, "byte") + ", its dtype and shape need " +
                                std::to_string(bits / 8) + ": " + std::string(name_of(tensor.dtype)) + " " +
                                bracketed(index_.shape(tensor)));
  }

  SafetensorsIndex& index_;
  std::string_view where_;
};

}  // namespace

std::optional<std::size_t> SafetensorsIndex::find(std::string_view wanted) const {
  const auto key = [this](const NameHash& h) { return std::pair(h.hash, name(tensors[h.tensor])); };
  const std::pair<std::uint32_t, std::string_view> sought(hash_of(wanted), wanted);
  const auto found = std::ranges::lower_bound(by_hash, sought, {}, key);
  if (found == by_hash.end() || key(*found) != sought) return std::nullopt;
  return found->tensor;
}

std::uint64_t header_length(std::span<const std::byte> first, std::uint64_t file_bytes, std::string_view where) {
  if (file_bytes < kPrefixBytes || first.size() < kPrefixBytes)
    refuse(where, "too short to be a safetensors file: " + counted(file_bytes, "byte"));
  std::uint64_t length = 0;
  std::memcpy(&length, first.data(), sizeof(length));
  if (length > kMostHeaderBytes)
    refuse(where, "the header's length is above the limit of 100000000 bytes: " + std::to_string(length) +
                      "; is this a safetensors file?");
  if (length > file_bytes - kPrefixBytes)
    refuse(where, "the header reaches beyond the end of the file: " + counted(length, "byte") + " of header, " +
                      counted(file_bytes, "byte") + " of file; is it cut short?");
  return length;
}

SafetensorsIndex read_index(std::string_view header, std::uint64_t data_bytes, std::string_view where) {
  SafetensorsIndex index = read_header(header, where);
  IndexChecker(index, where).check(data_bytes);
  return index;
}

}  // namespace ferrite::io::detail

// ---- reading -------------------------------------------------------------------------------------------

namespace ferrite::io {
namespace {

using detail::Block;
using detail::Mapping;
using detail::SafetensorsIndex;
using detail::TensorEntry;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns whether elements of a file are those of a tensor, byte for byte. BOOL is not: it may be neither 0 nor 1.
bool holds_as_in_memory(detail::FileDtype type, Elements elements) {
  return type != detail::FileDtype::boolean && detail::written_as(*detail::dtype_in_memory(type, elements)) == type;
}

class SafetensorsSource final : public TensorSource {
 public:
  SafetensorsSource(std::string where, SafetensorsIndex index, std::span<const std::byte> data)
      : where_(std::move(where)), index_(std::move(index)), data_(data) {}
  SafetensorsSource(std::string where, SafetensorsIndex index, Block data)
      : where_(std::move(where)), index_(std::move(index)), owned_(std::move(data)), data_(owned_->span()) {}
  /// Makes a source on a mapped file, whose data start at byte `data_at`.
  SafetensorsSource(std::string where, SafetensorsIndex index, std::shared_ptr<const Mapping> file,
                    std::uint64_t data_at)
      : where_(std::move(where)),
        index_(std::move(index)),
        mapped_(std::move(file)),
        data_(mapped_->readable().subspan(static_cast<std::size_t>(data_at))) {}

  std::size_t size() const override { return index_.tensors.size(); }
  std::string_view name(std::size_t i) const override { return index_.name(index_.tensors[i]); }
  std::optional<std::size_t> find(std::string_view name) const override { return index_.find(name); }

  TensorInfo info(std::size_t i) const override {
    const TensorEntry& entry = index_.tensors[i];
    const std::span<const std::int64_t> shape = index_.shape(entry);
    return {.dtype = std::string(detail::name_of(entry.dtype)),
            .loads_as = detail::dtype_in_memory(entry.dtype, Elements::for_computing),
            .stored_as = detail::dtype_in_memory(entry.dtype, Elements::as_stored),
            .shape = {shape.begin(), shape.end()},
            .bytes = entry.end - entry.begin};
  }

  Tensor tensor(std::size_t i, Elements elements) const override {
    const TensorEntry& entry = index_.tensors[i];
    const std::string place = where_ + ": " + detail::quote(index_.name(entry));
    if (!detail::dtype_in_memory(entry.dtype, elements))
      detail::refuse(place, "unsupported dtype: " + std::string(detail::name_of(entry.dtype)) +
                                "; supported are F32, F64, F16, BF16, I64, I32, I16, I8, U8 and BOOL");
    if (entry.rank > Shape::kMaxRank)
      detail::refuse(place, "too many dimensions: " + std::to_string(entry.rank) + ", at most " +
                                std::to_string(Shape::kMaxRank) + " are supported");
    const std::span<const std::byte> from = data_.subspan(static_cast<std::size_t>(entry.begin));
    const Shape shape(index_.shape(entry));
    if (mapped_ && holds_as_in_memory(entry.dtype, elements))
      return Tensor::frozen(from, {shape, *detail::dtype_in_memory(entry.dtype, elements)}, mapped_);
    return detail::decode(entry.dtype, shape, from.first(static_cast<std::size_t>(entry.end - entry.begin)), place,
                          elements);
  }

  std::vector<std::pair<std::string_view, std::string_view>> metadata() const override {
    std::vector<std::pair<std::string_view, std::string_view>> all;
    for (const detail::MetadataEntry& entry : index_.metadata)
      all.emplace_back(index_.text(entry.key), index_.text(entry.value));
    return all;
  }

 private:
  std::string where_;
  SafetensorsIndex index_;
  std::optional<Block> owned_;
  std::shared_ptr<const Mapping> mapped_;
  std::span<const std::byte> data_;  ///< bytes of the tensors and, in a mapped file, readable bytes after them
};

}  // namespace

TensorFile parse_safetensors(std::span<const std::byte> bytes, std::string_view where) {
  const auto length = static_cast<std::size_t>(detail::header_length(bytes, bytes.size(), where));
  const std::span<const std::byte> header = bytes.subspan(detail::kPrefixBytes, length);
  const std::span<const std::byte> data = bytes.subspan(detail::kPrefixBytes + length);
  SafetensorsIndex index = detail::read_index(as_text(header), data.size(), where);
  return {std::string(where), std::make_shared<SafetensorsSource>(std::string(where), std::move(index), data)};
}

TensorFile parse_safetensors(std::vector<std::byte>&& bytes, std::string_view where) {
  return parse_safetensors(std::span<const std::byte>(bytes), where).keeping(std::move(bytes));
}

TensorFile read_safetensors(const std::filesystem::path& path, const ReadOptions& options) {
  detail::InputFile file(path);
  const std::string& where = file.where();
  std::array<std::byte, detail::kPrefixBytes> first{};
  if (file.size() >= first.size()) file.read(first);
  const std::uint64_t length = detail::header_length(first, file.size(), where);
  const std::uint64_t data_bytes = file.size() - first.size() - length;
  // The header is checked before memory is allocated for the rest: the file may be anything.
  SafetensorsIndex index = [&] {
    Block header(length, where);
    file.read(header.span());
    return detail::read_index(as_text(header.span()), data_bytes, where);
  }();
  if (options.map) {
    auto mapped = std::make_shared<const Mapping>(file);
    ferrite::detail::log_debug(where + ": mapped " + detail::counted(index.tensors.size(), "tensor") + ", " +
                               detail::counted(data_bytes, "byte"));
    return {where,
            std::make_shared<SafetensorsSource>(where, std::move(index), std::move(mapped), first.size() + length)};
  }
  Block data(data_bytes, where);
  file.read(data.span());
  file.expect_end();
  ferrite::detail::log_debug(where + ": read " + detail::counted(index.tensors.size(), "tensor") + ", " +
                             detail::counted(data.span().size(), "byte"));
  return {where, std::make_shared<SafetensorsSource>(where, std::move(index), std::move(data))};
}

// ---- writing -------------------------------------------------------------------------------------------

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

/// Returns the tensors in the order of the file: the reference ranks dtypes and writes the highest first.
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

/// Returns the first part of the file: the length, the header and the blanks that align what follows.
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
