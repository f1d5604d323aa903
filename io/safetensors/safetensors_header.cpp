/// Reads a safetensors header as a stream of events, without a tree.
#include <algorithm>
#include <limits>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/detail/json_parser.h"
#include "ferrite/io/safetensors/safetensors_index.h"

namespace ferrite::io::detail {
namespace {

constexpr int kDeepest = 128;  // as the reference
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
  TensorEntry tensor_;         // the one being read
  TextRange key_;              // of the metadata being read
  Field field_ = Field::none;  // whose value comes next
  bool has_dtype_ = false;
  bool has_shape_ = false;
  int offsets_ = -1;          // how many have been read; -1: no such field yet
  bool in_metadata_ = false;  // the next value is the metadata's
  bool had_metadata_ = false;
  int ignored_depth_ = 0;
};

TextRange HeaderReader::keep(std::string_view text) {
  const TextRange range{static_cast<std::uint32_t>(index_.pool.size()), static_cast<std::uint32_t>(text.size())};
  index_.pool += text;
  return range;
}

/// A value that stands where no single value of its kind may.
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

/// Enters a value of a field that we do not know, to be read over.
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

/// Position behind the closing quote of the string that begins at `quote_at`; the end where there is none.
std::size_t behind_string(std::string_view text, std::size_t quote_at) {
  std::size_t i = text.find_first_of("\"\\", quote_at + 1);
  while (i < text.size() && text[i] == '\\') i = text.find_first_of("\"\\", i + 2);
  return i < text.size() ? i + 1 : text.size();
}

/// Whether a number is longer than any honest one: the parser keeps several copies of it.
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

/// What must hold of the text before it is read as JSON: the parser takes a NUL for the end and a BOM for a blank.
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

}  // namespace ferrite::io::detail
