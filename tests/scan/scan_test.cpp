// scan compared with the same steps as a loop: values, gradients, gradients of gradients.
#include "ferrite/compile/scan.h"

#include <thread>

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f64) {
  return uniform(shape, {17, stream, 0}, -1, 1, dtype);
}

/// The definition of a scan as a loop.
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

/// Returns results and all gradients.
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
      loss = loss.defined() ? loss + part : part;
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

BOOST_AUTO_TEST_CASE(an_lstm_with_projection_to_second_order) {
  const auto f = [](const Tensors& in) {
    const ScanBodyFunction body = [&](const Tensors& carry, const Tensors& x) -> ScanStep {
      const Tensors g = split(x[0] + matmul(carry[0], in[0]), 3, 1);
      const Tensor c = sigmoid(g[1]) * carry[1];
      return {{matmul(g[0] * c, in[1]), c}, {g[0]}};
    };
    const ScanResult r = scan(body, {in[2], in[4]}, {in[3]});
    return sum(r.carry[0]) * 0.5 + sum(r.y[0] * r.y[0]);
  };
  const GradcheckReport report = gradcheck(
      f, {draw({2, 6}, 1), draw({3, 2}, 2), draw({2, 2}, 3), draw({3, 2, 6}, 4), draw({2, 3}, 5)}, {.order = 2});
  BOOST_TEST(report.ok, report.str());
}

BOOST_AUTO_TEST_CASE(no_steps) {
  const Cell2 cell(2, 3, Dtype::f64);
  Tape tape;
  const Tensor h0 = tape.watch(draw({2, 3}, 7)), w = tape.watch(cell.w_h);
  Cell2 watched = cell;
  watched.w_h = w;
  const ScanResult r =
      scan(watched, {h0, draw({2, 3}, 8)}, {zeros({0, 2, 2}, Dtype::f64), zeros({0, 2, 3}, Dtype::f64)});
  BOOST_TEST(identical(r.carry[0], h0));
  BOOST_TEST(r.y[0].shape() == (Shape{0, 2, 2}));
  const Tensors g = tape.grad(sum(r.carry[0] * 3) + sum(r.y[1]), {h0, w});
  BOOST_TEST(identical(g[0], full({2, 3}, 3, Dtype::f64)));
  BOOST_TEST(identical(g[1], zeros({3, 3}, Dtype::f64)));
}

