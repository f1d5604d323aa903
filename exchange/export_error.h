#pragma once
/// The error of a program that a format cannot express.
#include "ferrite/tensor/error.h"

namespace ferrite::exchange {

/// A program holds what another format does not have.
class ExportError : public Error {
 public:
  using Error::Error;
};

}  // namespace ferrite::exchange
