#include "ferrite/io/detail/number_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ferrite/io/detail/text.h"

namespace ferrite::io::detail {
namespace {

using Json = nlohmann::json;
using Kind = JsonValue::Kind;

constexpr std::size_t kDeepest = 32;

Shape with_leading(std::int64_t n, const Shape& shape) {
  Shape s{n};
  for (int i = 0; i < shape.rank(); ++i) s.push_back(shape[i]);
  return s;
}

/// Builds a value from the events of nlohmann's parser; every refusal is thrown.
class Builder {
 public:
  Builder(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  JsonValue take() { return std::move(root_); }

  bool null() { return put({}); }
  bool boolean(bool) { return put({}); }
  bool number_integer(Json::number_integer_t v) { return number(static_cast<double>(v)); }
  bool number_unsigned(Json::number_unsigned_t v) { return number(static_cast<double>(v)); }
  bool number_float(Json::number_float_t v, const std::string&) { return number(v); }
  bool binary(Json::binary_t&) { return put({}); }
  bool string(std::string& s) {
    JsonValue v;
    v.kind = Kind::text;
    v.text = std::move(s);
    return put(std::move(v));
  }
  bool key(std::string& name) {
    JsonValue& object = open_.back();
    if (object.find(name)) refuse(where_, "the key " + quote(name) + " occurs twice");
    object.members.emplace_back(std::move(name), JsonValue());
    return true;
  }
  bool start_object(std::size_t) { return open(Kind::object); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Kind::list); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& e) {
    const bool too_large = e.id == 406;
    refuse(where_, too_large ? "a number is too large, before byte " + std::to_string(position)
                             : "is not JSON: stopped at byte " + std::to_string(position) + " of " +
                                   std::to_string(text_.size()));
  }

 private:
  bool open(Kind kind) {
    if (open_.size() == kDeepest) refuse(where_, "is nested deeper than " + std::to_string(kDeepest) + " levels");
    JsonValue v;
    v.kind = kind;
    open_.push_back(std::move(v));
    return true;
  }
  bool close() {
    JsonValue v = std::move(open_.back());
    open_.pop_back();
    if (v.kind == Kind::list && v.items.empty()) v = no_numbers();
    return put(std::move(v));
  }
  static JsonValue no_numbers() {
    JsonValue v;
    v.kind = Kind::numbers;
    v.shape = {0};
    return v;
  }

  bool number(double d) {
    const auto f = static_cast<float>(d);
    if (std::isfinite(d) && !std::isfinite(f)) refuse(where_, "a number does not fit f32: " + std::to_string(d));
    if (!open_.empty() && open_.back().kind == Kind::numbers && open_.back().shape.rank() == 1) {
      open_.back().numbers.push_back(f);
      ++open_.back().shape[0];
      return true;
    }
    JsonValue v;
    v.kind = Kind::numbers;
    v.numbers.push_back(f);
    return put(std::move(v));
  }

  /// Gives a finished value to what it stands in.
  bool put(JsonValue v) {
    if (open_.empty()) {
      root_ = std::move(v);
      return true;
    }
    JsonValue& in = open_.back();
    if (in.kind == Kind::object) {
      in.members.back().second = std::move(v);
      return true;
    }
    const bool first = in.kind == Kind::list && in.items.empty();
    if (v.kind == Kind::numbers && v.shape.rank() < Shape::kMaxRank && first) {
      in.kind = Kind::numbers;  // a list that has only begun: of numbers, as far as one can see
      in.shape = with_leading(1, v.shape);
      in.numbers = std::move(v.numbers);
      return true;
    }
    if (in.kind == Kind::numbers && v.kind == Kind::numbers && with_leading(0, v.shape) == row_shape(in)) {
      in.numbers.insert(in.numbers.end(), v.numbers.begin(), v.numbers.end());
      ++in.shape[0];
      return true;
    }
    if (in.kind == Kind::numbers) make_list(in);
    in.items.push_back(std::move(v));
    return true;
  }
  static Shape row_shape(const JsonValue& v) {
    Shape s = v.shape;
    s[0] = 0;
    return s;
  }
  /// What was taken for an array turns out to hold something else too.
  static void make_list(JsonValue& v) {
    std::vector<JsonValue> rows;
    for (std::size_t i = 0; i < v.size(); ++i) rows.push_back(v.item(i));
    v = {};
    v.kind = Kind::list;
    v.items = std::move(rows);
  }

  std::string_view text_;
  std::string_view where_;
  std::vector<JsonValue> open_;
  JsonValue root_;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto at = std::ranges::find(members, name, [](const auto& m) { return std::string_view(m.first); });
  return at == members.end() ? nullptr : &at->second;
}

std::size_t JsonValue::size() const {
  if (kind == Kind::list) return items.size();
  return kind == Kind::numbers && shape.rank() > 0 ? static_cast<std::size_t>(shape[0]) : 0;
}

JsonValue JsonValue::item(std::size_t i) const {
  if (kind == Kind::list) return items[i];
  JsonValue row;
  row.kind = Kind::numbers;
  for (int a = 1; a < shape.rank(); ++a) row.shape.push_back(shape[a]);
  const auto n = static_cast<std::ptrdiff_t>(row.shape.numel());
  const auto from = numbers.begin() + static_cast<std::ptrdiff_t>(i) * n;
  row.numbers.assign(from, from + n);
  return row;
}

JsonValue read_number_json(std::string_view text, std::string_view where) {
  if (const auto bad = invalid_utf8(text)) refuse(where, "is not UTF-8: byte " + std::to_string(*bad));
  Builder builder(text, where);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

void append_numbers(std::string& out, std::span<const float> values, const Shape& shape, std::size_t& at) {
  if (shape.rank() == 0) {
    const float v = values[at++];
    if (!std::isfinite(v)) refuse("json", "a weight is " + std::to_string(v) + ", which JSON cannot hold");
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

}  // namespace ferrite::io::detail
