/// Texts of errors: quoting, UTF-8, JSON escapes, near names.
#include <boost/test/unit_test.hpp>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/suggest.h"

namespace {

using namespace ferrite::io::detail;

/// Returns the UTF-8 of a code point by its definition, also for surrogates.
std::string encoded(std::uint32_t c) {
  const auto byte = [](std::uint32_t v) { return std::string(1, static_cast<char>(v)); };
  const auto tail = [&](std::uint32_t shift) { return byte(0x80 | (0x3f & shift)); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) return byte(0xc0 | c >> 6) + tail(c);
  if (c < 0x10000) return byte(0xe0 | c >> 12) + tail(c >> 6) + tail(c);
  return byte(0xf0 | c >> 18) + tail(c >> 12) + tail(c >> 6) + tail(c);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(every_code_point_is_utf8_but_surrogates) {
  for (std::uint32_t c = 0; c < 0x120000; ++c) {
    const bool valid = c < 0xd800 || (c > 0xdfff && c < 0x110000);
    BOOST_REQUIRE_MESSAGE(invalid_utf8(encoded(c)).has_value() != valid, "code point " << c);
  }
}

BOOST_AUTO_TEST_CASE(every_cut_of_a_character_is_no_utf8) {
  for (const std::uint32_t c : {0x80u, 0x7ffu, 0x800u, 0xffffu, 0x10000u, 0x10ffffu}) {
    const std::string whole = encoded(c);
    for (std::size_t n = 1; n < whole.size(); ++n) BOOST_TEST(invalid_utf8(whole.substr(0, n)).has_value());
    BOOST_TEST(invalid_utf8(whole.substr(1)).has_value());
  }
}

BOOST_AUTO_TEST_CASE(the_first_bad_byte_is_found_wherever_it_is) {
  for (std::size_t at = 0; at < 40; ++at) {
    std::string line(40, 'a');
    line[at] = '\xff';
    BOOST_TEST(invalid_utf8(line).value() == at);
  }
}

BOOST_AUTO_TEST_CASE(quotes_keep_errors_readable) {
  BOOST_TEST(quote("gru.weight") == "'gru.weight'");
  BOOST_TEST(quote("a\n\x7f") == "'a\\x0a\\x7f'");
  BOOST_TEST(quote("\xc3\xa9") == "'\xc3\xa9'");
  BOOST_TEST(quote("\xc3(") == "'\\xc3('");
  const std::string cut = quote(std::string(60, 'a') + std::string(1000, 'b') + std::string(30, 'c'));
  BOOST_TEST(cut == "'" + std::string(60, 'a') + std::string(30, 'b') + "..." + std::string(30, 'c') + "'");
}

BOOST_AUTO_TEST_CASE(json_strings_are_escaped_as_little_as_allowed) {
  std::string out;
  append_json_string(out, "a\"\\/\b\f\n\r\t\x01\x1f\x7f\xc3\xa9");
  BOOST_TEST(out == "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xc3\xa9\"");
}

BOOST_AUTO_TEST_CASE(edit_distances) {
  BOOST_TEST(edit_distance("", "", 5) == 0u);
  BOOST_TEST(edit_distance("kitten", "sitting", 5) == 3u);
  BOOST_TEST(edit_distance("kitten", "sitting", 2) == 3u);
  BOOST_TEST(edit_distance("abc", "", 5) == 3u);
  BOOST_TEST(edit_distance("a", "abcdefgh", 5) == 6u);
}

BOOST_AUTO_TEST_CASE(near_names) {
  const std::vector<std::string_view> names = {"head.weight", "head.bias", "gru.weight_ih_l0"};
  BOOST_TEST(nearest("head.bais", names) == "head.bias");
  BOOST_TEST(nearest("gru.weight_ih", names) == "gru.weight_ih_l0");
  BOOST_TEST(nearest("conv", names).empty());
  BOOST_TEST(nearest("", names).empty());
}

BOOST_AUTO_TEST_CASE(prefixes) {
  const std::vector<std::string_view> longer = {"m.a", "m.b", "other"};
  const std::vector<std::string_view> shorter = {"a", "b"};
  const std::vector<std::string_view> wrong = {"a", "c"};
  BOOST_TEST(common_prefix(shorter, longer).value() == "m.");
  BOOST_TEST(!common_prefix(wrong, longer).has_value());
  BOOST_TEST(!common_prefix({}, longer).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
