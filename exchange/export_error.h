#pragma once
/// What a format cannot express: as an error, and as a list of operations.
#include <string_view>

#include "ferrite/tensor/error.h"

namespace ferrite::exchange {

/// A program holds what another format does not have.
class ExportError : public Error {
 public:
  using Error::Error;
};

/// An operation that a format cannot hold.
struct ExportRefusal {
  std::string_view operation;
  std::string_view reason;
  std::string_view hint;  ///< what to do instead
};

}  // namespace ferrite::exchange
