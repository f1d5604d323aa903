#pragma once
/// What the files of composed functions share: refusals.
#include <string>
#include <string_view>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Throws DtypeError for what is not f32 or f64.
inline void check_float(const Tensor& x, std::string_view where) {
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast it to a float first");
}

/// Throws TraceError for a traced tensor.
inline void check_values_known(std::string_view where, const Tensor& x, std::string_view what_to_do) {
  if (x.is_abstract())
    throw TraceError(std::string(where) +
                     ": the shape of the result depends on values that are not known while tracing: " + x.spec().str() +
                     "; " + std::string(what_to_do));
}

}  // namespace ferrite::detail
