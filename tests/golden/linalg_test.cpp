// Functions of small matrices compared with PyTorch 2.13: values, gradients and double backward
// (tests/data/make_linalg_fixtures.py writes the cases); errors, singular matrices, and properties for every size.
#include "ferrite/tensor/linalg.h"

#include <cmath>

#include "golden/twice.h"
#include "support/compare.h"

using namespace ferrite;
using support::within;

namespace {

using In = const Tensors&;
using golden::Functions;

Tensor both(const Tensor& a, const Tensor& b) { return concat({reshape(a, {-1}), reshape(b, {-1})}, 0); }
Tensor both(const QrResult& f) { return both(f.Q, f.R); }
Tensor both(const EighResult& f) { return both(f.eigenvalues, f.eigenvectors); }

Functions factorisations() {
  return {
      {"cholesky", [](In x) { return cholesky(x[0]); }},
      {"cholesky_upper", [](In x) { return cholesky(x[0], true); }},
      {"cholesky_batch", [](In x) { return cholesky(x[0]); }},
      {"cholesky_one", [](In x) { return cholesky(x[0]); }},
      {"cholesky_8", [](In x) { return cholesky(x[0]); }},
      {"qr", [](In x) { return both(qr(x[0])); }},
      {"qr_tall", [](In x) { return both(qr(x[0])); }},
      {"qr_wide", [](In x) { return both(qr(x[0])); }},
      {"qr_batch", [](In x) { return both(qr(x[0])); }},
      {"qr_q_alone", [](In x) { return qr(x[0]).Q; }},
      {"qr_r_alone", [](In x) { return qr(x[0]).R; }},
      {"qr_9", [](In x) { return both(qr(x[0])); }},
      {"eigh", [](In x) { return both(eigh(x[0])); }},
      {"eigh_batch", [](In x) { return both(eigh(x[0])); }},
      {"eigh_function",
       [](In x) {
         const auto [w, V] = eigh(x[0]);
         return matmul(V * unsqueeze(exp(w), -2), transpose(V));
       }},
      {"eigh_vectors", [](In x) { return eigh(x[0]).eigenvectors; }},
      {"eigvalsh", [](In x) { return eigvalsh(x[0]); }},
  };
}

Functions systems() {
  return {
      {"solve", [](In x) { return solve(x[0], x[1]); }},
      {"solve_vector", [](In x) { return solve(x[0], x[1]); }},
      {"solve_batch_of_vectors", [](In x) { return solve(x[0], x[1]); }},
      {"solve_broadcast", [](In x) { return solve(x[0], x[1]); }},
      {"solve_7", [](In x) { return solve(x[0], x[1]); }},
      {"triangular_lower", [](In x) { return solve_triangular(x[0], x[1]); }},
      {"triangular_upper", [](In x) { return solve_triangular(x[0], x[1], {.upper = true}); }},
      {"triangular_right", [](In x) { return solve_triangular(x[0], x[1], {.upper = true, .left = false}); }},
      {"triangular_right_lower", [](In x) { return solve_triangular(x[0], x[1], {.left = false}); }},
      {"triangular_unit", [](In x) { return solve_triangular(x[0], x[1], {.unit_diagonal = true}); }},
      {"triangular_right_unit",
       [](In x) { return solve_triangular(x[0], x[1], {.left = false, .unit_diagonal = true}); }},
      {"triangular_broadcast", [](In x) { return solve_triangular(x[0], x[1], {.upper = true}); }},
      {"inverse", [](In x) { return inverse(x[0]); }},
      {"inverse_batch", [](In x) { return inverse(x[0]); }},
      {"inverse_one", [](In x) { return inverse(x[0]); }},
      {"inverse_8", [](In x) { return inverse(x[0]); }},
      {"inverse_ill", [](In x) { return inverse(x[0]) * 1e-4; }},
      {"lstsq", [](In x) { return lstsq(x[0], x[1]); }},
      {"lstsq_square", [](In x) { return lstsq(x[0], x[1]); }},
      {"lstsq_wide", [](In x) { return lstsq(x[0], x[1]); }},
      {"lstsq_batch", [](In x) { return lstsq(x[0], x[1]); }},
      {"det", [](In x) { return det(x[0]); }},
      {"det_batch", [](In x) { return det(x[0]); }},
      {"det_6", [](In x) { return det(x[0]); }},
      {"det_one", [](In x) { return det(x[0]); }},
      {"slogdet", [](In x) { return slogdet(x[0]).logabsdet; }},
      {"slogdet_batch",
       [](In x) {
         const auto [sign, log] = slogdet(x[0]);
         return log * sign;
       }},
      {"power_3", [](In x) { return matrix_power(x[0], 3); }},
      {"power_minus_2", [](In x) { return matrix_power(x[0], -2); }},
      {"power_7", [](In x) { return matrix_power(x[0], 7); }},
      {"norm_frobenius", [](In x) { return matrix_norm(x[0]); }},
      {"norm_one", [](In x) { return square(matrix_norm(x[0], MatrixNorm::one)); }},
      {"norm_minus_one", [](In x) { return square(matrix_norm(x[0], MatrixNorm::minus_one)); }},
      {"norm_infinity", [](In x) { return square(matrix_norm(x[0], MatrixNorm::infinity)); }},
      {"norm_minus_infinity", [](In x) { return square(matrix_norm(x[0], MatrixNorm::minus_infinity, true)); }},
  };
}

const Functions& functions() {
  static const Functions all = [] {
    Functions f = factorisations();
    f.merge(systems());
    return f;
  }();
  return all;
}

const bool registered = golden::add_cases("linalg.safetensors", functions());

Tensor identity_of(const Tensor& A) { return expand(eye(A.size(-1), -1, A.dtype()), A.shape()); }
/// Returns a product of random matrices and their transposes, which is positive definite.
Tensor positive(const Tensor& A) { return matmul(A, transpose(A)) + identity_of(A); }

}  // namespace

