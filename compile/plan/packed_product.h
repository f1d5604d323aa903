#pragma once
/// Products with weights that many steps share, packed once for all of them.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// A matrix [K, N] in the order in which `packed_product` reads it. Borrowed: whoever made it keeps the memory.
struct PackedMatrix {
  const void* data = nullptr;
  std::int64_t K = 0;
  std::int64_t N = 0;
  explicit operator bool() const { return data != nullptr; }
};

/// Packs w [K, N], f32 or f64, of any strides of which one is 1. The result stands in `room`, or with the storage of w
/// for as long as its elements are what they are.
PackedMatrix pack_matrix(const Tensor& w, Tensor& room);
/// Whether that can be done.
bool can_pack(const Tensor& w);

/// out [M, N] = a [M, K] . w: the bits of matmul. Rows of a are contiguous; out is row-major.
void packed_product(const Tensor& a, const PackedMatrix& w, const Tensor& out);

}  // namespace ferrite::detail
