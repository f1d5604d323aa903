// Charts and confusion matrices.
#include "ferrite/train/confusion.h"
#include "ferrite/train/line_chart.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::says;

BOOST_AUTO_TEST_SUITE(training)

BOOST_AUTO_TEST_CASE(chart_holds_its_lines) {
  const std::string svg =
      line_chart({{"a < b", {0, 1, 2}, {1, 0.5, 0.25}}, {"gap", {0, 1, 2}, {0, NAN, 1}}}, {.title = "T & U"});
  BOOST_TEST(svg.find("<svg xmlns=") == 0U);
  BOOST_TEST(svg.find("a &lt; b") != std::string::npos);
  BOOST_TEST(svg.find("T &amp; U") != std::string::npos);
  BOOST_TEST(svg.find("nan") == std::string::npos);
  std::size_t paths = 0;
  for (std::size_t at = svg.find("<path"); at != std::string::npos; at = svg.find("<path", at + 1)) ++paths;
  BOOST_TEST(paths == 4U);  // two of the four are in the legend
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
