/// The kernels of all levels for composites along rows, and which are in use.
#include "ferrite/tensor/kernel/rows.h"

#include "ferrite_levels.h"

namespace ferrite::detail {

#define FERRITE_DECLARE(level)         \
  namespace level {                    \
  extern const RowKernels row_kernels; \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {
#define FERRITE_TABLE(level) &level::row_kernels,
constexpr const RowKernels* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
}  // namespace

constinit const TableInUse<RowKernels> rows_in_use(kTables);

}  // namespace ferrite::detail
