/// CSV tables: the values read, their dtypes, and the text written. Expected values are in the tests.
#include "ferrite/io/csv.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <locale>
#include <random>

#include "counting.h"
#include "temporary_folder.h"

namespace {

using namespace ferrite;
using io::CsvTable;
using io::Missing;
using io::parse_csv;
using Texts = std::vector<std::string>;

const std::string kFlowers =
    "length,width,kind\n"
    "5.1,3.5,setosa\n"
    "7,3.2,versicolor\n"
    "-6.25e-1,+2,setosa\n";

/// Returns a predicate on errors whose message holds all of these parts.
auto says(Texts parts) {
  return [parts = std::move(parts)](const Error& error) {
    const std::string text = error.what();
    BOOST_TEST_INFO("the error says: " << text);
    for (const std::string& part : parts) BOOST_TEST(text.find(part) != std::string::npos, "without: " << part);
    return true;
  };
}

template <class T>
void check_values(const Tensor& x, const Shape& shape, const std::vector<T>& expected) {
  BOOST_TEST(x.shape().str() == shape.str());
  BOOST_TEST((x.dtype() == dtype_of<T>));
  BOOST_TEST(x.to_vector<T>() == expected, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(csv)

BOOST_AUTO_TEST_CASE(columns_by_name_and_dtype) {
  const CsvTable t = parse_csv(kFlowers);
  BOOST_TEST(t.rows() == 3);
  BOOST_TEST(t.columns() == 3);
  BOOST_TEST(t.names() == (Texts{"length", "width", "kind"}), boost::test_tools::per_element());
  check_values<float>(t.numbers({"width", "length"}), {3, 2}, {3.5f, 5.1f, 3.2f, 7, 2, -0.625f});
  check_values<double>(t.column("length", Dtype::f64), {3}, {5.1, 7, -0.625});
  BOOST_TEST(t.text("kind") == (Texts{"setosa", "versicolor", "setosa"}), boost::test_tools::per_element());
  check_values<float>(parse_csv("a,b\n1,2\n3,4\n").numbers(), {2, 2}, {1, 2, 3, 4});
  BOOST_CHECK_EXCEPTION(t.column("length", Dtype::i32), DtypeError, says({"f32, f64 or i64, got i32"}));
}

BOOST_AUTO_TEST_CASE(records_are_rows_and_a_header_alone_has_none) {
  const CsvTable t = parse_csv("a,b\n");
  BOOST_TEST(t.rows() == 0);
  check_values<float>(t.numbers(), {0, 2}, {});
  check_values<std::int64_t>(t.categories("b").codes, {0}, {});
}

BOOST_AUTO_TEST_CASE(fields_in_quotes) {
  const CsvTable t = parse_csv("\"a\"\"b\",c\n\"x,y\",\"1.5\"\n\"two\nlines\",\"2\"\n\"\",3");
  BOOST_TEST(t.text("a\"b") == (Texts{"x,y", "two\nlines", ""}), boost::test_tools::per_element());
  check_values<float>(t.column("c"), {3}, {1.5f, 2, 3});
}

BOOST_AUTO_TEST_CASE(marks_line_ends_and_empty_lines_change_nothing) {
  std::string crlf = "\xef\xbb\xbf\r\n";
  for (const char c : kFlowers) crlf += c == '\n' ? std::string("\r\n\n") : std::string(1, c);
  for (const std::string& text : {crlf, kFlowers.substr(0, kFlowers.size() - 1), "\n\n" + kFlowers + "\n\r\n"}) {
    const CsvTable t = parse_csv(text);
    BOOST_TEST(t.names() == parse_csv(kFlowers).names(), boost::test_tools::per_element());
    BOOST_TEST(t.text("kind") == parse_csv(kFlowers).text("kind"), boost::test_tools::per_element());
    check_values<double>(t.column("width", Dtype::f64), {3}, {3.5, 3.2, 2});
  }
}

BOOST_AUTO_TEST_CASE(delimiters_and_no_header) {
  for (const char delimiter : {';', '\t', '|'}) {
    const std::string d(1, delimiter);
    const CsvTable t = parse_csv("1" + d + " 2 \n3" + d + "  4\n", "csv", {.delimiter = delimiter, .header = false});
    BOOST_TEST(t.names() == (Texts{"0", "1"}), boost::test_tools::per_element());
    check_values<float>(t.numbers(), {2, 2}, {1, 2, 3, 4});
    check_values<float>(t.column("1"), {2}, {2, 4});
    BOOST_CHECK_THROW(t.column("2"), IoError);
    BOOST_CHECK_THROW(t.column("01"), IoError);
  }
  for (const char bad : {'"', '\n', '\r', '\0', '.', '7', 'e', '-'})
    BOOST_CHECK_EXCEPTION(parse_csv("a", "csv", {.delimiter = bad}), ValueError, says({"the delimiter cannot be"}));
}

BOOST_AUTO_TEST_CASE(missing_numbers_are_refused_or_nan) {
  const std::string text = "age,height\n31,\n,1.70\nNA,nan\n";
  const CsvTable strict = parse_csv(text, "x");
  BOOST_CHECK_EXCEPTION(strict.numbers(), IoError,
                        says({"x: line 2, column 'height': a number is missing: ''; CsvOptions::missing"}));
  BOOST_CHECK_EXCEPTION(strict.column("age"), IoError, says({"line 3, column 'age'"}));
  const CsvTable t = parse_csv(text, "x", {.missing = Missing::nan});
  const std::vector<double> values = t.numbers(Dtype::f64).to_vector<double>();
  for (const std::size_t i : {1U, 2U, 4U, 5U}) BOOST_TEST(std::isnan(values[i]));
  BOOST_TEST(values[0] == 31);
  BOOST_TEST(values[3] == 1.70);
  BOOST_CHECK_EXCEPTION(t.column("age", Dtype::i64), IoError, says({"line 3, column 'age': an integer is missing"}));
  const CsvTable asked = parse_csv("a\n?\n -NaN \n", "x", {.missing = Missing::nan, .missing_texts = {"?"}});
  BOOST_TEST(std::isnan(asked.column("a").to_vector<float>()[0]));
  BOOST_TEST(std::isnan(asked.column("a").to_vector<float>()[1]));
  BOOST_CHECK_EXCEPTION(parse_csv("a\n-nan\n").column("a"), IoError, says({"a number is missing: '-nan'"}));
}

BOOST_AUTO_TEST_CASE(integers_are_exact) {
  const CsvTable t = parse_csv("n\n9007199254740993\n-9223372036854775808\n+7\n 0 \n");
  check_values<std::int64_t>(t.column("n", Dtype::i64), {4},
                             {9007199254740993, std::numeric_limits<std::int64_t>::min(), 7, 0});
  for (const auto& [field, message] : std::vector<std::pair<std::string, std::string>>{
           {"1.0", "not an integer: '1.0'"},
           {"1e3", "not an integer: '1e3'"},
           {"+-1", "not an integer"},
           {"9223372036854775808", "too large for i64: '9223372036854775808'"}})
    BOOST_CHECK_EXCEPTION(parse_csv("n\n" + field).column("n", Dtype::i64), IoError,
                          says({"line 2, column 'n'", message}));
}

BOOST_AUTO_TEST_CASE(floats_at_their_ends) {
  const CsvTable t =
      parse_csv("x\n1e-400\n-1e-400\n0.0000000001e-320\ninf\n-Infinity\n1.7976931348623157e308\n4.9e-324\n");
  const std::vector<double> values = t.column("x", Dtype::f64).to_vector<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  BOOST_TEST(values == (std::vector<double>{0, -0.0, 0, infinity, -infinity, 1.7976931348623157e308, 4.9e-324}),
             boost::test_tools::per_element());
  BOOST_TEST(std::signbit(values[1]));
  for (const std::string field : {"1e400", "-1e400", "1e99999999999999999999", "1000000e305"})
    BOOST_CHECK_EXCEPTION(parse_csv("x\n" + field).column("x", Dtype::f64), IoError, says({"too large for f64"}));
  BOOST_CHECK_EXCEPTION(parse_csv("x\n1e39").column("x"), IoError, says({"too large for f32: '1e39'"}));
  BOOST_TEST(parse_csv("x\n1e-60").column("x").item() == 0);
  BOOST_TEST(parse_csv("x\n1e-99999999999999999999").column("x").item() == 0);
}

/// A decimal comma and a point between thousands, as in Germany.
struct German : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

BOOST_AUTO_TEST_CASE(the_locale_does_not_matter) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new German));
  const double read = parse_csv("x\n12345.5\n").column("x", Dtype::f64).item<double>();
  const std::string written = io::serialize_csv({"x"}, {Tensor::from({12345.5})});
  std::locale::global(before);
  BOOST_TEST(read == 12345.5);
  BOOST_TEST(written == "x\n12345.5\n");
}

