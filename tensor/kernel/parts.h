#pragma once
/// The parts of a level's table, each defined by a source of the level: what table_kernel.cpp puts together.
#include "ferrite/tensor/kernel/functors.h"
#include "ferrite/tensor/kernel/kernels.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// The kernels of a family of functors, in the order of its list.
template <class List>
struct BlockRows;
template <class... F>
struct BlockRows<FunctorList<F...>> {
  Blocks row[sizeof...(F)];
};
extern const BlockRows<Arithmetic> arithmetic_blocks;
extern const BlockRows<Functions> functions_blocks;
extern const BlockRows<Logic> logic_blocks;
extern const Conversions conversions;
extern const ChainKernels chains;

extern const Kernels table;

}  // namespace ferrite::detail::FERRITE_LEVEL
