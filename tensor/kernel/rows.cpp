/// The kernels of all levels for composites along rows, and which are in use.
#include "ferrite/tensor/kernel/rows.h"
#include "ferrite/tensor/kernel/tables.h"

namespace ferrite::detail {

FERRITE_FLOAT_TABLES(RowKernels, row_kernels, rows_in_use)

}  // namespace ferrite::detail
