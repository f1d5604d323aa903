/// The kernels of arithmetic.
#include "ferrite/tensor/kernel/block.h"

namespace ferrite::detail::FERRITE_LEVEL {

constinit const BlockRows<Arithmetic> arithmetic_blocks = block_rows(Arithmetic{});

}  // namespace ferrite::detail::FERRITE_LEVEL
