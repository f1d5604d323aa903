/// Sums added in place where nothing else can see the buffer.
#include "ferrite/tensor/accumulate.h"

#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::detail {

bool owned_alone(const Tensor& t) {
  const TensorImpl* impl = t.impl();
  return impl->refs.load(std::memory_order_acquire) == 1 && impl->storage && impl->contiguous &&
         impl == impl->storage->first_impl() && impl->storage->refs.load(std::memory_order_acquire) == 1 &&
         impl->storage->writable;
}

namespace {

/// Returns whether d is contiguous or one value repeated, as the gradient of a sum is.
bool one_run(const Tensor& d) {
  if (d.contiguous()) return true;
  for (int i = 0; i < d.rank(); ++i)
    if (d.strides()[i] != 0) return false;
  return true;
}

}  // namespace

const Tensor& held_by(const Variable& variable) { return variable.held(); }

void accumulate(Tensor& total, const Tensor& d) {
  if (frame().recorders.empty() && owned_alone(total) && total.spec() == d.spec() && !d.is_abstract() && one_run(d)) {
    const Tensor* in[] = {&total, &d};
    const ProfileEvent event(ops::add->name, [] { return frame().scope; });
    eval_pointwise(*ops::add, in, total, {});
    return;
  }
  total = add(total, d);
}

}  // namespace ferrite::detail
