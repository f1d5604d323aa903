#pragma once
/// Building blocks of the gradients of products, in which each factor's gradient is the product of the others. The
/// derivative of these along a direction is found by doubling and without a division: exact where elements are 0, and
/// itself differentiable.
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Returns for each element the product of the others along axes, of x's shape.
Tensor prod_others(const Tensor& x, const Shape& axes);

/// Numbers p + q e with e^2 = 0: values and derivatives along a direction.
struct Dual {
  Tensor p, q;
};

/// Returns the products of the elements before each (step 1) or after it (-1). moved(x, n, value) is x moved by n
/// places with `value` in the free places; no product has more than `most` elements.
template <class Moved>
Dual exclusive_products(const Dual& x, std::int64_t most, std::int64_t step, const Moved& moved) {
  Dual y{moved(x.p, step, 1), moved(x.q, step, 0)};
  for (std::int64_t s = 1; s < most; s *= 2) {
    const Dual far{moved(y.p, s * step, 1), moved(y.q, s * step, 0)};
    y = {y.p * far.p, y.p * far.q + y.q * far.p};
  }
  return y;
}

/// Returns the derivative of each element's product of the others.
template <class Moved>
Tensor derivative_of_others(const Dual& x, std::int64_t most, const Moved& moved) {
  const Dual before = exclusive_products(x, most, 1, moved), behind = exclusive_products(x, most, -1, moved);
  return before.p * behind.q + before.q * behind.p;
}

}  // namespace ferrite::detail
