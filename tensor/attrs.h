#pragma once
/// The constants of an application of an operation: how an operation declares them and how they are carried.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/scalar.h"
#include "ferrite/tensor/shape.h"

namespace ferrite {

/// A short text that lives as long as the process: a string literal, or one interned by `of`. Compared by content.
class Label {
 public:
  constexpr Label() = default;
  template <std::size_t N>
  consteval Label(const char (&literal)[N]) : text_(literal, N - 1) {}
  /// Returns the label of a text; equal texts share one stored copy. Meant for texts of which a program has few.
  static Label of(std::string_view text);

  constexpr std::string_view text() const { return text_; }
  constexpr bool empty() const { return text_.empty(); }
  constexpr bool operator==(const Label&) const = default;

 private:
  std::string_view text_{};
};

/// A list of positions, of any length, that lives as long as the process, such as the operands that something concerns.
/// Meant for lists of which a program has few; each is stored once.
class Positions {
 public:
  constexpr Positions() = default;
  /// Returns the list of these positions; equal lists share one stored copy.
  static Positions of(std::span<const std::int64_t> positions);

  std::span<const std::int64_t> list() const { return list_; }
  /// Returns the positions as text: "{0, 2}".
  std::string str() const;
  bool operator==(const Positions& o) const { return std::ranges::equal(list_, o.list_); }

 private:
  std::span<const std::int64_t> list_{};
};

/// The value of a constant: an axis, a bound, a flag, a literal operand.
using AttrValue = std::variant<bool, std::int64_t, double, Dtype, Scalar, Shape, Label, Positions>;

/// Returns the value as texts and errors show it: "true", "0.5", "[2, 3]".
std::string attr_text(const AttrValue& value);

/// The declaration of one constant of an operation: its name and type, not its value.
struct AttrField {
  std::string_view name;  ///< must be a string literal
  std::size_t type = 0;   ///< index of the alternative in AttrValue
  bool optional = false;  ///< whether it may be left unset
  bool narrow = false;    ///< a number that must fit an `int`
  bool operator==(const AttrField&) const = default;
};
/// The declarations of all constants of an operation, in the order of its struct.
using AttrFields = std::span<const AttrField>;

namespace detail {

/// Says how a member of a struct of constants is carried: the type stored, and whether it may be absent.
template <class T>
struct AttrMember {
  using Stored = T;
  static constexpr bool optional = false;
};
template <>
struct AttrMember<int> {
  using Stored = std::int64_t;
  static constexpr bool optional = false;
};
template <class T>
struct AttrMember<std::optional<T>> {
  using Stored = typename AttrMember<T>::Stored;
  static constexpr bool optional = true;
};

template <class T, class... All>
constexpr std::size_t position_in(const std::variant<All...>*) {
  constexpr bool same[] = {std::is_same_v<T, All>...};
  std::size_t at = 0;
  while (at < sizeof...(All) && !same[at]) ++at;
  return at;
}

/// A member of a struct of constants, with its name.
template <class S, class T>
struct NamedMember {
  std::string_view name;
  T S::*member;
  constexpr AttrField field() const {
    using Member = AttrMember<T>;
    constexpr std::size_t type = position_in<typename Member::Stored>(static_cast<const AttrValue*>(nullptr));
    static_assert(type < std::variant_size_v<AttrValue>, "no constant can have this type");
    return {name, type, Member::optional, std::is_same_v<T, int> || std::is_same_v<T, std::optional<int>>};
  }
};

}  // namespace detail

/// Names a member in the list `fields` of a struct of constants. The member is a bool, an int, an std::int64_t, a
/// double, a Dtype, a Scalar, a Shape, a Label or Positions, or an std::optional of one, which need not be set.
template <class S, class T>
constexpr detail::NamedMember<S, T> attr(std::string_view name, T S::*member) {
  return {name, member};
}

/// The named members of a struct of constants, as made by `attr_list`. `Members` is a function that passes them all to
/// another function: a std::tuple of them would make up most of the time it takes to compile these headers.
template <std::size_t N, class Members>
class AttrList {
 public:
  static constexpr std::size_t size = N;
  constexpr explicit AttrList(const Members& members) : members_(members) {}

