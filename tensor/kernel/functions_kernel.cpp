/// The kernels of exponentials, activations and other functions of one number.
#include "ferrite/tensor/kernel/block.h"
#include "ferrite/tensor/kernel/packet_error.h"
#include "ferrite/tensor/kernel/packet_log.h"
#include "ferrite/tensor/kernel/packet_trigonometry.h"

namespace ferrite::detail::FERRITE_LEVEL {

extern const decltype(whole_family<1>(Functions{})) functions;
constinit const decltype(whole_family<1>(Functions{})) functions = whole_family<1>(Functions{});

}  // namespace ferrite::detail::FERRITE_LEVEL
