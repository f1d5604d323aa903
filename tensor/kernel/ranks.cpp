/// The kernels of all levels for ranks of short rows, and which are in use.
#include "ferrite/tensor/kernel/ranks.h"
#include "ferrite/tensor/kernel/tables.h"

namespace ferrite::detail {

FERRITE_TABLES(RankKernels, rank_kernels, ranks_in_use)

}  // namespace ferrite::detail
