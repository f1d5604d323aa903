// Functions with a hand-written gradient: first and second order, eager, compiled and scanned, and errors.
#include "ferrite/autograd/custom_function.h"

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/jvp.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/operations.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f64) {
  return uniform(shape, {57, stream, 0}, -1, 1, dtype);
}

/// Returns x^3 y with its gradient.
const CustomFunction& cubed() {
  static const CustomFunction f = custom_function(
      "cubed", [](const Tensors& x) { return Tensors{x[0] * x[0] * x[0] * x[1]}; },
      [](const Tensors& x, const Tensors&, const Tensors& g) {
        return Tensors{g[0] * 3 * x[0] * x[0] * x[1], g[0] * x[0] * x[0] * x[0]};
      });
  return f;
}

/// Returns e^x, whose gradient reads the result, and x + 1 as a second result.
CustomFunction exponential(bool once = false) {
  return custom_function(
      "exponential",
      [](const Tensors& x) {
        return Tensors{exp(x[0]), x[0] + 1};
      },
      [](const Tensors&, const Tensors& y, const Tensors& g) { return Tensors{g[0] * y[0] + g[1]}; },
      {.once_differentiable = once});
}

/// Returns a function with another gradient than its own, which no derivative of its operations could be.
const CustomFunction& reversed() {
  static const CustomFunction f = custom_function(
      "reversed", [](const Tensors& x) { return Tensors{2 * x[0]}; },
      [](const Tensors&, const Tensors&, const Tensors& g) { return Tensors{-7 * g[0]}; });
  return f;
}

Tensor gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  Tape tape;
  const Tensor v = tape.watch(x);
  return tape.grad(sum(f(v)), {v})[0];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(custom_functions)

BOOST_AUTO_TEST_CASE(gradients_of_first_and_second_order) {
  const Tensors in = {draw({2, 3}, 1), draw({2, 3}, 2)};
  BOOST_TEST(gradcheck([](const Tensors& x) { return cubed()(x[0], x[1]); }, in, {.order = 2}).ok);
  const auto both = [](const Tensors& x) {
    const Tensors y = exponential()(x);
    return y[0] * y[1];
  };
  BOOST_TEST(gradcheck(both, {draw({3}, 3)}, {.order = 2}).ok);
  const auto one = [](const Tensors& x) { return exponential()(x)[0]; };
  BOOST_TEST(gradcheck(one, {draw({}, 4)}, {.order = 2}).ok);
}

BOOST_AUTO_TEST_CASE(the_gradient_is_the_one_that_was_written) {
  const Tensor x = draw({4}, 5, Dtype::f32);
  BOOST_TEST(identical(reversed()(x), 2 * x));
  BOOST_TEST(identical(gradient([](const Tensor& v) { return reversed()(v * 1); }, x), full({4}, -7)));
  const auto compiled =
      compile([](const Tensor& v) { return gradient([](const Tensor& t) { return reversed()(t) * t; }, v); });
  BOOST_TEST(identical(compiled(x), gradient([](const Tensor& t) { return reversed()(t) * t; }, x)));
}

/// A function may be compiled without a gradient and differentiated later.
BOOST_AUTO_TEST_CASE(a_compiled_function_has_that_gradient) {
  const Tensor x = draw({4}, 6, Dtype::f32);
  const auto f = [](const Tensor& v) { return reversed()(v) * v; };
  const auto compiled = compile(f);
  BOOST_TEST(identical(compiled(x), f(x)));
  BOOST_TEST(identical(gradient(compiled, x), gradient(f, x)));
  BOOST_TEST(compiled.report().str().find("custom_gradient") == std::string::npos);
  const Tensor y = draw({3}, 7);
  BOOST_TEST(identical(
      grad([&](const Tensor& v) {
        return sum(
            grad([&](const Tensor& t) { return sum(compile([](const Tensor& u) { return cubed()(u, u); })(t)); })(v));
      })(y),
      grad([&](const Tensor& v) { return sum(grad([&](const Tensor& t) { return sum(cubed()(t, t)); })(v)); })(y)));
}

BOOST_AUTO_TEST_CASE(a_scan_has_that_gradient) {
  const Tensor x = draw({5, 3}, 8), h = draw({3}, 9), w = draw({3}, 10);
  const auto step = [&](const Tensor& carry, const Tensor& in) {
    return reversed()(carry * w) * 0.25 + cubed()(in, carry);
  };
  const auto scanned = [&](const Tensors& in) {
    return scan(
               [&](const Tensors& carry, const Tensors& xs) -> ScanStep {
                 return {{step(carry[0], xs[0])}, {}};
               },
               {in[0]}, {in[1]})
        .carry[0];
  };
  const auto unrolled = [&](const Tensors& in) {
    Tensor carry = in[0];
    for (const Tensor& t : unbind(in[1])) carry = step(carry, t);
    return carry;
  };
  const auto gradients = [&](const auto& f) {
    Tape tape;
    const Tensors in = {tape.watch(h), tape.watch(x)};
    return tape.grad(sum(f(in)), in);
  };
  const Tensors a = gradients(scanned), b = gradients(unrolled);
  BOOST_TEST(within(a[0], b[0], 1e-14));
  BOOST_TEST(within(a[1], b[1], 1e-14));
}

BOOST_AUTO_TEST_CASE(directional_derivatives_pass_it) {
  const Tensor x = draw({3}, 11), v = draw({3}, 12);
  const auto [y, dy] = jvp([](const Tensor& t) { return cubed()(t, t); }, x, v);
  BOOST_TEST(within(dy, 4 * x * x * x * v, 1e-14));
}

