#pragma once
/// Between tensors and a program's own Eigen: the only header that names it. Maps do not own: the tensor must
/// outlive them.
#include <Eigen/Core>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

template <class T>
using EigenMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using EigenMap = Eigen::Map<const EigenMatrix<T>, Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

/// A tensor of rank 1 (a column) or 2 seen as a matrix; strides, flips and broadcasts included.
/// Throws DtypeError for another element type, ShapeError for another rank.
template <class T>
EigenMap<T> as_eigen(const Tensor& x) {
  if (x.dtype() != dtype_of<T>)
    throw DtypeError("as_eigen: the tensor holds " + x.spec().str() + ", read as " + std::string(name_of(dtype_of<T>)));
  if (x.is_abstract()) throw TraceError("as_eigen: the values of a traced tensor " + x.spec().str() + " were read");
  if (x.rank() != 1 && x.rank() != 2) throw ShapeError("as_eigen: rank 1 or 2 is needed, got " + x.shape().str());
  const bool column = x.rank() == 1;
  return {x.data<T>(), x.shape()[0], column ? 1 : x.shape()[1], {x.strides()[0], column ? 1 : x.strides()[1]}};
}
template <class T>
EigenMap<T> as_eigen(const Tensor&& x) = delete;  // nothing would be left to map

/// A copy of a dense Eigen expression, [rows, columns].
template <class Derived>
Tensor from_eigen(const Eigen::MatrixBase<Derived>& m) {
  using T = typename Derived::Scalar;
  return Tensor::build<T>({m.rows(), m.cols()},
                          [&](std::span<T> out) { Eigen::Map<EigenMatrix<T>>(out.data(), m.rows(), m.cols()) = m; });
}

}  // namespace ferrite
