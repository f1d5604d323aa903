/// The kernels of all levels for linear recurrences, and which are in use.
#include "ferrite/tensor/kernel/linear_scan.h"
#include "ferrite/tensor/kernel/tables.h"

namespace ferrite::detail {

FERRITE_FLOAT_TABLES(LinearScanKernels, linear_scan_kernels, linear_scan_in_use)

}  // namespace ferrite::detail
