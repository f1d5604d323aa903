/// Hostile CSV files, one named case each. With FERRITE_WRITE_CORPUS=<folder> they are also written to csv/ there, as
/// seeds for tests/fuzz.
#include <boost/test/unit_test.hpp>

#include "counting.h"
#include "ferrite/io/csv.h"
#include "hostile_suite.h"

namespace {

using ferrite::IoError;
using hostile_suite::Case;
using hostile_suite::Verdict;
namespace io = ferrite::io;

std::string repeated(std::string_view text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

/// Returns the cases. In those that are refused later, the numbers of the column "a" are refused.
std::vector<Case> cases() {
  using enum Verdict;
  const auto nul = [](std::string text) {
    text[text.find('0')] = '\0';
    return text;
  };
  return {
      {"empty", "", refused, "it is empty"},
      {"only_a_mark", "\xef\xbb\xbf", refused, "it is empty"},
      {"only_line_ends", "\n\r\n\n", refused, "it is empty"},
      {"header_alone", "a", legal, ""},
      {"no_final_line_end", "a\n1", legal, ""},
      {"one_carriage_return_at_the_end", "a\n1\r", refused, "line 2: a carriage return without a line feed: '1'"},
      {"old_line_ends", "a\r1\r2", refused, "line 1: a carriage return without a line feed: 'a'"},
      {"two_carriage_returns", "a\r\r\n", refused, "line 1: a carriage return"},
      {"utf16", "\xff\xfe\x61", refused, "UTF-16"},
      {"utf16_big", "\xfe\xff", refused, "UTF-16"},
      {"nul", nul("a\n10\n"), refused, "a byte is NUL, which text does not hold: at position 3"},
      {"mark_in_the_middle", "a\n\xef\xbb\xbf\x31\n", refused_later, "not a number"},
      {"mark_cut", "\xef\xbb", legal, ""},
      {"ragged_short", "a,b\n1,2\n3\n", refused, "line 3: another number of fields than in line 1: 1, there 2"},
      {"ragged_long", "a,b\n1,2,3\n", refused, "line 2: another number of fields than in line 1: 3, there 2"},
      {"blanks_are_no_empty_line", "a,b\n1,2\n  \n", refused, "line 3: another number of fields"},
      {"delimiter_at_the_end", "a,b\n1,2\n3,", legal, ""},
      {"quote_not_closed", "a\n1\n\"2\n3\n", refused, "line 3: a quote is not closed: '2\\x0a3\\x0a'"},
      {"quote_at_the_end", "a\n\"", refused, "line 2: a quote is not closed: ''"},
      {"quote_doubled_at_the_end", "a\n\"\"\"", refused, "line 2: a quote is not closed"},
      {"quote_in_the_middle", "a\n5\"\n", refused, "line 2: a quote inside a field that does not begin with one: '5'"},
      {"text_behind_a_quote", "a\n\"1\"2\n", refused, "line 2: text after a closing quote: '12'"},
      {"blank_behind_a_quote", "a\n\"1\" \n", refused, "line 2: text after a closing quote"},
      {"return_behind_a_quote", "a\n\"1\"\r", refused, "line 2: text after a closing quote"},
      {"long_quote_not_closed", "a\n\"" + repeated("x", 5000), refused, "line 2: a quote is not closed"},
      {"number_hexadecimal", "a\n0x1p3\n", refused_later, "line 2, column 'a': not a number: '0x1p3'"},
      {"number_decimal_comma", "a\n\"1,5\"\n", refused_later, "not a number: '1,5'"},
      {"number_with_thousands", "a\n1 000\n", refused_later, "not a number: '1 000'"},
      {"number_twice_signed", "a\n+-1\n", refused_later, "not a number: '+-1'"},
      {"number_sign_alone", "a\n+\n", refused_later, "not a number: '+'"},
      {"number_exponent_cut", "a\n1e\n", refused_later, "not a number: '1e'"},
      {"number_with_a_suffix", "a\n1.5f\n", refused_later, "not a number: '1.5f'"},
      {"number_too_large", "a\n1e400\n", refused_later, "too large for f32: '1e400'"},
      {"number_too_large_for_f32", "a\n1e39\n", refused_later, "too large for f32: '1e39'"},
      {"number_of_many_digits", "a\n" + repeated("1", 5000) + "e-4999\n", legal, ""},
      {"number_of_many_zeros", "a\n0." + repeated("0", 5000) + "1\n", legal, ""},
      {"number_huge_exponent", "a\n1e" + repeated("9", 500) + "\n", refused_later, "too large"},
      {"number_tiny_exponent", "a\n1e-" + repeated("9", 500) + "\n", legal, ""},
      {"number_with_a_payload", "a\nnan(123)\n", refused_later, "not a number: 'nan(123)'"},
      {"number_missing", "a,b\n,1\n", refused_later, "line 2, column 'a': a number is missing: ''"},
      {"number_of_control_bytes", "a\n\x01\x7f\n", refused_later, "not a number: '\\x01\\x7f'"},
      {"number_of_broken_utf8", "a\n\xff\n", refused_later, "not a number: '\\xff'"},
      {"long_text_for_a_number", "a\n" + repeated("y", 5000) + "\n", refused_later, "yyy...yyy"},
      {"long_name", repeated("n", 5000) + "\n1\n", refused_later, "no column has the name 'a'"},
      {"name_twice", "a,a\n1,2\n", refused_later, "2 columns have the name 'a'"},
      {"name_empty", ",b\n1,2\n", refused_later, "no column has the name 'a'"},
      {"many_columns", repeated(",", 100'000) + "a\n" + repeated("1,", 100'000) + "1\n", legal, ""},
      {"many_quotes", "a\n\"" + repeated("\"\"", 100'000) + "\"\n", refused_later, "not a number"},
      {"many_empty_lines", "a\n" + repeated("\n", 100'000) + "x", refused_later, "line 100002"},
  };
}

void read(const std::string& bytes) { io::parse_csv(bytes, "x").column("a"); }

void check(const Case& c) {
  const auto error = hostile_suite::says("x: ", c.message);
  if (c.verdict == Verdict::legal) {
    const io::CsvTable table = io::parse_csv(c.bytes, "x");
    if (table.names().back() == "a") table.column("a");
  } else if (c.verdict == Verdict::refused) {
    BOOST_CHECK_EXCEPTION(io::parse_csv(c.bytes, "x"), IoError, error);
  } else {
    const io::CsvTable table = io::parse_csv(c.bytes, "x");
    BOOST_CHECK_EXCEPTION(table.column("a"), IoError, error);
  }
}

/// Checks that a file with any one byte changed, or cut anywhere, is refused or read, nothing else.
void check_changes() {
  const std::string sound = "a,\"b \"\"c\"\"\"\r\n1.5,\"x\n,y\"\n-2e3,\n";
  for (std::size_t n = 0; n < sound.size(); ++n)
    for (int byte = -1; byte < 256; ++byte) {
      std::string changed = sound.substr(0, byte < 0 ? n : sound.size());
      if (byte >= 0) changed[n] = static_cast<char>(byte);
      try {
        read(changed);
      } catch (const IoError& error) {
        BOOST_REQUIRE(std::string(error.what()).starts_with("x: "));
      }
    }
}

bool register_cases() {
  static const std::vector<Case> all = cases();
  hostile_suite::NamedTests tests;
  for (const Case& c : all) {
    if (c.bytes.size() < 10'000) hostile_suite::write_seed("csv", c.name, c.bytes);
    tests.emplace_back(c.name, [&c] {
      const std::size_t peak = counting::peak([&] { check(c); });
      BOOST_TEST(peak <= 40 * c.bytes.size() + (1u << 20));
    });
  }
  tests.emplace_back("every_change", check_changes);
  return hostile_suite::add_suite("csv_hostile", tests);
}

const bool registered = register_cases();

}  // namespace
