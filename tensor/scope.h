#pragma once
/// Scopes: the path of the layer that an operation, an error or a cost belongs to.
#include <string_view>

#include "ferrite/tensor/error.h"

namespace ferrite {

/// The path of a layer in its model, as the names of its parameters begin: "encoder.0"; empty outside of layers. As
/// cheap to copy and to compare as a pointer. Paths are stored once and live as long as the process.
class Scope {
 public:
  constexpr Scope() = default;
  static Scope of(std::string_view path);

  constexpr std::string_view path() const { return path_ ? std::string_view(path_) : std::string_view(); }
  constexpr bool empty() const { return !path_; }
  /// This one, or the other where this one is empty: what stands in the body of a scan belongs to the layer of the scan
  /// unless it has one of its own.
  constexpr Scope or_else(Scope other) const { return path_ ? *this : other; }
  constexpr bool operator==(const Scope&) const = default;

 private:
  const char* path_ = nullptr;
};

namespace detail {

/// What f gives; an Error that it throws says that it comes from this layer, unless it says so of another one. Until
/// then the scope is not looked at.
template <class F>
[[gnu::always_inline]] inline decltype(auto) in_layer(const Scope& scope, const F& f) {
#ifdef __cpp_exceptions
  try {
    return f();
  } catch (Error& e) {
    e.set_layer(scope.path());
    throw;
  }
#else
  (void)scope;
  return f();
#endif
}

}  // namespace detail
}  // namespace ferrite
