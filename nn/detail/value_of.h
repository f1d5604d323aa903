#pragma once
/// Parameters that a layer may leave out.
#include "ferrite/tensor/variable.h"

namespace ferrite::nn::detail {

/// Its value; undefined for an empty handle.
inline Tensor value_of(const Parameter& p) { return p.defined() ? p.value() : Tensor(); }

}  // namespace ferrite::nn::detail