BOOST_AUTO_TEST_CASE(classes) {
  const CsvTable t = parse_csv(kFlowers + "1,2,Zeta\n");
  const io::Categories kinds = t.categories("kind");
  BOOST_TEST(kinds.vocabulary == (Texts{"Zeta", "setosa", "versicolor"}), boost::test_tools::per_element());
  check_values<std::int64_t>(kinds.codes, {4}, {1, 2, 1, 0});
  const Texts given = {"versicolor", "other", "setosa"};
  check_values<std::int64_t>(parse_csv(kFlowers).codes("kind", given), {3}, {2, 0, 2});
  BOOST_CHECK_EXCEPTION(t.codes("kind", given), IoError,
                        says({"line 5, column 'kind': not in the vocabulary of 3 texts: 'Zeta'"}));
  BOOST_CHECK_THROW(t.codes("kind", Texts{"a", "a"}), ValueError);
}

BOOST_AUTO_TEST_CASE(errors_name_the_line_of_an_editor) {
  // Lines 1 and 2 are the header, 3 is empty, 4 and 5 one record; the bad number is in line 7, in a record that begins
  // in line 6.
  const CsvTable t = parse_csv("\"a\nb\",c\n\n\"1\n2\",3\n\"4\n5\",x6\n7,8\n9,ten\n", "data.csv");
  BOOST_CHECK_EXCEPTION(t.column("c"), IoError, says({"data.csv: line 7, column 'c': not a number: 'x6'"}));
  BOOST_CHECK_EXCEPTION(parse_csv("a\n\n\n1\n2\n3\n\nx\n").column("a"), IoError, says({"line 8"}));
  BOOST_CHECK_EXCEPTION(parse_csv("\n\na,b\n1,2\n\"3\n\n\n\"\n"), IoError,
                        says({"line 5: another number of fields than in line 3: 1, there 2"}));
}

