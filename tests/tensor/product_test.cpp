// The order of summation (docs/numerics.md, rules 2 and 3): bits do not depend on shapes, strides or threads.
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"
#include "support/fused.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f32) {
  return uniform(shape, {11, stream, 0}, -1, 1, dtype);
}

/// Computes rule 2 as loops: blocks of 256 k, each an ascending chain of fused multiply-adds.
template <class T>
Tensor by_the_rule(const Tensor& a, const Tensor& b) {
  const std::int64_t M = a.shape()[0], K = a.shape()[1], N = b.shape()[1];
  const auto x = a.to_vector<T>();
  const auto y = b.to_vector<T>();
  std::vector<T> c(static_cast<std::size_t>(M * N));
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      T total = 0;
      for (std::int64_t k0 = 0; k0 < K; k0 += 256) {
        T block = 0;
        for (std::int64_t k = k0; k < std::min(k0 + 256, K); ++k)
          block = support::fused(x[static_cast<std::size_t>(m * K + k)], y[static_cast<std::size_t>(k * N + n)], block);
        total = k0 == 0 ? block : total + block;
      }
      c[static_cast<std::size_t>(m * N + n)] = total;
    }
  return Tensor::from(c, {M, N});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(products)

BOOST_AUTO_TEST_CASE(every_shape_follows_the_rule_to_the_bit) {
  const std::int64_t sizes[][3] = {{1, 1, 1},     {1, 300, 7},   {1, 64, 192}, {1, 257, 130}, {2, 5, 64},
                                   {3, 513, 65},  {4, 4, 4},     {5, 31, 17},  {7, 256, 48},  {8, 64, 96},
                                   {9, 100, 49},  {32, 1, 96},   {128, 1, 10}, {5, 1, 259},   {40, 70, 75},
                                   {16, 33, 100}, {17, 600, 47}, {33, 65, 50}, {70, 130, 145}};
  for (const auto& s : sizes)
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      const Tensor a = draw({s[0], s[1]}, 1, dtype);
      const Tensor b = draw({s[1], s[2]}, 2, dtype);
      const Tensor wanted = dtype == Dtype::f32 ? by_the_rule<float>(a, b) : by_the_rule<double>(a, b);
      const double tolerance = ferrite::detail::products_in_use.of<float>().rounds_once ? 0
                               : dtype == Dtype::f32                                    ? 1e-6
                                                                                        : 1e-14;
      BOOST_TEST(within(matmul(a, b), wanted, tolerance), s[0] << " x " << s[1] << " x " << s[2]);
    }
}

/// Covers every tile, panel, remainder and orientation of the kernels, at sizes that are not multiples of anything.
BOOST_AUTO_TEST_CASE(every_path_follows_the_rule_to_the_bit) {
  const bool exact = ferrite::detail::products_in_use.of<float>().rounds_once;
  const auto check = [&](std::int64_t M, std::int64_t N, std::int64_t K) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      const Tensor a = draw({M, K}, 21, dtype), b = draw({K, N}, 22, dtype);
      const Tensor wanted = dtype == Dtype::f32 ? by_the_rule<float>(a, b) : by_the_rule<double>(a, b);
      const double tolerance = exact ? 0 : dtype == Dtype::f32 ? (K < 1000 ? 1e-6 : 4e-6) : 1e-14;
      const Tensor at = transpose(contiguous(transpose(a))), bt = transpose(contiguous(transpose(b)));
      BOOST_TEST(within(matmul(a, b), wanted, tolerance), M << " x " << K << " x " << N);
      BOOST_TEST(within(matmul(a, bt), wanted, tolerance), M << " x " << K << " x " << N << " transposed");
      BOOST_TEST(within(matmul(at, b), wanted, tolerance), M << " transposed x " << K << " x " << N);
      BOOST_TEST(within(matmul(at, bt), wanted, tolerance), M << " x " << K << " x " << N << " both transposed");
    }
  };
  for (std::int64_t M = 1; M <= 18; ++M)  // every group of rows
    for (const std::int64_t N : {33, 67}) check(M, N, 21);
  for (const std::int64_t N : {1, 2, 5, 15, 16, 17, 31, 32, 48, 49, 63, 64, 65, 95, 112, 193, 257})  // every panel
    for (const std::int64_t M : {1, 2, 4, 11}) check(M, N, 37);
  for (const std::int64_t K : {1, 3, 8, 15, 16, 17, 255, 256, 257, 300, 513})  // lines of columns, blocks
    for (const std::int64_t M : {1, 2, 3, 10}) check(M, 70, K);
  for (const std::int64_t M : {1, 2, 5}) check(M, 1100, 40);     // B is larger than the first-level cache
  for (const std::int64_t M : {1, 2, 4, 7}) check(M, 710, 300);  // larger than the second-level cache
  for (const std::int64_t M : {1, 2}) check(M, 4300, 256);       // much larger, with more columns than a run
  for (const std::int64_t N : {1, 5, 8, 9, 16, 17, 32})          // one row and few columns: several blocks at a time
    for (const std::int64_t K : {257, 400, 512, 513, 768, 1000, 1024, 1025, 1300, 2100}) check(1, N, K);
  check(67, 41, 19);
  check(110, 150, 30);  // panels used by more than one group of tiles
  check(20, 2100, 3);
}

/// A chain starts at 0: no sum is -0, not even one of a single term.
BOOST_AUTO_TEST_CASE(sums_of_negative_zeros_are_zero) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t M : {1, 3, 70})
      for (const std::int64_t N : {1, 5, 16, 40, 131, 150})
        for (const std::int64_t K : {1, 2, 300}) {
          const Tensor zero = full({M, K}, 0.0, dtype), minus = full({K, N}, -1.0, dtype);
          BOOST_TEST(identical(matmul(zero, minus), zeros({M, N}, dtype)), M << " x " << K << " x " << N);
        }
}

