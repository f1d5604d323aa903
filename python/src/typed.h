#pragma once
/// Arguments of any Python type with the type that checkers and editors see.
#include <algorithm>
#include <utility>

#include "casters.h"

namespace ferrite::python {

/// A text as a template argument.
template <std::size_t N>
struct TypeText {
  char chars[N];
  constexpr TypeText(const char (&text)[N]) { std::copy_n(text, N, chars); }
};

/// An object whose type in signatures is a text.
template <TypeText text>
struct Typed : nb::handle {
  static constexpr auto Name = nb::detail::const_name(text.chars);
  static bool check_(nb::handle) { return true; }
  using nb::handle::handle;
  Typed(nb::handle h) : nb::handle(h) {}
};

/// A result that checkers take for any object, such as a named tuple.
struct Any : nb::object {
  static constexpr auto Name = nb::detail::const_name("typing.Any");
  static bool check_(nb::handle) { return true; }
  using nb::object::object;
  Any(nb::object o) : nb::object(std::move(o)) {}
};
/// Returns a tuple with named fields, as `named_tuple` does.
inline Any any_tuple(const char* type, std::initializer_list<const char*> names,
                     std::initializer_list<nb::object> values) {
  return named_tuple(type, names, values);
}

using AnyArray = Typed<"ferrite._ferrite.Tensor | numpy.typing.ArrayLike">;
using AnyFunction = Typed<"collections.abc.Callable">;
/// Tensors, and tuples, lists and dictionaries of them.
using AnyTensors = Typed<"ferrite._ferrite.Tensor | numpy.typing.ArrayLike | tuple | list | dict">;

}  // namespace ferrite::python
