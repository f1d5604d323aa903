#pragma once
/// Where a level's table finds the kernels of each cell.
#include "ferrite/nn/recurrent/detail/recurrence_kernels.h"
#include "ferrite/tensor/kernel/level.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {

/// Instantiated in the cell's folder (nn/recurrent/detail/cell_kernels.h).
template <const GatedCell& kCell, class T>
struct KernelsOf {
  static const CellKernels<T> value;
};

extern const RecurrenceTable recurrence_table;

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
