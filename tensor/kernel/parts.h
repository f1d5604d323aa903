#pragma once
/// The parts of a level's table, each defined by a source of the level: what table_kernel.cpp puts together.
#include "ferrite/tensor/kernel/functors_activations.h"
#include "ferrite/tensor/kernel/functors_math.h"
#include "ferrite/tensor/kernel/kernels.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// The kernels of a family of functors, in the order of its list.
template <class List>
struct BlockRows;
template <class... F>
struct BlockRows<FunctorList<F...>> {
  Blocks row[sizeof...(F)];
};
extern const BlockRows<Arithmetic> arithmetic_blocks;
extern const BlockRows<Functions> functions_blocks;
extern const BlockRows<Logic> logic_blocks;
extern const BlockRows<Math> math_blocks;
extern const BlockRows<Activations> activations_blocks;
extern const Conversions conversions;
extern const ChainKernels chain_kernels;
extern const Reductions reductions;
extern const DrawKernels draw_kernels;

// What FloatKernels names.
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

extern const Kernels table;

}  // namespace ferrite::detail::FERRITE_LEVEL
