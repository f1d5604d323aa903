#pragma once
/// What layer norm and its gradient share.
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/kernel/rows.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::detail {

struct LayerNormAttrs {
  int axes = 1;
  double epsilon = 1e-5;
  static constexpr auto fields =
      attr_list(attr("axes", &LayerNormAttrs::axes), attr("epsilon", &LayerNormAttrs::epsilon));
};

/// The numbers of the last axes of so many.
inline Shape last_axes(int rank, int axes) {
  Shape over;
  for (int i = rank - axes; i < rank; ++i) over.push_back(i);
  return over;
}

/// The distances from the mean over some axes, and 1 / sqrt(variance + epsilon), the variance uncorrected.
struct Centred {
  Tensor apart, scale;
};
/// Beside a mean of more than kLargeMean standard deviations, what rounding left of it is large beside the distances:
/// the mean of these is taken off, too. (PyTorch does not: around 1e6 its f32 is off by 0.04.)
inline Centred centred(const Tensor& x, const Shape& over, double epsilon) {
  const Tensor m = mean(x, over, true), apart = x - m, squares = mean(square(apart), over, true);
  const Tensor large = gt(abs(m) * rsqrt(squares + epsilon), kLargeMean);
  const Tensor rest = detach(where(large, mean(apart, over, true), 0.0));
  return {apart - rest, rsqrt(maximum(squares - square(rest), 0.0) + epsilon)};
}

}  // namespace ferrite::detail
