#include "ferrite/compile/operations.h"

#include <vector>

#include "ferrite/compile/detail/program.h"
#include "ferrite/compile/scan_body.h"

namespace ferrite {

std::span<const Primitive* const> program_operations() {
  static const std::vector<const Primitive*> all = [] {
    const auto scans = detail::scan_operations();
    std::vector<const Primitive*> list(scans.begin(), scans.end());
    list.push_back(&detail::compiled_primitive());
    return list;
  }();
  return all;
}

}  // namespace ferrite
