#pragma once
/// Scopes: the path of the layer that an operation, an error or a cost belongs to.
#include <string_view>

#include "ferrite/tensor/error.h"

namespace ferrite {

/// The path of a layer in its model, the prefix of its parameters' names: "encoder.0"; empty outside layers. As cheap
/// to copy and to compare as a pointer. Paths are stored once and live as long as the process.
class Scope {
 public:
  constexpr Scope() = default;
  /// Returns the scope of a path.
  static Scope of(std::string_view path);

  constexpr std::string_view path() const { return path_ ? std::string_view(path_) : std::string_view(); }
  constexpr bool empty() const { return !path_; }
  /// Returns this scope, or the other one where this one is empty: an application in the body of a scan belongs to the
  /// layer of the scan unless it has its own.
  constexpr Scope or_else(Scope other) const { return path_ ? *this : other; }
  constexpr bool operator==(const Scope&) const = default;

 private:
  const char* path_ = nullptr;
};

namespace detail {

/// Returns the result of f. An Error that it throws is attributed to this layer, unless it names another one already.
/// The scope is not read unless f throws.
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