BOOST_AUTO_TEST_CASE(a_hundred_thousand_steps) {
  // h' = a h + x with a constant a: the last h is a geometric sum, and d h / d h0 = a^T.
  const std::int64_t T = 100'000;
  const double a = 0.99995;
  Tape tape;
  const Tensor h0 = tape.watch(full({1}, 1, Dtype::f64)), x = tape.watch(full({T, 1}, 0.5, Dtype::f64));
  const Tensor factor = tape.watch(full({1}, a, Dtype::f64));
  const ScanResult r = scan(
      [&](const Tensors& c, const Tensors& in) {
        return ScanStep{{c[0] * factor + in[0]}, {}};
      },
      {h0}, {x});
  const double power = std::pow(a, static_cast<double>(T));
  BOOST_TEST(r.carry[0].item<double>() == power + 0.5 * (1 - power) / (1 - a), boost::test_tools::tolerance(1e-9));
  const Tensors g = tape.grad(r.carry[0], {h0, x, factor});
  BOOST_TEST(g[0].item<double>() == power, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(g[1].to_vector<double>()[99'989] == std::pow(a, 10), boost::test_tools::tolerance(1e-9));
  BOOST_TEST(tape.size() <= 12U);  // a linear scan is a few entries, any other one
}

BOOST_AUTO_TEST_CASE(any_number_of_steps_is_one_entry) {
  Tape tape;
  const Tensor h0 = tape.watch(full({1}, 1, Dtype::f64)), x = tape.watch(full({20'000, 1}, 0.5, Dtype::f64));
  const ScanResult r = scan(
      [](const Tensors& c, const Tensors& in) {
        return ScanStep{{tanh(c[0] + in[0])}, {}};
      },
      {h0}, {x});
  BOOST_TEST(tape.size() <= 2U);
}

BOOST_AUTO_TEST_CASE(a_scan_in_the_body_of_a_scan) {
  const auto f = [](Runner run, const Tensors& in) {
    const ScanBodyFunction inner = [&](const Tensors& c, const Tensors& x) {
      return ScanStep{{tanh(c[0] * in[0] + x[0])}, {c[0] * x[0]}};
    };
    const ScanBodyFunction outer = [&](const Tensors& c, const Tensors& x) {
      const ScanResult r = run(inner, {c[0]}, {x[0]}, {});
      return ScanStep{{r.carry[0] * in[1]}, {sum(r.y[0], {0})}};
    };
    const ScanResult r = run(outer, {in[2]}, {in[3]}, {});
    return sum(r.carry[0]) + sum(r.y[0] * r.y[0]);
  };
  const Tensors in = {draw({3}, 1), draw({3}, 2), draw({3}, 3), draw({4, 5, 3}, 4)};
  BOOST_TEST(within(f(scan, in), f(loop, in), 1e-13));
  const GradcheckReport report = gradcheck([&](const Tensors& x) { return f(scan, x); }, in, {.order = 2});
  BOOST_TEST(report.ok, report.str());
}

BOOST_AUTO_TEST_CASE(rows_of_different_lengths) {
  const Tensor lengths = Tensor::from<std::int64_t>({4, 0, 6, 1});
  const Cell2 cell(3, 5, Dtype::f64);
  const std::int64_t T = 6, B = 4;
  const Tensor valid = lt(reshape(arange(T), {T, 1, 1}), reshape(lengths, {1, B, 1}));
  for (const bool reverse : {false, true}) {
    Tape tape;
    Cell2 watched = cell;
    watched.w_x = tape.watch(cell.w_x);
    const Tensor x = tape.watch(where(valid, draw({T, B, 3}, 5), std::nan("")));
    const Tensor u = where(valid, draw({T, B, 5}, 6), std::nan("")), h0 = draw({B, 5}, 7), c0 = draw({B, 5}, 8);
    const ScanResult all = scan(watched, {h0, c0}, {x, u}, {.reverse = reverse, .lengths = lengths});
    const Tensors g = tape.grad(sum(all.y[0]) + sum(all.carry[1]), {x, watched.w_x});
    Tensor total = zeros({3, 5}, Dtype::f64);
    for (std::int64_t b = 0; b < B; ++b) {
      const std::int64_t n = lengths.to_vector<std::int64_t>()[static_cast<std::size_t>(b)];
      const auto row = [&](const Tensor& t, int axis) { return slice(t, axis, b, b + 1); };
      Tape alone;
      Cell2 one = cell;
      one.w_x = alone.watch(cell.w_x);
      const ScanResult r =
          scan(one, {row(h0, 0), row(c0, 0)}, {slice(row(x.unmarked(), 1), 0, 0, n), slice(row(u, 1), 0, 0, n)},
               {.reverse = reverse});
      for (std::size_t k = 0; k < 2; ++k) {
        BOOST_TEST(identical(row(all.carry[k], 0), r.carry[k]), "carry " << k << ", row " << b);
        BOOST_TEST(identical(slice(row(all.y[k], 1), 0, 0, n), r.y[k]), "y " << k << ", row " << b);
        const Tensor rest = slice(row(all.y[k], 1), 0, n, T);
        BOOST_TEST(identical(rest, zeros(rest.shape(), Dtype::f64)), "y " << k << ", row " << b << " behind its end");
      }
      total = total + alone.grad(sum(r.y[0]) + sum(r.carry[1]), {one.w_x})[0];
      const Tensor behind = slice(row(g[0], 1), 0, n, T);
      BOOST_TEST(identical(behind, zeros(behind.shape(), Dtype::f64)));
    }
    BOOST_TEST(within(g[1], total, 1e-13));
  }
}

BOOST_AUTO_TEST_CASE(compiled_it_is_the_same) {
  const Cell2 cell(3, 17, Dtype::f32);
  const Tensors in = {draw({4, 17}, 7, Dtype::f32), draw({4, 17}, 8, Dtype::f32), draw({30, 4, 3}, 5, Dtype::f32),
                      draw({30, 4, 17}, 6, Dtype::f32)};
  const auto f = [&](const Tensors& x) -> Tensors {
    Tape tape;
    const Tensor h0 = tape.watch(x[0]), xs = tape.watch(x[2]);
    const ScanResult r = scan(cell, {h0, x[1]}, {xs, x[3]});
    const Tensors g = tape.grad(sum(r.y[0] * r.y[0]), {h0, xs});
    return {r.carry[0], r.y[1], g[0], g[1]};
  };
  const auto compiled = compile(f);
  const Tensors eager = f(in);
  for (int k = 0; k < 2; ++k) {
    const Tensors planned = compiled(in);
    for (std::size_t i = 0; i < eager.size(); ++i) BOOST_TEST(identical(planned[i], eager[i]), "result " << i);
  }
  const Graph g = compiled.graph();
  const std::string text = g.str(1000);
  BOOST_TEST(parse_graph(text).str(1000) == text);
}

BOOST_AUTO_TEST_CASE(few_carries_kept_the_same_bits) {
  const std::int64_t T = 57, B = 5;
  const auto run = [&](std::int64_t every, bool reverse, bool all) {
    Tape tape;
    Cell2 cell(3, 17, Dtype::f32);
    cell.w_x = tape.watch(cell.w_x);
    cell.w_h = tape.watch(cell.w_h);
    cell.b = tape.watch(cell.b);
    const Tensor x = tape.watch(draw({T, B, 3}, 5, Dtype::f32)), h0 = tape.watch(draw({B, 17}, 7, Dtype::f32));
    const ScanResult r = scan(cell, {h0, draw({B, 17}, 8, Dtype::f32)}, {x, draw({T, B, 17}, 6, Dtype::f32)},
                              {.reverse = reverse, .checkpoint_every = every});
    const Tensor loss = sum(r.carry[1]) + (all ? sum(r.y[1] * r.y[1]) : sum(r.carry[0]));
    Tensors g = tape.grad(loss, {cell.w_x, cell.w_h, cell.b, x, h0});
    g.push_back(r.carry[0]);
    g.push_back(r.y[0]);
    return g;
  };
  for (const bool reverse : {false, true})
    for (const bool all : {false, true}) {
      const Tensors wanted = run(0, reverse, all);
      for (const std::int64_t every : {1, 2, 8, 19, 56, 57, 100}) {
        const Tensors got = run(every, reverse, all);
        for (std::size_t i = 0; i < got.size(); ++i)
          BOOST_TEST(identical(got[i], wanted[i]),
                     "result " << i << ", every " << every << (reverse ? ", reverse" : ""));
      }
    }
  const GradcheckReport report = gradcheck(
      [](const Tensors& in) {
        const auto body = [&](const Tensors& c, const Tensors& x) { return ScanStep{{tanh(c[0] * in[0] + x[0])}, {}}; };
        return scan(body, {in[1]}, {in[2]}, {.checkpoint_every = 2}).carry[0];
      },
      {draw({3}, 1), draw({3}, 2), draw({5, 3}, 3)}, {.order = 2});
  BOOST_TEST(report.ok, report.str());
}

BOOST_AUTO_TEST_CASE(several_threads_run_one_scan) {
  const Cell2 cell(3, 17, Dtype::f32);
  const auto once = [&](std::uint64_t stream) {
    Tape tape;
    const Tensor x = tape.watch(draw({40, 2, 3}, stream, Dtype::f32));
    const ScanResult r =
        scan(cell, {draw({2, 17}, 7, Dtype::f32), draw({2, 17}, 8, Dtype::f32)}, {x, draw({40, 2, 17}, 6, Dtype::f32)});
    return tape.grad(sum(r.y[0] * r.y[0]), {x})[0];
  };
  std::vector<Tensor> wanted, got(4);
  for (std::uint64_t k = 0; k < 4; ++k) wanted.push_back(once(50 + k));
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t k = 0; k < 4; ++k)
      threads.emplace_back([&, k] {
        for (int i = 0; i < 20; ++i) got[k] = once(50 + k);
      });
  }
  for (std::size_t k = 0; k < 4; ++k) BOOST_TEST(identical(got[k], wanted[k]), "thread " << k);
}

BOOST_AUTO_TEST_CASE(mistakes) {
  const Tensor h = zeros({2}), x = zeros({3, 2});
  const auto step = [](const Tensors& c, const Tensors& in) { return ScanStep{{c[0] + in[0]}, {}}; };
  BOOST_CHECK_THROW(scan(step, {h}, {x, zeros({4, 2})}), ShapeError);
  BOOST_CHECK_THROW(scan(step, {h}, {}), ValueError);
  BOOST_CHECK_THROW(scan(step, {h}, {zeros({})}), ShapeError);
  BOOST_CHECK_THROW(scan(
                        [](const Tensors& c, const Tensors&) {
                          return ScanStep{{stack({c[0], c[0]})}, {}};
                        },
                        {h}, {x}),
                    ShapeError);
  BOOST_CHECK_THROW(scan(
                        [](const Tensors& c, const Tensors&) {
                          return ScanStep{{c[0], c[0]}, {}};
                        },
                        {h}, {x}),
                    ShapeError);
  BOOST_CHECK_THROW(scan(
                        [](const Tensors& c, const Tensors&) {
                          return ScanStep{{c[0] * c[0].to_vector<float>()[0]}, {}};
                        },
                        {h}, {x}),
                    TraceError);
  const State state("count", zeros({2}));
  BOOST_CHECK_THROW(scan(
                        [&](const Tensors& c, const Tensors&) {
                          state.assign(c[0]);
                          return ScanStep{{c[0]}, {}};
                        },
                        {h}, {x}),
                    TraceError);
  BOOST_CHECK_THROW(scan(step, {h}, {x}, {.lengths = Tensor::from<std::int64_t>({1, 2, 3})}), ShapeError);
}

BOOST_AUTO_TEST_SUITE_END()
