// Reductions of every kind and type, and gradients along rows, at lengths near those of packets, lanes and blocks.
// Expected values are docs/numerics.md, rule 3, written as loops; for gradients the operations of which they consist.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/ops/detail/normalization.h"
#include "ferrite/tensor/sampling.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

constexpr std::int64_t kLengths[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 1023, 1024, 1025, 1039, 1041, 2049, 3000};

/// Computes rule 3: 16 lanes, 8 for types of 8 bytes, in blocks of 1024; lanes halved pairwise, blocks ascending.
template <class T, class Join>
T by_the_rule(const T* x, std::int64_t n, T identity, const Join& join) {
  constexpr std::int64_t kLanes = sizeof(T) == 8 ? 8 : 16;
  T total = identity;
  for (std::int64_t b = 0; b < n; b += 1024) {
    T lanes[static_cast<std::size_t>(kLanes)];
    std::fill_n(lanes, kLanes, identity);
    for (std::int64_t i = b; i < std::min(n, b + 1024); ++i) {
      T& lane = lanes[(i - b) % kLanes];
      lane = join(lane, x[i]);
    }
    for (std::int64_t half = kLanes / 2; half >= 1; half /= 2)
      for (std::int64_t i = 0; i < half; ++i) lanes[i] = join(lanes[i], lanes[i + half]);
    total = join(total, lanes[0]);
  }
  return total;
}

/// Adds two numbers; integers wrap around.
template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  return a + b;
}
template <class T>
T product_of(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  return a * b;
}

/// Returns three rows of n numbers: integers of all sizes, or numbers near 1 and -1, so that products of thousands stay
/// in range.
template <class T>
Tensor three_rows(std::int64_t n) {
  if constexpr (std::is_integral_v<T>) {
    return cast(randint({3, n}, RandomKey{.seed = 9}, -2'000'000'000, 2'000'000'000), dtype_of<T>);
  } else {
    const Tensor size = uniform({3, n}, {.seed = 9}, 0.95, 1.05, dtype_of<T>);
    return where(uniform({3, n}, {.seed = 8}) < 0.5, -size, size);
  }
}

/// Checks that f along rows and along columns is, to the bit, what the rule computes for each.
template <class T, class F, class Join>
void check(const char* name, const F& f, const Tensor& x, T identity, const Join& join) {
  const std::int64_t n = x.shape()[1];
  const std::vector<T> values = x.to_vector<T>();
  std::vector<T> wanted;
  for (std::int64_t r = 0; r < 3; ++r) wanted.push_back(by_the_rule(values.data() + r * n, n, identity, join));
  const Tensor expected = Tensor::from(wanted, {3});
  BOOST_TEST_CONTEXT(name << " of " << x.spec().str()) {
    BOOST_TEST(identical(f(x, Shape{1}), expected));
    BOOST_TEST(identical(f(contiguous(transpose(x)), Shape{0}), expected), "of columns");
  }
}

template <class T>
void check_all(std::int64_t n) {
  const auto total = [](const Tensor& x, const Shape& axes) { return sum(x, axes); };
  const auto product = [](const Tensor& x, const Shape& axes) { return prod(x, axes); };
  const auto largest = [](const Tensor& x, const Shape& axes) { return amax(x, axes); };
  const auto smallest = [](const Tensor& x, const Shape& axes) { return amin(x, axes); };
  using Limits = std::numeric_limits<T>;
  const Tensor x = three_rows<T>(n);
  constexpr T kEnd = Limits::has_infinity ? Limits::infinity() : Limits::max();
  constexpr T kBegin = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  check("amax", largest, x, kBegin, [](T a, T b) { return std::max(a, b); });
  check("amin", smallest, x, kEnd, [](T a, T b) { return std::min(a, b); });
  using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;  // integers are summed as i64
  const auto of_wide = [](const auto& f) {
    return [&f](const Tensor& wide, const Shape& axes) { return f(cast(wide, dtype_of<T>), axes); };
  };
  const Tensor wide = cast(x, dtype_of<Wide>);
  check("sum", of_wide(total), wide, Wide(0), [](Wide a, Wide b) { return sum_of(a, b); });
  check("prod", of_wide(product), wide, Wide(1), [](Wide a, Wide b) { return product_of(a, b); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reductions)

BOOST_AUTO_TEST_CASE(every_kind_and_type_follows_the_rule_to_the_bit) {
  for (const std::int64_t n : kLengths) {
    check_all<float>(n);
    check_all<double>(n);
    check_all<std::int32_t>(n);
    check_all<std::int64_t>(n);
  }
}

BOOST_AUTO_TEST_CASE(nothing_has_a_sum_and_a_product) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i64}) {
    BOOST_TEST(identical(sum(zeros({3, 0}, dtype), {1}), zeros({3}, dtype)));
    BOOST_TEST(identical(prod(zeros({0, 3}, dtype), {0}), ones({3}, dtype)));
  }
}

