#pragma once
/// The constants of operations on windows that exporters read, too.
#include "ferrite/tensor/attrs.h"

namespace ferrite::detail {

/// Position i of the small side meets position i * stride + tap * dilation - before of the large one. `size` is what
/// the result has on the axes of space: of `convolution` the small side, of `convolution_transposed` the large one, of
/// `convolution_weights` the kernel.
struct ConvolutionAttrs {
  Shape stride{}, before{}, dilation{}, size{};
  std::int64_t groups = 1;
  static constexpr auto fields =
      std::tuple(attr("stride", &ConvolutionAttrs::stride), attr("before", &ConvolutionAttrs::before),
                 attr("dilation", &ConvolutionAttrs::dilation), attr("size", &ConvolutionAttrs::size),
                 attr("groups", &ConvolutionAttrs::groups));
};

}  // namespace ferrite::detail
