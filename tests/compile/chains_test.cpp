// Chains of cheap operations, which run in registers, and rows that chains read and write in place.
#include <limits>

#include "ferrite/compile/compile.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {71, stream, 0}, -2, 2); }

template <class F>
void check(const F& f, const Tensors& in, const std::string& what) {
  const auto compiled = compile(f);
  const Tensors got = compiled(in), wanted = f(in);
  for (std::size_t k = 0; k < wanted.size(); ++k)
    BOOST_TEST(identical(got[k], wanted[k]), what << ", result " << k << "\n" << compiled.report().str());
}

/// Applies more operations to more operands than one chain holds: values on either side, alone, twice, literals first
/// and last.
Tensors many(const Tensors& x) {
  Tensor y = x[0] * x[1] + x[2];
  for (int i = 0; i < 6; ++i) y = relu(y - x[3] * 0.5) + square(x[static_cast<std::size_t>(i % 4)]);
  const Tensor z = 2.0 - x[1] * x[2];
  const Tensor both = (x[0] * x[1]) * (x[2] * x[3]);
  const Tensor shared = -y;
  return {1.5 * x[0] - y, z - both, (x[0] - x[1]) - (x[2] - x[3]), shared * shared, relu(3.0 * (shared - x[0] * 2.0))};
}

/// Rotates pairs (i, i + half) of each row, as rotary position embedding does.
Tensors turned(const Tensors& in) {
  const std::int64_t half = in[1].shape()[-1];
  const Tensor a = slice(in[0], -1, 0, half), b = slice(in[0], -1, half);
  return {concat({a * in[1] - b * in[2], b * in[1] + a * in[2]}, -1)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chains)

BOOST_AUTO_TEST_CASE(of_any_length_have_the_bits_of_single_operations) {
  for (const std::int64_t n : {1, 15, 16, 17, 63, 64, 127, 129, 1000, 1025, 5000, 70000})
    check(many, {draw({n}, 1), draw({n}, 2), draw({n}, 3), draw({n}, 4)}, std::to_string(n) + " elements");
  check(many, {draw({}, 1), draw({7, 5}, 2), draw({5}, 3), draw({7, 1}, 4)}, "broadcast");
  check(many, {draw({}, 1), draw({1}, 2), draw({}, 3), draw({33, 70}, 4)}, "repeated values");
}

BOOST_AUTO_TEST_CASE(keep_zeros_and_nans) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> list = {0.0F, -0.0F, 1e-42F, -1e-42F, inf, -inf, nan, 1.0F, -1.0F, 3e38F};
  const auto n = static_cast<std::int64_t>(list.size());
  const Tensor x = Tensor::from(list, {n, 1}), y = Tensor::from(list, {1, n});
  const auto f = [](const Tensors& in) {
    const Tensor &a = in[0], &b = in[1];
    return Tensors{relu(a * b), relu(-relu(a)) + b * b, relu(a + b) - a * b, -(a - b) * 1.0, relu(a)};
  };
  check(f, {x, y}, "special values");
  check(f, {expand(x, {n, 10}), expand(y, {n, 10})}, "expanded");
  BOOST_TEST(!std::signbit(relu(Tensor::from(list, {n})).to_vector<float>()[1]));
}

BOOST_AUTO_TEST_CASE(read_and_write_rows_where_they_stand) {
  for (const std::int64_t half : {8, 16, 24, 32, 64, 96, 160, 512, 1500})
    for (const Shape& lead : {Shape{3, 10}, Shape{1, 7}, Shape{5, 64}, Shape{2, 1}, Shape{9, 33}}) {
      const std::int64_t batch = lead[0], length = lead[1];
      const std::string what = std::to_string(batch) + " x " + std::to_string(length) + " x 2 " + std::to_string(half);
      check(turned, {draw({batch, length, 2 * half}, 1), draw({length, half}, 2), draw({length, half}, 3)}, what);
    }
}

BOOST_AUTO_TEST_CASE(read_operands_from_afar) {
  const auto f = [](const Tensors& x) { return Tensors{tanh(x[0] * x[1]) + x[2] * x[3], x[0] - exp(x[1])}; };
  for (const std::int64_t n : {5000, 700001})
    check(f, {draw({7, n}, 1), draw({7, 1}, 2), draw({n}, 3), draw({7, n}, 4)}, "rows of " + std::to_string(n));
  for (const std::int64_t n : {700000, 700001, 5000003})
    check(f, {draw({n}, 1), draw({n}, 2), draw({n}, 3), draw({n}, 4)}, std::to_string(n) + " elements");
}

/// Large results are written alone, as rows that are each cut into tiles, and adjacent, so that the second begins
/// within a cache line.
BOOST_AUTO_TEST_CASE(write_large_results_past_the_caches) {
  const auto one = [](const Tensors& x) { return Tensors{x[0] - x[1]}; };
  const auto several = [](const Tensors& x) { return Tensors{relu(x[0] * x[1] + x[2]) - x[1] * 0.5}; };
  const auto joined = [](const Tensors& x) { return Tensors{concat({x[0] + x[1], x[1] * x[2]}, 0)}; };
  const std::int64_t n = 4194311;
  const Tensors x = {draw({n}, 1), draw({n}, 2), draw({n}, 3)};
  check(one, x, "one operation");
  check(several, x, "several operations");
  check(joined, x, "joined");
  check(several, {draw({5, 1000003}, 1), draw({1000003}, 2), draw({5, 1000003}, 3)}, "rows");
  check(several, {draw({5, 1000003}, 1), draw({5, 1}, 2), draw({5, 1000003}, 3)}, "one value for each row");
}

BOOST_AUTO_TEST_SUITE_END()
