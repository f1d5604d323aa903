/// Reads the JSON of a `.nam` file into its tree.
#include "ferrite/io/nam/document.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/detail/json_parser.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite::io::detail::nam {
namespace {

using Kind = Node::Kind;

constexpr std::size_t kLongestText = std::size_t{1} << 16;
constexpr std::size_t kLongestNumber = 1000;

class Builder final : public JsonHandler {
 public:
  Builder(Document& to, std::string_view text, std::string_view where) : to_(to), text_(text), where_(where) {}

  void null() override { (void)add(Kind::null); }
  void boolean(bool value) override { add(Kind::boolean).truth = value; }
  void negative(std::int64_t v) override { number(static_cast<double>(v), std::to_string(v)); }
  void natural(std::uint64_t v) override { number(static_cast<double>(v), std::to_string(v)); }
  void real(double v, const std::string& text) override { number(v, text); }
  void string(const std::string& s) override { add(Kind::text).text = s; }
  void key(const std::string& name) override { key_ = name; }
  void begin_object() override { open(Kind::object); }
  void end_object() override {
    check_keys(to_.nodes[open_.back()]);
    open_.pop_back();
  }
  void begin_list() override {
    const bool in_object = !open_.empty() && to_.nodes[open_.back()].kind == Kind::object;
    open(in_object && key_ == "weights" ? Kind::weights : Kind::list);
    to_.nodes[open_.back()].weights_at = to_.weights.size();
  }
  void end_list() override { open_.pop_back(); }
  void error(std::size_t position, bool too_large) override {
    refuse(where_, too_large ? "a number is too large, before byte " + std::to_string(position)
                             : "is not JSON: stopped at byte " + std::to_string(position) + " of " +
                                   std::to_string(text_.size()));
  }

 private:
  void number(double value, const std::string& text) {
    if (!open_.empty() && to_.nodes[open_.back()].kind == Kind::weights) return weight(value);
    Node& n = add(Kind::number);
    n.number = value;
    n.text = text;
  }
  void weight(double value) {
    const auto f = static_cast<float>(value);
    if (!std::isfinite(f)) refuse(where_, "a weight does not fit f32: " + Scalar(value).str());
    to_.weights.push(f);
    ++to_.nodes[open_.back()].weights;
  }
  void open(Kind kind) {
    if (open_.size() == kMostLevels) refuse(where_, "is nested deeper than " + std::to_string(kMostLevels) + " levels");
    (void)add(kind);
    open_.push_back(static_cast<std::uint32_t>(to_.nodes.size() - 1));
  }
  Node& add(Kind kind) {
    if (to_.nodes.empty() && kind != Kind::object) refuse(where_, "is no JSON object");
    if (to_.nodes.size() == kMostNodes)
      refuse(where_, "has more than " + std::to_string(kMostNodes) + " values beside the weights");
    const auto at = static_cast<std::uint32_t>(to_.nodes.size());
    if (!open_.empty()) {
      Node& in = to_.nodes[open_.back()];
      if (in.kind == Kind::weights) refuse(where_, "'weights' are no list of numbers");
      (in.first == Node::kNone ? in.first : to_.nodes[in.last].next) = at;
      in.last = at;
    }
    Node& n = to_.nodes.emplace_back();
    n.kind = kind;
    if (!open_.empty() && to_.nodes[open_.back()].kind == Kind::object) n.key = std::move(key_);
    key_.clear();
    return n;
  }
  void check_keys(const Node& object) const {
    std::vector<std::string_view> keys;
    for (const Node* n = to_.child(object.first); n; n = to_.child(n->next)) keys.emplace_back(n->key);
    std::ranges::sort(keys);
    const auto twice = std::ranges::adjacent_find(keys);
    if (twice != keys.end()) refuse(where_, "the key " + quote(*twice) + " occurs twice");
  }

