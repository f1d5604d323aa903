/// The kernels of all levels for sums, products and recurrences along an axis, and which are in use.
#include "ferrite/tensor/kernel/cumulative.h"
#include "ferrite/tensor/kernel/tables.h"

namespace ferrite::detail {

FERRITE_FLOAT_TABLES(CumulativeKernels, cumulative_kernels, cumulative_in_use)
FERRITE_TABLES(ExtremaKernels, extrema_kernels, extrema_in_use)

}  // namespace ferrite::detail
