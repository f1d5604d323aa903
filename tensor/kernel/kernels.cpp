/// The tables of all levels, and which is in use.
#include "ferrite/tensor/kernel/kernels.h"

#include "ferrite_levels.h"

namespace ferrite::detail {

#define FERRITE_DECLARE(level) \
  namespace level {            \
  extern const Kernels table;  \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {
#define FERRITE_TABLE(level) &level::table,
constexpr const Kernels* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
}  // namespace

constinit const TableInUse<Kernels> kernels_in_use(kTables);

}  // namespace ferrite::detail
