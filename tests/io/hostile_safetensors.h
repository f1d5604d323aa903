#pragma once
/// A table of hostile safetensors files, made in memory: the file, and how reading it must end.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "hostile_suite.h"

namespace hostile {

using hostile_suite::Case;
using hostile_suite::Verdict;

inline std::string length_of(std::uint64_t n) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &n, 8);
  return bytes;
}

inline std::string file_of(const std::string& header, const std::string& data = "") {
  return length_of(header.size()) + header + data;
}

/// Returns a file of n bytes of data and one tensor "a" described by these texts.
inline std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets, std::size_t n,
                       char fill = '\0') {
  return file_of("{\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}",
                 std::string(n, fill));
}

/// Returns an entry of one byte at an offset.
inline std::string byte_at(const std::string& name, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::string(offsets == "[0,0]" ? "0" : "1") +
         "],\"data_offsets\":" + offsets + "}";
}

inline const std::string kGood = R"({"a":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})";

inline std::string repeated(const std::string& text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text;
  return out;
}

// clang-format off: one case a line

inline std::vector<Case> of_lengths() {
  using enum Verdict;
  const std::string tail = kGood + std::string(16, '\0');
  return {
      {"file_of_0_bytes", "", refused, "too short to be a safetensors file: 0 bytes"},
      {"file_of_1_byte", "x", refused, "too short to be a safetensors file: 1 byte"},
      {"file_of_7_bytes", "1234567", refused, "too short to be a safetensors file: 7 bytes"},
      {"file_of_8_bytes", length_of(0), refused, "the header is empty"},
      {"file_of_9_bytes", length_of(1) + "x", refused, "byte 0 is not '{'"},
      {"length_0", length_of(0) + "{}", refused, "the header is empty"},
      {"length_1", length_of(1) + "{", refused, "not JSON: stopped at byte"},
      {"length_2_to_32", length_of(1ULL << 32) + tail, refused, "above the limit of 100000000 bytes: 4294967296"},
      {"length_2_to_63", length_of(1ULL << 63) + tail, refused, "9223372036854775808"},
      {"length_2_to_64_less_1", length_of(~0ULL) + tail, refused, "18446744073709551615"},
      {"length_one_beyond_the_file", length_of(tail.size() + 1) + tail, refused, "beyond the end of the file"},
      {"length_1000_in_a_small_file", length_of(1000) + tail, refused, "beyond the end of the file"},
      {"length_100000001", length_of(100000001) + tail, refused, "above the limit"},
      {"length_of_the_reference_test", std::string("\x3c\0\0\0\0\xff\xff\xff", 8) + tail, refused, "above the limit"},
  };
}

