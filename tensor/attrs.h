#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/scalar.h"
#include "ferrite/tensor/shape.h"

namespace ferrite {

/// A short text that lives as long as the process: a string literal, or one interned by `of`. Compared by its letters.
class Label {
 public:
  constexpr Label() = default;
  template <std::size_t N>
  consteval Label(const char (&literal)[N]) : text_(literal, N - 1) {}
  /// The same letters always give the same stored text. Meant for texts of which a program has few.
  static Label of(std::string_view text);

  constexpr std::string_view text() const { return text_; }
  constexpr bool empty() const { return text_.empty(); }
  constexpr bool operator==(const Label&) const = default;

 private:
  std::string_view text_{};
};

/// One named constant of an application: an axis, a bound, a flag, a literal operand. Names are string literals.
struct Attr {
  using Value = std::variant<bool, std::int64_t, double, Dtype, Scalar, Shape, Label>;
  std::string_view name;
  Value value;
  bool operator==(const Attr&) const = default;
};

/// A program that an operation runs again and again, as far as those know it who only carry it along.
class Subprogram {
 public:
  virtual ~Subprogram() = default;
  virtual bool equals(const Subprogram& other) const = 0;
};

/// The named constants of one application of an operation. Equality, hashing and printing are written here,
/// once for all operations.
class Attrs : public InlineVector<Attr, 4> {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<Attr> list) : InlineVector(list) {}
  /// Appends a constant in place: for operations that are called often.
  template <class T>
  Attrs&& with(std::string_view name, const T& value) && {
    Attr& a = emplace_back();
    a.name = name;
    a.value.template emplace<T>(value);
    return std::move(*this);
  }

  /// What the operation runs; null for nearly all.
  std::shared_ptr<const Subprogram> body{};

  const Attr::Value* find(std::string_view name) const& {
    for (const Attr& a : *this)
      if (a.name == name) return &a.value;
    return nullptr;
  }
  const Attr::Value* find(std::string_view name) const&& = delete;
  /// The value of a constant that the operation always sets. Throws Error when it is absent.
  template <class T>
  const T& get(std::string_view name) const& {
    const Attr::Value* v = find(name);
    if (!v || !std::holds_alternative<T>(*v)) throw_missing(name);
    return *std::get_if<T>(v);
  }
  template <class T>
  T get(std::string_view name) const&& {
    return get<T>(name);
  }
  /// The value, or `otherwise` when it is not set.
  template <class T>
  T get_or(std::string_view name, T otherwise) const {
    const Attr::Value* v = find(name);
    return v && std::holds_alternative<T>(*v) ? *std::get_if<T>(v) : otherwise;
  }

  bool operator==(const Attrs& o) const;
  std::size_t hash() const;
  /// "axis=1 begin=0", empty for no constants.
  std::string str() const;

 private:
  [[noreturn]] static void throw_missing(std::string_view name);
};

}  // namespace ferrite
