/// The kernels of trigonometry, rounding and special functions.
#include "ferrite/tensor/kernel/block.h"
#include "ferrite/tensor/kernel/functors_math.h"
#include "ferrite/tensor/kernel/packet_error.h"
#include "ferrite/tensor/kernel/packet_math.h"

namespace ferrite::detail::FERRITE_LEVEL {

constinit const BlockRows<Math> math_blocks = block_rows(Math{});

}  // namespace ferrite::detail::FERRITE_LEVEL
