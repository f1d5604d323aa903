// scan against the same steps written as a loop: values, gradients, gradients of gradients.
#include "ferrite/compile/scan.h"

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f64) {
  return uniform(shape, {17, stream, 0}, -1, 1, dtype);
}

/// What a scan means.
ScanResult loop(const ScanBodyFunction& body, const Tensors& init, const Tensors& xs, const ScanOptions& o = {}) {
  const std::int64_t T = xs.empty() ? o.steps : xs[0].shape()[0];
  Tensors carry = init;
  std::vector<Tensors> ys(static_cast<std::size_t>(T));
  for (std::int64_t n = 0; n < T; ++n) {
    const std::int64_t t = o.reverse ? T - 1 - n : n;
    Tensors x;
    for (const Tensor& s : xs) x.push_back(squeeze(slice(s, 0, t, t + 1), 0));
    ScanStep step = body(carry, x);
    carry = step.carry;
    ys[static_cast<std::size_t>(t)] = step.y;
  }
  ScanResult r{carry, {}};
  for (std::size_t k = 0; k < ys[0].size(); ++k) {
    Tensors list;
    for (const Tensors& y : ys) list.push_back(y[k]);
    r.y.push_back(stack(list, 0));
  }
  return r;
}

using Runner = ScanResult (*)(const ScanBodyFunction&, const Tensors&, const Tensors&, const ScanOptions&);

/// A cell with two carries that do not commute, a captured matrix and a captured vector.
struct Cell2 {
  Tensor w_x, w_h, b, v;
  explicit Cell2(std::int64_t D, std::int64_t H, Dtype dtype)
      : w_x(draw({D, H}, 1, dtype)), w_h(draw({H, H}, 2, dtype)), b(draw({H}, 3, dtype)), v(draw({H, 2}, 4, dtype)) {}
  ScanStep operator()(const Tensors& carry, const Tensors& x) const {
    const Tensor h = tanh(matmul(x[0], w_x) + matmul(carry[0], w_h) + b * carry[1]);
    const Tensor c = carry[1] * 0.5 + sigmoid(h) * x[1];
    return {{h, c}, {matmul(h, v), c - h}};
  }
};

/// Results and all gradients.
Tensors everything(Runner run, std::int64_t T, std::int64_t B, std::int64_t D, std::int64_t H, bool reverse,
                   Dtype dtype) {
  Tape tape;
  Cell2 cell(D, H, dtype);
  cell.w_x = tape.watch(cell.w_x);
  cell.w_h = tape.watch(cell.w_h);
  cell.b = tape.watch(cell.b);
  cell.v = tape.watch(cell.v);
  const Tensor x = tape.watch(draw({T, B, D}, 5, dtype)), u = tape.watch(draw({T, B, H}, 6, dtype));
  const Tensor h0 = tape.watch(draw({B, H}, 7, dtype)), c0 = tape.watch(draw({B, H}, 8, dtype));
  const ScanResult r = run(cell, {h0, c0}, {x, u}, {.reverse = reverse});
  Tensor loss;
  Tensors all;
  std::uint64_t stream = 20;
  for (const Tensors* list : {&r.carry, &r.y})
    for (const Tensor& t : *list) {
      all.push_back(t);
      const Tensor part = sum(t * draw(t.shape(), stream++, dtype));
      loss = loss ? loss + part : part;
    }
  for (const Tensor& g : tape.grad(loss, {cell.w_x, cell.w_h, cell.b, cell.v, x, u, h0, c0})) all.push_back(g);
  return all;
}

void compare(const Tensors& a, const Tensors& b, double tolerance) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(within(a[i], b[i], tolerance), "result " << i);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scans)

BOOST_AUTO_TEST_CASE(a_scan_is_the_loop) {
  for (const std::int64_t T : {1, 2, 7, 300})
    for (const std::int64_t B : {1, 3})
      for (const bool reverse : {false, true}) {
        BOOST_TEST_CONTEXT("T " << T << " B " << B << " reverse " << reverse) {
          compare(everything(scan, T, B, 5, 4, reverse, Dtype::f64), everything(loop, T, B, 5, 4, reverse, Dtype::f64),
                  1e-12);
          compare(everything(scan, T, B, 5, 19, reverse, Dtype::f32),
                  everything(loop, T, B, 5, 19, reverse, Dtype::f32), 2e-5);
        }
      }
}

BOOST_AUTO_TEST_CASE(values_are_those_of_the_loop_to_the_bit) {
  const Cell2 cell(6, 33, Dtype::f32);
  const Tensors init = {draw({4, 33}, 7, Dtype::f32), draw({4, 33}, 8, Dtype::f32)};
  const Tensors xs = {draw({50, 4, 6}, 5, Dtype::f32), draw({50, 4, 33}, 6, Dtype::f32)};
  const ScanResult a = scan(cell, init, xs), b = loop(cell, init, xs);
  for (std::size_t k = 0; k < 2; ++k) {
    BOOST_TEST(identical(a.carry[k], b.carry[k]));
    BOOST_TEST(identical(a.y[k], b.y[k]));
  }
}

BOOST_AUTO_TEST_CASE(two_products_in_a_chain_to_second_order) {
  const auto f = [](const Tensors& in) {
    const ScanBodyFunction body = [&](const Tensors& carry, const Tensors& x) -> ScanStep {
      const Tensor g = x[0] + matmul(carry[0], in[0]);
      const Tensor h = matmul(sigmoid(g), in[1]);
      return {{h}, {h}};
    };
    return sum(scan(body, {in[2]}, {in[3]}).y[0] * 0.5);
  };
  const GradcheckReport report =
      gradcheck(f, {draw({2, 3}, 1), draw({3, 2}, 2), draw({2, 2}, 3), draw({3, 2, 3}, 4)}, {.order = 2});
  BOOST_TEST(report.ok, report.str());
}

BOOST_AUTO_TEST_CASE(gradients_to_second_order) {
  const auto f = [](const Tensors& in) {
    Cell2 cell(2, 3, Dtype::f64);
    cell.w_x = in[0];
    cell.w_h = in[1];
    cell.b = in[2];
    cell.v = in[3];
    const ScanResult r = scan(cell, {in[4], in[5]}, {in[6], in[7]});
    return sum(r.carry[0] * r.carry[1]) + sum(r.y[0] * r.y[0]) + sum(r.y[1]);
  };
  const Tensors in = {draw({2, 3}, 1), draw({3, 3}, 2), draw({3}, 3),       draw({3, 2}, 4),
                      draw({2, 3}, 7), draw({2, 3}, 8), draw({3, 2, 2}, 5), draw({3, 2, 3}, 6)};
  const GradcheckReport report = gradcheck(f, in, {.order = 2});
  BOOST_TEST(report.ok, report.str());
}

BOOST_AUTO_TEST_SUITE_END()
