#pragma once
/// The error of a comparison with a plan that does not exist.
#include "ferrite/tensor/error.h"

namespace ferrite::detail {

/// No plan of a compiled function fits a call as things stand: none was made for such arguments and switches, or it was
/// dropped. A call would make one, of the function as it is now.
class NoPlanError final : public Error {
 public:
  using Error::Error;
};

}  // namespace ferrite::detail
