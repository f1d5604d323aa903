/// The kernels of all levels for ranks of short rows, and which are in use.
#include "ferrite/tensor/kernel/ranks.h"

#include "ferrite_levels.h"

namespace ferrite::detail {

#define FERRITE_DECLARE(level)           \
  namespace level {                      \
  extern const RankKernels rank_kernels; \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {
#define FERRITE_TABLE(level) &level::rank_kernels,
constexpr const RankKernels* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
}  // namespace

constinit const TableInUse<RankKernels> ranks_in_use(kTables);

}  // namespace ferrite::detail
