/// The table of a level: all that the library calls of it.
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/parts.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

template <class T>
constexpr FloatKernels<T> float_kernels() {
  return {.lanes = kLanes<T>,
          .product_columns = 12 * kLanes<T>,
          .product = product<T>,
          .pack_gates = pack_gates<T>,
          .pack_transposed = pack_transposed<T>,
          .packed_product = packed_product<T>,
          .next_sums = next_sums<T>};
}

}  // namespace

constinit const Kernels table = {.pointwise = {arithmetic_blocks.row, functions_blocks.row, logic_blocks.row,
                                               math_blocks.row, activations_blocks.row},
                                 .conversions = &conversions,
                                 .chains = &chain_kernels,
                                 .reductions = &reductions,
                                 .draws = &draw_kernels,
                                 .f32 = float_kernels<float>(),
                                 .f64 = float_kernels<double>(),
                                 .rounds_once = kRoundsOnce};

}  // namespace ferrite::detail::FERRITE_LEVEL
