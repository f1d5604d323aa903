#pragma once
/// The tables of a level that a source of the level defines for all tensors.
#include "ferrite/tensor/kernel/kernels.h"

namespace ferrite::detail::FERRITE_LEVEL {

extern const Conversions conversions;
extern const ChainKernels chain_kernels;
extern const DrawKernels draw_kernels;

// What ProductKernels names.
template <class T>
void product(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
             bool add);
template <class T>
void pack_gates(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t gates, std::int64_t units,
                std::int64_t gate_step, T* to);
template <class T>
void pack_transposed(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t units, T* to,
                     std::int64_t block_rows);
template <class T>
void packed_product(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, const T* bias, T* c);
template <class T>
void next_sums(const GateMatrix<T>& w, std::int64_t taps, const T* x, const T* sums, T* next, const T* bias, bool relu,
               T* y);

}  // namespace ferrite::detail::FERRITE_LEVEL