/// Lanes start at 0: no sum is -0, not even one of a single element.
BOOST_AUTO_TEST_CASE(sums_of_negative_zeros_are_zero) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t n : kLengths) {
      const Tensor x = full({3, n}, -0.0, dtype);
      BOOST_TEST(identical(sum(x, {1}), zeros({3}, dtype)), x.spec().str());
      BOOST_TEST(identical(sum(contiguous(transpose(x)), {0}), zeros({3}, dtype)), x.spec().str() << ", of columns");
    }
}

/// Wherever it is, a NaN is the largest and the smallest, and so is the one number that is not infinite.
BOOST_AUTO_TEST_CASE(one_element_decides_wherever_it_stands) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t n : {1, 3, 15, 16, 17, 24, 33, 1025, 1041})
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 2, n - 1}) {
        if (at < 0) continue;
        const Tensor here = reshape(eq(arange(n), at), {1, n});
        BOOST_TEST_CONTEXT(name_of(dtype) << ", " << n << " elements, at " << at) {
          const Tensor nan = where(here, std::nan(""), zeros({1, n}, dtype));
          for (const Tensor& y : {amax(nan, {1}), amin(nan, {1}), amax(transpose(nan), {0}), amin(transpose(nan), {0})})
            BOOST_TEST(std::isnan(support::doubles(y)[0]));
          BOOST_TEST(support::doubles(amax(where(here, -1.5, full({1, n}, -kInfinity, dtype)), {1}))[0] == -1.5);
          BOOST_TEST(support::doubles(amin(where(here, 1.5, full({1, n}, kInfinity, dtype)), {1}))[0] == 1.5);
        }
      }
}

/// Gradients run in their own kernels, alone, and as the operations that a tape sees.
BOOST_AUTO_TEST_CASE(gradients_along_rows_have_the_bits_of_their_parts) {
  using Gradient = Tensor (*)(const Tensor& g, const Tensor& x);
  const std::pair<const char*, Gradient> all[] = {
      {"softmax", [](const Tensor& g, const Tensor& x) { return detail::softmax_grad(g, softmax(x, -1), 1); }},
      {"log_softmax",
       [](const Tensor& g, const Tensor& x) { return detail::log_softmax_grad(g, log_softmax(x, -1), 1); }},
      {"layer_norm", [](const Tensor& g, const Tensor& x) { return detail::layer_norm_grad(g, x, 1, 1e-5); }},
      {"layer_norm of two axes",
       [](const Tensor& g, const Tensor& x) { return detail::layer_norm_grad(g, x, 2, 0.1); }}};
  for (const auto& [name, f] : all)
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const std::int64_t n : kLengths) {
        const Tensor x = uniform({4, n}, {.seed = 5}, -3, 3, dtype), g = uniform({4, n}, {.seed = 6}, -1, 1, dtype);
        const Tensor alone = f(g, x);
        Tape tape;
        BOOST_TEST(identical(alone, f(tape.watch(g), x)), name << " of " << x.spec().str());
      }
}

/// NaN in a row whose cotangents are all 0 reaches no gradient.
BOOST_AUTO_TEST_CASE(rows_that_do_not_count_may_hold_nan) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t n : {1, 15, 16, 17, 1025}) {
      const Tensor counts = reshape(eq(arange(3), 1), {3, 1}), x = uniform({3, n}, {.seed = 5}, -3, 3, dtype);
      const Tensor y = log_softmax(x, -1), g = where(counts, uniform({3, n}, {.seed = 6}, -1, 1, dtype), 0.0);
      const Tensor got = detail::log_softmax_grad(g, where(counts, y, std::nan("")), 1);
      BOOST_TEST(identical(got, detail::log_softmax_grad(g, y, 1)), x.spec().str());
    }
}

BOOST_AUTO_TEST_SUITE_END()
