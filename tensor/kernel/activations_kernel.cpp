/// The kernels of activation functions and their gradients.
#include "ferrite/tensor/kernel/block.h"
#include "ferrite/tensor/kernel/functors.h"
#include "ferrite/tensor/kernel/packet_math.h"

namespace ferrite::detail::FERRITE_LEVEL {

extern const decltype(whole_family<4>(Activations{})) activations;
constinit const decltype(whole_family<4>(Activations{})) activations = whole_family<4>(Activations{});

}  // namespace ferrite::detail::FERRITE_LEVEL
