#pragma once
/// What the files of composed functions share: refusals of dtypes.
#include <string>

#include "ferrite/tensor/ops/define.h"

namespace ferrite::detail {

/// Throws DtypeError for what is not f32 or f64.
inline void check_float(const Tensor& x, std::string_view where) {
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast it to a float first");
}

}  // namespace ferrite::detail