inline std::vector<Case> of_text() {
  using enum Verdict;
  const std::string zeros(16, '\0');
  return {
      {"good", file_of(kGood, zeros), legal, ""},
      {"empty_object", file_of("{}"), legal, ""},
      {"a_list", file_of("[]"), refused, "byte 0 is not '{'"},
      {"a_null", file_of("null"), refused, "byte 0 is not '{'"},
      {"leading_bom", file_of("\xef\xbb\xbf" + kGood, zeros), refused, "byte 0 is not '{'"},
      {"leading_blanks", file_of(" \t\r\n" + kGood, zeros), legal, ""},
      {"trailing_blanks", file_of(kGood + "      ", zeros), legal, ""},
      {"trailing_newline", file_of(kGood + "\r \t\n", zeros), legal, ""},
      {"only_blanks", file_of("        "), refused, "the header is empty"},
      {"trailing_nul", file_of(kGood + std::string(2, '\0'), zeros), refused, "holds a NUL"},
      {"trailing_nul_and_more", file_of(kGood + std::string(1, '\0') + kGood, zeros), refused, "holds a NUL"},
      {"two_objects", file_of(kGood + kGood, zeros), refused, "not JSON"},
      {"trailing_comma", file_of("{" + byte_at("a", "[0,1]") + ",}", "x"), refused, "not JSON"},
      {"comment", file_of("{/* */}"), refused, "not JSON"},
      {"single_quotes", file_of("{'a':1}"), refused, "not JSON"},
      {"cut_header", file_of(kGood.substr(0, 40), zeros), refused, "not JSON"},
      {"nan_literal", one("\"U8\"", "[1],\"x\":NaN", "[0,1]", 1), refused, "not JSON"},
      {"number_out_of_range", one("\"U8\"", "[1],\"x\":1e999", "[0,1]", 1), refused, "not JSON"},
      {"byte_ff", file_of("\xff"), refused, "not UTF-8: byte 0"},
      {"invalid_utf8_in_a_name", file_of("{" + byte_at("\xc3\x28", "[0,1]") + "}", "x"), refused, "not UTF-8: byte 2"},
      {"overlong_utf8", file_of("{" + byte_at("\xc0\x80", "[0,1]") + "}", "x"), refused, "not UTF-8"},
      {"raw_surrogate", file_of("{" + byte_at("\xed\xa0\x80", "[0,1]") + "}", "x"), refused, "not UTF-8"},
      {"lone_high_surrogate", file_of("{" + byte_at("\\ud800", "[0,1]") + "}", "x"), refused, "not JSON"},
      {"lone_low_surrogate", file_of("{" + byte_at("\\udc00", "[0,1]") + "}", "x"), refused, "not JSON"},
      {"surrogate_pair", file_of("{" + byte_at("\\ud83d\\ude00", "[0,1]") + "}", "x"), legal, ""},
      {"nul_in_a_name", file_of("{" + byte_at("a\\u0000b", "[0,1]") + "}", "x"), refused,
       "a name holds a NUL: 'a\\x00b'"},
      {"name_of_1_mb", file_of("{" + byte_at(std::string(1 << 20, 'n'), "[0,1]") + "}", "x"), legal, ""},
      {"empty_name", file_of("{" + byte_at("", "[0,1]") + "}", "x"), legal, ""},
      {"nested_100000_unclosed", file_of("{\"a\":" + repeated("[", 100000)), refused, "'a' is not an object"},
      {"nested_100000_in_a_field",
       one("\"U8\"", "[1],\"x\":" + repeated("[", 100000) + repeated("]", 100000), "[0,1]", 1), refused,
       "nested too deeply"},
      {"nested_100000_objects", file_of(repeated("{\"a\":", 100000) + "1" + repeated("}", 100000)), refused, "nested"},
  };
}

