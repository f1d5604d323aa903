/// The JSON reader: events, limits, and errors with their position.
#include "ferrite/io/json/json_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/detail/json_parser.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite::io::detail {
namespace {

/// The events of the parser as those of this folder, with limits; every refusal is thrown.
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
