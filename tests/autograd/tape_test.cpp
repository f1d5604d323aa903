// Tapes: nesting, retaining, higher orders, undefined and zero gradients, and how tapes end.
#include "ferrite/autograd/tape.h"

#include <memory>
#include <thread>

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/compile/compile.h"
#include "support/compare.h"
#include "support/sanitized.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor scalar(double v) { return full({}, v, Dtype::f64); }

}  // namespace

BOOST_AUTO_TEST_SUITE(tapes)

BOOST_AUTO_TEST_CASE(gradient_of_a_polynomial) {
  Tape tape;
  const Tensor x = tape.watch(scalar(3));
  BOOST_TEST(tape.grad(x * x * x - 2 * x, {x})[0].item<double>() == 25.0);
}

BOOST_AUTO_TEST_CASE(derivatives_of_any_order) {
  const auto f = [](const Tensor& x) { return x * x * x * x; };
  BOOST_TEST(grad(grad(f))(scalar(2)).item<double>() == 48.0);
  BOOST_TEST(grad(grad(grad(f)))(scalar(2)).item<double>() == 48.0);
  BOOST_TEST(grad(grad(grad(grad(f))))(scalar(2)).item<double>() == 24.0);
  BOOST_TEST(grad(grad(grad(grad(grad(f)))))(scalar(2)).item<double>() == 0.0);
}

/// d/dy (x y) at y = x is x, although x and y are one tensor: the inner tape has its own variable.
BOOST_AUTO_TEST_CASE(inner_variables_are_told_from_outer_ones) {
  const auto outer = [](const Tensor& x) { return x * grad([&](const Tensor& y) { return x * y; })(x); };
  BOOST_TEST(outer(scalar(3)).item<double>() == 9.0);
  BOOST_TEST(grad(outer)(scalar(3)).item<double>() == 6.0);
}

BOOST_AUTO_TEST_CASE(create_graph_allows_a_second_gradient) {
  Tape tape;
  const Tensor x = tape.watch(Tensor::from({1.0, 2.0}));
  const Tensor g = tape.grad(sum(x * x * x), {x}, {.create_graph = true})[0];
  BOOST_TEST(identical(tape.grad(sum(g), {x})[0], Tensor::from({6.0, 12.0})));
}

BOOST_AUTO_TEST_CASE(entries_are_freed_unless_retained) {
  {
    Tape tape;
    const Tensor x = tape.watch(scalar(2));
    const Tensor y = x * x;
    (void)tape.grad(y, {x});
    BOOST_CHECK_EXCEPTION((void)tape.grad(y, {x}), TapeError, says("pass retain"));
  }
  Tape tape;
  const Tensor x = tape.watch(scalar(2));
  const Tensor y = x * x;
  (void)tape.grad(y, {x}, {.retain = true});
  BOOST_TEST(tape.grad(y, {x})[0].item<double>() == 4.0);
}

BOOST_AUTO_TEST_CASE(undefined_zero_and_refused) {
  Tape tape;
  const Parameter read("read", ones({2}));
  const Parameter unread("unread", ones({2}));
  const Tensor x = tape.watch(ones({2}));
  const Tensor y = tape.watch(ones({3}));
  const Tensor loss = sum(x * read);
  const Tensors g = tape.grad(loss, std::vector<Parameter>{read, unread}, {.retain = true});
  BOOST_TEST(g[0].defined());
  BOOST_TEST(!g[1].defined());
  BOOST_TEST(identical(tape.grad(loss, {y}, {.retain = true})[0], zeros({3})));
  BOOST_CHECK_EXCEPTION((void)tape.grad(loss, {ones({2})}), TapeError, says("never watched"));
  BOOST_CHECK_EXCEPTION((void)tape.grad(x, {x}), ShapeError, says("must hold one element, got [2]; pass a cotangent"));
  BOOST_CHECK_EXCEPTION((void)tape.grad(x, {x}, {}, ones({3})), ShapeError, says("cotangent f32[3] does not fit"));
  BOOST_CHECK_EXCEPTION((void)tape.watch(arange(3)), DtypeError, says("only floats have gradients"));
}

