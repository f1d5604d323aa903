// Damaged data, classes out of range, and programs whose locale writes 1.234,5.
#include <limits>
#include <sstream>

#include "ferrite/train/confusion.h"
#include "ferrite/train/data_loader.h"
#include "ferrite/train/line_chart.h"
#include "support/comma_locale.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::says;

namespace {

Tensor i64s(std::initializer_list<std::int64_t> values) { return Tensor::from<std::int64_t>(values); }
bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(robust)

BOOST_AUTO_TEST_CASE(damaged_sets_are_refused) {
  constexpr std::int64_t big = std::int64_t{1} << 62;  // four of them overflow to 0 in 64 bits
  BOOST_CHECK_EXCEPTION(sequences(zeros({4, 1}), i64s({big, big, big, big, 4})), ShapeError,
                        says("lengths add up to more than the 4 steps"));
  BOOST_CHECK_EXCEPTION(sequences(zeros({3, 1}), i64s({1, 1})), ShapeError,
                        says("lengths add up to 2, there are 3 steps"));
  BOOST_CHECK_EXCEPTION(sequences(zeros({3, 1}), i64s({1, -1})), ShapeError, says("a length"));
  BOOST_CHECK_EXCEPTION(sequences(zeros({3, 1}), Tensor::from({1.9F, 2.0F})), DtypeError,
                        says("lengths must be i64 or i32, got f32[2]"));
  const Dataset set({sequences(zeros({1, 1}), i64s({1})), i64s({0})});
  BOOST_CHECK_EXCEPTION((void)set[1], ShapeError, says("there is no example 1, there are 1"));
  BOOST_CHECK_EXCEPTION((void)set[-1], ShapeError, says("there is no example -1"));
  BOOST_CHECK_EXCEPTION((void)DataLoader(set).batch(0, 1), ShapeError, says("there is no batch 1, an epoch has 1"));
}

BOOST_AUTO_TEST_CASE(batches_of_any_size_and_labels_to_the_end) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Dataset set({sequences(zeros({3, 1}), i64s({1, 2})), i64s({0, 1})});
  const DataLoader loader(set, {.batch_size = most});
  BOOST_TEST(loader.batches() == 1);
  BOOST_TEST(loader.batch(0, 0).size() == 2);
  BOOST_CHECK_EXCEPTION(Confusion{most}, ShapeError, says("confusion: "));
  BOOST_CHECK_EXCEPTION(Confusion(std::int64_t{1} << 31), ShapeError, says("confusion: too many pairs of classes"));
}

BOOST_AUTO_TEST_CASE(confusion_refuses_and_keeps_its_counts) {
  Confusion c(2);
  BOOST_CHECK_EXCEPTION(c.add(i64s({-1}), i64s({0})), ShapeError, says("class -1 lies outside 0..1"));
  BOOST_CHECK_EXCEPTION(c.add(i64s({1, 1}), i64s({1, 7})), ShapeError, says("class 7 lies outside 0..1"));
  BOOST_TEST(c.total() == 0);
  c.add(i64s({1}), i64s({1}));
  BOOST_CHECK_EXCEPTION((void)c.count(0, 3), ShapeError, says("class 3 lies outside 0..1"));
}

BOOST_AUTO_TEST_CASE(large_counts_stay_apart) {
  Confusion c(2);
  c.add(full({123456}, 0, Dtype::i64), full({123456}, 0, Dtype::i64));
  c.add(full({123456}, 1, Dtype::i64), full({123456}, 0, Dtype::i64));
  BOOST_TEST(holds(c.str(), " 123456 123456 "), c.str());
}

BOOST_AUTO_TEST_CASE(numbers_do_not_follow_the_locale) {
  const std::vector<Series> series = {{"a", {0, 1, 2000}, {1, 0.5, 0.3}}};
  const std::string wanted = line_chart(series, {.width = 2000});
  const support::CommaLocale locale;
  BOOST_TEST(line_chart(series, {.width = 2000}) == wanted);
  Confusion c(1);
  c.add(full({5000}, 0, Dtype::i64), full({5000}, 0, Dtype::i64));
  BOOST_TEST(holds(c.str(), " 5000  100.0%"), c.str());
}

BOOST_AUTO_TEST_CASE(charts_of_extreme_values_are_svg) {
  for (const double high : {5e-324, 1e308, 1e300, 0.0}) {
    const std::string svg = line_chart({{"a", {0, 1, 2}, {-high, high, 0}}}, {});
    BOOST_TEST((!holds(svg, "nan") && !holds(svg, "inf")), high);
  }
  BOOST_TEST(holds(line_chart({{"one", {1}, {1}}}, {}), "h0\""));  // a single point is a dot
  BOOST_TEST(!holds(line_chart({{"a\x01", {0, 1}, {0, 1}}}, {}), "\x01"));
}

BOOST_AUTO_TEST_SUITE_END()
