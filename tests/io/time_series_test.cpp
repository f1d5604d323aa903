/// The .ts files of the time series archive: values, labels, targets, and a named case for every malformed file.
/// With FERRITE_WRITE_CORPUS=<folder> the malformed ones are also written to ts/ there, as seeds for tests/fuzz.
#include "ferrite/io/time_series.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>

#include "counting.h"
#include "hostile_suite.h"
#include "temporary_folder.h"

namespace {

using namespace ferrite;
using io::Missing;
using io::TimeSeries;

template <class T>
void check_values(const Tensor& x, const Shape& shape, const std::vector<T>& expected) {
  BOOST_TEST(x.shape().str() == shape.str());
  BOOST_TEST(x.to_vector<T>() == expected, boost::test_tools::per_element());
}

const std::string kMotions =
    "#Students wearing a watch.\r\n"
    "@problemName BasicMotions\r\n"
    "@timeStamps false\r\n@missing false\r\n@univariate false\r\n@dimensions 2\r\n@equalLength false\r\n"
    "@classLabel true Standing Walking\r\n"
    "\r\n"
    "@data\r\n"
    "1,2,3:10, 20 ,30:Walking\r\n"
    "-4.5e0:+40:Standing\r\n"
    "\r\n"
    "5,6:50,60: Walking\r\n";

}  // namespace

BOOST_AUTO_TEST_SUITE(time_series)

BOOST_AUTO_TEST_CASE(classes_and_dimensions) {
  const TimeSeries s = io::parse_time_series(kMotions);
  BOOST_TEST(s.name == "BasicMotions");
  check_values<float>(s.values, {6, 2}, {1, 10, 2, 20, 3, 30, -4.5f, 40, 5, 50, 6, 60});
  check_values<std::int64_t>(s.lengths, {3}, {3, 1, 2});
  check_values<std::int64_t>(s.labels, {3}, {1, 0, 1});
  BOOST_TEST(s.classes == (std::vector<std::string>{"Standing", "Walking"}), boost::test_tools::per_element());
  BOOST_TEST(!s.targets.defined());
}

BOOST_AUTO_TEST_CASE(targets) {
  const TimeSeries s =
      io::parse_time_series("\xef\xbb\xbf@TARGETLABEL True\n@seriesLength 2\n@data\n1,2:0.1\n3,4:-1e-3");
  check_values<float>(s.values, {4, 1}, {1, 2, 3, 4});
  check_values<float>(s.targets, {2}, {0.1f, -1e-3f});
  BOOST_TEST(!s.labels.defined());
  BOOST_TEST(s.classes.empty());
}

BOOST_AUTO_TEST_CASE(without_labels) {
  const TimeSeries s = io::parse_time_series("@classlabel false\n@unknown key\n@data\n1:2\n3:4\n");
  check_values<float>(s.values, {2, 2}, {1, 2, 3, 4});
  BOOST_TEST(!s.labels.defined());
  BOOST_TEST(!s.targets.defined());
}

BOOST_AUTO_TEST_CASE(missing_values) {
  const std::string text = "@missing true\n@classLabel true a\n@data\n1,?,NaN:a\n";
  BOOST_CHECK_EXCEPTION(
      io::parse_time_series(text, "x"), IoError,
      hostile_suite::says("x: ", "line 4: dimension 1, value 2: a value is missing: '?'; Missing::nan"));
  const auto values = io::parse_time_series(text, "x", Missing::nan).values.to_vector<float>();
  BOOST_TEST(values[0] == 1);
  BOOST_TEST((std::isnan(values[1]) && std::isnan(values[2])));
}

