#pragma once
/// The error and the record for operations that a format cannot express.
#include <string_view>

#include "ferrite/tensor/error.h"

namespace ferrite::exchange {

/// The error for a program that a format cannot express.
class ExportError : public Error {
 public:
  using Error::Error;
};

/// An operation that a format cannot express, and why.
struct ExportRefusal {
  std::string_view operation;  ///< name of the operation
  std::string_view reason;     ///< why the format cannot express it
  std::string_view hint;       ///< advice on what to do instead
};

}  // namespace ferrite::exchange