BOOST_AUTO_TEST_SUITE(linalg)

BOOST_AUTO_TEST_CASE(every_case_of_the_fixture_has_its_counterpart) {
  BOOST_TEST(registered);
  for (const std::string& name : golden::cases_of("linalg.safetensors")) BOOST_TEST(functions().contains(name), name);
  BOOST_TEST(golden::cases_of("linalg.safetensors").size() == functions().size());
}

BOOST_AUTO_TEST_CASE(factors_multiply_to_the_matrix) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t n : {1, 2, 5, 16, 33}) {
      const double most = (dtype == Dtype::f32 ? 1e-6 : 2e-15) * static_cast<double>(n);
      const Tensor A = uniform({3, n, n}, {.seed = 5}, -1, 1, dtype), P = positive(A), I = identity_of(A);
      const Tensor L = cholesky(P);
      BOOST_TEST(within(matmul(L, transpose(L)), P, most), n);
      const auto [w, V] = eigh(P);
      BOOST_TEST(within(matmul(V * unsqueeze(w, -2), transpose(V)), P, most), n);
      BOOST_TEST(within(matmul(transpose(V), V), I, most), n);
      BOOST_TEST(within(matmul(P, inverse(P)), I, 30 * most), n);
      BOOST_TEST(within(matmul(P, solve(P, A)), A, 30 * most), n);
      BOOST_TEST(within(2 * sum(log(sum(L * I, {-1})), {-1}), slogdet(P).logabsdet, 30 * most), n);
      for (const std::int64_t m : {n / 2 + 1, n, n + 3}) {
        const Tensor B = uniform({2, m, n}, {.seed = 6}, -1, 1, dtype);
        const auto [Q, R] = qr(B);
        BOOST_TEST(within(matmul(Q, R), B, most), n);
        BOOST_TEST(within(matmul(transpose(Q), Q),
                          expand(eye(std::min(m, n), -1, dtype), {2, std::min(m, n), std::min(m, n)}), most),
                   n);
      }
    }
}

BOOST_AUTO_TEST_CASE(a_matrix_of_a_batch_is_the_same_alone) {
  const Tensor A = positive(uniform({4, 6, 6}, {.seed = 7}, -1, 1)), B = uniform({4, 6, 3}, {.seed = 8}, -1, 1);
  const std::vector<std::function<Tensor(const Tensor&, const Tensor&)>> all = {
      [](const Tensor& a, const Tensor&) { return cholesky(a); },
      [](const Tensor& a, const Tensor&) { return qr(a).Q; },
      [](const Tensor& a, const Tensor&) { return eigh(a).eigenvectors; },
      [](const Tensor& a, const Tensor& b) { return solve(a, b); },
      [](const Tensor& a, const Tensor& b) { return solve_triangular(a, b, {.upper = true}); },
      [](const Tensor& a, const Tensor&) { return slogdet(a).logabsdet; }};
  for (const auto& f : all)
    for (const std::int64_t i : {0, 3})
      BOOST_TEST(
          support::identical(contiguous(select(f(A, B), 0, i)), contiguous(f(select(A, 0, i), select(B, 0, i)))));
}

BOOST_AUTO_TEST_CASE(singular_matrices) {
  const Tensor A = Tensor::from<double>({1, 2, 2, 4}, {2, 2});
  BOOST_TEST(det(A).item<double>() == 0);
  BOOST_TEST(slogdet(A).sign.item<double>() == 0);
  BOOST_TEST(slogdet(A).logabsdet.item<double>() == -INFINITY);
  BOOST_TEST(std::isnan(det(Tensor::from<double>({NAN, 2, 2, 4}, {2, 2})).item<double>()));
  const Tensor zero = zeros({2, 2}, Dtype::f64);
  BOOST_TEST(std::isinf(solve_triangular(zero, ones({2, 1}, Dtype::f64)).to_vector<double>()[0]));
  Tape tape;
  const Tensor x = tape.watch(zero);
  BOOST_TEST(within(tape.grad(matrix_norm(x), {x})[0], zero, 0));
  BOOST_TEST(det(zeros({0, 0})).item<float>() == 1);
  BOOST_TEST(support::identical(matrix_power(A, 0), eye(2, -1, Dtype::f64)));
  const auto [w, V] = eigh(2 * eye(3));
  BOOST_TEST(within(w, full({3}, 2), 0));
  BOOST_TEST(within(V, eye(3), 0));
}

