// Arithmetic on lists of tensors, comparison within tolerances, and indexing.
#include "ferrite/tensor/lists.h"

#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/tensor/allclose.h"
#include "ferrite/tensor/index.h"
#include "support/compare.h"
#include "support/wrong_calls.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Tensor of(std::initializer_list<double> values) { return Tensor::from(values); }

}  // namespace

BOOST_AUTO_TEST_SUITE(tensor_lists)

BOOST_AUTO_TEST_CASE(arithmetic) {
  const Tensors a = {of({1, 2}), Tensor(), of({3}), Tensor()}, b = {of({10, 20}), of({5}), Tensor(), Tensor()};
  const Tensors sum = lists::add(a, b, 2), plain = lists::add(a, b), difference = lists::sub(a, b);
  BOOST_TEST(identical(sum[0], of({21, 42})));
  BOOST_TEST(identical(sum[1], of({10})));
  BOOST_TEST(identical(sum[2], of({3})));
  BOOST_TEST(!sum[3].defined());
  BOOST_TEST(identical(plain[0], of({11, 22})));
  BOOST_TEST(identical(difference[0], of({-9, -18})));
  BOOST_TEST(identical(difference[1], of({-5})));
  BOOST_TEST(identical(difference[2], of({3})));
  BOOST_TEST(!difference[3].defined());
  BOOST_TEST(identical(lists::scale(a, 3)[0], of({3, 6})));
  BOOST_TEST(identical(lists::scale(a, of({0.5}))[2], of({1.5})));
  BOOST_TEST(!lists::scale(a, 3)[1].defined());
  BOOST_TEST(lists::dot(a, b).item<double>() == 50);
  BOOST_TEST(lists::norm(a).item<double>() == std::sqrt(14.0));
  BOOST_TEST(identical(lists::zip([](const Tensor& x, const Tensor& y) { return x * y; }, a, b)[0], of({10, 40})));
  BOOST_TEST(identical(lists::zeros_like(a)[0], of({0, 0})));
  BOOST_TEST(lists::all_finite(a));
  BOOST_TEST(!lists::all_finite(Tensors{of({1}), of({1, std::numeric_limits<double>::infinity()})}));
  Tape tape;
  const Tensor x = tape.watch(of({3, 4}));
  BOOST_TEST(lists::detach(Tensors{x})[0].tape_slot() == 0U);
  const Tensor g = tape.grad(lists::norm(Tensors{x, 2 * x}), {x})[0];  // sqrt(5) |x|
  BOOST_TEST(support::within(g, of({0.6, 0.8}) * std::sqrt(5.0), 1e-15));
}

BOOST_AUTO_TEST_CASE(vectors_and_back) {
  const Tensors list = {reshape(of({1, 2, 3, 4, 5, 6}), {2, 3}), full({}, 7.0, Dtype::f64), zeros({0}, Dtype::f64)};
  const Tensor v = lists::flatten(list);
  BOOST_TEST(identical(v, of({1, 2, 3, 4, 5, 6, 7})));
  const Tensors back = lists::unflatten(v, list);
  for (std::size_t i = 0; i < list.size(); ++i) BOOST_TEST(identical(back[i], list[i]));
  BOOST_TEST(identical(lists::flatten(Tensors{transpose(list[0])}), of({1, 4, 2, 5, 3, 6})));
  const std::vector<Parameter> p = {Parameter("a", list[0]), Parameter("b", list[1])};
  BOOST_TEST(identical(parameters_to_vector(p), v));
  vector_to_parameters(v * 2, p);
  BOOST_TEST(identical(p[0].value(), list[0] * 2));
  BOOST_TEST(identical(p[1].value(), list[1] * 2));
  Tape tape;
  const Tensors g = tape.grad(sum(square(parameters_to_vector(p))), p);
  BOOST_TEST(identical(g[0], list[0] * 4));
  const auto step = compile([&](const Tensor& d) { vector_to_parameters(parameters_to_vector(p) + d, p); });
  step(ones({7}, Dtype::f64));
  BOOST_TEST(identical(p[1].peek(), list[1] * 2 + 1));
}

BOOST_AUTO_TEST_CASE(wrong_lists) {
  const Tensors one = {of({1, 2})}, two = {of({1, 2}), Tensor()}, none(1);
  const std::vector<Parameter> p = {Parameter("a", of({1, 2}))};
  support::check_refused<Error>({
      {[&] { (void)lists::add(one, two); }, "lists::add: the lists have different lengths: 1 and 2"},
      {[&] { (void)lists::sub(two, one); }, "lists::sub: the lists have different lengths: 2 and 1"},
      {[&] { (void)lists::dot(one, two); }, "lists::dot: the lists have different lengths: 1 and 2"},
      {[&] { (void)lists::zip([](const Tensor& x, const Tensor&) { return x; }, one, two); },
       "lists::zip: the lists have different lengths: 1 and 2"},
      {[&] { (void)lists::map(nullptr, one); }, "lists::map: the function is null"},
      {[&] { (void)lists::zip(nullptr, one, one); }, "lists::zip: the function is null"},
      {[&] { (void)lists::scale(one, one[0]); }, "lists::scale: the factor must hold one element, got f64[2]"},
      {[&] { (void)lists::dot(none, none); }, "lists::dot: no pair of tensors is defined, of 1"},
      {[&] { (void)lists::norm(none); }, "lists::norm: no tensor is defined, of 1"},
      {[&] { (void)lists::flatten({}); }, "lists::flatten: the list is empty"},
      {[&] { (void)lists::flatten(two); }, "lists::flatten: tensor 1 is undefined; give zeros in its place"},
      {[&] {
         (void)lists::unflatten(of({1, 2}), two);
       },
       "lists::unflatten: tensor 1 is undefined"},
      {[&] { (void)lists::unflatten(of({1}), one); },
       "lists::unflatten: the vector must hold the elements of all tensors, [2], got [1]"},
      {[&] { vector_to_parameters(of({1}), p); },
       "vector_to_parameters: the parameters have 2 elements, the vector is f64[1]"},
      {[&] { vector_to_parameters(ones({2}), p); },
       "vector_to_parameters: 'a' holds f64[2], the vector is f32[2]; cast it"},
  });
  BOOST_TEST(identical(p[0].value(), of({1, 2})));
}

