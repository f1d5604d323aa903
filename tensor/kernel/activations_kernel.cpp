/// The kernels of activation functions and their gradients.
#include "ferrite/tensor/kernel/block.h"
#include "ferrite/tensor/kernel/functors_activations.h"
#include "ferrite/tensor/kernel/packet_error.h"

namespace ferrite::detail::FERRITE_LEVEL {

constinit const BlockRows<Activations> activations_blocks = block_rows(Activations{});

}  // namespace ferrite::detail::FERRITE_LEVEL