BOOST_AUTO_TEST_CASE(transposed_and_strided_operands_give_the_same_bits) {
  for (const std::int64_t M : {1, 3, 8, 19}) {
    const Tensor a = draw({M, 300}, 1);
    const Tensor b = draw({300, 70}, 2);
    const Tensor wanted = matmul(a, b);
    const Tensor at = transpose(contiguous(transpose(a)));
    const Tensor bt = transpose(contiguous(transpose(b)));
    const Tensor wide = slice(pad(unsqueeze(b, 2), {0, 0, 0}, {0, 0, 1}), 2, 0, 1);
    BOOST_TEST(identical(matmul(at, b), wanted));
    BOOST_TEST(identical(matmul(a, bt), wanted));
    BOOST_TEST(identical(matmul(at, bt), wanted));
    BOOST_TEST(identical(matmul(a, squeeze(wide, 2)), wanted));
    BOOST_TEST(identical(matmul(flip(flip(a, {1}), {1}), b), wanted));
  }
}

BOOST_AUTO_TEST_CASE(a_row_alone_equals_the_row_in_a_batch) {
  const Tensor a = draw({33, 400}, 3);
  const Tensor b = draw({400, 150}, 4);
  const Tensor all = matmul(a, b);
  for (const std::int64_t m : {0, 7, 8, 31, 32})
    BOOST_TEST(identical(matmul(slice(a, 0, m, m + 1), b), slice(all, 0, m, m + 1)));
}

BOOST_AUTO_TEST_CASE(threads_do_not_change_bits) {
  const Tensor a = draw({300, 500}, 5);
  const Tensor b = draw({500, 400}, 6);
  const Tensor x = draw({700, 900}, 7);
  const Tensor one = matmul(a, b);
  const Tensor e = exp(x);
  const Tensor s = sum(x, {0});
  const Tensor n = normal({100000}, {1, 2, 3});
  set_threads(4);
  const Tensor product = matmul(a, b);
  const Tensor pointwise = exp(x);
  const Tensor reduced = sum(x, {0});
  const Tensor drawn = normal({100000}, {1, 2, 3});
  set_threads(1);
  BOOST_TEST(identical(product, one));
  BOOST_TEST(identical(pointwise, e));
  BOOST_TEST(identical(reduced, s));
  BOOST_TEST(identical(drawn, n));
  BOOST_CHECK_EXCEPTION(set_threads(0), ValueError, says("at least one thread"));
}

BOOST_AUTO_TEST_CASE(vectors_and_batches) {
  const Tensor v = Tensor::from({1.0F, 2.0F, 3.0F});
  BOOST_TEST(matmul(v, v).item() == 14.0F);
  const Tensor m = Tensor::from({1.0F, 0.0F, 2.0F, 0.0F, 1.0F, 3.0F}, {2, 3});
  BOOST_TEST(identical(matmul(m, v), Tensor::from({7.0F, 11.0F})));
  BOOST_TEST(identical(matmul(v, transpose(m)), Tensor::from({7.0F, 11.0F})));
  BOOST_TEST(matmul(draw({5, 1, 2, 3}, 1), draw({4, 3, 6}, 2)).shape().str() == "[5, 4, 2, 6]");
  const Tensor folded = draw({2, 7, 30}, 8);
  const Tensor w = draw({30, 11}, 9);
  BOOST_TEST(identical(select(matmul(folded, w), 0, 1), matmul(select(folded, 0, 1), w)));
  const Tensor turned = transpose(folded, 0, 1);  // [7, 2, 30], strided rows
  BOOST_TEST(identical(select(matmul(turned, w), 1, 1), matmul(select(folded, 0, 1), w)));
  BOOST_CHECK_EXCEPTION((void)matmul(m, m), ShapeError, says("matmul: inner extents differ: [2, 3] . [2, 3]"));
  BOOST_CHECK_EXCEPTION((void)matmul(m, full({}, 1)), ShapeError, says("at least one axis"));
  BOOST_CHECK_EXCEPTION((void)matmul(arange(3), arange(3)), DtypeError, says("matmul: dtype i64"));
}

/// Rule 3: 16 lanes in blocks of 1024, lanes halved pairwise, blocks ascending.
BOOST_AUTO_TEST_CASE(sums_follow_the_rule_to_the_bit) {
  for (const std::int64_t n : {1, 5, 16, 17, 100, 1024, 1025, 3000}) {
    const Tensor x = draw({n}, 12);
    const auto v = x.to_vector<float>();
    float total = 0;
    for (std::int64_t b = 0; b < n; b += 1024) {
      float lanes[16] = {};
      for (std::int64_t i = b; i < std::min(n, b + 1024); ++i) lanes[(i - b) % 16] += v[static_cast<std::size_t>(i)];
      for (int half = 8; half >= 1; half /= 2)
        for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
      total = b == 0 ? lanes[0] : total + lanes[0];
    }
    BOOST_TEST(sum(x).item() == total, n);
    const Tensor columns = contiguous(expand(unsqueeze(x, 1), {n, 70}));
    BOOST_TEST(identical(sum(columns, {0}), full({70}, static_cast<double>(total))));
    const Tensor apart = transpose(contiguous(expand(x, {3, n})));
    BOOST_TEST(identical(sum(apart, {0}), full({3}, static_cast<double>(total))));
  }
}

BOOST_AUTO_TEST_SUITE_END()
