#include "ferrite/nn/operations.h"

#include "ferrite/nn/optim/adam_update.h"

namespace ferrite::nn {

std::span<const Primitive* const> operations() { return detail::adam_operations(); }

}  // namespace ferrite::nn
