/// Dense arrays of doubles for oracles.
#include "ferrite/tensor/oracle.h"

namespace ferrite::detail {

double Dense::broadcast_at(const Shape& index) const {
  const int lead = index.rank() - shape.rank();
  Shape own;
  for (int i = 0; i < shape.rank(); ++i) own.push_back(shape[i] == 1 ? 0 : index[i + lead]);
  return at(own);
}

void for_each_index(const Shape& shape, const std::function<void(const Shape&)>& f) {
  Shape index = Shape::filled(shape.rank(), 0);
  for (std::int64_t k = 0, n = shape.numel(); k < n; ++k) {
    f(index);
    for (int i = shape.rank() - 1; i >= 0; --i) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

}  // namespace ferrite::detail
