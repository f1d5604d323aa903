/// Indexing by integers and ranges, as selects and slices.
#include "ferrite/tensor/index.h"

namespace ferrite {

Tensor at(const Tensor& x, std::initializer_list<Index> index) {
  if (index.size() > static_cast<std::size_t>(x.rank()))
    throw ShapeError("at: there are more indices than axes: " + std::to_string(index.size()) + " for " +
                     x.spec().str());
  Tensor y = x;
  int axis = 0;
  for (const Index& i : index) {
    if (i.element()) {
      y = select(y, axis, *i.element());
      continue;
    }
    if (i.begin() != 0 || i.end() != kEnd || i.step() != 1) y = slice(y, axis, i.begin(), i.end(), i.step());
    ++axis;
  }
  return y;
}

Tensor Tensor::element(std::int64_t i) const {
  if (rank() == 0)
    throw ShapeError("x[" + std::to_string(i) + "]: " + spec().str() + " has no axes; item() reads its value");
  if (i < -shape()[0] || i >= shape()[0])
    throw ShapeError("x[" + std::to_string(i) + "]: there is no such element along the first axis of " + spec().str());
  return select(*this, 0, i);
}

}  // namespace ferrite
