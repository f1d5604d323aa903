/// The workspaces that callers lend to threads.
#include "ferrite/tensor/kernel/scratch.h"

namespace ferrite::detail {

FERRITE_PER_THREAD constinit PerThread<KernelMemory*> lent_kernel_memory(nullptr);

}  // namespace ferrite::detail
