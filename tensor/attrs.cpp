/// The constants of an application: equality, hash, text.
#include "ferrite/tensor/attrs.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <vector>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/scope.h"

namespace ferrite {

Label Label::of(std::string_view text) {
  static auto* const texts = new std::set<std::string, std::less<>>;  // outlives everything with static lifetime
  static std::mutex mutex;
  Label l;
  const std::lock_guard lock(mutex);
  const auto at = texts->find(text);
  l.text_ = at != texts->end() ? *at : *texts->emplace(text).first;
  return l;
}

Positions Positions::of(std::span<const std::int64_t> positions) {
  static auto* const lists = new std::set<std::vector<std::int64_t>>;  // outlives everything with static lifetime
  static std::mutex mutex;
  Positions p;
  const std::lock_guard lock(mutex);
  p.list_ = *lists->emplace(positions.begin(), positions.end()).first;
  return p;
}

std::string Positions::str() const {
  std::string s;
  for (const std::int64_t p : list_) s += (s.empty() ? "" : ", ") + std::to_string(p);
  return "{" + s + "}";
}

namespace {

std::string shortest(double v) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  return {buffer, end};
}

struct Print {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return shortest(v); }
  std::string operator()(Dtype v) const { return std::string(name_of(v)); }
  std::string operator()(const Scalar& v) const { return v.str(); }
  std::string operator()(const Shape& v) const { return v.str(); }
  std::string operator()(const Label& v) const { return std::string(v.text()); }
  std::string operator()(const Positions& v) const { return v.str(); }
};

// The constants of FNV-1a for hashes of 64 bits; on a 32-bit machine their low halves.
constexpr auto kPrime = static_cast<std::size_t>(std::uint64_t{1099511628211});
constexpr auto kStart = static_cast<std::size_t>(std::uint64_t{14695981039346656037U});

struct Hash {
  std::size_t operator()(bool v) const { return v ? 1 : 2; }
  std::size_t operator()(std::int64_t v) const { return std::hash<std::int64_t>{}(v); }
  std::size_t operator()(double v) const { return std::hash<double>{}(v); }
  std::size_t operator()(Dtype v) const { return static_cast<std::size_t>(v); }
  std::size_t operator()(const Label& v) const { return std::hash<std::string_view>{}(v.text()); }
  std::size_t operator()(const Scalar& v) const { return (*this)(v.real()) + (v.is_floating() ? 1 : 0); }
  std::size_t operator()(const Shape& v) const { return list(v, static_cast<std::size_t>(v.rank())); }
  std::size_t operator()(const Positions& v) const { return list(v.list(), v.list().size()); }
  template <class List>
  std::size_t list(const List& v, std::size_t h) const {
    for (const std::int64_t e : v) h = h * kPrime + (*this)(e);
    return h;
  }
};

bool same_value(const AttrValue& a, const AttrValue& b) {
  const auto same = [](double x, double y) { return std::memcmp(&x, &y, sizeof x) == 0; };
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return same(*x, *std::get_if<double>(&b));
  if (const auto* x = std::get_if<Scalar>(&a)) {
    const Scalar& y = *std::get_if<Scalar>(&b);
    return x->is_floating() == y.is_floating() && x->integer() == y.integer() && same(x->real(), y.real());
  }
  return a == b;
}

constexpr std::string_view kTypes[] = {"true or false", "an integer", "a float", "a dtype",
                                       "a literal",     "a list",     "a text",  "positions"};
static_assert(std::size(kTypes) == std::variant_size_v<AttrValue>);

std::string names_of(const AttrFields& fields) {
  std::string s;
  for (const AttrField& f : fields) s += (s.empty() ? "" : ", ") + std::string(f.name);
  return s.empty() ? "none" : s;
}

}  // namespace

std::string attr_text(const AttrValue& value) { return std::visit(Print{}, value); }

Attrs Attrs::from(const AttrFields& fields, std::span<const std::pair<std::string_view, AttrValue>> given,
                  std::string_view where) {
  const auto refuse = [&](std::string_view name, const std::string& what) {
    throw ValueError(std::string(where) + ": attribute '" + std::string(name) + "' " + what);
  };
  InlineVector<const AttrValue*, 8> by_field;
  for (std::size_t i = 0; i < fields.size(); ++i) by_field.push_back(nullptr);
  for (const auto& [name, value] : given) {
    const auto f = std::ranges::find(fields, name, &AttrField::name);
    if (f == fields.end()) refuse(name, "is unknown; there are: " + names_of(fields));
    const AttrValue*& to = by_field[static_cast<std::size_t>(f - fields.begin())];
    if (to) refuse(name, "is given twice");
    if (value.index() != f->type)
      refuse(name, "must be " + std::string(kTypes[f->type]) + ", got " + std::string(kTypes[value.index()]));
    if (f->narrow && *std::get_if<std::int64_t>(&value) != static_cast<int>(*std::get_if<std::int64_t>(&value)))
      refuse(name, "must be an integer of 32 bits, got " + attr_text(value));
    to = &value;
  }
  Attrs attrs;
  attrs.fields_ = &fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!by_field[i] && !fields[i].optional) refuse(fields[i].name, "is missing");
    if (!by_field[i]) continue;
    attrs.set_ |= std::uint32_t{1} << i;
    attrs.values_.push_back(*by_field[i]);
  }
  return attrs;
}

bool Attrs::same_fields(const Attrs& o) const {
  if (set_ != o.set_) return false;
  return values_.empty() || fields_ == o.fields_ || std::ranges::equal(*fields_, *o.fields_);
}

bool Attrs::operator==(const Attrs& o) const {
  return same_fields(o) && std::equal(values_.begin(), values_.end(), o.values_.begin()) &&
         (body == o.body || (body && o.body && body->equals(*o.body)));
}

bool Attrs::same_bits(const AttrValue& a, const AttrValue& b) { return same_value(a, b); }

void Attrs::replace(std::size_t i, const AttrValue& value) {
  const AttrValue* const now = at(i);
  if (!now || now->index() != value.index()) throw Error("attrs: the field is not set, or has another type");
  values_[static_cast<std::size_t>(now - values_.begin())] = value;
}

bool Attrs::same_bits(const Attrs& o) const {
  return same_fields(o) && std::equal(values_.begin(), values_.end(), o.values_.begin(), same_value) &&
         (body == o.body || (body && o.body && body->equals(*o.body)));
}

std::size_t Attrs::hash() const {
  std::size_t h = kStart ^ set_;
  for (const AttrValue& v : values_) h = (h ^ std::visit(Hash{}, v)) * kPrime;
  return h;
}

std::string Attrs::str() const {
  std::string s;
  each([&](std::string_view name, const AttrValue& value) {
    if (!s.empty()) s += ' ';
    s += name;
    s += '=';
    s += attr_text(value);
  });
  return s;
}

void Attrs::check_begins_with(const AttrFields& wanted, std::string_view where) const {
  const AttrFields own = fields_ ? *fields_ : AttrFields();
  const bool unset = values_.empty() && std::ranges::all_of(wanted, &AttrField::optional);
  if (unset || (own.size() >= wanted.size() && std::ranges::equal(own.first(wanted.size()), wanted))) return;
  throw Error(std::string(where) + ": attributes of another operation: wants " + names_of(wanted) + ", got " +
              names_of(own));
}

Scope Scope::of(std::string_view path) {
  Scope s;
  if (!path.empty()) s.path_ = Label::of(path).text().data();  // labels are stored with a zero at their end
  return s;
}

}  // namespace ferrite
