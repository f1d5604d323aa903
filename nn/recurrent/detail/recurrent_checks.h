#pragma once
/// Checks of the sizes and dtypes of recurrent layers.
#include <string>

#include "ferrite/nn/recurrent/recurrent.h"

namespace ferrite::nn::detail {

/// Throws ValueError, beginning with the name, for sizes that no layer can have.
void check_sizes(const std::string& name, const RecurrentSizes& sizes);
/// Throws DtypeError unless x has the dtype of the weights.
void check_dtype(const std::string& name, const Tensor& x, Dtype dtype, const char* what);

}  // namespace ferrite::nn::detail
