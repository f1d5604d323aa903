#pragma once
/// Histograms as TensorBoard stores them.
#include <string>

#include "ferrite/tensor/tensor.h"

namespace ferrite::train::detail {

/// The message HistogramProto of all elements. Throws ValueError.
std::string encode_histogram(const Tensor& values);

}  // namespace ferrite::train::detail
