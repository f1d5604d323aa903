/// Paths of layers, each stored once.
#include "ferrite/tensor/scope.h"

#include "ferrite/tensor/attrs.h"

namespace ferrite {

Scope Scope::of(std::string_view path) {
  Scope s;
  if (!path.empty()) s.path_ = Label::of(path).text().data();  // labels are stored with a zero at their end
  return s;
}

}  // namespace ferrite