BOOST_AUTO_TEST_CASE(a_loss_that_is_not_on_the_tape_is_refused) {
  const Parameter p("p", ones({2}));
  const std::vector<Parameter> all{p};
  const auto loss_of = [&] { return sum(p.value() * p.value()); };
  const auto refused =
      says("grad: the differentiated tensor f32[] is not on this tape: it was computed before the tape");
  const Tensor before = loss_of();
  Tape tape;
  const Tensor loss = loss_of();
  Tensor elsewhere;
  std::thread([&] { elsewhere = loss_of(); }).join();
  for (const Tensor& off : {before, detach(loss), elsewhere, ones({})})
    BOOST_CHECK_EXCEPTION((void)tape.grad(off, all), TapeError, refused);
  const Tensor x = tape.watch(ones({2}));
  BOOST_CHECK_EXCEPTION((void)tape.grad(ones({}), {x}), TapeError, refused);
  BOOST_CHECK_EXCEPTION((void)tape.grad(loss, std::vector<Parameter>(1)), TapeError,
                        says("parameter 0 of the list is an empty"));
  BOOST_TEST(identical(tape.grad(loss, all)[0], full({2}, 2)));
}

BOOST_AUTO_TEST_CASE(functions_that_do_not_depend_on_their_variable_have_zeros) {
  BOOST_TEST(grad([](const Tensor&) { return scalar(3); })(scalar(2)).item<double>() == 0.0);
  const Tensors in = {Tensor::from({1.0, 2.0})};
  BOOST_TEST(gradcheck([](const Tensors& x) { return detach(x[0]) * 0; }, in).ok);
  const auto f = compile([](const Tensor& x, const Tensor& y) { return std::pair(x * 2, y * 1); });
  Tape tape;
  const Tensor x = tape.watch(ones({2})), y = tape.watch(ones({2}));
  const auto [a, b] = f(x, y);
  BOOST_TEST(identical(tape.grad(sum(a), {x, y})[1], zeros({2})));
}

BOOST_AUTO_TEST_CASE(null_functions_are_refused) {
  BOOST_CHECK_EXCEPTION((void)grad(std::function<Tensor(const Tensor&)>()), ValueError,
                        says("grad: the function is null"));
  BOOST_CHECK_EXCEPTION((void)gradcheck(nullptr, {scalar(1)}), ValueError, says("gradcheck: the function is null"));
}

/// Evaluating, averaging weights and logging read parameters after a step, while the tape still lives.
BOOST_AUTO_TEST_CASE(parameters_are_read_freely_after_the_gradient) {
  const Parameter p("p", ones({2}));
  const std::vector<Parameter> all{p};
  const auto loss_of = [&] { return sum(p.value() * p.value()); };
  Tape tape;
  const Tensors g = tape.grad(loss_of(), all);
  p.assign(p.value() - g[0]);
  BOOST_TEST(identical(loss_of(), full({}, 2)));
  const std::size_t recorded = tape.size();
  (void)loss_of();
  BOOST_TEST(tape.size() == recorded);
  const auto ended = says("which ended with an earlier gradient; make a new tape for every gradient, or pass retain");
  BOOST_CHECK_EXCEPTION((void)tape.grad(loss_of(), all), TapeError, ended);
  BOOST_CHECK_EXCEPTION((void)tape.watch(ones({2})), TapeError, says("watch: this tape ended with its gradient"));
  Tape next;  // not nested in the old one
  BOOST_TEST(identical(next.grad(loss_of(), all)[0], full({2}, -2)));
}

BOOST_AUTO_TEST_CASE(a_retained_tape_goes_on_watching) {
  const Parameter p("p", ones({2}));
  const std::vector<Parameter> all{p};
  Tape tape;
  const Tensor loss = sum(p.value() * p.value());
  (void)tape.grad(loss, all, {.retain = true});
  p.assign(full({2}, 5));
  BOOST_CHECK_EXCEPTION((void)p.value(), TapeError, says("take the last gradient without retain or create_graph"));
  BOOST_TEST(identical(p.peek(), full({2}, 5)));
  {
    const NewFrame frame;
    BOOST_TEST(identical(p.value(), full({2}, 5)));
  }
  (void)tape.grad(loss, all);
  BOOST_TEST(identical(p.value(), full({2}, 5)));
}

