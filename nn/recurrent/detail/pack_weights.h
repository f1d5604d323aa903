#pragma once
/// The packer of recurrent weights, for sequences and streams: it stores matrices in the order in which a step reads
/// them.
#include <algorithm>

#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::nn::detail {

using ferrite::detail::RowMajor;

/// The columns of a weight that are packed together: `gates` gates of `units` units each, from column `begin` on.
struct PackedColumns {
  std::int64_t begin;
  std::int32_t gates;
  std::int64_t units;
};

/// Returns the weights of a cell in the form that its kernels read. Weights that `packs` names are copied, in the order
/// of the members: `room(weight, columns, elements, fill)` returns the memory that `fill` has written, or null to count
/// elements only. The others are read in place and must live as long as the result.
template <class T, class Room>
KernelWeights<T> pack_weights(const GatedCell& cell, const RecurrentWeights<RowMajor>& w,
                              const RecurrentWeights<bool>& packs, const Room& room) {
  using namespace ferrite::detail;
  const auto matrix = [&](const Tensor& m, bool packed, const PackedColumns& c) -> GateMatrix<T> {
    if (!m.defined() || c.gates == 0) return {};
    const std::int64_t K = m.shape()[0], row = m.strides()[0];
    const T* const data = m.data<T>() + c.begin;
    if (!packed) return plain_gates(data, row, K, c.units, c.units);
    const auto fill = [&](T* to) { pack_gates(data, row, K, c.gates, c.units, c.units, to); };
    return packed_gates<T>(room(m, c, gate_pack_size<T>(K, c.gates, c.units), fill), K, c.gates, c.units);
  };
  const auto vector = [&](const Tensor& v, bool packed) -> const T* {
    if (!v.defined()) return nullptr;
    if (!packed) return v.data<T>();
    const std::int64_t n = v.numel();
    return room(v, PackedColumns{0, 1, n}, padded<T>(n), [&](T* to) { std::copy_n(v.data<T>(), n, to); });
  };
  const std::int64_t P = w.weight_hh->shape()[0], H = w.weight_hh->shape()[1] / cell.gates;
  const std::int32_t early = cell.early_gates();
  return {.weight_ih = matrix(*w.weight_ih, packs.weight_ih, {0, cell.gates, H}),
          .weight_hh = {.early = matrix(*w.weight_hh, packs.weight_hh, {0, early, H}),
                        .late = matrix(*w.weight_hh, packs.weight_hh, {early * H, cell.late_gates, H})},
          .bias_ih = vector(*w.bias_ih, packs.bias_ih),
          .bias_hh = vector(*w.bias_hh, packs.bias_hh),
          .weight_hr = matrix(*w.weight_hr, packs.weight_hr, {0, 1, P}),
          .weight_ch = vector(*w.weight_ch, packs.weight_ch)};
}

}  // namespace ferrite::nn::detail
