#pragma once
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/cell.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::detail {

/// The constants of `adam_update` as it takes them. Made once: they are the same in every update.
Attrs adam_attrs(const AdamConstants& constants);

/// Updates done so far, rank 0 -> {steps + 1, 1 - beta1^(steps + 1), 1 - beta2^(steps + 1)}: `adam_begin`.
Tensors begin_adam(const Tensor& steps, const Attrs& betas);

/// A parameter and its moments.
struct AdamCells {
  const Cell& w;
  const Cell& m;
  const Cell& v;
};

/// The numbers of one update, rank 0.
struct AdamPace {
  const Tensor& rate;
  const Tensor& correction1;
  const Tensor& correction2;
};

/// Reads the cells, applies `adam_update` and assigns what it gives. Where nobody is recording and nobody else holds
/// the values, their own buffers take the new ones; the bits are the same. Throws as `adam_update`.
void update_by_adam(const AdamCells& cells, const Tensor& g, const AdamPace& pace, const Attrs& attrs);

}  // namespace ferrite::detail
