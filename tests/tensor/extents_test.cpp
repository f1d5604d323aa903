// Extents whose sum or product exceeds 64 bits are refused by the operation that computes it, before memory is taken.
#include <limits>

#include "ferrite/nn/recurrent/lstm.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kQuarter = std::int64_t{1} << 62;  // four of them overflow to 0 in 64 bits

/// Returns one element seen as many: huge extents without memory.
Tensor repeated(const Shape& shape) { return expand(zeros(Shape::filled(shape.rank(), 1)), shape); }

template <class F>
void refused_by(const char* name, F&& f) {
  BOOST_CHECK_EXCEPTION((void)f(), ShapeError, says(std::string(name) + ": "));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(extents)

BOOST_AUTO_TEST_CASE(concat_of_extents_that_wrap_is_refused) {
  const Tensor huge = repeated({kQuarter}), some = ones({5});
  refused_by("concat", [&] { return concat({huge, huge, huge, huge, some}); });
  refused_by("concat", [&] { return concat({huge, some}); });
}

BOOST_AUTO_TEST_CASE(pad_by_amounts_that_wrap_is_refused) {
  const Tensor x = ones({4});
  refused_by("pad", [&] { return pad(x, {kMost}, {kMost}); });
  refused_by("pad", [&] { return pad(x, {kMost - 1}, {kMost - 1}); });
  refused_by("pad", [&] { return pad(x, {kLeast}, {kMost}); });
  refused_by("pad", [&] { return pad(x, {kLeast}, {0}); });
  refused_by("pad", [&] { return pad(x, {1 << 20}, {kQuarter}); });
}

/// A crop beyond the axis and a padding that compensates leave nothing of x.
BOOST_AUTO_TEST_CASE(pad_may_crop_everything_and_pad_again) {
  const Tensor x = ones({2, 3});
  BOOST_TEST(identical(pad(x, {0, -7}, {0, 6}, 4), full({2, 2}, 4)));
  BOOST_TEST(identical(pad(x, {-5, 0}, {4, 0}, 4), full({1, 3}, 4)));
}

BOOST_AUTO_TEST_CASE(split_by_sizes_that_wrap_is_refused) {
  const std::vector<std::int64_t> sizes = {kQuarter, kQuarter, kQuarter, kQuarter, 5};
  refused_by("split", [&] { return split(ones({5}), sizes); });
}

BOOST_AUTO_TEST_CASE(chunk_takes_any_number_of_pieces) {
  BOOST_TEST(chunk(ones({5}), kMost).size() == 5U);
  BOOST_TEST(chunk(ones({5}), 2).size() == 2U);
  BOOST_TEST(chunk(zeros({0}), kMost).empty());
}

BOOST_AUTO_TEST_CASE(slices_by_any_step) {
  const Tensor x = reshape(arange(12), {3, 4});
  BOOST_TEST(identical(slice(x, 0, 1, kEnd, kMost), slice(x, 0, 1, 2)));
  BOOST_TEST(identical(slice(x, 0, kEnd, kEnd, kLeast), slice(x, 0, 2, 3)));
  BOOST_TEST(identical(slice(x, 1, kLeast, kMost), x));
  BOOST_TEST(slice(x, 0, kMost, kLeast).numel() == 0);
}

BOOST_AUTO_TEST_CASE(reshape_to_extents_that_wrap_is_refused) {
  refused_by("reshape", [] { return reshape(ones({4}), {kQuarter, 4, -1}); });
  refused_by("reshape", [] { return reshape(ones({4}), {kQuarter, 4}); });
}

BOOST_AUTO_TEST_CASE(expand_beyond_what_can_be_counted_is_refused) {
  refused_by("expand", [] { return expand(ones({1, 1}), {kQuarter, 4}); });
  refused_by("expand", [] { return expand(ones({1}), {kMost}); });
}

BOOST_AUTO_TEST_CASE(results_too_large_name_their_operation) {
  const std::int64_t big = std::int64_t{1} << 40;
  refused_by("add", [&] { return repeated({big, 1}) + repeated({1, big}); });
  refused_by("matmul", [&] { return matmul(repeated({big, 1}), repeated({1, big})); });
  refused_by("stack", [&] { return stack({repeated({kQuarter}), repeated({kQuarter})}); });
  refused_by("contiguous", [&] { return contiguous(repeated({big, 1 << 10})); });
  refused_by("full", [&] { return zeros({big, big}); });
  refused_by("full", [&] { return zeros({-1}); });
  refused_by("uniform", [&] { return uniform({big, big}, {1, 2, 3}); });
  refused_by("eye", [&] { return eye(big); });
}

/// An extent of 0 does not hide the others: such a tensor would have no valid strides.
BOOST_AUTO_TEST_CASE(an_extent_of_0_does_not_hide_the_others) {
  for (const Shape& s : {Shape{0, kQuarter, 4}, Shape{kQuarter, 4, 0}, Shape{kQuarter, 0, 4}}) {
    BOOST_CHECK_EXCEPTION((void)s.numel(), ShapeError, says("too many elements"));
    refused_by("full", [&] { return zeros(s); });
  }
  BOOST_TEST(zeros({0, kQuarter}).numel() == 0);
  BOOST_TEST(select(zeros({0, kQuarter}), 1, -1).numel() == 0);
}

BOOST_AUTO_TEST_CASE(ranges_to_the_ends_of_64_bits) {
  const auto values = [](const Tensor& t) { return t.to_vector<std::int64_t>(); };
  BOOST_TEST(values(arange(kMost - 5, kMost, 3)) == (std::vector<std::int64_t>{kMost - 5, kMost - 2}));
  BOOST_TEST(values(arange(kLeast, kMost, kQuarter)) == (std::vector<std::int64_t>{kLeast, -kQuarter, 0, kQuarter}));
  BOOST_TEST(values(arange(kMost, kLeast, kLeast)) == (std::vector<std::int64_t>{kMost, -1}));
  BOOST_TEST(values(arange(0, 2, kMost)) == (std::vector<std::int64_t>{0}));
  BOOST_CHECK_EXCEPTION((void)arange(kLeast, kMost, 1), ValueError, says("arange: too many values"));
  BOOST_CHECK_EXCEPTION((void)arange(kMost, kLeast, -1), ValueError, says("arange: too many values"));
}

BOOST_AUTO_TEST_CASE(ranges_hold_what_their_dtype_can) {
  const std::int64_t beyond = std::int64_t{1} << 31;
  BOOST_CHECK_EXCEPTION((void)arange(0, beyond + 1, beyond, Dtype::i32), ValueError, says("arange: i32 cannot hold"));
  BOOST_CHECK_EXCEPTION((void)arange(-1e30, 0, 1e30, Dtype::i64), ValueError, says("arange: i64 cannot hold"));
  BOOST_TEST(identical(arange(beyond - 1, beyond, 1, Dtype::i32), Tensor::from({std::int32_t{2147483647}})));
}

BOOST_AUTO_TEST_CASE(literals_that_i32_cannot_hold_are_refused) {
  const std::int64_t beyond = std::int64_t{1} << 31;
  const Tensor x = zeros({2}, Dtype::i32);
  const auto refused = says("i32 cannot hold the literal 2147483648");
  BOOST_CHECK_EXCEPTION((void)(x + beyond), ValueError, refused);
  BOOST_CHECK_EXCEPTION((void)full({2}, beyond, Dtype::i32), ValueError, refused);
  BOOST_CHECK_EXCEPTION((void)pad(x, {1}, {0}, beyond), ValueError, refused);
  BOOST_CHECK_EXCEPTION((void)where(eq(x, 0), x, beyond), ValueError, refused);
  BOOST_TEST(identical(x + (-beyond), full({2}, -beyond, Dtype::i32)));
}

BOOST_AUTO_TEST_CASE(sizes_below_0_are_refused) {
  BOOST_CHECK_EXCEPTION((void)eye(-2), ValueError, says("eye: "));
  BOOST_CHECK_EXCEPTION((void)eye(2, -2), ValueError, says("eye: "));
  refused_by("linspace", [] { return linspace(0, 1, kQuarter); });
}

/// A projection to no units would leave the last c as uninitialised memory.
BOOST_AUTO_TEST_CASE(a_sequence_projected_to_no_units_is_refused) {
  const std::int64_t T = 3, B = 2, D = 4, H = 5;
  const RecurrentWeights<Tensor> w{ones({D, 4 * H}), zeros({0, 4 * H}), {}, {}, zeros({H, 0})};
  refused_by("lstm_sequence", [&] { return lstm_sequence(ones({T, B, D}), w, {zeros({B, 0}), zeros({B, H})}); });
  refused_by("lstm_sequence", [&] { return lstm_sequence(ones({T, 0, D}), w, {zeros({0, 0}), zeros({0, H})}); });
}

BOOST_AUTO_TEST_SUITE_END()
