/// The kernels of all levels for sums, products and recurrences along an axis, and which are in use.
#include "ferrite/tensor/kernel/cumulative.h"

#include "ferrite_levels.h"

namespace ferrite::detail {

#define FERRITE_DECLARE(level)                       \
  namespace level {                                  \
  extern const CumulativeKernels cumulative_kernels; \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {
#define FERRITE_TABLE(level) &level::cumulative_kernels,
constexpr const CumulativeKernels* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
}  // namespace

constinit const TableInUse<CumulativeKernels> cumulative_in_use(kTables);

}  // namespace ferrite::detail