BOOST_AUTO_TEST_CASE(once_differentiable_refuses_the_second) {
  const Tensor x = draw({3}, 13);
  const auto f = exponential(true);
  const auto value = [&](const Tensor& t) { return sum(f(Tensors{t})[0]); };
  BOOST_TEST(identical(grad(value)(x), exp(x)));
  const auto refused = says(
      "custom_function 'exponential': a gradient of its gradient was asked for, and it is declared "
      "once_differentiable; "
      "write backward in operations and drop that option");
  BOOST_CHECK_EXCEPTION((void)grad([&](const Tensor& t) { return sum(grad(value)(t)); })(x), TapeError, refused);
}

BOOST_AUTO_TEST_CASE(wrong_calls) {
  using In = const Tensors&;
  const auto same = [](In x) { return x; };
  const auto none = [](In, In, In) { return Tensors{}; };
  const auto null = CustomFunction::Forward();
  BOOST_CHECK_EXCEPTION(custom_function("", same, none), ValueError,
                        says("custom_function: the name is empty: ''; errors are told by it"));
  BOOST_CHECK_EXCEPTION(custom_function("f", null, none), ValueError,
                        says("custom_function 'f': the forward function is null"));
  BOOST_CHECK_EXCEPTION(custom_function("f", same, nullptr), ValueError,
                        says("custom_function 'f': the backward function is null"));
  const Parameter p("weight", ones({3}));
  const auto reads = custom_function(
      "f", [&](In x) { return Tensors{x[0] * p.value()}; }, none);
  const auto shapes = custom_function("f", same, [](In, In, In) { return Tensors{ones({2})}; });
  const auto types = custom_function("f", same, [](In, In, In) { return Tensors{ones({3}, Dtype::f64)}; });
  const auto fewer = custom_function("f", same, none);
  const auto undefined = custom_function(
      "f", [](In) { return Tensors(1); }, none);
  const auto take = [](const CustomFunction& f) {
    Tape tape;
    const Tensor x = tape.watch(ones({3}));
    (void)tape.grad(sum(f(x)), {x});
  };
  BOOST_CHECK_EXCEPTION(take(reads), TapeError,
                        says("custom_function 'f': the function reads a parameter, but no gradient would reach it: "
                             "'weight' f32[3]; make its value an input"));
  BOOST_CHECK_EXCEPTION(take(shapes), ShapeError,
                        says("custom_function 'f': the gradient of input 0 must be f32[3], got f32[2]"));
  BOOST_CHECK_EXCEPTION(take(types), ShapeError,
                        says("custom_function 'f': the gradient of input 0 must be f32[3], got f64[3]"));
  BOOST_CHECK_EXCEPTION(
      take(fewer), ValueError,
      says("custom_function 'f': the backward function must give a gradient for each input: it gave 0 "
           "for 1; leave those that have none undefined"));
  BOOST_CHECK_EXCEPTION(take(undefined), ValueError,
                        says("custom_function 'f': result 0 of the forward function is undefined"));
  BOOST_CHECK_EXCEPTION(
      (void)exponential()(ones({3})), ValueError,
      says("custom_function 'exponential': called for one result, and it gives 2; call it with a list "
           "of inputs"));
  Tape tape;
  const Tensor x = tape.watch(ones({3}));
  const auto captures = custom_function(
      "f", [&](In in) { return Tensors{in[0] * x}; }, none);
  BOOST_CHECK_EXCEPTION((void)captures(x), TapeError,
                        says("custom_function 'f': the function refers to a tensor that is recorded on a tape, and mul "
                             "reads it, but no gradient would reach it: f32[3]; make it an input, or detach it"));
}

/// A program as text holds the values of its function, but no gradient.
BOOST_AUTO_TEST_CASE(a_program_from_a_text) {
  const Spec spec[] = {{{3}, Dtype::f64}};
  const Graph g = trace([](const Tensors& x) { return Tensors{reversed()(x[0]) * 3}; }, spec);
  const Graph back = parse_graph(g.str(), {.operations = program_operations()});
  BOOST_TEST(back.str() == g.str());
  const Tensor x = draw({3}, 14);
  BOOST_TEST(identical(replay(back, {&x, 1})[0], 6 * x));
  BOOST_CHECK_EXCEPTION((void)gradient(
                            [&](const Tensor& t) {
                              return replay(back, {&t, 1})[0];
                            },
                            x),
                        TapeError,
                        says("custom_gradient: a program read from a text has no gradient written by hand; "
                             "differentiate the function that it was traced from"));
}

/// An undefined gradient counts as zero, also for an input that nothing else reads.
BOOST_AUTO_TEST_CASE(an_input_without_a_gradient) {
  const auto f = custom_function(
      "first", [](const Tensors& x) { return Tensors{x[0] + x[1]}; },
      [](const Tensors&, const Tensors&, const Tensors& g) {
        return Tensors{g[0], Tensor()};
      });
  Tape tape;
  const Tensor x = tape.watch(ones({2})), y = tape.watch(ones({2}));
  const Tensors g = tape.grad(sum(f(x, y)), {x, y});
  BOOST_TEST(identical(g[0], ones({2})));
  BOOST_TEST(identical(g[1], zeros({2})));
}

BOOST_AUTO_TEST_SUITE_END()
