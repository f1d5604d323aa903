/// The kernels of exponentials, activations and other functions of one number.
#include "ferrite/tensor/kernel/block.h"
#include "ferrite/tensor/kernel/packet_error.h"

namespace ferrite::detail::FERRITE_LEVEL {

constinit const BlockRows<Functions> functions_blocks = block_rows(Functions{});

}  // namespace ferrite::detail::FERRITE_LEVEL
