// Handles, storage, literals, printing and random numbers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "ferrite/tensor/generator.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

BOOST_AUTO_TEST_SUITE(tensors)

BOOST_AUTO_TEST_CASE(values_and_items) {
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2});
  BOOST_TEST(x.values<float>()[3] == 4.0F);
  BOOST_CHECK_EXCEPTION((void)x.values<double>(), DtypeError, says("the tensor holds f32[2, 2], read as f64"));
  const Tensor across = transpose(x);
  BOOST_CHECK_EXCEPTION((void)across.values<float>(), ShapeError, says("not contiguous"));
  BOOST_CHECK_EXCEPTION((void)x.item(), ShapeError, says("item: the tensor must hold one element, got [2, 2]"));
  BOOST_CHECK_EXCEPTION((void)Tensor::from({1.0F}, {2}), ShapeError, says("from: 1 values for shape [2]"));
  BOOST_CHECK_EXCEPTION((void)Tensor().shape(), Error, says("undefined"));
  BOOST_CHECK_EXCEPTION((void)Tensor::abstract({{2}, Dtype::f32}).to_vector<float>(), TraceError,
                        says("traced tensor f32[2]"));
}

BOOST_AUTO_TEST_CASE(vectors_without_a_shape_and_an_extent_that_follows) {
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  BOOST_TEST(identical(Tensor::from(six), Tensor::from(six, {6})));
  BOOST_TEST(identical(Tensor::from(std::span(six).first(2)), Tensor::from({1.0F, 2.0F}, {2})));
  BOOST_TEST(identical(Tensor::from(six, {-1, 3}), Tensor::from(six, {2, 3})));
  BOOST_TEST(identical(Tensor::from(six, {3, -1, 1}), Tensor::from(six, {3, 2, 1})));
  BOOST_TEST(identical(Tensor::from({1.0F, 2.0F}, {-1, 1}), Tensor::from({1.0F, 2.0F}, {2, 1})));
  BOOST_TEST(Tensor::from(std::vector<float>{}, {-1, 3}).shape().str() == "[0, 3]");
  BOOST_TEST(Tensor::from(std::vector<bool>{true, false}).spec().str() == "bool[2]");
  BOOST_CHECK_EXCEPTION((void)Tensor::from(six, {-1, 4}), ShapeError, says("from: 6 values for shape [-1, 4]"));
  BOOST_CHECK_EXCEPTION((void)Tensor::from(six, {-1, 0}), ShapeError, says("from: 6 values for shape [-1, 0]"));
  BOOST_CHECK_EXCEPTION((void)Tensor::from(six, {-1, -1}), ShapeError, says("one at most -1"));
  BOOST_CHECK_EXCEPTION((void)Tensor::from(six, {-2, 3}), ShapeError, says("one at most -1"));
}

BOOST_AUTO_TEST_CASE(sizes_are_checked_before_memory_is_asked_for) {
  const std::int64_t big = std::int64_t{1} << 40;
  BOOST_CHECK_THROW((void)zeros({big, big}), ShapeError);
  BOOST_CHECK_THROW((void)zeros({-1}), ShapeError);
  BOOST_CHECK_THROW((void)zeros({big, 1 << 10}), ShapeError);
  BOOST_CHECK_THROW((void)Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
}

BOOST_AUTO_TEST_CASE(negation_turns_the_sign_of_zeros) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t n : {1, 3, 16, 37}) {
      const Tensor zero = full({n}, 0.0, dtype);
      const Tensor minus = full({n}, -0.0, dtype);
      for (const double sign : cast(1 / neg(zero), Dtype::f64).to_vector<double>()) BOOST_TEST(sign == -INFINITY);
      for (const double sign : cast(1 / neg(minus), Dtype::f64).to_vector<double>()) BOOST_TEST(sign == INFINITY);
      BOOST_TEST(identical(neg(zero), minus));
      BOOST_TEST(identical(neg(minus), zero));
      BOOST_TEST(identical(neg(full({n}, -INFINITY, dtype)), full({n}, INFINITY, dtype)));
    }
}