BOOST_AUTO_TEST_CASE(a_tape_may_end_on_another_thread) {
  const Parameter p("p", ones({2}));
  const std::vector<Parameter> all{p};
  const auto gradient = [&] {
    Tape tape;
    return tape.grad(sum(p.value() * p.value()), all)[0];
  };
  for (int i = 0; i < 3; ++i) {
    auto tape = std::make_unique<Tape>();
    Tensor loss = sum(p.value() * p.value());
    std::thread([&, taken = std::move(tape)]() mutable {
      if (i == 1) BOOST_TEST(identical(taken->grad(loss, all)[0], full({2}, 2)));
      taken.reset();
    }).join();
    loss = Tensor();
    (void)(p.value() * 2);
    BOOST_TEST(identical(gradient(), full({2}, 2)));
    BOOST_TEST(detail::frame().recorders.empty());
  }
  // The thread on which it began has ended before.
  std::unique_ptr<Tape> orphan;
  std::thread([&] {
    orphan = std::make_unique<Tape>();
    (void)p.value();
  }).join();
  orphan.reset();
  BOOST_TEST(identical(gradient(), full({2}, 2)));
  // The thread of this tape ends afterwards, without another tape.
  std::thread([&] {
    auto tape = std::make_unique<Tape>();
    (void)(p.value() * 2);
    std::thread([taken = std::move(tape)]() mutable { taken.reset(); }).join();
  }).join();
  BOOST_TEST(identical(gradient(), full({2}, 2)));
}

BOOST_AUTO_TEST_CASE(gradient_with_respect_to_an_intermediate) {
  Tape tape;
  const Tensor x = tape.watch(scalar(3));
  const Tensor y = x * x;
  const Tensor z = y * y + x;
  const Tensors g = tape.grad(z, {x, y});
  BOOST_TEST(g[0].item<double>() == 4 * 27.0 + 1);
  BOOST_TEST(g[1].item<double>() == 18.0);
}

BOOST_AUTO_TEST_CASE(a_tensor_used_twice_and_a_shared_graph) {
  Tape tape;
  const Tensor x = tape.watch(Tensor::from({2.0, 3.0}));
  const Tensor shared = exp(x);
  const Tensor a = sum(shared * shared);
  const Tensor b = sum(shared);
  const Tensor ga = tape.grad(a, {x}, {.retain = true})[0];
  const Tensor gb = tape.grad(b, {x}, {.retain = true})[0];
  const Tensor both = tape.grad(a + b, {x})[0];
  BOOST_TEST(within(both, ga + gb, 1e-14));
  BOOST_TEST(within(ga, 2 * exp(2 * Tensor::from({2.0, 3.0})), 1e-14));
}

BOOST_AUTO_TEST_CASE(detach_cuts) {
  Tape tape;
  const Tensor x = tape.watch(scalar(3));
  BOOST_TEST(tape.grad(x * detach(x), {x})[0].item<double>() == 3.0);
}

BOOST_AUTO_TEST_CASE(a_parameter_assigned_after_it_was_read) {
  const Parameter p("p", ones({2}));
  Tape tape;
  const Tensor loss = sum(p.value() * p.value());
  p.assign(full({2}, 5));
  BOOST_CHECK_EXCEPTION((void)p.value(), TapeError, says("parameter 'p' was assigned after this tape read it"));
  BOOST_TEST(identical(tape.grad(loss, std::vector<Parameter>{p})[0], full({2}, 2)));  // the value that was read
}

