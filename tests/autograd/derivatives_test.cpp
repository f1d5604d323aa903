// jvp, vjp, Jacobians, Hessians, value_and_grad: shapes, zeros, compiled and nested, and what they refuse. Their values
// are compared with PyTorch in tests/golden/autograd_test.cpp.
#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/jacobian.h"
#include "ferrite/autograd/jvp.h"
#include "ferrite/autograd/no_grad.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/autograd/value_and_grad.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/cumulative.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

using In = const Tensors&;
using One = std::function<Tensor(const Tensor&)>;
using Many = std::function<Tensors(const Tensors&)>;

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f64) {
  return uniform(shape, {59, stream, 0}, -1, 1, dtype);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(derivatives)

BOOST_AUTO_TEST_CASE(of_a_product) {
  const Tensor a = draw({4, 3}, 1), x = draw({3}, 2), v = draw({3}, 3), u = draw({4}, 4);
  const auto f = [&](const Tensor& t) { return matmul(a, t * t); };
  const auto [y, dy] = jvp(f, x, v);
  BOOST_TEST(identical(y, f(x)));
  BOOST_TEST(within(dy, matmul(a, 2 * x * v), 1e-15));
  const auto [z, g] = vjp(f, x, u);
  BOOST_TEST(identical(z, f(x)));
  BOOST_TEST(within(g, 2 * x * matmul(transpose(a), u), 1e-15));
  for (const JacobianBy by : {JacobianBy::smaller, JacobianBy::rows, JacobianBy::columns})
    BOOST_TEST(within(jacobian(f, x, {.by = by}), a * (2 * x), 1e-15));
}

BOOST_AUTO_TEST_CASE(of_several_inputs_and_results) {
  const Tensors in = {draw({2, 3}, 5), draw({3}, 6), draw({}, 7)};
  const Many f = [](In x) { return Tensors{matmul(x[0], x[1]), sum(x[1] * x[1]), argmax(x[1])}; };
  for (const JacobianBy by : {JacobianBy::rows, JacobianBy::columns}) {
    const auto j = jacobian(f, in, {.by = by});
    BOOST_TEST((j[0][0].shape() == Shape{2, 2, 3}));
    BOOST_TEST(identical(select(select(j[0][0], 0, 1), 0, 0), zeros({3}, Dtype::f64)));
    BOOST_TEST(identical(select(select(j[0][0], 0, 1), 0, 1), in[1]));
    BOOST_TEST(identical(j[0][1], in[0]));
    BOOST_TEST(identical(j[1][1], 2 * in[1]));
    BOOST_TEST(identical(j[0][2], zeros({2}, Dtype::f64)));
    BOOST_TEST(identical(j[1][0], zeros({2, 3}, Dtype::f64)));
  }
  const auto [values, tangents] = jvp(f, in, {zeros({2, 3}, Dtype::f64), in[1], ones({}, Dtype::f64)});
  BOOST_TEST(within(tangents[0], values[0], 1e-15));
  BOOST_TEST(within(tangents[1], 2 * values[1], 1e-15));
  BOOST_TEST(tangents[2].item<std::int64_t>() == 0);
}

BOOST_AUTO_TEST_CASE(empty_and_constant_functions) {
  const One constant = [](const Tensor&) { return ones({2}, Dtype::f64); };
  const Tensor x = draw({3}, 8), none = zeros({0}, Dtype::f64);
  BOOST_TEST(identical(jacobian(constant, x), zeros({2, 3}, Dtype::f64)));
  BOOST_TEST(identical(jvp(constant, x, x).tangent, zeros({2}, Dtype::f64)));
  BOOST_TEST((jacobian([](const Tensor& t) { return t * 2; }, none).shape() == Shape{0, 0}));
  BOOST_TEST((jacobian(constant, none).shape() == Shape{2, 0}));
  const Tensor s = full({}, 3.0, Dtype::f64);
  BOOST_TEST(jacobian([](const Tensor& t) { return t * t; }, s).item<double>() == 6);
  BOOST_TEST(hessian([](const Tensor& t) { return t * t * t; }, s).item<double>() == 18);
}

/// Returns the operations in the program of a function with its jvp.
std::vector<std::string> operations_of_jvp(const Many& f, const Tensors& in) {
  const std::size_t n = in.size();
  std::vector<Spec> specs;
  for (int twice = 0; twice < 2; ++twice)
    for (const Tensor& x : in) specs.push_back(x.spec());
  const Graph g = trace(
      [&](In all) {
        Tensors x, v;
        for (std::size_t i = 0; i < n; ++i) x.push_back(all[i]), v.push_back(all[n + i]);
        return jvp(f, x, v).tangents;
      },
      std::span<const Spec>(specs));
  std::vector<std::string> names;
  for (const Graph::Node& node : g.nodes) names.emplace_back(node.op->name);
  return names;
}

BOOST_AUTO_TEST_CASE(a_jvp_applies_the_rules_of_the_records) {
  using Names = std::vector<std::string>;
  const Tensor x = draw({3}, 40), y = draw({3}, 41), m = draw({2, 3}, 42);
  const auto of = [](const One& f) { return [f](In t) { return Tensors{f(t[0])}; }; };
  BOOST_TEST(operations_of_jvp(of([](const Tensor& t) { return flip(cumsum(t, 0), {0}); }), {x}) ==
                 (Names{"cumsum", "slice", "cumsum", "slice"}),
             boost::test_tools::per_element());
  BOOST_TEST(operations_of_jvp(
                 [](In t) {
                   return Tensors{concat({t[0], t[1]}, 0)};
                 },
                 {x, y}) == (Names{"concat", "concat"}),
             boost::test_tools::per_element());
  BOOST_TEST(operations_of_jvp(of([](const Tensor& t) { return pad(t, {1}, {2}, 7); }), {x}) == (Names{"pad", "pad"}),
             boost::test_tools::per_element());
  BOOST_TEST(operations_of_jvp([](In t) { return Tensors{matmul(t[0], t[1])}; }, {m, transpose(m)}) ==
                 (Names{"matmul", "matmul", "matmul", "add"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_jvp_of_several_results_takes_zeros_for_what_has_no_tangent) {
  const Tensor x = draw({5}, 43), v = draw({5}, 44), w = draw({5}, 45);
  // Only one piece and one operand of each operation depend on x.
  const Many f = [&](In t) {
    const Tensors pieces = split(t[0], 2, 0);
    return Tensors{concat({pieces[1], slice(w, 0, 0, 2), w}, 0), stack({w, t[0]}, 1), pieces[2]};
  };
  const JvpResult r = jvp(f, {x}, {v});
  BOOST_TEST(identical(r.tangents[0], concat({slice(v, 0, 2, 4), zeros({7}, Dtype::f64)}, 0)));
  BOOST_TEST(identical(r.tangents[1], stack({zeros({5}, Dtype::f64), v}, 1)));
  BOOST_TEST(identical(r.tangents[2], slice(v, 0, 4, 5)));
}

BOOST_AUTO_TEST_CASE(a_jvp_through_types_that_are_only_stored_is_of_their_gradients_type) {
  const Tensor x = draw({4}, 46, Dtype::f32), v = draw({4}, 47, Dtype::f32);
  for (const Dtype stored : {Dtype::bf16, Dtype::f16}) {
    const auto [y, dy] = jvp(
        [&](const Tensor& t) {
          return cast(reshape(cast(t, stored), {2, 2}), Dtype::f32) * 3;
        },
        x, v);
    BOOST_TEST(identical(y, reshape(cast(cast(x, stored), Dtype::f32), {2, 2}) * 3));
    BOOST_TEST(identical(dy, reshape(v, {2, 2}) * 3));
    BOOST_TEST(identical(jvp([&](const Tensor& t) { return cast(t, stored); }, x, v).tangent, v));
  }
  const JvpResult whole = jvp([](In t) { return Tensors{cast(t[0] * 9, Dtype::i64)}; }, {x}, {v});
  BOOST_TEST((whole.tangents[0].spec() == Spec{{4}, gradient_dtype(Dtype::i64)}));
}

BOOST_AUTO_TEST_CASE(a_jvp_of_convolutions_takes_each_operand_and_the_bias) {
  const Tensor x = draw({2, 3, 6}, 48), w = draw({4, 3, 3}, 49), b = draw({4}, 50);
  const auto f = [](const Tensor& p, const Tensor& q, const Tensor& c) { return conv1d(p, q, c, {.padding = {1}}); };
  const Tensor dx = draw({2, 3, 6}, 51), dw = draw({4, 3, 3}, 52), db = draw({4}, 53), none = zeros({4}, Dtype::f64);
  const auto along = [&](const Tensors& v) {
    return jvp([&](In t) { return Tensors{f(t[0], t[1], t[2])}; }, {x, w, b}, v).tangents[0];
  };
  const Tensor no_x = zeros(x.shape(), Dtype::f64), no_w = zeros(w.shape(), Dtype::f64);
  BOOST_TEST(within(along({dx, dw, db}), f(dx, w, none) + f(x, dw, db), 1e-14));
  BOOST_TEST(within(along({no_x, no_w, db}), f(no_x, w, db), 1e-15));
  BOOST_TEST(within(jvp([&](const Tensor& c) { return f(x, w, c); }, b, db).tangent, f(no_x, w, db), 1e-15));
  BOOST_TEST(within(jvp([&](const Tensor& q) { return f(x, q, b); }, w, dw).tangent, f(x, dw, none), 1e-15));
}

BOOST_AUTO_TEST_CASE(hessians_of_a_quadratic_form) {
  const Tensor a = draw({3, 3}, 9), b = draw({2, 3}, 10), v = draw({3}, 11);
  const Tensors in = {draw({3}, 12), draw({2}, 13)};
  const auto f = [&](In x) { return matmul(x[0], matmul(a, x[0])) + matmul(x[1], matmul(b, x[0])); };
  const auto h = hessian(f, in);
  BOOST_TEST(within(h[0][0], a + transpose(a), 1e-15));
  BOOST_TEST(within(h[0][1], transpose(b), 1e-15));
  BOOST_TEST(within(h[1][0], b, 1e-15));
  BOOST_TEST(identical(h[1][1], zeros({2, 2}, Dtype::f64)));
  const auto [value, products] = hvp(f, in, {v, in[1]});
  BOOST_TEST(identical(value, f(in)));
  BOOST_TEST(within(products[0], matmul(a + transpose(a), v) + matmul(in[1], b), 1e-14));
  BOOST_TEST(within(products[1], matmul(b, v), 1e-14));
}

BOOST_AUTO_TEST_CASE(they_nest_and_compile) {
  const Tensor x = draw({3}, 14), v = draw({3}, 15);
  const auto f = [](const Tensor& t) { return sum(sin(t) * t); };
  const auto along = [&](const Tensor& t) { return jvp(f, t, v).tangent; };
  BOOST_TEST(within(grad(along)(x), hvp(f, x, v).product, 1e-14));
  BOOST_TEST(within(matmul(hessian(f, x), v), hvp(f, x, v).product, 1e-14));
  BOOST_TEST(within(jvp(grad(f), x, v).tangent, hvp(f, x, v).product, 1e-14));
  const auto all = [&](const Tensor& t) {
    const auto [value, product] = hvp(f, t, v);
    return Tensors{value,
                   product,
                   hessian(f, t),
                   jacobian([](const Tensor& s) { return s * s; }, t),
                   jacobian([](const Tensor& s) { return exp(s); }, t, {.by = JacobianBy::columns}),
                   along(t)};
  };
  const Tensors eager = all(x), compiled = compile(all)(x);
  for (std::size_t i = 0; i < eager.size(); ++i) BOOST_TEST(identical(compiled[i], eager[i]), "result " << i);
  BOOST_TEST(gradcheck([&](In in) { return jacobian([](const Tensor& s) { return s * s * s; }, in[0]); }, {x}).ok);
}

BOOST_AUTO_TEST_CASE(a_value_with_all_its_gradients) {
  const Parameter w("w", draw({3}, 16)), unread("unread", ones({2}));
  const Tensor x = draw({3}, 17), y = draw({3}, 18);
  const auto f = [&](In in) { return sum(in[0] * w * w.value()); };
  const auto [value, inputs, parameters] = value_and_grad(f, {x, y}, {unread, w});
  BOOST_TEST(identical(value, f({x})));
  BOOST_TEST(within(inputs[0], w * w.value(), 1e-15));
  BOOST_TEST(identical(inputs[1], zeros({3}, Dtype::f64)));
  BOOST_TEST(within(parameters[1], 2 * x * w, 1e-15));
  BOOST_TEST(!parameters[0].defined());
  const auto both = value_and_grad([](const Tensor& t) { return sum(t * t); })(x);
  BOOST_TEST(identical(both.first, sum(x * x)));
  BOOST_TEST(identical(both.second, 2 * x));
  const auto compiled = compile([&](const Tensor& t) {
    const auto r = value_and_grad(f, {t}, {w});
    return Tensors{r.value, r.inputs[0], r.parameters[0]};
  });
  BOOST_TEST(identical(compiled(x)[2], parameters[1]));
}

BOOST_AUTO_TEST_CASE(no_grad_makes_constants) {
  const Parameter p("p", full({2}, 3));
  Tape tape;
  const Tensor x = tape.watch(ones({2}));
  Tensor y;
  {
    const NoGrad guard;
    y = x * p;
  }
  const Tensors g = tape.grad(sum(y * x), {x});
  BOOST_TEST(identical(g[0], full({2}, 3)));
  const auto compiled = compile([&](const Tensor& t) {
    return grad([&](const Tensor& v) {
             const NoGrad guard;
             const Tensor c = v * p;
             return sum(c);
           })(t) +
           grad([&](const Tensor& v) {
             const Tensor c = [&] {
               const NoGrad guard;
               return v * p;
             }();
             return sum(c * v);
           })(t);
  });
  BOOST_TEST(identical(compiled(ones({2})), full({2}, 3)));
}

BOOST_AUTO_TEST_CASE(wrong_calls) {
  const One same = [](const Tensor& t) { return t; };
  const Many list = [](In t) { return t; };
  const std::function<Tensor(const Tensors&)> first = [](In t) { return t[0]; };
  const Tensor x = ones({2}), i = arange(3);
  struct Case {
    std::function<void()> call;
    const char* says;
  };
  const Case cases[] = {
      {[&] { (void)jvp(One(), x, x); }, "jvp: the function is null"},
      {[&] { (void)jvp(list, {x}, {}); }, "jvp: there must be a tangent for each of 1 tensors, got 0"},
      {[&] { (void)jvp(same, x, ones({3})); }, "jvp: tangent 0 must be f32[2], got f32[3]"},
      {[&] { (void)jvp(same, x, Tensor()); }, "jvp: tangent 0 must be f32[2], got an undefined tensor"},
      {[&] { (void)jvp(same, i, i); }, "jvp: input 0 must be a float, got i64[3]; let the function refer to it"},
      {[&] { (void)jvp(list, {}, {}); }, "jvp: there are no inputs to differentiate by"},
      {[&] { (void)vjp(One(), x, x); }, "vjp: the function is null"},
      {[&] { (void)vjp(same, x, ones({3})); }, "vjp: cotangent 0 must be f32[2], got f32[3]"},
      {[&] {
         (void)vjp(list, {x}, {x, x});
       },
       "vjp: there must be a cotangent for each of 1 tensors, got 2"},
      {[&] { (void)vjp([](In) { return Tensors(1); }, {x}, {x}); }, "vjp: result 0 of the function is undefined"},
      {[&] { (void)jacobian(One(), x); }, "jacobian: the function is null"},
      {[&] { (void)jacobian(Many(), {x}); }, "jacobian: the function is null"},
      {[&] { (void)jacobian(same, i); }, "jacobian: input 0 must be a float, got i64[3]; let the function refer to it"},
      {[&] {
         (void)jacobian(same, ones({1, 1, 1, 1, 1}));
       },
       "jacobian: the axes of result and input together are more than 8: [1, 1, 1, 1, 1] and [1, 1, 1, 1, 1]; flatten "
       "them in the function"},
      {[&] { (void)hessian(One(), x); }, "hessian: the function is null"},
      {[&] { (void)hessian(same, x); }, "hessian: the function must give one element, got f32[2]"},
      {[&] { (void)hvp(One(), x, x); }, "hvp: the function is null"},
      {[&] { (void)hvp(same, x, x); }, "hvp: the function must give one element, got f32[2]"},
      {[&] { (void)hvp(same, ones({}), x); }, "hvp: vector 0 must be f32[], got f32[2]"},
      {[&] { (void)value_and_grad(One()); }, "value_and_grad: the function is null"},
      {[&] { (void)value_and_grad(first, {x}); }, "value_and_grad: the function must give one element, got f32[2]"},
      {[&] { (void)value_and_grad(first, {ones({})}, std::vector<Parameter>(1)); },
       "value_and_grad: parameter 0 of the list is an empty handle"},
      {[&] { (void)value_and_grad(first, {i}); }, "watch: only floats have gradients, got i64[3]"},
  };
  for (const Case& c : cases)
    BOOST_CHECK_EXCEPTION(c.call(), Error, [&](const Error& e) {
      BOOST_TEST(std::string(e.what()) == c.says);
      return true;
    });
}

BOOST_AUTO_TEST_SUITE_END()