BOOST_AUTO_TEST_CASE(blocks_are_reused) {
  (void)(ones({10}) + 1);
  const auto before = pool_counts();
  for (int i = 0; i < 100; ++i) (void)(ones({10}) + 1);
  const auto after = pool_counts();
  BOOST_TEST(after.misses == before.misses);
  trim();
  BOOST_TEST(cached_memory() == 0U);
}

BOOST_AUTO_TEST_CASE(a_tensor_may_end_on_another_thread) {
  Tensor x = uniform({1000}, {1, 2, 3});
  const Tensor copy = x;
  std::thread([y = std::move(x)] { (void)sum(y); }).join();
  BOOST_TEST(identical(copy, uniform({1000}, {1, 2, 3})));
}

BOOST_AUTO_TEST_CASE(prints_like_numpy) {
  BOOST_TEST(Tensor::from({1.0F, -2.5F, 3.0F, 4.25F}, {2, 2}).str() == "[[ 1.0000, -2.5000],\n [ 3.0000,  4.2500]]");
  BOOST_TEST(arange(3).str() == "[0, 1, 2]");
  BOOST_TEST(full({}, 2).str() == "2.");
  BOOST_TEST(Tensor::from({true, false}).str() == "[ true, false]");
  BOOST_TEST(zeros({0, 3}).str() == "[] f32[0, 3]");
  BOOST_TEST(arange(2000).str() == "[   0,    1,    2, ..., 1997, 1998, 1999]");
  BOOST_TEST(Tensor::from({1e-9F, 1.0F}).str() == "[1.0000e-09, 1.0000e+00]");
  BOOST_TEST(Tensor().str() == "undefined");
}

BOOST_AUTO_TEST_CASE(where_ignores_the_branch_not_taken) {
  const Tensor x = Tensor::from({1.0F, NAN});
  BOOST_TEST(identical(where(eq(x, x), x, 0), Tensor::from({1.0F, 0.0F})));
}

BOOST_AUTO_TEST_CASE(logsumexp_of_extremes) {
  const double inf = INFINITY;
  BOOST_TEST(logsumexp(Tensor::from({-inf, -inf})).item<double>() == -inf);
  BOOST_TEST(logsumexp(Tensor::from({inf, 1.0})).item<double>() == inf);
  BOOST_TEST(within(logsumexp(Tensor::from({1000.0, 1000.0})), full({}, 1000 + std::log(2.0), Dtype::f64), 1e-12));
  BOOST_TEST(within(log_softmax(Tensor::from({1000.0, 0.0})), Tensor::from({0.0, -1000.0}), 1e-12));
}

/// The expected numbers are those published with the Random123 library (kat_vectors, philox 4x32 10).
BOOST_AUTO_TEST_CASE(philox_known_answers) {
  const auto zero = philox({0, 0, 0, 0}, {0, 0});
  BOOST_TEST(zero[0] == 0x6627e8d5U);
  BOOST_TEST(zero[1] == 0xe169c58dU);
  BOOST_TEST(zero[2] == 0xbc57ac4cU);
  BOOST_TEST(zero[3] == 0x9b00dbd8U);
  const auto ones = philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U});
  BOOST_TEST(ones[0] == 0x408f276dU);
  const auto pi = philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0});
  BOOST_TEST(pi[0] == 0xd16cfe09U);
  BOOST_TEST(pi[1] == 0x94fdcceb);
  BOOST_TEST(pi[2] == 0x5001e420U);
  BOOST_TEST(pi[3] == 0x24126ea1U);
}