BOOST_AUTO_TEST_CASE(columns_that_are_not_there) {
  const CsvTable t = parse_csv("length,width,width,a b\n1,2,3,4\n", "x");
  BOOST_CHECK_EXCEPTION(t.column("lenght"), IoError,
                        says({"x: no column has the name 'lenght'", "did you mean 'length'"}));
  BOOST_CHECK_EXCEPTION(t.numbers({"length", "height"}), IoError, says({"no column has the name 'height'"}));
  BOOST_CHECK_EXCEPTION(t.text("width"), IoError, says({"2 columns have the name 'width'", "2 and 3"}));
  check_values<float>(t.numbers(), {1, 4}, {1, 2, 3, 4});
  BOOST_CHECK_EXCEPTION(parse_csv("a;b\n1;2\n").column("a"), IoError, says({"CsvOptions::delimiter"}));
}

BOOST_AUTO_TEST_CASE(what_is_written) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string text = io::serialize_csv(
      {"f", "d", "i", "b", "p0", "p1", "text, with \"quotes\""},
      {Tensor::from<float>({0.1f, nan}), Tensor::from<double>({0.1, -std::numeric_limits<double>::infinity()}),
       Tensor::from<std::int64_t>({9007199254740993, -1}), Tensor::from<bool>({true, false}),
       Tensor::from<float>({1, 2, 3, 4}, {2, 2}), Texts{"plain", "a\nb"}});
  BOOST_TEST(text ==
             "f,d,i,b,p0,p1,\"text, with \"\"quotes\"\"\"\n"
             "0.1,0.1,9007199254740993,1,1,2,plain\n"
             "nan,-inf,-1,0,3,4,\"a\nb\"\n");
  BOOST_TEST(io::serialize_csv({"a", "b"}, {Texts{""}, Texts{"x;y"}}, ';') == "a;b\n;\"x;y\"\n");
  const Tensor one = Tensor::from<float>({1}), two = Tensor::from<float>({1, 2});
  BOOST_CHECK_THROW(io::serialize_csv({"a", "b"}, {one, two}), ShapeError);
  BOOST_CHECK_THROW(io::serialize_csv({"a"}, {one, one}), ShapeError);
  BOOST_CHECK_THROW(io::serialize_csv({}, {}), ShapeError);
  BOOST_CHECK_THROW(io::serialize_csv({"a"}, {Tensor::from<bfloat16>({bfloat16(1.0f)})}), DtypeError);
  BOOST_CHECK_THROW(io::serialize_csv({"a"}, {Tensor()}), IoError);
  BOOST_CHECK_THROW(io::serialize_csv({std::string("a\0b", 3)}, {one}), IoError);
  BOOST_CHECK_THROW(io::serialize_csv({"a"}, {one}, '1'), ValueError);
}

