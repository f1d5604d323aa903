#pragma once
/// Nested tuples, lists and dictionaries of tensors.
#include <string>
#include <vector>

#include "kept.h"

namespace ferrite::python {

/// The form of an object that holds tensors, without the tensors.
class Structure {
 public:
  Structure() = default;

  /// Appends the tensors in an object to a list and returns its form. Arrays and numbers become tensors; None holds
  /// none. Throws ValueError, its message beginning with `where`, for other objects.
  static Structure of(nb::handle object, Tensors& tensors, const char* where);

  /// Returns an object of this form that holds tensors of a list, from number `next` on, which moves past them.
  nb::object object(const Tensors& tensors, std::size_t& next) const;
  nb::object object(const Tensors& tensors) const {
    std::size_t next = 0;
    return object(tensors, next);
  }
  bool operator==(const Structure& o) const;

 private:
  enum class Kind : std::uint8_t { none, tensor, list, tuple, dict };

  Kind kind_ = Kind::none;
  std::vector<Structure> parts_;
  std::vector<std::string> names_;  ///< the keys of a dictionary
  Kept type_;                       ///< the type of a named tuple
};

}  // namespace ferrite::python