inline std::vector<Case> of_fields() {
  using enum Verdict;
  const std::string a = byte_at("a", "[0,1]");
  const auto meta = [&](const std::string& value) {
    return file_of("{\"__metadata__\":" + value + "," + a + "}", "x");
  };
  return {
      {"name_twice", file_of("{" + a + "," + a + "}", "x"), refused, "a name occurs twice: 'a'"},
      {"name_twice_at_other_bytes", file_of("{" + a + "," + byte_at("a", "[1,2]") + "}", "xy"), refused,
       "occurs twice"},
      {"name_twice_by_escape", file_of("{" + a + "," + byte_at("\\u0061", "[1,2]") + "}", "xy"), refused,
       "occurs twice"},
      {"dtype_twice", one("\"U8\",\"dtype\":\"U8\"", "[1]", "[0,1]", 1), refused, "'a' has a field twice: 'dtype'"},
      {"shape_twice", one("\"U8\"", "[1],\"shape\":[1]", "[0,1]", 1), refused, "'a' has a field twice: 'shape'"},
      {"offsets_twice", one("\"U8\"", "[1]", "[0,1],\"data_offsets\":[0,1]", 1), refused,
       "field twice: 'data_offsets'"},
      {"metadata_twice", meta("{},\"__metadata__\":{}"), refused, "__metadata__ occurs twice"},
      {"metadata_key_twice", meta(R"({"k":"1","k":"2"})"), refused, "the metadata has a key twice: 'k'"},
      {"metadata_of_strings", meta(R"({"k":"1","l":"2"})"), legal, ""},
      {"metadata_null", meta("null"), legal, ""},
      {"metadata_a_list", meta("[]"), refused, "the metadata is not an object"},
      {"metadata_a_string", meta("\"x\""), refused, "the metadata is not an object"},
      {"metadata_value_a_number", meta(R"({"k":1})"), refused, "the metadata's 'k' is not a string: 1"},
      {"metadata_value_null", meta(R"({"k":null})"), refused, "the metadata's 'k' is not a string: null"},
      {"metadata_value_true", meta(R"({"k":true})"), refused, "the metadata's 'k' is not a string: true"},
      {"metadata_value_nested", meta(R"({"k":{}})"), refused, "the metadata's 'k' is not a string: an object"},
      {"metadata_value_a_list", meta(R"({"k":[]})"), refused, "the metadata's 'k' is not a string: a list"},
      {"metadata_key_nul", meta(R"({"\u0000":""})"), refused, "a name holds a NUL"},
      {"no_dtype", file_of(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "x"), refused, "'a' has no dtype"},
      {"no_shape", file_of(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", "x"), refused, "'a' has no shape"},
      {"no_offsets", file_of(R"({"a":{"dtype":"U8","shape":[1]}})", "x"), refused, "'a' has no data_offsets"},
      {"no_fields", file_of(R"({"a":{}})"), refused, "'a' has no dtype"},
      {"unknown_field", one("\"U8\"", "[1],\"x\":[{\"y\":[null,1.5,{}]},-1]", "[0,1]", 1), legal, ""},
      {"entry_a_number", file_of(R"({"a":1})"), refused, "'a' is not an object: it is 1"},
      {"entry_a_list", file_of(R"({"a":["U8",[1],[0,1]]})", "x"), refused, "'a' is not an object: it is a list"},
      {"entry_null", file_of(R"({"a":null})"), refused, "'a' is not an object: it is null"},
  };
}

inline std::vector<Case> of_dtypes() {
  using enum Verdict;
  std::vector<Case> cases = {
      {"dtype_unknown", one("\"F33\"", "[1]", "[0,1]", 1), refused, "'a' has an unknown dtype: 'F33'"},
      {"dtype_lower_case", one("\"f32\"", "[1]", "[0,4]", 4), refused, "'a' has an unknown dtype: 'f32'"},
      {"dtype_a_number", one("7", "[1]", "[0,1]", 1), refused, "'a' has a dtype that is not a string: 7"},
      {"dtype_an_object", one("{\"U8\":null}", "[1]", "[0,1]", 1), refused, "dtype that is not a string: an object"},
      {"dtype_a_list", one("[]", "[1]", "[0,1]", 1), refused, "dtype that is not a string: a list"},
      {"f4_odd", one("\"F4\"", "[1]", "[0,1]", 1), refused, "does not end at a byte: 4 bits"},
      {"f6_odd", one("\"F6_E2M3\"", "[2]", "[0,2]", 2), refused, "does not end at a byte: 12 bits"},
      {"bool_2", one("\"BOOL\"", "[1]", "[0,1]", 1, '\2'), refused_later, "neither 0 nor 1: 2 at element 0"},
      {"bool_255", one("\"BOOL\"", "[3]", "[0,3]", 3, '\xff'), refused_later, "neither 0 nor 1: 255 at element 0"},
      {"u16", one("\"U16\"", "[2]", "[0,4]", 4, '\xff'), legal, ""},
      {"u32", one("\"U32\"", "[2]", "[0,8]", 8, '\xff'), legal, ""},
      {"u64", one("\"U64\"", "[1]", "[0,8]", 8, '\x7f'), legal, ""},
      {"u64_above_i64", one("\"U64\"", "[1]", "[0,8]", 8, '\x80'), refused_later,
       "'a': an unsigned integer is above 2^63 - 1"},
      {"bool_1", one("\"BOOL\"", "[3]", "[0,3]", 3, '\1'), legal, ""},
      {"nan_payload", one("\"F32\"", "[2]", "[0,8]", 8, '\xff'), legal, ""},
      {"infinite_payload", file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", {"\0\0\x80\x7f", 4}),
       legal, ""},
  };
  const std::vector<std::pair<std::string, int>> unsupported = {
      {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},     {"F8_E5M2", 8}, {"F8_E4M3", 8},
      {"F8_E8M0", 8}, {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"C64", 64},
  };
  for (const auto& [dtype, bits] : unsupported) {
    const int bytes = 4 * bits / 8;
    cases.push_back(
        {"unsupported_" + dtype,
         one("\"" + dtype + "\"", "[4]", "[0," + std::to_string(bytes) + "]", static_cast<std::size_t>(bytes)),
         refused_later, "'a': unsupported dtype: " + dtype});
  }
  return cases;
}

inline std::vector<Case> of_shapes() {
  using enum Verdict;
  const auto shape = [](const std::string& s, std::size_t n = 0) {
    return one("\"U8\"", s, "[0," + std::to_string(n) + "]", n);
  };
  const std::string no_unsigned = "'a' has a shape that is not made of unsigned integers: ";
  return {
      {"shape_of_a_scalar", shape("[]", 1), legal, ""},
      {"shape_with_a_0", shape("[2,0]"), legal, ""},
      {"shape_negative", shape("[-1]", 1), refused, no_unsigned + "-1"},
      {"shape_minus_0", shape("[-0]"), refused, no_unsigned},
      {"shape_1_point_0", shape("[1.0]", 1), refused, no_unsigned + "1.0"},
      {"shape_1e3", shape("[1e3]", 1000), refused, no_unsigned + "1e3"},
      {"shape_2_to_53_plus_1", shape("[9007199254740993]"), refused, "need 9007199254740993: U8 [9007199254740993]"},
      {"shape_2_to_63", shape("[9223372036854775808]"), refused, "an extent above 2^63 - 1: 9223372036854775808"},
      {"shape_2_to_64", shape("[18446744073709551616]"), refused, no_unsigned + "18446744073709551616"},
      {"shape_product_wraps_to_0", shape("[4294967296,4294967296]"), refused, "more elements than can be counted"},
      {"shape_product_wraps_to_0_at_x",
       file_of(
           "{" + byte_at("b", "[0,1]") + R"(,"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[1,1]}})",
           "x"),
       refused, "'a' has more elements than can be counted"},
      {"shape_bits_overflow", one("\"F64\"", "[576460752303423488]", "[0,0]", 0), refused,
       "more bits than can be counted"},
      {"shape_of_the_reference_test_1", shape("[2,18446744073709551614]"), refused, "above 2^63 - 1"},
      {"shape_of_the_reference_test_2", shape("[2,9223372036854775807]"), refused, "more elements than can be counted"},
      {"shape_0_and_2_to_63", shape("[0,9223372036854775808,4]"), refused, "above 2^63 - 1"},
      {"shape_0_and_2_to_62", shape("[0,4611686018427387904,4]"), refused, "more elements than can be counted"},
      {"shape_of_65_dimensions", shape("[" + repeated("1,", 64) + "1]", 1), refused,
       "too many dimensions: more than 64"},
      {"shape_of_64_dimensions", shape("[" + repeated("1,", 63) + "1]", 1), refused_later,
       "too many dimensions: 64, at most 8"},
      {"shape_of_9_dimensions", shape("[" + repeated("1,", 8) + "1]", 1), refused_later,
       "too many dimensions: 9, at most 8"},
      {"shape_of_8_dimensions", shape("[" + repeated("1,", 7) + "1]", 1), legal, ""},
      {"shape_of_true", shape("[true]", 1), refused, no_unsigned + "true"},
      {"shape_of_strings", shape("[\"1\"]", 1), refused, no_unsigned + "a string"},
      {"shape_of_lists", shape("[[1]]", 1), refused, no_unsigned + "a list"},
      {"shape_of_null", shape("[null]", 1), refused, no_unsigned + "null"},
      {"shape_a_number", shape("1", 1), refused, "'a' has a shape that is not a list: 1"},
      {"shape_an_object", shape("{}", 1), refused, "'a' has a shape that is not a list: an object"},
      {"shape_too_small_for_the_bytes", shape("[1]", 2), refused, "'a' has 2 bytes, its dtype and shape need 1"},
      {"shape_too_large_for_the_bytes", shape("[3]", 2), refused, "'a' has 2 bytes, its dtype and shape need 3"},
  };
}

