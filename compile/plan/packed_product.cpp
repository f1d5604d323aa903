/// Products with weights packed once for many steps.
#include "ferrite/compile/plan/packed_product.h"

#include "ferrite/tensor/kernel/pack.h"

namespace ferrite::detail {
namespace {

template <class T>
PackedMatrix pack(const Tensor& w, Tensor& room) {
  const std::int64_t K = w.shape()[0], N = w.shape()[1];
  if (!w.impl()->storage->rewritten) {
    (void)count_use(w);  // a new content drops the packs of a storage in use
    return {column_pack<T>(w), K, N};
  }
  room = Tensor::empty({{gate_pack_size<T>(K, 1, N)}, w.dtype()});
  pack_columns(w, Writer::data<T>(room));
  return {room.data<T>(), K, N};
}

template <class T>
void product(const Tensor& a, const PackedMatrix& w, const Tensor& out) {
  const TensorImpl& to = *out.impl();
  T* const c = reinterpret_cast<T*>(to.first);
  const GateMatrix<T> matrix = packed_gates(static_cast<const T*>(w.data), w.K, 1, w.N);
  products_in_use.of<T>().packed_product(matrix, to.shape[0], a.data<T>(), a.strides()[0], nullptr, c);
}

}  // namespace

bool can_pack(const Tensor& w) {
  return w.rank() == 2 && is_float(w.dtype()) && w.numel() > 0 && (w.strides()[1] == 1 || w.strides()[0] == 1);
}

PackedMatrix pack_matrix(const Tensor& w, Tensor& room) {
  return w.dtype() == Dtype::f32 ? pack<float>(w, room) : pack<double>(w, room);
}

void packed_product(const Tensor& a, const PackedMatrix& w, const Tensor& out) {
  if (a.dtype() == Dtype::f32) {
    product<float>(a, w, out);
  } else {
    product<double>(a, w, out);
  }
}

}  // namespace ferrite::detail
