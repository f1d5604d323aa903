/// The JSON reader: events, limits, and errors with their position; reading and writing nested lists of numbers.
#include "ferrite/io/json/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/detail/json_parser.h"
#include "ferrite/tensor/scalar.h"

// ---- lists of numbers ----------------------------------------------------------------------------------

namespace ferrite::io::detail {

bool NumberShape::add(Item item) {
  if (depth_ == 0) return true;
  const auto in = static_cast<std::size_t>(depth_ - 1);
  if (items_[in] == Item::none) items_[in] = item;
  ++counts_[in];
  return items_[in] == item;
}

bool NumberShape::open() {
  if (!add(Item::list) || depth_ == Shape::kMaxRank) return false;
  counts_[static_cast<std::size_t>(depth_)] = 0;
  rank_ = std::max(rank_, ++depth_);
  return true;
}

bool NumberShape::close() {
  const auto at = static_cast<std::size_t>(--depth_);
  if (depth_ < closed_) {
    closed_ = depth_;
    extents_[at] = counts_[at];
  }
  return extents_[at] == counts_[at];
}

Shape NumberShape::shape() const { return Shape(std::span(extents_.data(), static_cast<std::size_t>(rank_))); }

void FloatStore::push(float value) {
  const std::size_t block = size_ / kBlock;
  if (block == blocks_.size()) blocks_.emplace_back(new float[kBlock]);
  blocks_[block][size_++ % kBlock] = value;
}

void FloatStore::copy(std::size_t first, std::span<float> to) const {
  for (std::size_t done = 0; done < to.size();) {
    const std::size_t at = (first + done) % kBlock;
    const std::size_t n = std::min(kBlock - at, to.size() - done);
    std::copy_n(&blocks_[(first + done) / kBlock][at], n, to.data() + done);
    done += n;
  }
}

void FloatStore::clear() {
  blocks_.resize(std::min<std::size_t>(blocks_.size(), 1));
  size_ = 0;
}

void append_numbers(std::string& out, std::span<const float> values, const Shape& shape, std::size_t& at) {
  if (shape.rank() == 0) {
    const float v = values[at++];
    if (!std::isfinite(v)) refuse("json", "a weight is " + Scalar(v).str() + ", which JSON cannot hold");
    if (v == 0 && std::signbit(v)) {
      out += "-0.0";  // "-0" is read as an integer, which has no sign
      return;
    }
    char digits[32];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), v).ptr;
    out.append(std::begin(digits), end);
    return;
  }
  Shape rest;
  for (int i = 1; i < shape.rank(); ++i) rest.push_back(shape[i]);
  out += '[';
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    if (i) out += ", ";
    append_numbers(out, values, rest, at);
  }
  out += ']';
}

// ---- events --------------------------------------------------------------------------------------------

namespace {

/// Translates the events of the parser to JsonEvents, with limits; every refusal is thrown.
class Adapter final : public JsonHandler {
 public:
  Adapter(std::string_view text, std::string_view where, JsonEvents& events)
      : text_(text), where_(where), events_(events) {}

  void null() override { events_.other(); }
  void boolean(bool) override { events_.other(); }
  void negative(std::int64_t v) override { number(static_cast<double>(v)); }
  void natural(std::uint64_t v) override { number(static_cast<double>(v)); }
  void real(double v, const std::string&) override { number(v); }
  void string(const std::string& s) override { events_.text(s); }
  void key(const std::string& name) override { events_.key(name); }
  void begin_object() override {
    open();
    events_.begin_object();
  }
  void end_object() override {
    --levels_;
    events_.end_object();
  }
  void begin_list() override {
    open();
    events_.begin_list();
  }
  void end_list() override {
    --levels_;
    events_.end_list();
  }
  void error(std::size_t position, bool too_large) override {
    refuse(where_, too_large ? "a number is too large, before byte " + std::to_string(position)
                             : "is not JSON: stopped at byte " + std::to_string(position) + " of " +
                                   std::to_string(text_.size()));
  }

 private:
  void number(double d) {
    const auto f = static_cast<float>(d);
    if (std::isfinite(d) && !std::isfinite(f)) refuse(where_, "a number does not fit f32: " + Scalar(d).str());
    events_.number(f);
  }
  void open() {
    if (levels_ == kMostJsonLevels)
      refuse(where_, "is nested deeper than " + std::to_string(kMostJsonLevels) + " levels");
    ++levels_;
  }

  std::string_view text_;
  std::string_view where_;
  JsonEvents& events_;
  std::size_t levels_ = 0;
};

}  // namespace

void read_json(std::string_view text, std::string_view where, JsonEvents& events) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) refuse(where, "is more than 4 GiB of JSON");
  if (const auto bad = invalid_utf8(text)) refuse(where, "is not UTF-8: byte " + std::to_string(*bad));
  Adapter adapter(text, where, events);
  parse_json(text, adapter);
}

void NamePool::add(std::string_view name) {
  bytes_ += name;
  ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

std::string_view NamePool::operator[](std::size_t i) const {
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(bytes_).substr(begin, ends_[i] - begin);
}

std::vector<std::uint32_t> NamePool::sorted() const {
  std::vector<std::uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    const int c = (*this)[a].compare((*this)[b]);
    return c != 0 ? c < 0 : a < b;
  });
  return order;
}

std::optional<std::string_view> NamePool::twice(const std::vector<std::uint32_t>& sorted) const {
  const auto at = std::adjacent_find(sorted.begin(), sorted.end(),
                                     [this](std::uint32_t a, std::uint32_t b) { return (*this)[a] == (*this)[b]; });
  return at == sorted.end() ? std::nullopt : std::optional((*this)[*at]);
}

void KeyCheck::end_object(std::string_view where) {
  const NamePool& keys = open_.back();
  if (const auto key = keys.twice(keys.sorted())) refuse_twice(where, *key);
  open_.pop_back();
}

void refuse_twice(std::string_view where, std::string_view key) {
  refuse(where, "the key " + quote(key) + " occurs twice");
}

}  // namespace ferrite::io::detail
