/// The kernels of arithmetic.
#include "ferrite/tensor/kernel/block.h"
#include "ferrite/tensor/kernel/packet_pow.h"

namespace ferrite::detail::FERRITE_LEVEL {

extern const decltype(whole_family<0>(Arithmetic{})) arithmetic;
constinit const decltype(whole_family<0>(Arithmetic{})) arithmetic = whole_family<0>(Arithmetic{});

}  // namespace ferrite::detail::FERRITE_LEVEL