/// Expected: torch.allclose of the same values.
BOOST_AUTO_TEST_CASE(close_tensors) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = of({1, -2, 0});
  BOOST_TEST(allclose(x, x));
  BOOST_TEST(allclose(x * (1 + 9e-6), x));
  BOOST_TEST(!allclose(x * (1 + 2e-5), x));
  BOOST_TEST(allclose(x + 9e-9, x));
  BOOST_TEST(!allclose(of({2e-8}), of({0})));
  BOOST_TEST(allclose(of({0.5}), of({0}), {.absolute = 0.5}));
  // The tolerance is relative to the second: |1 - 2| <= 0.5 * 2, but not <= 0.5 * 1.
  BOOST_TEST(allclose(of({1}), of({2}), {.relative = 0.5, .absolute = 0}));
  BOOST_TEST(!allclose(of({2}), of({1}), {.relative = 0.5, .absolute = 0}));
  BOOST_TEST(allclose(of({inf, -inf}), of({inf, -inf})));
  BOOST_TEST(!allclose(of({inf}), of({-inf})));
  BOOST_TEST(!allclose(of({1}), of({inf})));
  BOOST_TEST(!allclose(of({nan}), of({nan})));
  BOOST_TEST(allclose(of({nan, 1}), of({nan, 1}), {.equal_nan = true}));
  BOOST_TEST(allclose(reshape(x, {1, 3}), expand(x, {2, 3})));
  BOOST_TEST(allclose(cast(x, Dtype::bf16), cast(x, Dtype::f32)));
  BOOST_TEST(allclose(zeros({0}), ones({0})));
  support::check_refused<Error>({
      {[&] {
         (void)allclose(x, of({1, 2}));
       },
       "allclose: shapes do not broadcast: [3] with [2]; extent 3 meets 2"},
      {[&] { (void)allclose(x, x, {.relative = -1}); },
       "allclose: the tolerances must be finite and must not be negative, got -1.0 and 1e-08"},
      {[&] { (void)compile([&](const Tensor& t) { return allclose(t, t) ? t : t * 2; })(x); },
       "allclose: it reads values, and these are traced: f64[3] and f64[3]; call it outside of the traced function"},
  });
}

BOOST_AUTO_TEST_CASE(indices) {
  const Tensor x = reshape(arange(24), {2, 3, 4});
  BOOST_TEST(identical(at(x, {1}), select(x, 0, 1)));
  BOOST_TEST(identical(at(x, {-1, 0}), select(select(x, 0, 1), 0, 0)));
  BOOST_TEST(at(x, {1, 2, 3}).item<std::int64_t>() == 23);
  BOOST_TEST(identical(at(x, {{}, -1}), select(x, 1, 2)));
  BOOST_TEST(identical(at(x, {{}, {1, 3}}), slice(x, 1, 1, 3)));
  BOOST_TEST(identical(at(x, {0, {0, kEnd, 2}, {-2, kEnd}}), slice(slice(select(x, 0, 0), 0, 0, 3, 2), 1, 2, 4)));
  BOOST_TEST(identical(at(x, {{}, {kEnd, kEnd, -1}}), flip(x, {1})));
  BOOST_TEST((at(x, {{1, 1}}).shape() == Shape{0, 3, 4}));
  BOOST_TEST(identical(at(x, {}), x));
  const Tensor first = at(x, {0});
  BOOST_TEST(first.raw() == x.raw());
  BOOST_TEST(identical(x[1], select(x, 0, 1)));
  BOOST_TEST(identical(x[-2][2], at(x, {0, 2})));
  BOOST_TEST(x[1][std::size_t{2}][-1].item<std::int64_t>() == 23);
  const Tensor second = x[1], same = at(x, {1});
  BOOST_TEST(second.raw() == same.raw());
  support::check_refused<Error>({
      {[&] {
         (void)at(x, {0, 0, 0, 0});
       },
       "at: there are more indices than axes: 4 for i64[2, 3, 4]"},
      {[&] { (void)x[2]; }, "x[2]: there is no such element along the first axis of i64[2, 3, 4]"},
      {[&] { (void)x[0][-4]; }, "x[-4]: there is no such element along the first axis of i64[3, 4]"},
      {[&] { (void)zeros({})[0]; }, "x[0]: f32[] has no axes; item() reads its value"},
  });
  BOOST_CHECK_THROW((void)at(x, {2}), ShapeError);
  BOOST_CHECK_THROW((void)Tensor()[0], Error);
  Tape tape;
  const Tensor v = tape.watch(of({1, 2, 3}));
  BOOST_TEST(identical(tape.grad(v[1] * v[1] + v[-1], {v})[0], of({0, 4, 1})));
  const Tensor m = reshape(arange(6), {2, 3});
  BOOST_TEST(
      identical(compile([](const Tensor& t) { return t[1][0] + t[0]; })(m), Tensor::from<std::int64_t>({3, 4, 5})));
  BOOST_CHECK_THROW((void)at(x, {{0, 1, 0}}), ValueError);
}

BOOST_AUTO_TEST_SUITE_END()
