/// Which level is in use: the one that is built.
#include "ferrite/tensor/kernel/kernels.h"

namespace ferrite::detail {

namespace FERRITE_BUILT_LEVEL {
extern const Kernels table;
}

constinit const Kernels* const kernels_in_use = &FERRITE_BUILT_LEVEL::table;

}  // namespace ferrite::detail
