/// The lists of the operations and composites that layers, losses and optimisers add.
#include "ferrite/nn/operations.h"

#include "ferrite/nn/losses/reduction.h"
#include "ferrite/nn/optim/adam_update.h"
#include "ferrite/nn/recurrent/min_gru.h"
#include "ferrite/nn/recurrent/steps.h"

namespace ferrite::nn {

std::span<const Primitive* const> operations() {
  static const auto all = ferrite::detail::joined({detail::recurrent_operations(), detail::minimal_operations(),
                                                   detail::optimizer_operations(), detail::loss_operations()});
  return all;
}

std::span<const Primitive* const> composites() {
  static const auto all = ferrite::detail::joined({detail::recurrent_composites(), detail::loss_composites()});
  return all;
}

}  // namespace ferrite::nn