inline std::vector<Case> of_offsets() {
  using enum Verdict;
  const auto offsets = [](const std::string& o, std::size_t n) { return one("\"U8\"", "[1]", o, n); };
  const auto two = [](const std::string& a, const std::string& b, std::size_t n) {
    return file_of("{" + byte_at("a", a) + "," + byte_at("b", b) + "}", std::string(n, 'x'));
  };
  const std::string two_unsigned = "data_offsets that are not two unsigned integers";
  std::string ten = "{";
  for (int i = 0; i < 10; ++i)
    ten += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]})";
  return {
      {"offsets_reversed", offsets("[1,0]", 1), refused, "'a' has data_offsets [1, 0], the tensor before it ends at 0"},
      {"offsets_reversed_later", two("[0,1]", "[1,0]", 1), refused, "'b' has data_offsets [1, 0]"},
      {"offsets_negative", offsets("[-1,0]", 1), refused, two_unsigned + ": -1"},
      {"offsets_fractions", offsets("[0,1.0]", 1), refused, two_unsigned + ": 1.0"},
      {"offsets_none", offsets("[]", 1), refused, two_unsigned + ": it has 0"},
      {"offsets_one", offsets("[0]", 1), refused, two_unsigned + ": it has 1"},
      {"offsets_three", offsets("[0,1,2]", 1), refused, two_unsigned},
      {"offsets_a_string", offsets("\"01\"", 1), refused, "data_offsets that are not a list"},
      {"offsets_an_object", offsets("{}", 1), refused, "data_offsets that are not a list"},
      {"offsets_past_the_end", one("\"U8\"", "[9]", "[0,9]", 1), refused,
       "the tensors end at byte 9 of the data, which has 1 byte; the file is cut short"},
      {"offsets_2_to_64_less_1", offsets("[0,18446744073709551615]", 1), refused, "need 1: U8 [1]"},
      {"overlap", two("[0,2]", "[1,3]", 3), refused, "'a' has 2 bytes"},
      {"overlap_of_sound_sizes",
       file_of(
           R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
           "xyz"),
       refused, "'b' has data_offsets [1, 3], the tensor before it ends at 2"},
      {"same_bytes_twice", two("[0,1]", "[0,1]", 1), refused,
       "'b' has data_offsets [0, 1], the tensor before it ends at 1"},
      {"same_bytes_ten_times", file_of(ten + "}", std::string(16, '\0')), refused, "'1' has data_offsets [0, 16]"},
      {"hole_at_the_start", offsets("[1,2]", 2), refused,
       "'a' has data_offsets [1, 2], the tensor before it ends at 0"},
      {"hole_in_the_middle", two("[0,1]", "[2,3]", 3), refused, "'b' has data_offsets [2, 3]"},
      {"hole_at_the_end", offsets("[0,1]", 2), refused, "something follows the tensors"},
      {"out_of_order", two("[1,2]", "[0,1]", 2), legal, ""},
      {"unaligned",
       file_of("{" + byte_at("b", "[0,1]") + R"(,"a":{"dtype":"F64","shape":[1],"data_offsets":[1,9]}})", "x12345678"),
       legal, ""},
      {"bytes_without_tensors", file_of("{}", "x"), refused, "something follows the tensors"},
      {"trailing_bytes", file_of(kGood, std::string(17, '\0')), refused, "something follows the tensors"},
      {"two_bytes_missing", file_of(kGood, std::string(14, '\0')), refused, "cut short"},
      {"two_files_in_one", file_of(kGood, std::string(16, '\0') + file_of(kGood, std::string(16, '\0'))), refused,
       "something follows"},
      {"zip_behind", file_of(kGood, std::string(16, '\0') + "PK\5\6" + std::string(18, '\0')), refused,
       "something follows"},
      {"empty_tensors_at_one_place", two("[0,0]", "[0,0]", 0), legal, ""},
  };
}

// clang-format on

inline std::vector<Case> all() {
  std::vector<Case> cases;
  for (const auto& part : {of_lengths(), of_text(), of_fields(), of_dtypes(), of_shapes(), of_offsets()})
    cases.insert(cases.end(), part.begin(), part.end());
  return cases;
}

}  // namespace hostile
