#pragma once
/// What layer norm and its gradient share.
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/shape.h"

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

}  // namespace ferrite::detail
