#pragma once
/// Conversions between tensors and matrices of Eigen, which the program provides: the only header that includes Eigen.
/// Maps do not own their elements: the tensor must outlive them.
#include <Eigen/Core>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// A row-major Eigen matrix that owns its elements.
template <class T>
using EigenMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// A read-only matrix on the elements of a tensor, with any strides.
template <class T>
using EigenMap = Eigen::Map<const EigenMatrix<T>, Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

namespace detail {
/// Throws the errors of as_eigen.
void check_as_eigen(const Tensor& x, Dtype wanted);
}  // namespace detail

/// Returns a read-only Eigen matrix on the elements of x, of rank 1 (a column) or 2, with any strides, without a copy:
/// x must outlive it. Throws DtypeError unless T is the type of x's elements, ShapeError for another rank.
template <class T>
EigenMap<T> as_eigen(const Tensor& x) {
  detail::check_as_eigen(x, dtype_of<T>);
  const bool column = x.rank() == 1;
  return {x.data<T>(), x.shape()[0], column ? 1 : x.shape()[1], {x.strides()[0], column ? 1 : x.strides()[1]}};
}
template <class T>
EigenMap<T> as_eigen(const Tensor&& x) = delete;  // the map would outlive its elements

/// Returns a copy of a dense Eigen expression as a tensor [rows, columns].
template <class Derived>
Tensor from_eigen(const Eigen::MatrixBase<Derived>& m) {
  using T = typename Derived::Scalar;
  return Tensor::build<T>({m.rows(), m.cols()},
                          [&](std::span<T> out) { Eigen::Map<EigenMatrix<T>>(out.data(), m.rows(), m.cols()) = m; });
}

}  // namespace ferrite
