// Data sets, progress, charts and confusion matrices.
#include <set>
#include <sstream>

#include "ferrite/train/confusion.h"
#include "ferrite/train/dataset.h"
#include "ferrite/train/line_chart.h"
#include "ferrite/train/progress.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::identical;
using support::says;

namespace {

/// Four sequences of lengths 1, 3, 2, 1; frame k holds k and -k.
SequenceSet small_set() {
  const Tensor k = reshape(arange(0.0, 7.0, 1.0), {7, 1});
  return {concat({k, -k}, 1), Tensor::from<std::int64_t>({1, 3, 2, 1}), Tensor::from<std::int64_t>({0, 1, 2, 1})};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(training)

BOOST_AUTO_TEST_CASE(sequences_that_are_not_there) {
  const SequenceSet set = small_set();
  for (const std::int64_t i : {std::int64_t{-1}, std::int64_t{4}}) {
    const auto refused = says("sequence set: index " + std::to_string(i) + " is out of range for 4");
    BOOST_CHECK_EXCEPTION((void)set.length(i), ShapeError, refused);
    BOOST_CHECK_EXCEPTION((void)set.label(i), ShapeError, refused);
    BOOST_CHECK_EXCEPTION((void)set.sequence(i), ShapeError, refused);
  }
  for (const std::int64_t epoch : {std::int64_t{-1}, std::int64_t{1} << 32})
    BOOST_CHECK_EXCEPTION((void)batches(set, 2, {.epoch = epoch}), ValueError,
                          says("batches: the epoch must lie in 0..4294967295, got " + std::to_string(epoch)));
  BOOST_TEST(batches(set, 2, {.epoch = 4294967295}).count() == 2);
}

BOOST_AUTO_TEST_CASE(batches_are_padded_with_lengths) {
  const SequenceSet set = small_set();
  const Batches all = batches(set, 3, {.shuffle = false});
  BOOST_TEST(all.count() == 2);
  const Batch first = all[0];
  BOOST_TEST(first.x.shape().str() == "[3, 3, 2]");
  BOOST_TEST(identical(first.lengths, Tensor::from<std::int64_t>({1, 3, 2})));
  BOOST_TEST(identical(first.y, Tensor::from<std::int64_t>({0, 1, 2})));
  BOOST_TEST(identical(select(first.x, 0, 2), Tensor::from({4.0F, -4.0F, 5.0F, -5.0F, 0.0F, 0.0F}, {3, 2})));
  BOOST_TEST(all[1].size() == 1);
  BOOST_TEST(set.classes() == 3);
}

BOOST_AUTO_TEST_CASE(shuffling_by_seed_and_epoch) {
  const SequenceSet set = small_set();
  const auto order = [&](std::uint64_t seed, std::int64_t epoch) {
    std::vector<std::int64_t> first_frames;
    for (const Batch& b : batches(set, 1, {.seed = seed, .epoch = epoch}))
      first_frames.push_back(static_cast<std::int64_t>(b.x.values<float>()[0]));
    return first_frames;
  };
  BOOST_TEST((order(1, 0) == order(1, 0)));
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t e = 0; e < 20; ++e) orders.insert(order(1, e));
  BOOST_TEST(orders.size() > 5U);
  std::vector<std::int64_t> sorted = order(2, 3);
  std::sort(sorted.begin(), sorted.end());
  BOOST_TEST((sorted == std::vector<std::int64_t>{0, 1, 4, 6}));
}

BOOST_AUTO_TEST_CASE(sets_that_do_not_fit) {
  const Tensor two = Tensor::from<std::int64_t>({1, 2});
  BOOST_CHECK_EXCEPTION(SequenceSet(zeros({4, 1}), two, two), ShapeError,
                        says("lengths add up to 3, there are 4 frames"));
  BOOST_CHECK_EXCEPTION(SequenceSet(zeros({3}), two, two), ShapeError, says("frames must be [N, D]"));
  BOOST_CHECK_EXCEPTION(SequenceSet(zeros({1, 1}), Tensor::from<std::int64_t>({0, 1}), two), ShapeError,
                        says("a length of 0"));
  const SequenceSet data = small_set();
  BOOST_CHECK_EXCEPTION((void)batches(data, 0), ValueError, says("size must be positive"));
}

BOOST_AUTO_TEST_CASE(progress_on_a_plain_stream) {
  std::ostringstream out;
  Progress p(out, false, 2, 10);
  p.begin_epoch();
  p.batch(4, 1.0, 0.5);
  p.batch(6, 2.0, 1.0);
  BOOST_TEST(std::fabs(p.loss() - 1.6) < 1e-12);
  BOOST_TEST(std::fabs(p.accuracy() - 0.8) < 1e-12);
  p.end_epoch("test 90%");
  const std::string line = out.str();
  BOOST_TEST(line.find("epoch 1/2  [########################]  loss 1.6000  accuracy 80.0%") == 0U, line);
  BOOST_TEST(line.find("samples/s  ETA ") != std::string::npos);
  BOOST_TEST(line.find("  test 90%\n") != std::string::npos);
  BOOST_TEST(line.find('\r') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(progress_on_a_terminal_writes_over_its_line) {
  std::ostringstream out;
  Progress p(out, true, 1, 10);
  p.begin_epoch();
  p.batch(5, 1.0, 0.5);
  BOOST_TEST(out.str().find("\r\x1b[K") == 0U);
  BOOST_TEST(out.str().find("[############............]") != std::string::npos);
  BOOST_TEST(out.str().find('\n') == std::string::npos);
  p.end_epoch();
  BOOST_TEST(out.str().back() == '\n');
}

BOOST_AUTO_TEST_CASE(chart_holds_its_lines) {
  const std::string svg =
      line_chart({{"a < b", {0, 1, 2}, {1, 0.5, 0.25}}, {"gap", {0, 1, 2}, {0, NAN, 1}}}, {.title = "T & U"});
  BOOST_TEST(svg.find("<svg xmlns=") == 0U);
  BOOST_TEST(svg.find("a &lt; b") != std::string::npos);
  BOOST_TEST(svg.find("T &amp; U") != std::string::npos);
  BOOST_TEST(svg.find("nan") == std::string::npos);
  std::size_t paths = 0;
  for (std::size_t at = svg.find("<path"); at != std::string::npos; at = svg.find("<path", at + 1)) ++paths;
  BOOST_TEST(paths == 2U);
  BOOST_CHECK_EXCEPTION((void)line_chart({{"x", {0}, {}}}, {}), ValueError, says("has 1 x and 0 y"));
}

BOOST_AUTO_TEST_CASE(confusion_counts) {
  Confusion c(2);
  c.add(Tensor::from<std::int64_t>({0, 1, 1}), Tensor::from<std::int64_t>({0, 0, 1}));
  BOOST_TEST(c.count(0, 1) == 1);
  BOOST_TEST(c.count(1, 0) == 0);  // fails if rows and columns are exchanged
  BOOST_TEST(std::fabs(c.accuracy() - 2.0 / 3) < 1e-12);
  BOOST_TEST(c.str().find("50.0%") != std::string::npos);
  BOOST_CHECK_EXCEPTION(c.add(Tensor::from<std::int64_t>({2}), Tensor::from<std::int64_t>({0})), ShapeError,
                        says("class 2 lies outside 0..1"));
}

BOOST_AUTO_TEST_SUITE_END()