BOOST_AUTO_TEST_CASE(wrong_calls_are_refused) {
  const Tensor v = ones({3}), wide = ones({2, 3}), i = zeros({2, 2}, Dtype::i64), I = eye(2);
  const Tensor one_singular = concat({reshape(I, {1, 2, 2}), ones({1, 2, 2})}, 0);
  const std::vector<std::pair<std::function<void()>, std::string>> calls = {
      {[&] { cholesky(v); }, "cholesky: a matrix needs two axes, got [3]"},
      {[&] { cholesky(wide); }, "cholesky: the matrix must be square, got [2, 3]"},
      {[&] { cholesky(i); }, "cholesky: dtype i64 is not supported; cast it to a float first"},
      {[&] { cholesky(-I); }, "cholesky: the matrix is not positive definite: pivot 0 is -1.0"},
      {[&] { cholesky(one_singular); }, "cholesky: matrix 1 of the batch is not positive definite: pivot 1 is 0.0"},
      {[&] { qr(v); }, "qr: a matrix needs two axes, got [3]"},
      {[&] { eigh(wide); }, "eigh: the matrix must be square, got [2, 3]"},
      {[&] { eigh(I / 0); }, "eigh: the matrix has elements that are not finite"},
      {[&] { eigvalsh(wide); }, "eigvalsh: the matrix must be square, got [2, 3]"},
      {[&] { solve(wide, v); }, "solve: the matrix must be square, got [2, 3]"},
      {[&] { solve(I, v); }, "solve: the equations do not fit: [2, 2] and [3, 1]"},
      {[&] {
         solve(I, ones({2, 1}, Dtype::f64));
       },
       "solve: dtypes differ: f32[2, 2] and f64[2, 1]; cast one of them"},
      {[&] {
         solve(one_singular, ones({2, 2, 1}));
       },
       "solve: matrix 1 of the batch is singular: pivot 1 is 0"},
      {[&] { solve_triangular(I, v); }, "solve_triangular: a matrix needs two axes, got [3]"},
      {[&] {
         solve_triangular(I, ones({3, 2}));
       },
       "solve_triangular: the equations do not fit: [2, 2] and [3, 2]"},
      {[&] { inverse(wide); }, "inverse: the matrix must be square, got [2, 3]"},
      {[&] {
         inverse(ones({2, 2}));
       },
       "inverse: the matrix is singular: pivot 1 is 0"},
      {[&] { inverse(0 * (I / 0)); }, "inverse: the matrix is singular: pivot 0 is nan"},
      {[&] { lstsq(wide, v); }, "lstsq: a matrix needs two axes, got [3]"},
      {[&] {
         lstsq(wide, ones({3, 1}));
       },
       "lstsq: the equations do not fit: [2, 3] and [3, 1]"},
      {[&] {
         lstsq(wide, ones({2, 1}, Dtype::f64));
       },
       "lstsq: dtypes differ: f32[2, 3] and f64[2, 1]; cast one of them"},
      {[&] {
         lstsq(zeros({3, 2}), ones({3, 1}));
       },
       "lstsq: the rank is not full: smallest pivot by largest 0 lies outside 3.57628e-07..1"},
      {[&] { det(wide); }, "det: the matrix must be square, got [2, 3]"},
      {[&] { slogdet(i); }, "slogdet: dtype i64 is not supported; cast it to a float first"},
      {[&] {
         Tape tape;
         const Tensor x = tape.watch(ones({2, 2}));
         tape.grad(det(x), {x});
       },
       "gradient of det: the matrix is singular: pivot 1 is 0"},
      {[&] {
         Tape tape;
         const Tensor x = tape.watch(zeros({2, 2}));
         tape.grad(sum(qr(x).R), {x});
       },
       "gradient of qr: the leading columns are dependent: |pivot| 0 lies outside 1.17549e-38..inf"},
      {[&] { matrix_power(wide, 2); }, "matrix_power: the matrix must be square, got [2, 3]"},
      {[&] {
         matrix_power(ones({2, 2}), -1);
       },
       "matrix_power: the matrix is singular: pivot 1 is 0"},
      {[&] { matrix_norm(v); }, "matrix_norm: a matrix needs two axes, got [3]"},
  };
  for (const auto& [call, message] : calls)
    BOOST_CHECK_EXCEPTION(call(), Error, [expected = message](const Error& e) {
      BOOST_TEST(e.what() == expected);
      return true;
    });
}

BOOST_AUTO_TEST_SUITE_END()