/// A tape does not hold the values it has seen, so others may get their addresses.
BOOST_AUTO_TEST_CASE(another_value_at_the_address_of_the_first) {
  const auto refused = says("parameter 'p' was assigned after this tape read it");
  for (const bool through_system : {false, true}) {
    const Parameter p("p", ones({100'000}));
    Tape tape;
    (void)p.value();
    p.assign(full({100'000}, 2));
    if (through_system) trim();
    p.assign(full({100'000}, 3));
    BOOST_CHECK_EXCEPTION((void)p.value(), TapeError, refused);
  }
  const Tensor rows = uniform({3, 4}, {1, 2, 3});
  const Parameter p("p", select(rows, 0, 0));
  Tape tape;
  (void)p.value();
  p.assign(select(rows, 0, 1));
  p.assign(select(rows, 0, 2));
  BOOST_CHECK_EXCEPTION((void)p.value(), TapeError, refused);
}

BOOST_AUTO_TEST_CASE(states_and_buffers_are_not_differentiated) {
  const State s("s", ones({2}));
  Tape tape;
  (void)(s.value() * 2);
  BOOST_TEST(tape.size() == 0U);
}

BOOST_AUTO_TEST_CASE(an_exception_in_the_middle_leaves_the_next_gradient_right) {
  const auto bad = [](const Tensor& x) { return x + ones({3}); };
  const Tensor start = ones({2});
  for (int i = 0; i < 3; ++i) {
    Tape tape;
    const Tensor x = tape.watch(start);
    BOOST_CHECK_THROW((void)bad(x * x), ShapeError);
    BOOST_TEST(identical(tape.grad(sum(x * x), {x})[0], full({2}, 2)));
  }
}

BOOST_AUTO_TEST_CASE(a_million_entries_end_without_recursion) {
  Tape tape;
  Tensor y = tape.watch(scalar(0));
  const Tensor x = y;
  const std::size_t n = support::unless_sanitized(1'000'000U, 100'000U);  // more than a stack of calls holds
  for (std::size_t i = 0; i < n; ++i) y = y + 1;
  BOOST_TEST(tape.size() == n);
  BOOST_TEST(tape.grad(y, {x})[0].item<double>() == 1.0);
}

BOOST_AUTO_TEST_CASE(ties_share_the_gradient) {
  Tape tape;
  const Tensor x = tape.watch(Tensor::from({1.0, 3.0, 3.0}));
  BOOST_TEST(identical(tape.grad(amax(x), {x}, {.retain = true})[0], Tensor::from({0.0, 0.5, 0.5})));
  const Tensor m = maximum(x, Tensor::from({1.0, 2.0, 4.0}));
  BOOST_TEST(identical(tape.grad(sum(m), {x})[0], Tensor::from({0.5, 1.0, 0.0})));
}

BOOST_AUTO_TEST_CASE(clamp_passes_the_gradient_at_its_bounds) {
  Tape tape;
  const Tensor x = tape.watch(Tensor::from({-2.0, -1.0, 0.0, 3.0, 4.0}));
  BOOST_TEST(identical(tape.grad(sum(clamp(x, -1, 3)), {x})[0], Tensor::from({0.0, 1.0, 1.0, 1.0, 0.0})));
}

BOOST_AUTO_TEST_CASE(a_nan_in_the_branch_not_taken_gives_gradient_zero) {
  Tape tape;
  const Tensor x = tape.watch(Tensor::from({4.0, -1.0}));
  const Tensor safe = where(gt(x, 0), x, 1);
  const Tensor y = where(gt(x, 0), log(safe), 0);
  BOOST_TEST(identical(tape.grad(sum(y), {x})[0], Tensor::from({0.25, 0.0})));
}

BOOST_AUTO_TEST_CASE(product_of_elements_with_zeros) {
  Tape tape;
  const Tensor x = tape.watch(Tensor::from({2.0, 0.0, 3.0, 0.0, 0.0, 5.0}, {2, 3}));
  const Tensor g = tape.grad(sum(prod(x, {1})), {x})[0];
  BOOST_TEST(identical(g, Tensor::from({0.0, 6.0, 0.0, 0.0, 0.0, 0.0}, {2, 3})));
}

BOOST_AUTO_TEST_CASE(cotangents_of_views_and_broadcasts) {
  Tape tape;
  const Tensor x = tape.watch(Tensor::from({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {2, 3}));
  const Tensor y = expand(select(flip(transpose(x), {0}), 0, 0), {4, 2});
  const Tensor cotangent = expand(Tensor::from({1.0, 10.0}), {4, 2});  // itself of stride 0
  BOOST_TEST(identical(tape.grad(y, {x}, {}, cotangent)[0], Tensor::from({0.0, 0.0, 4.0, 0.0, 0.0, 40.0}, {2, 3})));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(gradchecks)

BOOST_AUTO_TEST_CASE(accepts_what_is_right) {
  const Tensors in = {uniform({2, 3}, {1, 1, 1}, -1, 1, Dtype::f64), uniform({3, 2}, {1, 2, 1}, -1, 1, Dtype::f64)};
  const auto f = [](const Tensors& x) { return tanh(matmul(x[0], x[1])); };
  const GradcheckReport full = gradcheck(f, in, {.order = 2});
  BOOST_TEST(full.ok, full.str());
  const GradcheckReport some = gradcheck(f, in, {.order = 2, .directions = 4});
  BOOST_TEST(some.ok, some.str());
  BOOST_TEST(some.compared == 8);
}

/// The gradient is wrong at one element; the report names the input, the element and both values.
BOOST_AUTO_TEST_CASE(names_what_is_wrong) {
  const auto f = [](const Tensors& x) {
    const Tensor mask = Tensor::from({0.0, 0.0, 1.0});
    return x[0] + x[1] * (1 - mask) + detach(x[1]) * mask;
  };
  const Tensors in = {Tensor::from({1.0, 2.0, 3.0}), Tensor::from({4.0, 5.0, 6.0})};
  const GradcheckReport r = gradcheck(f, in);
  BOOST_TEST(!r.ok);
  BOOST_TEST(r.input == 1U);
  BOOST_TEST(r.index == 2);
  BOOST_TEST(r.analytic == 0.0);
  BOOST_TEST(std::fabs(r.numeric - 1) < 1e-9);
  BOOST_TEST(r.str().find("input 1, element 2, result 2: analytic 0, numeric 1") != std::string::npos, r.str());
  BOOST_TEST(!gradcheck(f, in, {.directions = 3}).ok);
}

/// Each input has its own directions, so that exchanged gradients of two inputs are found.
BOOST_AUTO_TEST_CASE(directions_find_exchanged_gradients) {
  const Tensors in = {Tensor::from({1.0}), Tensor::from({2.0}), Tensor::from({3.0}), Tensor::from({4.0})};
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::size_t k = i + 1; k < in.size(); ++k) {
      const auto f = [&](const Tensors& x) {
        const Tensor wrong = 3 * x[i] + 2 * x[k];
        return detach(2 * x[i] + 3 * x[k] - wrong) + wrong;
      };
      BOOST_TEST(!gradcheck(f, in, {.directions = 1}).ok, i << " and " << k);
    }
}

/// The gradient is right at first order and wrong at second, because part of it is cut from the tape.
BOOST_AUTO_TEST_CASE(the_second_order_is_checked_too) {
  const auto f = [](const Tensors& x) { return x[0] * detach(x[0]) * 2 - detach(x[0] * x[0]); };
  const Tensors in = {Tensor::from({1.0, 2.0})};
  BOOST_TEST(gradcheck(f, in).ok);
  const GradcheckReport r = gradcheck(f, in, {.order = 2});
  BOOST_TEST(!r.ok);
  BOOST_TEST(r.order == 2);
}

BOOST_AUTO_TEST_CASE(wants_doubles) {
  const auto f = [](const Tensors& x) { return x[0]; };
  BOOST_CHECK_EXCEPTION((void)gradcheck(f, {ones({2})}), DtypeError, says("inputs must be f64"));
  BOOST_CHECK_EXCEPTION((void)gradcheck(f, {ones({2}, Dtype::f64)}, {.order = 3}), ValueError,
                        says("order must be 1 or 2"));
}

/// These options would let every gradient pass, or none.
BOOST_AUTO_TEST_CASE(options_that_check_nothing) {
  const auto f = [](const Tensors& x) { return x[0]; };
  const Tensors in = {ones({2}, Dtype::f64)};
  BOOST_CHECK_EXCEPTION((void)gradcheck(f, {}), ValueError, says("gradcheck: there are no inputs"));
  for (const double bad : {-1.0, std::nan(""), HUGE_VAL}) {
    BOOST_CHECK_EXCEPTION((void)gradcheck(f, in, {.step = bad}), ValueError, says("gradcheck: the step must be"));
    BOOST_CHECK_EXCEPTION((void)gradcheck(f, in, {.tolerance = bad}), ValueError, says("gradcheck: the tolerance"));
  }
  BOOST_CHECK_EXCEPTION((void)gradcheck(f, in, {.step = 0}), ValueError, says("gradcheck: the step must be"));
  BOOST_CHECK_EXCEPTION((void)gradcheck(f, in, {.directions = -1}), ValueError, says("number of directions"));
}

BOOST_AUTO_TEST_SUITE_END()
