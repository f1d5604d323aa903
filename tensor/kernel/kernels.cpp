/// The tables of all levels, and the choice of those in use.
#include "ferrite/tensor/kernel/kernels.h"

#include "ferrite/tensor/kernel/cumulative.h"
#include "ferrite/tensor/kernel/linear_scan.h"
#include "ferrite/tensor/kernel/ranks.h"
#include "ferrite/tensor/kernel/rows.h"
#include "ferrite/tensor/kernel/selective_scan.h"
#include "ferrite/tensor/kernel/stream_sums.h"
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

FERRITE_FLOAT_TABLES(CumulativeKernels, cumulative_kernels, cumulative_in_use)
FERRITE_TABLES(ExtremaKernels, extrema_kernels, extrema_in_use)

FERRITE_FLOAT_TABLES(LinearScanKernels, linear_scan_kernels, linear_scan_in_use)
FERRITE_FLOAT_TABLES(StreamSums, stream_sums, stream_sums_in_use)

FERRITE_TABLES(RankKernels, rank_kernels, ranks_in_use)

FERRITE_FLOAT_TABLES(RowKernels, row_kernels, rows_in_use)

FERRITE_FLOAT_TABLES(SelectiveScanKernels, selective_scan_kernels, selective_scan_in_use)

}  // namespace ferrite::detail
