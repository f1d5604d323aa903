#pragma once
/// Copies of a matrix in the order in which a kernel reads it, kept with the matrix's storage as long as its elements
/// do not change.
#include <cstdint>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Identifies what a pack is a copy of. Two packs with equal keys on one storage hold the same elements.
struct PackKey {
  Dtype dtype{};
  std::int32_t gates = 1;
  std::int64_t offset = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_step = 0;
  std::int64_t column_step = 0;
  bool operator==(const PackKey&) const = default;
};
PackKey pack_key(const Tensor& w, std::int32_t gates);

/// Returns the pack with this key on w's storage, or null.
const void* find_pack(const Tensor& w, const PackKey& key);
/// A pack under construction, which no other code sees yet.
class NewPack {
 public:
  NewPack(const PackKey& key, std::int64_t elements);
  ~NewPack();
  NewPack(const NewPack&) = delete;
  NewPack& operator=(const NewPack&) = delete;
  template <class T>
  T* data() const {
    return static_cast<T*>(elements());
  }
  /// Attaches the pack to w's storage, where every thread finds it. It lives until the elements of w change or are
  /// freed; where another thread has published the same pack meanwhile, both stay.
  const void* publish(const Tensor& w);

 private:
  void* elements() const;
  Storage* block_;
};

/// Returns the pack of a matrix, made by fill(T*) if there is none.
template <class T, class Fill>
const T* pack_of(const Tensor& w, const PackKey& key, std::int64_t elements, Fill&& fill) {
  if (const void* found = find_pack(w, key)) return static_cast<const T*>(found);
  NewPack made(key, elements);
  fill(made.data<T>());
  return static_cast<const T*>(made.publish(w));
}

/// Returns whether a packed copy pays when the whole matrix is read `passes` times: making it costs about two passes.
constexpr bool packing_pays(std::int64_t passes) { return passes >= 4; }

/// Counts a use of w as the constant side of a product. Returns the number of earlier such uses of these elements.
std::uint32_t count_use(const Tensor& w);

// ---- gates ---------------------------------------------------------------------------------------------

/// Returns n rounded up to whole packets of the level in use: the distance of rows that are stored without a mask.
template <class T>
std::int64_t padded(std::int64_t n) {
  const std::int64_t lanes = products_in_use.of<T>().lanes;
  return (n + lanes - 1) / lanes * lanes;
}

/// Returns the number of elements of the pack of a matrix [K, G * units].
template <class T>
std::int64_t gate_pack_size(std::int64_t K, std::int64_t gates, std::int64_t units) {
  return padded<T>(units) * gates * K;
}

/// Packs w [K, G * units], row-major, as blocks of one packet of units: for each row, all gates next to each other.
template <class T>
void pack_gates(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t gates, std::int64_t units,
                std::int64_t gate_step, T* to) {
  products_in_use.of<T>().pack_gates(w, row_step, K, gates, units, gate_step, to);
}

/// Packs the transpose of rows [0, units) and columns [0, K) of w as one gate, to multiply by w from the other side.
/// Blocks hold `block_rows` rows.
template <class T>
void pack_transposed(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t units, T* to,
                     std::int64_t block_rows) {
  products_in_use.of<T>().pack_transposed(w, row_step, K, units, to, block_rows);
}

/// Returns the view with which a pack of gates is read.
template <class T>
GateMatrix<T> packed_gates(const T* data, std::int64_t K, std::int64_t gates, std::int64_t units) {
  const std::int64_t lanes = products_in_use.of<T>().lanes;
  return {data, K, units, gates * lanes, K * gates * lanes, lanes};
}
/// Returns the view with which a row-major matrix is read in place.
template <class T>
GateMatrix<T> plain_gates(const T* data, std::int64_t row_step, std::int64_t K, std::int64_t units,
                          std::int64_t gate_step) {
  return {data, K, units, row_step, products_in_use.of<T>().lanes, gate_step};
}

/// Packs w [K, N], of any strides of which one is 1, as one gate: the operand of packed_product (kernels.h).
template <class T>
void pack_columns(const Tensor& w, T* to) {
  const std::int64_t K = w.shape()[0], N = w.shape()[1];
  if (w.strides()[1] == 1 || N == 1) return pack_gates(w.data<T>(), w.strides()[0], K, 1, N, N, to);
  pack_transposed(w.data<T>(), w.strides()[1], K, N, to, K);
}
/// Returns the pack made by pack_columns on w's storage; makes it if there is none.
template <class T>
const T* column_pack(const Tensor& w) {
  return pack_of<T>(w, pack_key(w, 1), gate_pack_size<T>(w.shape()[0], 1, w.shape()[1]),
                    [&](T* to) { pack_columns(w, to); });
}

}  // namespace ferrite::detail
