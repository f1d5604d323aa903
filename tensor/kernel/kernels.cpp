/// The tables of all levels, and which is in use.
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/tables.h"

namespace ferrite::detail {

FERRITE_TABLES_TO_AVX2(Conversions, conversions, conversions_in_use)
FERRITE_TABLES(ChainKernels, chain_kernels, chains_in_use)
FERRITE_TABLES(ReductionTable, sum_kernels, sum_in_use)
FERRITE_TABLES(ReductionTable, prod_kernels, prod_in_use)
FERRITE_TABLES(ReductionTable, max_kernels, max_in_use)
FERRITE_TABLES(ReductionTable, min_kernels, min_in_use)
FERRITE_TABLES(DrawKernels, draw_kernels, draws_in_use)
FERRITE_FLOAT_TABLES(ProductKernels, product_kernels, products_in_use)

}  // namespace ferrite::detail