  /// Calls use(member...) and returns its result.
  template <class Use>
  constexpr decltype(auto) pass(Use&& use) const {
    return members_(use);
  }
  /// Returns the list of these members followed by the others.
  template <std::size_t M, class Others>
  constexpr auto with(const AttrList<M, Others>& others) const {
    const auto all = [first = *this, others](auto& use) -> decltype(auto) {
      return first.pass([&](const auto&... m) -> decltype(auto) {
        return others.pass([&](const auto&... n) -> decltype(auto) { return use(m..., n...); });
      });
    };
    return AttrList<N + M, decltype(all)>(all);
  }
  template <class... S, class... T>
  constexpr auto with(detail::NamedMember<S, T>... members) const;

 private:
  Members members_;
};

/// Makes the list `fields` of a struct of constants from the results of `attr`.
template <class... S, class... T>
constexpr auto attr_list(detail::NamedMember<S, T>... members) {
  const auto all = [members...](auto& use) -> decltype(auto) { return use(members...); };
  return AttrList<sizeof...(S), decltype(all)>(all);
}

template <std::size_t N, class Members>
template <class... S, class... T>
constexpr auto AttrList<N, Members>::with(detail::NamedMember<S, T>... members) const {
  return with(attr_list(members...));
}

/// The constants of an operation as its code uses them: a struct whose `fields` names every member, in the order used
/// in texts. This is the only place where the names of an operation's constants are written.
///
///     struct SliceAttrs {
///       int axis = 0;
///       std::int64_t begin = 0, count = 0, step = 1;
///       static constexpr auto fields = attr_list(attr("axis", &SliceAttrs::axis), attr("begin", &SliceAttrs::begin),
///                                                attr("count", &SliceAttrs::count), attr("step", &SliceAttrs::step));
///     };
///
/// A struct that begins with the constants of its base says so: `Base::fields.with(attr("more", &Longer::more))`.
template <class S>
concept AttrStruct = requires {
  std::remove_cvref_t<decltype(S::fields)>::size;
};

namespace detail {

template <class S>
constexpr auto attr_table() {
  return S::fields.pass([](const auto&... m) { return std::array<AttrField, sizeof...(m)>{m.field()...}; });
}
template <AttrStruct S>
inline constexpr auto kAttrTable = attr_table<S>();

}  // namespace detail

/// The fields of the struct of constants S, in order.
template <AttrStruct S>
inline constexpr AttrFields attr_fields = detail::kAttrTable<S>;

/// The constants of an operation that has none.
struct NoAttrs {
  static constexpr auto fields = attr_list();
};

/// A program that an operation runs repeatedly, such as the body of a scan, as seen by code that only carries it.
class Subprogram {
 public:
  virtual ~Subprogram() = default;
  virtual bool equals(const Subprogram& other) const = 0;
};

/// The constants of one application of an operation, as tapes, graphs and plans carry them: made from the operation's
/// struct and converted back by position. Equality, hashing and printing are written here, once for all operations.
class Attrs {
 public:
  Attrs() = default;
  template <AttrStruct S>
  Attrs(const S& s) : fields_(&attr_fields<S>) {
    static_assert(attr_fields<S>.size() <= kMaxFields, "the bits of set_");
    S::fields.pass([&](const auto&... m) {
      [[maybe_unused]] std::size_t i = 0;
      (put<(attr_fields<S>.size() <= kInPlace)>(i++, s.*m.member), ...);
    });
  }
  /// Makes constants from values read from a text. Throws ValueError, its message begun with `where`, for a name that
  /// the operation does not have or that is given twice, for a value of another type, and where a required constant is
  /// missing.
  static Attrs from(const AttrFields& fields, std::span<const std::pair<std::string_view, AttrValue>> given,
                    std::string_view where);

