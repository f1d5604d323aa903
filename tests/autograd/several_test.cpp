// Several tensors differentiated together, each with its cotangent.
#include <boost/test/unit_test.hpp>

#include "ferrite/autograd/tape.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {31, stream, 0}, -1, 1, Dtype::f64); }

}  // namespace

BOOST_AUTO_TEST_SUITE(several)

/// The expected gradient is d(<a, x y> + <b, exp(x)> + z), computed by hand.
BOOST_AUTO_TEST_CASE(cotangents_add_up) {
  const Tensor a = draw({3}, 1), b = draw({3}, 2);
  Tape tape;
  const Tensor x = tape.watch(draw({3}, 3)), y = tape.watch(draw({3}, 4)), z = tape.watch(draw({}, 5));
  const Tensor product = x * y, e = exp(x);
  const Tensors g = tape.grad({{product, a}, {e, b}, {2 * z}}, {x, y, z});
  BOOST_TEST(within(g[0], a * y + b * e, 1e-15));
  BOOST_TEST(within(g[1], a * x, 1e-15));
  BOOST_TEST(g[2].item<double>() == 2);
}

/// The gradient is that of the sum of all results times their cotangents, even if one is part of another or comes
/// twice.
BOOST_AUTO_TEST_CASE(a_result_on_the_way_to_another_has_both) {
  const Tensor x0 = draw({4}, 6), a = draw({4}, 7), b = draw({4}, 8), c = draw({4}, 9);
  const auto gradient = [&](bool together) {
    Tape tape;
    const Tensor x = tape.watch(x0);
    const Tensor h = tanh(x), y = h * h;
    if (together) return tape.grad({{y, a}, {h, b}, {h, c}}, {x})[0];
    return tape.grad(sum(y * a) + sum(h * b) + sum(h * c), {x})[0];
  };
  BOOST_TEST(within(gradient(true), gradient(false), 1e-15));
}

/// Cotangents that meet in one tensor are added in the order of the list: (1 + tiny) - 1 is tiny, and so is (1 - 1) +
/// tiny, but (tiny + 1) - 1 loses part of it.
BOOST_AUTO_TEST_CASE(the_order_is_that_of_the_list) {
  const auto gradient = [](std::initializer_list<double> cotangents) {
    Tape tape;
    const Tensor x = tape.watch(full({}, 2.0, Dtype::f64));
    const Tensor y = 1 * x;
    std::vector<GradOf> of;
    for (const double c : cotangents) of.push_back({y, full({}, c, Dtype::f64)});
    const Tensor wrt[] = {x};
    return tape.grad(of, wrt)[0].item<double>();
  };
  BOOST_TEST(gradient({1, -1, 1e-17}) == 1e-17);
  BOOST_TEST(gradient({1e-17, 1, -1}) == 0);
}

BOOST_AUTO_TEST_CASE(parameters_and_second_order) {
  const Parameter w("w", draw({3}, 10)), unread("unread", draw({3}, 11));
  Tape tape;
  const Tensor v = w.value(), square_sum = sum(v * v * v), twice = 2 * v;
  const std::vector<Parameter> parameters = {w, unread};
  const Tensors g = tape.grad({{square_sum}, {twice, ones({3}, Dtype::f64)}}, parameters, {.create_graph = true});
  BOOST_TEST(!g[1].defined());
  BOOST_TEST(within(g[0], 3 * v * v + 2, 1e-15));
  BOOST_TEST(within(tape.grad({{g[0], ones({3}, Dtype::f64)}}, {w})[0], 6 * v, 1e-14));
}

BOOST_AUTO_TEST_CASE(mistakes) {
  Tape tape;
  const Tensor x = tape.watch(draw({2}, 12)), y = x * x, constant = ones({2}, Dtype::f64);
  BOOST_CHECK_EXCEPTION(tape.grad(std::initializer_list<GradOf>{}, {x}), ValueError,
                        says("grad: the list of what is differentiated is empty"));
  BOOST_CHECK_EXCEPTION(tape.grad({{y, constant}, {constant, constant}}, {x}), TapeError, says("is not on this tape"));
  BOOST_CHECK_EXCEPTION(tape.grad({{sum(y)}, {y}}, {x}), ShapeError, says("pass a cotangent"));
  BOOST_CHECK_EXCEPTION(tape.grad({{y, ones({3}, Dtype::f64)}, {y, constant}}, {x}), ShapeError, says("does not fit"));
  BOOST_TEST(identical(tape.grad({{y, constant}}, {x})[0], 2 * x));  // the error has changed nothing
}

BOOST_AUTO_TEST_SUITE_END()
