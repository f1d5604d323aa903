/// The list of all operations, composed of the lists at the ends of the families' files.
#include <vector>

#include "ferrite/tensor/ops/define.h"

namespace ferrite {

std::span<const Primitive* const> primitives() {
  static const std::vector<const Primitive*> all = [] {
    std::vector<const Primitive*> list;
    for (const detail::Family family :
         {detail::arithmetic_family(), detail::functions_family(), detail::logic_family(), detail::reduction_family(),
          detail::prod_others_family(), detail::product_family(), detail::view_family(), detail::window_family(),
          detail::assembly_family(), detail::indexing_family(), detail::check_family(), detail::creation_family(),
          detail::random_family(), detail::recurrent_family(), detail::recurrent_grad_family(),
          detail::training_family()})
      list.insert(list.end(), family.begin(), family.end());
    return list;
  }();
  return all;
}

const Primitive* find_primitive(std::string_view name) {
  for (const Primitive* p : primitives())
    if (p->name == name) return p;
  return nullptr;
}

}  // namespace ferrite
