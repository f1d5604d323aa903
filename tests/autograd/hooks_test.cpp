// Hooks on gradients of tensors and of parameters.
#include "ferrite/autograd/hooks.h"

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/autograd/value_and_grad.h"
#include "ferrite/compile/compile.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {60, stream, 0}, -1, 1, Dtype::f64); }

}  // namespace

BOOST_AUTO_TEST_SUITE(hooks)

/// The hooked tensor has two readers; the hook sees the sum of their gradients, once.
BOOST_AUTO_TEST_CASE(a_hook_sees_the_whole_gradient_and_replaces_it) {
  const Tensor in = draw({3}, 1);
  for (const bool replaces : {false, true}) {
    Tensors seen;
    Tape tape;
    const Tensor x = tape.watch(in);
    const Tensor h = hook_gradient(2 * x, [&](const Tensor& g) {
      seen.push_back(g);
      return replaces ? g * 10 : Tensor();
    });
    BOOST_TEST(identical(h, 2 * in));
    const Tensor g = tape.grad(sum(h * h) + sum(3 * h), {x})[0];
    BOOST_TEST(seen.size() == 1U);
    BOOST_TEST(identical(seen[0], 2 * (2 * in) + 3));
    BOOST_TEST(identical(g, (replaces ? 20 : 2) * seen[0]));
  }
}

BOOST_AUTO_TEST_CASE(a_hook_is_differentiated_and_compiled) {
  const auto f = [](const Tensor& t) {
    return sum(square(hook_gradient(square(t), [](const Tensor& g) { return g * g; })));
  };
  const Tensor x = draw({3}, 2);
  // The hook turns the gradient 2 y at y = x^2 into 4 y^2; times 2 x this is 8 x^5. Of its gradient, 2 x gives 8 x^4,
  // and y gives 16 x y, which passes the hook as well: (16 x^3)^2 times 2 x, as in PyTorch.
  const auto second = [&](const Tensor& t) { return sum(grad(f)(t)); };
  BOOST_TEST(support::within(grad(f)(x), 8 * pow(x, 5), 1e-14));
  BOOST_TEST(support::within(grad(second)(x), 8 * pow(x, 4) + 512 * pow(x, 7), 1e-12));
  BOOST_TEST(identical(compile(grad(f))(x), grad(f)(x)));
  BOOST_TEST(identical(grad([&](const Tensor& t) { return compile(f)(t); })(x), grad(f)(x)));
  BOOST_TEST(identical(compile(f)(x), f(x)));
}

BOOST_AUTO_TEST_CASE(hooks_of_parameters) {
  const Parameter p("p", draw({2}, 3)), q("q", draw({2}, 4));
  const std::vector<Parameter> all{p, q};
  const auto gradients = [&] {
    Tape tape;
    return tape.grad(sum(p.value() * p.value() * q.value()), all);
  };
  const Tensors plain = gradients();
  {
    int calls = 0;
    const GradientHook doubles(p, [&](const Tensor& g) {
      ++calls;
      return 2 * g;
    });
    Tensor seen;
    const GradientHook observes(p, [&](const Tensor& g) {
      seen = g;
      return Tensor();
    });
    const Tensors g = gradients();
    BOOST_TEST(calls == 1);
    BOOST_TEST(identical(g[0], 2 * plain[0]));
    BOOST_TEST(identical(seen, g[0]));
    BOOST_TEST(identical(g[1], plain[1]));
    const auto r = value_and_grad([&](const Tensors&) { return sum(p.value() * p.value() * q.value()); }, {}, all);
    BOOST_TEST(identical(r.parameters[0], g[0]));
    const auto compiled = compile([&](const Tensor&) { return gradients(); });
    BOOST_TEST(identical(compiled(ones({}))[0], g[0]));
  }
  BOOST_TEST(identical(gradients()[0], plain[0]));
}

/// A parameter that was not read has no gradient that its hook could see.
BOOST_AUTO_TEST_CASE(an_unread_parameter_calls_no_hook) {
  const Parameter p("p", draw({2}, 5)), q("q", draw({2}, 6));
  const std::vector<Parameter> all{p, q};
  const GradientHook never(q, [](const Tensor&) -> Tensor { throw ValueError("called"); });
  Tape tape;
  BOOST_TEST(!tape.grad(sum(p.value()), all)[1].defined());
}

BOOST_AUTO_TEST_CASE(wrong_calls) {
  const Parameter p("weight", ones({2}));
  BOOST_CHECK_EXCEPTION((void)hook_gradient(ones({2}), nullptr), ValueError, says("hook_gradient: the hook is null"));
  BOOST_CHECK_EXCEPTION((void)GradientHook(p, nullptr), ValueError, says("GradientHook: the hook on 'weight' is null"));
  BOOST_CHECK_EXCEPTION((void)GradientHook(Parameter(), [](const Tensor& g) { return g; }), ValueError,
                        says("GradientHook: the parameter is an empty handle"));
  const auto wrong = [](const Tensor&) { return ones({3}); };
  Tape tape;
  const Tensor x = tape.watch(ones({2}));
  BOOST_CHECK_EXCEPTION((void)tape.grad(sum(hook_gradient(x, wrong)), {x}), ShapeError,
                        says("hook_gradient: the hook must give a gradient like the one that it was given: f32[3] for "
                             "f32[2]"));
  const GradientHook hook(p, wrong);
  const std::vector<Parameter> all{p};
  Tape other;
  BOOST_CHECK_EXCEPTION((void)tape.grad(sum(p.value() * x), all, {.retain = true}), ShapeError,
                        says("GradientHook on 'weight': the hook must give a gradient like the one that it was given: "
                             "f32[3] for f32[2]"));
}

BOOST_AUTO_TEST_SUITE_END()
