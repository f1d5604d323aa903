#pragma once
/// Loops in C that frozen programs call: products, reductions, recurrences, in the order of sums of docs/numerics.md.
#include <string>
#include <string_view>

#include "ferrite/tensor/dtype.h"

namespace ferrite::exchange::detail {

/// Returns the definitions of words that kernels and constants use.
std::string c_words();
/// Returns the text of a kernel for f32 or f64, which defines the function "nf_<name>_f" or "nf_<name>_d".
std::string c_kernel(std::string_view name, Dtype dtype);

}  // namespace ferrite::exchange::detail
