// Tensors and a program's own Eigen (tensor/eigen.h), and our products and decompositions compared with Eigen's.
// Compiled with every Eigen that is available: the one that find_package found, and that of FERRITE_EIGEN5.
#include "ferrite/tensor/eigen.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <boost/test/unit_test.hpp>

#include "ferrite/tensor/linalg.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/random.h"
#include "support/compare.h"

using namespace ferrite;

namespace {

template <class T>
concept MapsToEigen = requires(T&& t) {
  as_eigen<float>(static_cast<T&&>(t));
};
static_assert(MapsToEigen<Tensor&> && MapsToEigen<const Tensor&> && !MapsToEigen<Tensor>);

using Matrix = EigenMatrix<double>;

Tensor random(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return normal({rows, columns}, {seed, 0, 0}, 0, 1, Dtype::f64);
}
/// Returns the largest difference of elements.
double apart(const Tensor& x, const Matrix& y) { return (as_eigen<double>(x) - y).cwiseAbs().maxCoeff(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(eigen)

BOOST_AUTO_TEST_CASE(the_version_is_the_one_that_was_asked_for) {
#ifdef FERRITE_EIGEN_MAJOR
  BOOST_TEST(EIGEN_MAJOR_VERSION == FERRITE_EIGEN_MAJOR);
#else
  BOOST_TEST(EIGEN_VERSION_AT_LEAST(3, 4, 0));
#endif
}

BOOST_AUTO_TEST_CASE(maps_both_ways) {
  const Tensor x = uniform({3, 4}, {1, 1, 1});
  const Tensor across = transpose(x);
  const Tensor cube = ones({2, 2, 2});
  const auto m = as_eigen<float>(across);
  BOOST_TEST(m.rows() == 4);
  BOOST_TEST(m(3, 2) == x.values<float>()[11]);
  BOOST_TEST(support::identical(from_eigen(m), across));
  BOOST_CHECK_THROW((void)as_eigen<double>(x), DtypeError);
  BOOST_CHECK_THROW((void)as_eigen<float>(cube), ShapeError);
}
BOOST_AUTO_TEST_CASE(maps_of_columns_slices_and_flips) {
  const Tensor x = uniform({5, 6}, {1, 1, 2});
  const Tensor column = arange(0, 5, 1, Dtype::f32), part = slice(x, 1, 1, 4), turned = flip(x, {0});
  BOOST_TEST((as_eigen<float>(column) - Eigen::VectorXf::LinSpaced(5, 0, 4)).norm() == 0);
  BOOST_TEST(support::identical(from_eigen(as_eigen<float>(part)), part));
  BOOST_TEST(as_eigen<float>(turned)(0, 2) == as_eigen<float>(x)(4, 2));
}

BOOST_AUTO_TEST_CASE(products_are_eigens) {
  const Tensor a = random(7, 130, 1), b = random(130, 9, 2);
  const Tensor c = matmul(a, b);
  BOOST_TEST(apart(c, as_eigen<double>(a) * as_eigen<double>(b)) < 1e-12);
}
BOOST_AUTO_TEST_CASE(decompositions_are_eigens) {
  const Tensor a = random(12, 12, 3), b = random(12, 2, 4);
  const Tensor spd = matmul(a, transpose(a)) + eye(12, -1, Dtype::f64);
  const Matrix A = as_eigen<double>(a), B = as_eigen<double>(b), S = as_eigen<double>(spd);
  const Tensor x = solve(a, b), root = cholesky(spd);
  BOOST_TEST(apart(x, A.partialPivLu().solve(B)) < 1e-10);
  BOOST_TEST(apart(root, Matrix(S.llt().matrixL())) < 1e-12);
  const auto found = eigh(spd);
  const Tensor values = found.eigenvalues;
  BOOST_TEST((as_eigen<double>(values) - Eigen::SelfAdjointEigenSolver<Matrix>(S).eigenvalues()).norm() < 1e-11);
}

BOOST_AUTO_TEST_SUITE_END()
