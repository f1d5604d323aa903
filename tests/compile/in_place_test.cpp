// Plans in place: values that a plan must not overwrite, and that its gradient needs.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/tensor/primitive.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {71, stream, 0}, -1, 1); }

/// x -> sum(x^2) with the gradient 2 x whatever its cotangent, as a hand-written loss may have it.
struct OwnLoss {
  static Specs infer(const Primitive&, Inputs in, const Attrs&) { return {{{}, in[0].dtype()}}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attrs&) {
    *ferrite::detail::Writer::data<float>(out[0]) = sum(square(in[0])).item();
  }
  static Tensors vjp(const Vjp& v) { return {2 * v.in(0)}; }
};
constexpr Primitive kOwnLoss = {.name = "own_loss",
                                .summary = "the sum of squares",
                                .arity = 1,
                                .infer = OwnLoss::infer,
                                .eval = OwnLoss::eval,
                                .vjp = OwnLoss::vjp,
                                .reads = ferrite::detail::reads_inputs};

}  // namespace

BOOST_AUTO_TEST_SUITE(in_place)

/// A kernel reads one value in its own order and transposed: elements that it has not yet read transposed must not be
/// overwritten. The value has more elements than a tile holds.
BOOST_AUTO_TEST_CASE(a_value_read_through_two_views_keeps_its_place) {
  for (const std::int64_t n : {3, 40, 64, 130}) {
    const auto f = [](const Tensor& a, const Tensor& w) {
      const Tensor u = matmul(a, w);
      return matmul(u * 2 + transpose(u), w);
    };
    const auto g = [](const Tensor& a, const Tensor& w) {
      const Tensor u = matmul(a, w);
      return matmul(tanh(u) - flip(u, {0}) * flip(u, {1}), w);
    };
    const Tensor a = draw({n, n}, 1), w = draw({n, n}, 2);
    BOOST_TEST(identical(compile(f)(a, w), f(a, w)), "turned, n = " << n);
    BOOST_TEST(identical(compile(g)(a, w), g(a, w)), "flipped, n = " << n);
  }
}

BOOST_AUTO_TEST_CASE(a_gradient_that_no_cotangent_reaches) {
  const auto f = [](const Tensor& x) {
    const Tensor y = tanh(x);
    const Tensor* const in[] = {&y};
    return kOwnLoss.apply(Inputs(in))[0];
  };
  const auto gradient = [](const auto& function, const Tensor& at) {
    Tape tape;
    const Tensor x = tape.watch(at);
    return tape.grad(function(x * 1), {x})[0];
  };
  const Tensor x = draw({5}, 3);
  BOOST_TEST(identical(gradient(compile(f), x), gradient(f, x)));
  const auto whole = [](const Tensor& z) {
    const Tensor* const in[] = {&z};
    return kOwnLoss.apply(Inputs(in))[0];
  };
  BOOST_TEST(identical(gradient(compile(whole), x), gradient(whole, x)));
}

BOOST_AUTO_TEST_SUITE_END()
