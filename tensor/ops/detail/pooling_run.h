#pragma once
/// Pools all planes of a tensor, shared among threads.
#include "ferrite/tensor/kernel/pooling.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

enum class PoolKind : std::uint8_t { max, places, sum, spread };

/// y from x, each [N, C, ...]; of `spread` x is what is written, from y. Operands of any layout; results are row-major.
template <PoolKind kind>
void pool_planes(const Tensor& from, Tensor& to, const PoolAxes& axes);

extern template void pool_planes<PoolKind::max>(const Tensor&, Tensor&, const PoolAxes&);
extern template void pool_planes<PoolKind::places>(const Tensor&, Tensor&, const PoolAxes&);
extern template void pool_planes<PoolKind::sum>(const Tensor&, Tensor&, const PoolAxes&);
extern template void pool_planes<PoolKind::spread>(const Tensor&, Tensor&, const PoolAxes&);

}  // namespace ferrite::detail
