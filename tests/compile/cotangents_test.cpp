// Cotangents of compiled functions and scans that arrive at only some of the results.
#include "ferrite/autograd/jacobian.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {37, stream, 0}, -1, 1, Dtype::f64); }

}  // namespace

BOOST_AUTO_TEST_SUITE(cotangents)

/// A cotangent that does not arrive is not replaced by zeros: where a result is infinite, 0 times its slope would be
/// NaN.
BOOST_AUTO_TEST_CASE(what_nobody_asked_for_reaches_no_gradient) {
  const auto f = [](const Tensors& in) -> Tensors { return {in[0] * 2, sqrt(in[0]), log(in[0]) + in[0]}; };
  const auto compiled = compile(f);
  const Tensor x0 = zeros({3}, Dtype::f64);
  for (const std::size_t asked : {0U, 1U, 2U}) {
    const auto gradient = [&](const auto& g) {
      Tape tape;
      const Tensor x = tape.watch(x0);
      const Tensors in = {x};
      return tape.grad(sum(g(in)[asked]), {x})[0];
    };
    BOOST_TEST(identical(gradient(compiled), gradient(f)), "result " << asked);
  }
}

/// An unread y of a scan adds nothing to a gradient either.
BOOST_AUTO_TEST_CASE(nor_in_a_scan) {
  const auto gradient = [](bool scanned, std::int64_t every) {
    Tape tape;
    const Tensor w = tape.watch(full({2}, 0.0, Dtype::f64));
    const Tensor xs = draw({4, 2}, 1);
    const auto body = [&](const Tensors& c, const Tensors& x) -> ScanStep {
      const Tensor h = tanh(c[0] + w + x[0]);
      return {{h}, {h * h, sqrt(w) * h}};
    };
    if (scanned) return tape.grad(sum(scan(body, {draw({2}, 2)}, {xs}, {.checkpoint_every = every}).y[0]), {w})[0];
    Tensors carry = {draw({2}, 2)};
    Tensor total = zeros({}, Dtype::f64);
    for (std::int64_t t = 0; t < 4; ++t) {
      const ScanStep step = body(carry, {select(xs, 0, t)});
      carry = step.carry;
      total = total + sum(step.y[0]);
    }
    return tape.grad(total, {w})[0];
  };
  const Tensor wanted = gradient(false, 0);
  for (const std::int64_t every : {0, 1, 3}) BOOST_TEST(support::within(gradient(true, every), wanted, 1e-14));
}

/// Any of several results is differentiated by any of several inputs, in any order.
BOOST_AUTO_TEST_CASE(any_results_to_any_inputs) {
  const auto f = [](const Tensors& in) -> Tensors {
    const Tensor h = tanh(matmul(in[0], in[1])), n = cast(in[0] > 0, Dtype::f64);
    return {h, sum(h * h, {1}), concat({h, in[2] * in[2]}, 0), n};
  };
  const auto compiled = compile(f);
  const Tensors given = {draw({2, 3}, 3), draw({3, 4}, 4), draw({2, 4}, 5)};
  for (std::uint32_t results = 1; results < 8; ++results)
    for (std::uint32_t inputs = 1; inputs < 8; ++inputs) {
      const auto gradients = [&](const auto& g) {
        Tape tape;
        Tensors in = given;
        std::vector<Tensor> wanted;
        for (std::size_t i = 0; i < 3; ++i)
          if (inputs >> i & 1) wanted.push_back(in[i] = tape.watch(in[i]));
        const Tensors out = g(in);
        std::vector<GradOf> of;
        for (std::size_t k = 0; k < 3; ++k)
          if (results >> k & 1) of.push_back({out[k], draw(out[k].shape(), 10 + k)});
        // Values that do not depend on the watched inputs are not part of the tape.
        if (inputs == 4) std::erase_if(of, [&](const GradOf& o) { return o.of.shape() != Shape{4, 4}; });
        return of.empty() ? Tensors{} : tape.grad(of, wanted);
      };
      const Tensors got = gradients(compiled), expected = gradients(f);
      for (std::size_t i = 0; i < got.size(); ++i)
        BOOST_TEST(support::within(got[i], expected[i], 1e-14), "results " << results << ", inputs " << inputs);
    }
}

/// A norm scales its operand when its powers leave the range: eager execution decides by the values, a program holds
/// both branches.
BOOST_AUTO_TEST_CASE(second_derivatives_of_norms_are_those_of_eager_execution) {
  const Tensor x = uniform({9, 8}, {.seed = 4}, -1, 1), v = uniform({9, 8}, {.seed = 5}, -1, 1);
  for (const double p : {2.0, 3.0, 1.5}) {
    const std::function<Tensor(const Tensor&)> f = [p](const Tensor& t) {
      return sum(square(tanh(t / norm(t, {.p = p, .axes = {1}, .keepdim = true}))));
    };
    const auto second = [&](const Tensor& at, const Tensor& along) { return hvp(f, at, along).product; };
    BOOST_TEST(identical(compile(second)(x, v), second(x, v)), "p = " << p);
  }
}

/// Totals over more rows than a tile holds are computed by the kernels of their reduction.
BOOST_AUTO_TEST_CASE(totals_over_many_rows_are_those_of_their_kind) {
  const Tensor x = uniform({3000, 40}, {.seed = 6}, 0.999, 1.001);
  const auto check = [&](const char* name, auto reduce) {
    const auto f = [&](const Tensor& t) { return reduce(t * 1.0001 + 1e-5); };
    BOOST_TEST(identical(compile(f)(x), f(x)), name);
  };
  check("sum", [](const Tensor& t) { return sum(t, {0}); });
  check("prod", [](const Tensor& t) { return prod(t, {0}); });
  check("amax", [](const Tensor& t) { return amax(t, {0}); });
  check("amin", [](const Tensor& t) { return amin(t, {0}); });
}

BOOST_AUTO_TEST_SUITE_END()