  Document& to_;
  std::string_view text_, where_;
  std::vector<std::uint32_t> open_;
  std::string key_;
};

/// The parser keeps the text or number that it reads several times over, so that none may be long.
void check_lengths(std::string_view text, std::string_view where) {
  bool in_text = false;
  std::size_t length = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      in_text = !in_text;
      length = 0;
    } else if (in_text && c == '\\') {
      ++i, length += 2;
    } else {
      length = !in_text && std::string_view(" \t\r\n,:[]{}").find(c) != std::string_view::npos ? 0 : length + 1;
    }
    if (length > (in_text ? kLongestText : kLongestNumber))
      refuse(where, std::string(in_text ? "a text" : "a number") + " is longer than " +
                        counted(in_text ? kLongestText : kLongestNumber, "byte") + ", before byte " +
                        std::to_string(i));
  }
}

void append(const Document& d, const Node& n, std::string& out) {
  switch (n.kind) {
    case Kind::null: out += "null"; return;
    case Kind::boolean: out += n.truth ? "true" : "false"; return;
    case Kind::number: out += n.text; return;
    case Kind::text: append_json_string(out, n.text); return;
    case Kind::weights: {
      std::vector<float> values(n.weights);
      d.weights.copy(n.weights_at, values);
      std::size_t at = 0;
      append_numbers(out, values, {static_cast<std::int64_t>(values.size())}, at);
      return;
    }
    case Kind::object:
    case Kind::list: break;
  }
  const bool object = n.kind == Kind::object;
  out += object ? '{' : '[';
  for (const Node* c = d.child(n.first); c; c = d.child(c->next)) {
    if (c != d.child(n.first)) out += ", ";
    if (object) {
      append_json_string(out, c->key);
      out += ": ";
    }
    append(d, *c, out);
  }
  out += object ? '}' : ']';
}

}  // namespace

Document read_document(std::span<const std::byte> bytes, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto bad = invalid_utf8(text)) refuse(where, "is not UTF-8: byte " + std::to_string(*bad));
  check_lengths(text, where);
  Document document;
  Builder builder(document, text, where);
  parse_json(text, builder);
  return document;
}

std::string text_of(const Document& document, const Node& node) {
  std::string out;
  append(document, node, out);
  return out;
}

Object::Object(const Document& document, const Node& node, std::string where)
    : document_(document), node_(node), where_(std::move(where)) {
  if (node.kind != Kind::object) refuse(where_, "is no object");
}

const Node* Object::find(std::string_view key) {
  asked_.push_back(key);
  for (const Node* n = document_.child(node_.first); n; n = document_.child(n->next))
    if (n->key == key) return n->kind == Kind::null ? nullptr : n;
  return nullptr;
}

const Node& Object::at(std::string_view key) {
  const Node* n = find(key);
  if (!n) refuse(where_, "has no " + quote(key));
  return *n;
}

Object Object::object(std::string_view key) { return {document_, at(key), where_ + "." + std::string(key)}; }

std::int64_t size_of(const Node& n, std::string_view where) {
  if (n.kind != Kind::number || n.number != std::floor(n.number) || n.number < 1 ||
      n.number > std::numeric_limits<std::int32_t>::max())
    refuse(where, "is no size from 1 to 2^31 - 1" + (n.kind == Kind::number ? ": " + n.text : std::string()));
  return static_cast<std::int64_t>(n.number);
}

std::int64_t Object::size(std::string_view key) { return size_of(at(key), where_ + "." + std::string(key)); }
std::int64_t Object::size(std::string_view key, std::int64_t otherwise) {
  const Node* n = find(key);
  return n ? size_of(*n, where_ + "." + std::string(key)) : otherwise;
}

bool Object::truth(std::string_view key) {
  const Node& n = at(key);
  if (n.kind != Kind::boolean) refuse(where_, quote(key) + " is neither true nor false");
  return n.truth;
}
bool Object::truth(std::string_view key, bool otherwise) { return find(key) ? truth(key) : otherwise; }

double Object::number(std::string_view key) {
  const Node& n = at(key);
  if (n.kind != Kind::number) refuse(where_, quote(key) + " is no number");
  return n.number;
}

std::string Object::text(std::string_view key) {
  const Node& n = at(key);
  if (n.kind != Kind::text) refuse(where_, quote(key) + " is no text");
  return n.text;
}

void Object::finish() const {
  for (const Node* n = document_.child(node_.first); n; n = document_.child(n->next))
    if (std::ranges::find(asked_, n->key) == asked_.end())
      refuse(where_, "the key " + quote(n->key) + " is not supported");
}

}  // namespace ferrite::io::detail::nam
