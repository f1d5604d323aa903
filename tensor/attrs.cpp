#include "ferrite/tensor/attrs.h"

#include <charconv>
#include <functional>
#include <mutex>
#include <set>

#include "ferrite/tensor/error.h"

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
};

struct Hash {
  std::size_t operator()(bool v) const { return v ? 1 : 2; }
  std::size_t operator()(std::int64_t v) const { return std::hash<std::int64_t>{}(v); }
  std::size_t operator()(double v) const { return std::hash<double>{}(v); }
  std::size_t operator()(Dtype v) const { return static_cast<std::size_t>(v); }
  std::size_t operator()(const Label& v) const { return std::hash<std::string_view>{}(v.text()); }
  std::size_t operator()(const Scalar& v) const { return (*this)(v.real()) + (v.is_floating() ? 1 : 0); }
  std::size_t operator()(const Shape& v) const {
    std::size_t h = static_cast<std::size_t>(v.rank());
    for (const std::int64_t e : v) h = h * 1099511628211U + (*this)(e);
    return h;
  }
};

}  // namespace

bool Attrs::operator==(const Attrs& o) const {
  if (size() != o.size()) return false;
  for (std::size_t i = 0; i < size(); ++i)
    if (!((*this)[i] == o[i])) return false;
  return body == o.body || (body && o.body && body->equals(*o.body));
}

std::size_t Attrs::hash() const {
  std::size_t h = 14695981039346656037U;
  for (const Attr& a : *this) {
    h = (h ^ std::hash<std::string_view>{}(a.name)) * 1099511628211U;
    h = (h ^ std::visit(Hash{}, a.value)) * 1099511628211U;
  }
  return h;
}

std::string Attrs::str() const {
  std::string s;
  for (const Attr& a : *this) {
    if (!s.empty()) s += ' ';
    s += a.name;
    s += '=';
    s += std::visit(Print{}, a.value);
  }
  return s;
}

void Attrs::throw_missing(std::string_view name) {
  throw Error("attrs: no constant named '" + std::string(name) + "'");
}

}  // namespace ferrite
