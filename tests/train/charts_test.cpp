// Charts as SVG text: bands, dots, legends, ticks; heat maps; grids of images. Places are computed by hand from the
// margins (24 and 40 of a heat map, 64, 24, 40 and 52 of a line chart), colours from the stops of the scale.
#include <cmath>
#include <fstream>
#include <regex>

#include "ferrite/io/text_file.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/train/confusion.h"
#include "ferrite/train/heat_map.h"
#include "ferrite/train/line_chart.h"
#include "io/temporary_folder.h"
#include "support/comma_locale.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::says;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Returns all texts of a picture in order.
std::vector<std::string> texts_of(const std::string& svg) {
  static const std::regex pattern(">([^<>]+)</text>");
  std::vector<std::string> all;
  for (auto at = std::sregex_iterator(svg.begin(), svg.end(), pattern); at != std::sregex_iterator(); ++at)
    all.push_back((*at)[1]);
  return all;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(charts)

BOOST_AUTO_TEST_CASE(series_of_tensors) {
  const Series s = Series::of("a", Tensor::from<std::int64_t>({3, 4}), Tensor::from<float>({0.5F, 2}, {2, 1}));
  BOOST_TEST(s.name == "a");
  BOOST_TEST(s.x == (std::vector<double>{3, 4}), boost::test_tools::per_element());
  BOOST_TEST(s.y == (std::vector<double>{0.5, 2}), boost::test_tools::per_element());
  BOOST_TEST(Series::of("a", Tensor::from<float>({7, 8, 9})).x == (std::vector<double>{0, 1, 2}),
             boost::test_tools::per_element());
}

// 720 x 420: x is drawn from 64 to 696 over 0..2, y from 368 to 40 over 0..1.
BOOST_AUTO_TEST_CASE(points_lie_where_the_axes_say) {
  const std::string svg = line_chart({{"", {0, 1, 2}, {0, 0.5, 1}}}, {});
  BOOST_TEST(has(svg, "d=\"M64 368h0L380 204L696 40\" fill=\"none\" stroke=\"#1f6feb\" stroke-width=\"2\""), svg);
}

BOOST_AUTO_TEST_CASE(bands_surround_their_line) {
  Series s{"", {0, 1, 2}, {0.5, 0.5, 0.5}};
  s.low = {0, 0, 0}, s.high = {1, 1, 1};
  const std::string svg = line_chart({s}, {});
  BOOST_TEST(has(svg, "d=\"M64 40L380 40L696 40L696 368L380 368L64 368Z\" fill=\"#1f6feb\" fill-opacity=\"0.18\""),
             svg);
  s.high[1] = NAN;  // two pieces
  BOOST_TEST(count(line_chart({s}, {}), "Z\"") == 1U);
  BOOST_TEST(has(line_chart({s}, {}), "d=\"M64 40L64 368ZM696 40L696 368Z\""));
  s.high = {1, 3, 1};  // the scale includes the band
  const std::vector<std::string> texts = texts_of(line_chart({s}, {}));
  BOOST_TEST((std::find(texts.begin(), texts.end(), "3") != texts.end()));
  s.low.pop_back();
  BOOST_CHECK_EXCEPTION((void)line_chart({s}, {}), ValueError, says("has 2 lower limits and 3 y"));
  s.low = {0, 0, 0}, s.high = {};
  BOOST_CHECK_EXCEPTION((void)line_chart({s}, {}), ValueError, says("has 0 upper limits and 3 y"));
}

BOOST_AUTO_TEST_CASE(points_are_dots_without_a_line) {
  const std::string svg = line_chart({{"", {0, 1, 2}, {0, 0.5, 1}, true}}, {});
  BOOST_TEST(has(svg, "d=\"M64 368h0M380 204h0M696 40h0\""), svg);
  BOOST_TEST(has(svg, "stroke-width=\"6\" stroke-linecap=\"round\""));
}

BOOST_AUTO_TEST_CASE(legends_stand_above_the_curves) {
  const Series a{"first", {0, 1}, {0, 1}}, b{"second", {0, 1}, {1, 0}}, unnamed{"", {0, 1}, {1, 0}};
  BOOST_TEST(!has(line_chart({a}, {}), "first"));  // one series needs no legend
  const std::string svg = line_chart({a, b, unnamed}, {});
  BOOST_TEST(has(svg, "<text x=\"90\" y=\"44\" text-anchor=\"start\" fill=\"#333\">first</text>"), svg);
  BOOST_TEST(has(svg, "y=\"44\" text-anchor=\"start\" fill=\"#333\">second</text>"), svg);
  BOOST_TEST(has(svg, "M64 60"), "the curves begin below the legend: " + svg);
  const Series c{std::string(80, 'c'), {0, 1}, {0, 1}}, d{std::string(80, 'd'), {0, 1}, {0, 1}};
  const std::string two_rows = line_chart({c, d}, {});
  BOOST_TEST(has(two_rows, "y=\"44\" text-anchor=\"start\" fill=\"#333\">ccc"));
  BOOST_TEST(has(two_rows, "y=\"64\" text-anchor=\"start\" fill=\"#333\">ddd"));
  BOOST_TEST(has(two_rows, "M64 368h0L696 80"));
}

BOOST_AUTO_TEST_CASE(whole_places_have_no_ticks_between_them) {
  const auto has_half = [](const std::vector<double>& x) {
    const std::vector<std::string> texts = texts_of(line_chart({{"", x, {10, 20, 30, 40}}}, {}));
    return std::find(texts.begin(), texts.end(), "1.5") != texts.end();
  };
  BOOST_TEST(!has_half({1, 2, 3, 4}));
  BOOST_TEST(has_half({1, 2, 3, 3.5}));
  // Only whole-numbered places have no ticks between them: values 0 and 1 do.
  const std::vector<std::string> texts = texts_of(line_chart({{"", {1, 2}, {0, 1}}}, {}));
  BOOST_TEST((std::find(texts.begin(), texts.end(), "0.2") != texts.end()));
}

BOOST_AUTO_TEST_CASE(charts_are_written) {
  const io_test::TemporaryFolder folder;
  write_line_chart(folder / "a.svg", {{"", {0, 1}, {0, 1}}}, {.title = "T"});
  BOOST_TEST(io::read_text(folder / "a.svg") == line_chart({{"", {0, 1}, {0, 1}}}, {.title = "T"}));
  const Tensor v = Tensor::from<float>({0, 1}, {1, 2});
  write_heat_map(folder / "b.svg", v, {.title = "T"});
  BOOST_TEST(io::read_text(folder / "b.svg") == heat_map(v, {.title = "T"}));
  BOOST_CHECK_THROW(write_heat_map(folder / "none" / "b.svg", v), IoError);
}

// A picture of 200 has 2 x 2 cells of 10 pixels: 200 - 2 * 24 - 20 are free, so the left is 24 + 66.
BOOST_AUTO_TEST_CASE(cells_have_their_places_and_colours) {
  const Tensor v = Tensor::from<float>({0, 1, 0.5F, 0}, {2, 2});
  const std::string svg = heat_map(v, {.scale = false, .cell = 10});
  BOOST_TEST(has(svg, "width=\"200\" height=\"150\""));
  BOOST_TEST(has(svg, "<path d=\"M100 40h10v10h-10z\" fill=\"#08306b\""), svg);
  BOOST_TEST(has(svg, "<path d=\"M90 50h10v10h-10z\" fill=\"#65a4ce\""), svg);
  BOOST_TEST(count(svg, "crispEdges") == 2U);  // the lowest is the background
  const std::string ranged = heat_map(v, {.low = -1, .high = 0.5, .scale = false, .cell = 10});
  BOOST_TEST(has(ranged, "<path d=\"M100 40h10v10h-10zM90 50h10v10h-10z\" fill=\"#08306b\""), ranged);
}

BOOST_AUTO_TEST_CASE(equal_neighbours_are_one_rectangle) {
  const std::string svg =
      heat_map(Tensor::from<std::int64_t>({0, 5, 5, 5, 5, 0}, {2, 3}), {.scale = false, .cell = 10});
  BOOST_TEST(has(svg, "M95 40h20v10h-20zM85 50h20v10h-20z\" fill=\"#08306b\""), svg);
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_is_grey) {
  const std::string svg = heat_map(Tensor::from<float>({NAN, 2, -INFINITY, 1}, {2, 2}), {.scale = true, .cell = 10});
  BOOST_TEST(count(svg, "#999999") == 1U);
  BOOST_TEST(texts_of(svg) == (std::vector<std::string>{"2", "1"}), boost::test_tools::per_element());
  for (const float only : {NAN, 3.0F})  // without a range
    BOOST_TEST(has(heat_map(full({2, 2}, only)), "</svg>"));
}

BOOST_AUTO_TEST_CASE(names_and_numbers) {
  HeatMapOptions o{.title = "T & U", .x_label = "read", .y_label = "true", .columns = {"a", "b"}, .rows = {"x", "y"}};
  o.numbers = true, o.scale = false;
  const Tensor v = Tensor::from<double>({1.25, 0, 1234567, 3}, {2, 2});
  BOOST_TEST(texts_of(heat_map(v, o)) == (std::vector<std::string>{"T &amp; U", "x", "y", "a", "b", "1.25", "0",
                                                                   "1.23e+06", "3", "read", "true"}),
             boost::test_tools::per_element());
  // Numbers on dark cells are white.
  BOOST_TEST(has(heat_map(v, o), "fill=\"white\">1.23e+06<"));
  BOOST_TEST(count(heat_map(v, o), "fill=\"white\">") == 1U);
  BOOST_TEST(count(heat_map(v, o), "rotate(-90") == 1U);
  o.columns = {std::string(60, 'w'), "b"};  // wider than their columns: they are turned upright
  BOOST_TEST(count(heat_map(v, o), "rotate(-90") == 3U);
  const support::CommaLocale comma;
  BOOST_TEST(has(heat_map(v, o), ">1.25<"));
}

BOOST_AUTO_TEST_CASE(heat_maps_refuse) {
  const Tensor v = zeros({2, 3});
  BOOST_CHECK_EXCEPTION((void)heat_map(zeros({3})), ShapeError, says("values must be [rows, columns], got [3]"));
  BOOST_CHECK_EXCEPTION((void)heat_map(zeros({0, 3})), ShapeError, says("between 1 and 2^20 values, got [0, 3]"));
  BOOST_CHECK_THROW((void)heat_map(zeros({1025, 1024})), ShapeError);
  BOOST_CHECK_EXCEPTION((void)heat_map(v, {.columns = {"a"}}), ValueError, says("3 columns, but 1 names of them"));
  BOOST_CHECK_EXCEPTION((void)heat_map(v, {.rows = {"a"}}), ValueError, says("2 rows, but 1 names of them"));
  BOOST_CHECK_EXCEPTION((void)heat_map(v, {.cell = -1}), ValueError, says("cell must be at least 0, got -1"));
  BOOST_CHECK_EXCEPTION((void)heat_map(v, {.low = 2, .high = 1}), ValueError, says("got 2 and 1"));
}

BOOST_AUTO_TEST_CASE(images_side_by_side) {
  const std::int64_t n = 3, H = 2, W = 3, columns = 2, padding = 2;
  const Tensor images = reshape(cast(arange(n * H * W), Dtype::f32), {n, H, W});
  const Tensor grid = image_grid(images, {.columns = columns, .padding = padding, .background = -1});
  BOOST_TEST(grid.shape().str() == (Shape{2 * H + 3 * padding, 2 * W + 3 * padding}).str());
  std::vector<float> wanted(static_cast<std::size_t>(grid.numel()), -1);
  const std::vector<float> v = images.to_vector<float>();
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t y = 0; y < H; ++y)
      for (std::int64_t x = 0; x < W; ++x) {
        const std::int64_t row = padding + i / columns * (H + padding) + y;
        const std::int64_t column = padding + i % columns * (W + padding) + x;
        wanted[static_cast<std::size_t>(row * grid.shape()[1] + column)] =
            v[static_cast<std::size_t>((i * H + y) * W + x)];
      }
  BOOST_TEST(grid.to_vector<float>() == wanted, boost::test_tools::per_element());
  // Each of several channels is a grid by itself. There are no more columns than images, and there is no padding.
  const Tensor colours = reshape(cast(arange(2 * 3 * 4), Dtype::i64), {2, 3, 2, 2});
  const Tensor beside = image_grid(colours, {.padding = 0});
  BOOST_TEST(beside.shape().str() == "[3, 2, 4]");
  for (std::int64_t c = 0; c < 3; ++c)
    BOOST_TEST(support::identical(beside[c], image_grid(select(colours, 1, c), {.padding = 0})));
  BOOST_TEST(support::identical(beside[2], concat({colours[0][2], colours[1][2]}, 1)));
  BOOST_CHECK_THROW((void)image_grid(zeros({2, 2})), ShapeError);
  BOOST_CHECK_THROW((void)image_grid(zeros({0, 2, 2})), ShapeError);
  BOOST_CHECK_THROW((void)image_grid(images, {.columns = 0}), ValueError);
  BOOST_CHECK_THROW((void)image_grid(images, {.padding = -1}), ValueError);
}

BOOST_AUTO_TEST_CASE(counts_of_a_confusion) {
  Confusion c(2);
  c.add(Tensor::from<std::int64_t>({0, 1, 1}), Tensor::from<std::int64_t>({0, 0, 1}));
  BOOST_TEST(support::identical(c.counts(), Tensor::from<std::int64_t>({1, 1, 0, 1}, {2, 2})));
  // Shares of each row: one of the two true 0 is right, and so is the only true 1.
  BOOST_TEST(c.str() ==
             "true \\ predicted    0    1   right\n"
             "               0    1    1   50.0%\n"
             "               1    .    1  100.0%\n");
}

BOOST_AUTO_TEST_SUITE_END()
