/// The table of a level: all that the library calls of it.
#include "ferrite/tensor/kernel/parts.h"

namespace ferrite::detail::FERRITE_LEVEL {

constinit const Kernels table = {
    .pointwise = {arithmetic_blocks.row, functions_blocks.row, logic_blocks.row},
    .conversions = &conversions,
    .chains = &chains,
};

}  // namespace ferrite::detail::FERRITE_LEVEL
