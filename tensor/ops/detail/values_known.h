#pragma once
/// Functions whose result has a shape that depends on values: they read these, which a traced tensor does not have.
#include <string>
#include <string_view>

#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Throws TraceError for a traced tensor.
inline void check_values_known(std::string_view where, const Tensor& x, std::string_view what_to_do) {
  if (x.is_abstract())
    throw TraceError(std::string(where) +
                     ": the shape of the result depends on values that are not known while tracing: " + x.spec().str() +
                     "; " + std::string(what_to_do));
}

}  // namespace ferrite::detail
