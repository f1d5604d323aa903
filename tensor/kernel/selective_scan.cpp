/// The kernels of all levels for the selective scan, and which are in use.
#include "ferrite/tensor/kernel/selective_scan.h"
#include "ferrite/tensor/kernel/tables.h"

namespace ferrite::detail {

FERRITE_FLOAT_TABLES(SelectiveScanKernels, selective_scan_kernels, selective_scan_in_use)

}  // namespace ferrite::detail
