/// The operations that the compiler adds to those of tensors.
#include "ferrite/compile/operations.h"

#include "ferrite/autograd/custom_gradient.h"
#include "ferrite/compile/detail/program.h"
#include "ferrite/compile/scan_body.h"

namespace ferrite {

std::span<const Primitive* const> program_operations() {
  static const Primitive* const compiled[] = {&detail::compiled_primitive()};
  static const auto all = detail::joined({detail::scan_operations(), compiled, detail::custom_gradients()});
  return all;
}

}  // namespace ferrite