BOOST_AUTO_TEST_CASE(files) {
  const io_test::TemporaryFolder folder;
  std::ofstream(folder / "a.ts", std::ios::binary) << kMotions;
  check_values<std::int64_t>(io::read_time_series(folder / "a.ts").lengths, {3}, {3, 1, 2});
  BOOST_CHECK_EXCEPTION(io::read_time_series(folder / "b.ts"), IoError,
                        hostile_suite::says((folder / "b.ts").string(), "cannot open the file"));
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

struct Case {
  std::string name, text, message;
};

std::string repeated(std::string_view text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

std::vector<Case> cases() {
  const std::string two = "@classLabel true a b\n@data\n";
  const std::string many = repeated("1,", 50'000);
  return {
      {"empty", "", "no line is '@data'"},
      {"comments_alone", "#a\n# b\n", "no line is '@data'"},
      {"header_alone", "@classLabel true a\n", "no line is '@data'"},
      {"no_header", "1,2:a\n", "line 1: neither a comment nor part of a header, before '@data': '1,2:a'"},
      {"no_series", two + "\n \n", "there are no series after '@data'"},
      {"data_with_a_value", "@data yes\n1\n", "line 1: the data begin in the next line: '@data yes'"},
      {"sign_alone", "@\n@data\n", "there are no series"},
      {"boolean_maybe", "@missing maybe\n@data\n1\n", "line 1: neither true nor false: '@missing maybe'"},
      {"boolean_absent", "@univariate\n@data\n1\n", "line 1: neither true nor false"},
      {"boolean_and_more", "@equalLength true 3\n@data\n1\n", "line 1: neither true nor false"},
      {"boolean_twice", "@missing true\n@Missing false\n@data\n1\n", "line 2: the header says it twice"},
      {"dimensions_zero", "@dimensions 0\n@data\n1\n", "line 1: not a positive integer: '@dimensions 0'"},
      {"dimensions_negative", "@dimension -1\n@data\n1\n", "line 1: not a positive integer"},
      {"dimensions_huge", "@dimensions 99999999999999999999\n@data\n1\n", "line 1: not a positive integer"},
      {"dimensions_many", "@dimensions 9223372036854775807\n@data\n1\n",
       "line 3: a series of 1 dimension, there are 9223372036854775807"},
      {"dimensions_twice", "@dimension 1\n@dimensions 1\n@data\n1\n", "line 2: the header says it twice"},
      {"length_text", "@seriesLength x\n@data\n1\n", "line 1: not a positive integer"},
      {"time_stamps", "@timeStamps true\n@data\n(2020-01-01,1)\n", "line 1: time stamps are not supported"},
      {"classes_absent", "@classLabel true\n@data\n1:a\n", "line 1: true takes a list of classes"},
      {"classes_of_none", "@classLabel false a\n@data\n1:a\n", "line 1: true takes a list of classes, and false none"},
      {"class_twice", "@classLabel true a b a\n@data\n1:a\n", "line 1: a class is listed twice"},
      {"classes_and_targets", "@classLabel true a\n@targetLabel true\n@data\n1:a\n", "labels are classes or targets"},
      {"univariate_of_two", "@univariate true\n@dimensions 2\n@data\n1:2\n", "univariate series have one dimension"},
      {"label_absent", two + "1,2\n", "line 3: a series without values or without a label: '1,2'"},
      {"label_empty", two + "1,2:\n", "line 3: a label that is none of the header's 2 classes: ''"},
      {"label_unknown", two + "1:a\n1:c\n", "line 4: a label that is none of the header's 2 classes: 'c'"},
      {"label_misspelt", "@classLabel true Standing\n@data\n1:Standig\n", "did you mean 'Standing'"},
      {"label_long", two + "1:" + repeated("x", 5000), "xxx...xxx"},
      {"target_text", "@targetLabel true\n@data\n1:x\n", "line 3: a target that is not a number: 'x'"},
      {"target_missing", "@targetLabel true\n@data\n1:?\n", "line 3: a target that is not a number: '?'"},
      {"target_nan", "@targetLabel true\n@data\n1:nan\n", "line 3: a target that is not a number: 'nan'"},
      {"target_too_large", "@targetLabel true\n@data\n1:1e39\n", "line 3: target too large for f32: '1e39'"},
      {"value_empty", two + "1,,2:a\n", "line 3: dimension 1, value 2: not a number: ''"},
      {"value_text", two + "1,2:3,x:a\n", "line 3: dimension 2, value 2: not a number: 'x'"},
      {"value_of_bytes", two + std::string("\0\xff", 2) + ":a\n", "not a number: '\\x00\\xff'"},
      {"value_too_large", two + "1e39:a\n", "line 3: dimension 1, value 1: too large for f32: '1e39'"},
      {"value_too_large_for_doubles", two + "-1e999:a\n", "too large for f32: '-1e999'"},
      {"dimension_empty", two + "1,2::a\n", "dimension 2, value 1: not a number: ''"},
      {"dimension_of_nothing", two + ":a\n", "dimension 1, value 1: not a number: ''"},
      {"dimensions_of_different_lengths", two + "1,2:3:a\n",
       "line 3: dimensions of different lengths: the first one has 2 values, dimension 2 has 1"},
      {"dimensions_change", two + "1:2:a\n1:a\n", "line 4: a series of 1 dimension, there are 2"},
      {"dimensions_against_the_header", "@dimensions 3\n" + two + "1:2:a\n", "a series of 2 dimensions, there are 3"},
      {"univariate_against_the_data", "@univariate true\n" + two + "1:2:a\n", "a series of 2 dimensions, there are 1"},
      {"lengths_change", "@equalLength true\n" + two + "1:a\n1,2:a\n", "where the header says they are equal: 1 and 2"},
      {"length_against_the_header", "@equalLength true\n@seriesLength 3\n" + two + "1:a\n", "are equal: 3 and 1"},
      {"wide_and_long", two + many + "1" + repeated(":", 50'000) + "a\n", "dimensions of different lengths"},
      {"comment_in_the_data", two + "1:a\n#b\n", "line 4: a series without values or without a label: '#b'"},
  };
}

void check(const Case& c) {
  const std::size_t peak = counting::peak([&] {
    BOOST_CHECK_EXCEPTION(io::parse_time_series(c.text, "x"), IoError, hostile_suite::says("x: ", c.message));
  });
  BOOST_TEST(peak <= 10 * c.text.size() + (1u << 16));
}

/// Checks that a file cut anywhere, or with any one byte changed, is refused or read, nothing else.
void check_changes() {
  for (std::size_t n = 0; n < kMotions.size(); ++n)
    for (int byte = -1; byte < 256; ++byte) {
      std::string changed = kMotions.substr(0, byte < 0 ? n : kMotions.size());
      if (byte >= 0) changed[n] = static_cast<char>(byte);
      try {
        io::parse_time_series(changed, "x");
      } catch (const IoError& error) {
        BOOST_REQUIRE(std::string(error.what()).starts_with("x: "));
      }
    }
}

bool register_cases() {
  static const std::vector<Case> all = cases();
  hostile_suite::NamedTests tests;
  hostile_suite::write_seed("ts", "sound", kMotions);
  for (const Case& c : all) {
    if (c.text.size() < 1000) hostile_suite::write_seed("ts", c.name, c.text);
    tests.emplace_back(c.name, [&c] { check(c); });
  }
  tests.emplace_back("every_change", check_changes);
  return hostile_suite::add_suite("time_series_hostile", tests);
}

const bool registered = register_cases();

}  // namespace
