/// The kernels of trigonometry, rounding and special functions.
#include "ferrite/tensor/kernel/block.h"
#include "ferrite/tensor/kernel/functors_math.h"
#include "ferrite/tensor/kernel/packet_error.h"
#include "ferrite/tensor/kernel/packet_math.h"
#include "ferrite/tensor/kernel/packet_trigonometry.h"

namespace ferrite::detail::FERRITE_LEVEL {

extern const decltype(whole_family<3>(Math{})) math;
constinit const decltype(whole_family<3>(Math{})) math = whole_family<3>(Math{});

}  // namespace ferrite::detail::FERRITE_LEVEL
