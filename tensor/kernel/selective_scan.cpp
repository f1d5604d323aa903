/// The kernels of all levels for the selective scan, and which are in use.
#include "ferrite/tensor/kernel/selective_scan.h"

#include "ferrite_levels.h"

namespace ferrite::detail {

#define FERRITE_DECLARE(level)                              \
  namespace level {                                         \
  extern const SelectiveScanKernels selective_scan_kernels; \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {
#define FERRITE_TABLE(level) &level::selective_scan_kernels,
constexpr const SelectiveScanKernels* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
}  // namespace

constinit const TableInUse<SelectiveScanKernels> selective_scan_in_use(kTables);

}  // namespace ferrite::detail
