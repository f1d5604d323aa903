#include "ferrite/nn/operations.h"

#include <vector>

#include "ferrite/nn/optim/adam_update.h"
#include "ferrite/nn/recurrent/sequence.h"

namespace ferrite::nn {

std::span<const Primitive* const> operations() {
  static const std::vector<const Primitive*> all = [] {
    std::vector<const Primitive*> list;
    for (const auto& family :
         {detail::sequence_operations(), detail::sequence_grad_operations(), detail::adam_operations()})
      list.insert(list.end(), family.begin(), family.end());
    return list;
  }();
  return all;
}

std::span<const Primitive* const> composites() { return detail::step_composites(); }

}  // namespace ferrite::nn
