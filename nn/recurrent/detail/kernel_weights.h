#pragma once
/// The weights of a recurrent layer as the kernels of a step read them.
#include "ferrite/nn/recurrent/weights.h"
#include "ferrite/tensor/kernel/gemm.h"

namespace ferrite::nn::detail {

using ferrite::detail::GateMatrix;

/// W_hh, whose late gates meet another operand than h (`GatedCell::late_gates`).
template <class T>
struct EarlyAndLate {
  GateMatrix<T> early;
  GateMatrix<T> late;  ///< empty in most cells
};

/// Weights as kernels read them: matrices packed or in row-major order, vectors; null where a cell has none.
template <class T>
using KernelWeights = RecurrentWeights<GateMatrix<T>, const T*, EarlyAndLate<T>>;

}  // namespace ferrite::nn::detail
