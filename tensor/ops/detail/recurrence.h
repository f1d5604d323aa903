#pragma once
/// What running functions and their gradients share.
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Of functions that run along an axis, front to back or back to front.
struct RunningAttrs {
  int axis = 0;
  bool reverse = false;
  static constexpr auto fields = attr_list(attr("axis", &RunningAttrs::axis), attr("reverse", &RunningAttrs::reverse));
};

/// Element k of the result is the one that comes n after x[k] (before it for negative n) in the order of the run, and
/// `value` where there is none.
Tensor neighbours(const Tensor& x, const RunningAttrs& attrs, std::int64_t n, double value);

}  // namespace ferrite::detail