  /// Returns the constants as the struct of their operation, or as a struct whose fields theirs begin with. Throws
  /// Error, its message begun with `where`, where they belong to another operation.
  template <AttrStruct S>
  S as(std::string_view where = "attrs") const {
    if constexpr (attr_fields<S>.size() > 0)
      if (fields_ != &attr_fields<S>) check_begins_with(attr_fields<S>, where);
    S s;
    S::fields.pass([&](const auto&... m) {
      [[maybe_unused]] const AttrValue* next = values_.data();  // no field, nothing to take
      [[maybe_unused]] std::size_t i = 0;
      (take(i++, next, s.*m.member), ...);
    });
    return s;
  }

  /// Largest number of fields of a struct.
  static constexpr std::size_t kMaxFields = 32;
  /// Returns whether two values are equal bit for bit: 0 differs from -0, and a NaN equals itself.
  static bool same_bits(const AttrValue& a, const AttrValue& b);
  /// Replaces the value of the i-th field, which must be set, by another value of its type.
  void replace(std::size_t i, const AttrValue& value);

  /// Returns whether no constant is set.
  bool empty() const { return values_.empty(); }
  /// Returns the value of the i-th field; null where it is not set.
  const AttrValue* at(std::size_t i) const {
    if (!is_set(i)) return nullptr;
    const std::uint32_t all = (std::uint32_t{1} << i) - 1, before = set_ & all;
    if (before == all) return &values_[i];
    // Baseline x86-64 has no instruction that counts bits.
    return &values_[before == 0 ? 0 : static_cast<std::size_t>(std::popcount(before))];
  }
  /// Calls f(name, value) for every constant that is set, in the order of the fields.
  template <class F>
  void each(F&& f) const {
    std::size_t next = 0;
    for (std::size_t i = 0; next < values_.size(); ++i)
      if (is_set(i)) f((*fields_)[i].name, values_[next++]);
  }

  /// The program that the operation runs; null for nearly all operations.
  std::shared_ptr<const Subprogram> body{};

  bool operator==(const Attrs& o) const;
  /// Returns whether fields, bodies and values are equal, the values bit for bit.
  bool same_bits(const Attrs& o) const;
  std::size_t hash() const;
  /// Returns the constants as text: "axis=1 begin=0"; empty without constants.
  std::string str() const;

 private:
  bool is_set(std::size_t i) const { return i < kMaxFields && (set_ >> i & 1) != 0; }

  template <bool in_place, class T>
  void put(std::size_t i, const T& v) {
    using Stored = typename detail::AttrMember<T>::Stored;
    set_ |= std::uint32_t{1} << i;
    if constexpr (in_place) {
      values_.emplace_within(std::in_place_type<Stored>, static_cast<Stored>(v));
    } else {
      values_.emplace_back(std::in_place_type<Stored>, static_cast<Stored>(v));
    }
  }
  template <bool in_place, class T>
  void put(std::size_t i, const std::optional<T>& v) {
    if (v) put<in_place>(i, *v);
  }
  template <class T>
  void take(std::size_t, const AttrValue*& next, T& to) const {
    to = static_cast<T>(*std::get_if<typename detail::AttrMember<T>::Stored>(next++));
  }
  template <class T>
  void take(std::size_t i, const AttrValue*& next, std::optional<T>& to) const {
    if (is_set(i)) take(i, next, to.emplace());
  }
  bool same_fields(const Attrs& o) const;
  void check_begins_with(const AttrFields& wanted, std::string_view where) const;

  const AttrFields* fields_ = nullptr;  ///< null where there are no constants
  std::uint32_t set_ = 0;               ///< bit i: field i is set
  static constexpr std::size_t kInPlace = 4;
  InlineVector<AttrValue, kInPlace> values_;  ///< the values of the fields that are set, in order
};

}  // namespace ferrite