BOOST_AUTO_TEST_CASE(numbers_and_texts_come_back) {
  std::mt19937_64 random(7);
  std::vector<double> doubles;
  std::vector<float> floats;
  Texts texts;
  for (int i = 0; i < 2000; ++i) {
    const double d = std::bit_cast<double>(random());
    doubles.push_back(std::isnan(d) ? 0.0 : d);
    const float f = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    floats.push_back(std::isnan(f) ? 0.0f : f);
    std::string text;
    for (auto n = random() % 6; n > 0; --n) text += std::string_view("a,\"\n\r ;\xef\xbb\xbf")[random() % 10];
    texts.push_back(text);
  }
  const CsvTable t = parse_csv(io::serialize_csv({"\xef\xbb\xbf mark", "d", "f"},
                                                 {texts, Tensor::from(doubles, {2000}), Tensor::from(floats, {2000})}));
  BOOST_TEST((t.column("d", Dtype::f64).to_vector<double>() == doubles));
  BOOST_TEST((t.column("f").to_vector<float>() == floats));
  BOOST_TEST((t.text("\xef\xbb\xbf mark") == texts));
  BOOST_TEST((parse_csv(io::serialize_csv({""}, {texts})).text("") == texts));  // one column: "" is not an empty line
}

BOOST_AUTO_TEST_CASE(files) {
  const io_test::TemporaryFolder folder;
  const auto path = folder / "table.csv";
  io::write_csv(path, {"a", "b"}, {Tensor::from<float>({1, 2}), Texts{"x", "y"}});
  BOOST_TEST(io::read_csv(path).text("b") == (Texts{"x", "y"}), boost::test_tools::per_element());
  BOOST_CHECK_THROW(io::write_csv(path, {"a"}, {}), ShapeError);
  BOOST_TEST(io::read_csv(path).rows() == 2);  // the error has changed nothing
  BOOST_TEST(folder.leftovers() == 0);
  std::ofstream(path) << "a\nx\n";
  BOOST_CHECK_EXCEPTION(io::read_csv(path).column("a"), IoError, says({path.string() + ": line 2, column 'a'"}));
  BOOST_CHECK_EXCEPTION(io::read_csv(folder / "gone.csv"), IoError, says({"gone.csv: cannot open the file"}));
  BOOST_CHECK_THROW(io::read_csv(folder.path()), IoError);
}

/// The limit is eight bytes per field, however short the fields are, and the text itself, once in the test and once in
/// the table.
BOOST_AUTO_TEST_CASE(memory_is_bounded_by_the_file) {
  const std::string wide = std::string(200'000, ',') + "\n" + std::string(200'000, ',') + "\n";
  std::string deep, quoted = "\"";
  for (int i = 0; i < 100'000; ++i) deep += "1\n\n";
  for (int i = 0; i < 100'000; ++i) quoted += "\"\",\n";
  quoted += "\"";
  for (const std::string& text : {wide, deep, quoted}) {
    const std::size_t peak = counting::peak([&] { parse_csv(text); });
    BOOST_TEST(peak <= 20 * text.size() + (1u << 20));
  }
}

BOOST_AUTO_TEST_SUITE_END()