/// Every part of a key makes other numbers, both for numbered streams and for those of names.
BOOST_AUTO_TEST_CASE(draws_of_different_keys_differ) {
  std::vector<RandomKey> keys;
  for (std::uint64_t stream = 0; stream < 40; ++stream) keys.push_back({1, stream, 0});
  for (std::uint64_t seed = 2; seed < 20; ++seed) keys.push_back({seed, 1, 0});
  for (std::uint32_t call = 1; call < 20; ++call) keys.push_back({1, 1, call});
  for (const char* name : {"a", "b", "weight_ih_l0", "weight_hh_l0", "bias_ih_l0"})
    keys.push_back({1, stream_of(name), 0});
  keys.push_back({1, std::uint64_t{1} << 32, 0});
  keys.push_back({1, std::uint64_t{1} << 63, 0});
  std::set<std::vector<double>> draws;
  for (const RandomKey& key : keys) draws.insert(uniform({4}, key, 0, 1, Dtype::f64).to_vector<double>());
  BOOST_TEST(draws.size() == keys.size());
}

/// There is no number between the bounds: half of all draws would round up to the excluded one.
BOOST_AUTO_TEST_CASE(uniform_never_gives_its_upper_bound) {
  const RandomKey key{.seed = 3};
  for (const double low : {1.0, -1.0}) {
    const double high = std::nextafter(low, 2);
    const std::vector<double> wide = uniform({100}, key, low, high, Dtype::f64).to_vector<double>();
    BOOST_TEST((std::count(wide.begin(), wide.end(), low) == 100));
    const float end = std::nextafter(static_cast<float>(low), 2.0F);
    const std::vector<float> narrow = uniform({100}, key, low, end).to_vector<float>();
    BOOST_TEST((std::count(narrow.begin(), narrow.end(), static_cast<float>(low)) == 100));
  }
  BOOST_TEST(identical(uniform({9}, key, 2, 2, Dtype::f64), full({9}, 2, Dtype::f64)));
}

/// A call has 64 bits, so nothing repeats after 2^32 draws.
BOOST_AUTO_TEST_CASE(draws_go_on_after_four_billion) {
  const std::uint64_t far = std::uint64_t{1} << 32;
  const Generator g(7, "noise");
  const Tensor first = g.uniform({8}), second = g.uniform({8});
  g.calls.assign(full({}, far, Dtype::i64));
  const Tensor wrapped = g.uniform({8});
  BOOST_TEST(!identical(wrapped, first));
  BOOST_TEST(!identical(g.uniform({8}), second));
  BOOST_TEST(identical(wrapped, uniform({8}, {7, stream_of("noise"), far})));
  BOOST_TEST(
      identical(wrapped, uniform({8}, {7, stream_of("noise"), far - 5}, 0, 1, Dtype::f32, full({}, 5, Dtype::i64))));
}

/// An unsigned number that i64 cannot hold is still a number.
BOOST_AUTO_TEST_CASE(literals_beyond_i64) {
  constexpr std::uint64_t k = std::uint64_t{1} << 63;
  BOOST_TEST((full({}, 2.0) * k).item() == 0x1p64F);
  BOOST_TEST(full({}, k, Dtype::f64).item<double>() == 0x1p63);
  BOOST_TEST((full({}, 5, Dtype::i64) + (k - 1)).item<std::int64_t>() == std::numeric_limits<std::int64_t>::min() + 4);
  const Tensor i = full({2}, -1, Dtype::i64);
  BOOST_CHECK_THROW((void)(i + k), DtypeError);
  BOOST_CHECK_THROW((void)eq(i, std::numeric_limits<std::uint64_t>::max()), DtypeError);
  BOOST_CHECK_THROW((void)full({}, k, Dtype::i64), DtypeError);
  BOOST_CHECK_THROW((void)checked(i, 0, k, "an index"), Error);
}

BOOST_AUTO_TEST_CASE(draws_have_their_moments) {
  const RandomKey key{1, stream_of("moments"), 0};
  const Tensor u = uniform({100000}, key, -1, 3, Dtype::f64);
  BOOST_TEST(std::fabs(mean(u).item<double>() - 1) < 0.02);
  BOOST_TEST(std::fabs(var(u).item<double>() - 16.0 / 12) < 0.02);
  const Tensor n = normal({100000}, key, 2, 3, Dtype::f64);
  BOOST_TEST(std::fabs(mean(n).item<double>() - 2) < 0.05);
  BOOST_TEST(std::fabs(var(n).item<double>() - 9) < 0.2);
  BOOST_TEST(std::fabs(mean(bernoulli({100000}, key, 0.3)).item() - 0.3F) < 0.01F);
  BOOST_TEST(amax(uniform({100000}, key)).item() < 1.0F);
  BOOST_CHECK_THROW((void)bernoulli({1}, key, 1.5), ValueError);
}

