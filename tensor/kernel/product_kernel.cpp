/// The table of products of a level.
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/parts.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

template <class T>
constexpr ProductKernels<T> kernels_of() {
  return {.rounds_once = kRoundsOnce,
          .lanes = kLanes<T>,
          .product_columns = 12 * kLanes<T>,
          .product = product<T>,
          .pack_gates = pack_gates<T>,
          .pack_transposed = pack_transposed<T>,
          .packed_product = packed_product<T>,
          .next_sums = next_sums<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(ProductKernels, product_kernels, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
