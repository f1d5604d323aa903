/// The kernels of all levels for linear recurrences, and which are in use.
#include "ferrite/tensor/kernel/linear_scan.h"

#include "ferrite_levels.h"

namespace ferrite::detail {

#define FERRITE_DECLARE(level)                        \
  namespace level {                                   \
  extern const LinearScanKernels linear_scan_kernels; \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {
#define FERRITE_TABLE(level) &level::linear_scan_kernels,
constexpr const LinearScanKernels* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
}  // namespace

constinit const TableInUse<LinearScanKernels> linear_scan_in_use(kTables);

}  // namespace ferrite::detail