/// The expected values are quantiles of the normal distribution from tables.
BOOST_AUTO_TEST_CASE(normal_draws_follow_the_distribution) {
  const Tensor n = normal({200000}, {4, 4, 4}, 0, 1, Dtype::f64);
  const auto share_below = [&](double q) { return mean(cast(lt(n, q), Dtype::f64)).item<double>(); };
  BOOST_TEST(std::fabs(share_below(-1.6448536269514722) - 0.05) < 0.002);
  BOOST_TEST(std::fabs(share_below(0) - 0.5) < 0.004);
  BOOST_TEST(std::fabs(share_below(2.3263478740408408) - 0.99) < 0.001);
}

BOOST_AUTO_TEST_CASE(bounds_between_which_there_is_nothing) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  for (const double bad : {kNan, kInf, 1e39}) {
    BOOST_CHECK_EXCEPTION((void)uniform({2}, {1, 1, 1}, 0, bad), ValueError, says("uniform: the bounds must be"));
    BOOST_CHECK_EXCEPTION((void)uniform({2}, {1, 1, 1}, -bad, 0), ValueError, says("uniform: the bounds must be"));
    BOOST_CHECK_EXCEPTION((void)normal({2}, {1, 1, 1}, bad, 1), ValueError, says("normal: mean and deviation must"));
    BOOST_CHECK_EXCEPTION((void)normal({2}, {1, 1, 1}, 0, bad), ValueError, says("normal: mean and deviation must"));
    BOOST_CHECK_EXCEPTION((void)linspace(0, bad, 3), ValueError, says("distance must be finite in f32"));
    BOOST_CHECK_EXCEPTION((void)linspace(-bad, 0, 3), ValueError, says("distance must be finite in f32"));
  }
  BOOST_CHECK_EXCEPTION((void)uniform({2}, {1, 1, 1}, -1.7e308, 1.7e308, Dtype::f64), ValueError, says("uniform"));
  BOOST_CHECK_EXCEPTION((void)linspace(-1e308, 1e308, 3, Dtype::f64), ValueError, says("distance must be finite"));
  BOOST_TEST(uniform({2}, {1, 1, 1}, 1e39, 2e39, Dtype::f64).to_vector<double>()[0] >= 1e39);
}

/// The variance of no more elements than the correction is undefined, as in PyTorch, and never negative.
BOOST_AUTO_TEST_CASE(a_variance_of_too_few_elements) {
  BOOST_TEST(std::isnan(var(ones({1})).item<float>()));
  BOOST_TEST(std::isnan(var(zeros({0})).item<float>()));
  BOOST_TEST(std::isinf(var(Tensor::from({1.0F, 2.0F}), {}, false, 3).item<float>()));
  BOOST_TEST(var(Tensor::from({1.0F, 2.0F}), {}, false, -2).item<float>() == 0.125F);
  BOOST_CHECK_EXCEPTION((void)var(ones({2}), {}, false, std::numeric_limits<double>::quiet_NaN()), ValueError,
                        says("var: the correction must be finite"));
}

BOOST_AUTO_TEST_CASE(a_permutation_holds_every_number_once) {
  const std::vector<std::int64_t> p = permutation(1000, {3, 1, 0}).to_vector<std::int64_t>();
  std::vector<bool> seen(1000);
  for (const std::int64_t i : p) seen[static_cast<std::size_t>(i)] = true;
  BOOST_TEST(std::count(seen.begin(), seen.end(), true) == 1000);
  BOOST_TEST((p != permutation(1000, {3, 1, 1}).to_vector<std::int64_t>()));
}

BOOST_AUTO_TEST_SUITE_END()
