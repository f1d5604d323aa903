#pragma once
/// A table of hostile npy and npz files, made in memory: the file, and how reading it must end.
#include <string>
#include <utility>
#include <vector>

#include "zip_builder.h"

namespace numpy_test {

/// A file and how reading it must end. With a message it is refused by an error that holds the message.
struct Case {
  std::string name;
  std::string bytes;
  std::string message{};
};

/// Returns an npy file with any header; the length is right unless another is given.
inline std::string npy(const std::string& header, const std::string& data = "", int version = 1, long length = -1) {
  const auto n = length < 0 ? header.size() : static_cast<std::size_t>(length);
  const std::string prefix =
      version == 1 ? zip_test::little(static_cast<std::uint16_t>(n)) : zip_test::little(static_cast<std::uint32_t>(n));
  return "\x93NUMPY" + std::string(1, static_cast<char>(version)) + std::string(1, '\0') + prefix + header + data;
}

inline std::string dict(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

/// Returns a file of a dtype and a shape with n bytes after its header.
inline std::string array(const std::string& descr, const std::string& shape, std::size_t n, char fill = '\0') {
  return npy(dict(descr, shape), std::string(n, fill));
}

inline std::string repeated(const std::string& text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += text;
  return out;
}

// clang-format off: one case a line

inline std::vector<Case> of_fronts() {
  const std::string sound = dict("'<f4'", "(2,)");
  const std::string data(8, '\0');
  const auto version = [&](char major, char minor) {
    std::string f = npy(sound, data);
    f[6] = major;
    f[7] = minor;
    return f;
  };
  return {
      {"empty_file", "", "too short to be an npy file: 0 bytes"},
      {"one_byte", "\x93", "too short to be an npy file: 1 byte"},
      {"magic_alone", "\x93NUMPY", "too short to be an npy file: 6 bytes"},
      {"nine_bytes", std::string("\x93NUMPY\1\0v", 9), "too short to be an npy file: 9 bytes"},
      {"ten_bytes", std::string("\x93NUMPY\1\0v\0", 10),
       "the header reaches beyond the end of the file: 118 bytes of header, 10 bytes of file"},
      {"eleven_bytes_of_version_2", std::string("\x93NUMPY\2\0v\0\0", 11), "too short to be an npy file: 11 bytes"},
      {"magic_wrong", "\x92NUMPY" + npy(sound, data).substr(6), "not an npy file: it begins with '\\x92NUMPY'"},
      {"magic_of_zip", "PK\3\4" + std::string(20, '\0'), "not an npy file: it begins with 'PK"},
      {"version_0", version(0, 0), "an unknown version of the format: 0.0; known are 1.0, 2.0 and 3.0"},
      {"version_4", version(4, 0), "an unknown version of the format: 4.0"},
      {"version_255", version('\xff', 0), "an unknown version of the format: 255.0"},
      {"version_1_1", version(1, 1), "an unknown version of the format: 1.1"},
      {"version_1", npy(sound, data, 1)},
      {"version_2", npy(sound, data, 2)},
      {"version_3", npy(sound, data, 3)},
      {"length_of_nearly_4_gib", std::string("\x93NUMPY\2\0\xf0\xff\xff\xff", 12),
       "beyond the end of the file: 4294967280 bytes"},
      {"length_one_beyond", npy(sound, "", 1, static_cast<long>(sound.size() + 1)),
       "the header reaches beyond the end of the file"},
      {"length_0", npy("", data), "the header does not end with a newline: ''"},
      {"length_1", npy("\n", data), "the header is not NumPy's: byte 1 of it should be a dict, it is the end"},
      {"length_10000", npy(sound.substr(0, sound.size() - 1) + std::string(10'000 - sound.size(), ' ') + "\n", data)},
      {"length_10001", npy(sound.substr(0, sound.size() - 1) + std::string(10'001 - sound.size(), ' ') + "\n", data),
       "the header's length is above the limit of 10000 bytes: 10001"},
      {"length_cuts_the_header", npy(sound, data, 1, static_cast<long>(sound.size() - 1)),
       "the header does not end with a newline"},
  };
}

inline std::vector<Case> of_grammar() {
  const std::string data(8, '\0');
  const std::string middle = "'fortran_order': False, 'shape': (2,)";
  const auto text = [&](const std::string& header) { return npy(header + "\n", data); };
  return {
      {"no_newline", npy("{'descr': '<f4', " + middle + "}", data), "the header does not end with a newline"},
      {"no_comma_at_the_end", text("{'descr': '<f4', " + middle + "}")},
      {"no_blanks", text("{'descr':'<f4','fortran_order':False,'shape':(2,)}")},
      {"many_blanks", text(" {\t'descr' : '<f4' ,\n" + middle + " , } ")},
      {"keys_in_another_order", text("{'shape': (2,), 'descr': '<f4', 'fortran_order': False}")},
      {"double_quotes", text("{\"descr\": \"<f4\", " + middle + "}")},
      {"not_a_dict", text("['descr']"), "byte 0 of it should be a dict, it is '['descr']"},
      {"an_expression", text("__import__('os').system('true')"), "byte 0 of it should be a dict, it is '__import__"},
      {"an_expression_in_the_dict", text("{'descr': str('<f4'), " + middle + "}"),
       "should be a dtype between quotes, it is 'str("},
      {"a_call_as_shape", text("{'descr': '<f4', 'fortran_order': False, 'shape': tuple()}"),
       "should be a tuple, it is 'tuple()"},
      {"nested_100000", npy(repeated("{'descr': ", 900) + "\n", data),
       "should be a dtype between quotes, it is '{'descr'"},
      {"nested_tuples", text("{'descr': '<f4', 'fortran_order': False, 'shape': " + repeated("(", 5000)),
       "should be an integer, it is '((((("},
      {"nested_100000_in_version_2", npy(repeated("(", 100'000) + "\n", "", 2), "above the limit of 10000 bytes"},
      {"empty_dict", text("{}"), "the header lacks a key: 'descr'"},
      {"only_a_comma", text("{,}"), "should be a key between quotes, it is ',}"},
      {"two_commas", text("{'descr': '<f4',, " + middle + "}"), "should be a key between quotes, it is ', 'fort"},
      {"no_comma_between", text("{'descr': '<f4' " + middle + "}"), "should be ',' or '}', it is ''fortran"},
      {"no_colon", text("{'descr' '<f4', " + middle + "}"), "should be ':', it is ''<f4'"},
      {"not_closed", text("{'descr': '<f4', " + middle), "should be ',' or '}', it is the end"},
      {"something_behind", text("{'descr': '<f4', " + middle + "} 1"), "should be the end of the header, it is '1"},
      {"another_dict_behind", text("{'descr': '<f4', " + middle + "}{}"), "should be the end of the header, it is '{}"},
      {"a_nul_behind", npy("{'descr': '<f4', " + middle + "}" + std::string(3, '\0') + "\n", data),
       "should be the end of the header, it is '\\x00"},
      {"a_comment", text("{'descr': '<f4', " + middle + "} # x"), "should be the end of the header"},
      {"a_string_that_does_not_end", text("{'descr: <f4, }"), "should be a string that ends, it is ''descr"},
      {"a_string_with_an_escape", text("{'descr': '\\x3cf4', " + middle + "}"), "should be a string without escapes"},
      {"a_string_with_a_prefix", text("{'descr': b'<f4', " + middle + "}"),
       "should be a dtype between quotes, it is 'b'<f4'"},
      {"no_descr", text("{" + middle + "}"), "the header lacks a key: 'descr'"},
      {"no_fortran_order", text("{'descr': '<f4', 'shape': (2,)}"), "the header lacks a key: 'fortran_order'"},
      {"no_shape", text("{'descr': '<f4', 'fortran_order': False}"), "the header lacks a key: 'shape'"},
      {"key_twice", text("{'descr': '<f4', " + middle + ", 'descr': '<f8'}"), "the header has a key twice: 'descr'"},
      {"key_unknown", text("{'descr': '<f4', " + middle + ", 'more': 1}"), "the header has an unknown key: 'more'"},
      {"fortran_order_a_number", npy(dict("'<f4'", "(2,)", "0"), data), "should be True or False, it is '0,"},
      {"fortran_order_none", npy(dict("'<f4'", "(2,)", "None"), data), "should be True or False, it is 'None"},
      {"fortran_order_longer", npy(dict("'<f4'", "(2,)", "Falsehood"), data), "should be ',' or '}', it is 'hood"},
      {"fortran_order_true", npy(dict("'<f4'", "(2,)", "True"), data)},
  };
}

inline std::vector<Case> of_dtypes() {
  const std::string unsupported = "unsupported dtype: ";
  return {
      {"f4", array("'<f4'", "(2,)", 8)},
      {"f8", array("'<f8'", "(2,)", 16)},
      {"f2", array("'<f2'", "(2,)", 4)},
      {"i4", array("'<i4'", "(2,)", 8)},
      {"i8", array("'<i8'", "(2,)", 16)},
      {"b1", array("'|b1'", "(2,)", 2)},
      {"u1", array("'|u1'", "(2,)", 2)},
      {"little_u1", array("'<u1'", "(2,)", 2)},
      {"big_f4", array("'>f4'", "(2,)", 8)},
      {"native_f4", array("'=f4'", "(2,)", 8)},
      {"f4_without_order", array("'f4'", "(2,)", 8)},
      {"nan", array("'<f4'", "(2,)", 8, '\xff')},
      {"f4_of_no_order", array("'|f4'", "(2,)", 8),
       unsupported + "'|f4'; supported are f4, f8, f2, c8, c16, i8, i4, i2, i1, u8, u4, u2, u1 and b1"},
      {"not_numpys_order", array("'!f4'", "(2,)", 8), unsupported + "'!f4'"},
      {"dtype_empty", array("''", "(2,)", 8), unsupported + "''"},
      {"dtype_of_an_order", array("'<'", "(2,)", 8), unsupported + "'<'"},
      {"dtype_cut", array("'<f'", "(2,)", 8), unsupported + "'<f'"},
      {"dtype_unknown", array("'<ixy'", "(2,)", 8), unsupported + "'<ixy'"},
      {"dtype_with_more", array("'<f4,<f4'", "(2,)", 16), unsupported + "'<f4,<f4'"},
      {"dtype_with_a_shape", array("'(2,)<f4'", "(2,)", 16), unsupported + "'(2,)<f4'"},
      {"dtype_with_a_nul", array(std::string("'<f4\0'", 6), "(2,)", 8), unsupported + "'<f4\\x00'"},
      {"dtype_by_name", array("'float32'", "(2,)", 8), unsupported + "'float32'"},
      {"dtype_of_9000_bytes", array("'" + std::string(9000, 'f') + "'", "(2,)", 8), unsupported + "'fff"},
      {"objects", array("'|O'", "(2,)", 8), unsupported + "'|O'"},
      {"c8", array("'<c8'", "(2,)", 16)},
      {"c16", array("'<c16'", "(2,)", 32)},
      {"c8_scalar", array("'<c8'", "()", 8)},
      {"c8_fortran", npy(dict("'>c8'", "(2, 3)", "True"), std::string(48, '\0'))},
      {"c8_fortran_scalar", npy(dict("'<c8'", "()", "True"), std::string(8, '\0'))},
      {"c8_of_seven_axes", array("'<c8'", "(1,1,1,1,1,1,1)", 8)},
      {"c8_of_eight_axes", array("'<c8'", "(1,1,1,1,1,1,1,1)", 8), "too many dimensions: 9, at most 8 are supported"},
      {"c8_of_64_axes", array("'<c8'", "(" + repeated("1,", 64) + ")", 8), "too many dimensions: 65"},
      {"c8_without_elements", array("'<c8'", "(0, 2)", 0)},
      {"c8_of_2_to_62", array("'<c8'", "(0, 4611686018427387904)", 0), "more elements than can be counted"},
      {"c8_halved", array("'<c8'", "(2,)", 12), "the array has 12 bytes, its dtype and shape need 16: '<c8' [2, 2]"},
      {"c8_of_no_order", array("'|c8'", "(2,)", 16), unsupported + "'|c8'"},
      {"c4", array("'<c4'", "(2,)", 8), unsupported + "'<c4'"},
      {"i1", array("'|i1'", "(2,)", 2), ""},
      {"i2", array("'<i2'", "(2,)", 4), ""},
      {"u2", array("'<u2'", "(2,)", 4, '\xff')},
      {"u2_of_no_order", array("'|u2'", "(2,)", 4), unsupported + "'|u2'"},
      {"u2_cut", array("'<u2'", "(2,)", 3), "the array has 3 bytes, its dtype and shape need 4"},
      {"u4", array("'<u4'", "(2,)", 8, '\xff')},
      {"u8", array("'<u8'", "(2,)", 16)},
      {"u8_of_2_to_64", array("'<u8'", "(2,)", 16, '\xff'),
       "an unsigned integer is above 2^63 - 1, the largest i64: 18446744073709551615"},
      {"u8_of_2_to_64_fortran", npy(dict("'>u8'", "(1, 2)", "True"), std::string(16, '\x80')),
       "the largest i64: 9259542123273814144"},
      {"f16", array("'<f16'", "(2,)", 32), unsupported + "'<f16'"},
      {"text", array("'<U3'", "(2,)", 24), unsupported + "'<U3'"},
      {"time", array("'<M8[s]'", "(2,)", 16), unsupported + "'<M8[s]'"},
      {"fields", array("[('x', '<f4')]", "(2,)", 8), "the dtype is structured: '[('x', '<f4')]"},
      {"subarray", array("('<f4', (2,))", "(2,)", 16), "the dtype is structured: '('<f4'"},
      {"dtype_none", array("None", "(2,)", 8), "should be a dtype between quotes, it is 'None"},
      {"bool_2", array("'|b1'", "(3,)", 3, '\2'), "a BOOL is neither 0 nor 1: 2 at element 0"},
      {"bool_255", array("'|b1'", "(3,)", 3, '\xff'), "a BOOL is neither 0 nor 1: 255 at element 0"},
  };
}

inline std::vector<Case> of_shapes() {
  const auto shape = [](const std::string& s, std::size_t n = 0) { return array("'<f4'", s, n); };
  const auto fortran = [](const std::string& s, std::size_t n = 0) {
    return npy(dict("'<f4'", s, "True"), std::string(n, '\0'));
  };
  return {
      {"scalar", shape("()", 4)},
      {"one_axis", shape("(3,)", 12)},
      {"two_axes", shape("(2, 3)", 24)},
      {"two_axes_and_a_comma", shape("(2, 3,)", 24)},
      {"an_extent_of_python_2", shape("(1L,)", 4)},
      {"no_elements", shape("(0,)", 0)},
      {"no_elements_of_2_to_62", shape("(0, 4611686018427387904)", 0)},
      {"eight_axes", shape("(1,1,1,1,1,1,1,1)", 4)},
      {"fortran_scalar", fortran("()", 4)},
      {"fortran_no_elements", fortran("(3, 0)", 0)},
      {"fortran_eight_axes", fortran("(1,1,1,2,1,1,1,1)", 8)},
      {"nine_axes", shape("(1,1,1,1,1,1,1,1,1)", 4), "too many dimensions: 9, at most 8 are supported"},
      {"fortran_nine_axes", fortran("(1,1,1,1,1,1,1,1,1)", 4), "too many dimensions: 9"},
      {"sixty_five_axes", shape("(" + repeated("1,", 65) + ")", 4), "too many dimensions: more than 64"},
      {"an_integer", shape("3", 12), "should be a tuple, it is '3"},
      {"an_integer_in_parentheses", shape("(3)", 12), "the shape is no tuple: (3) is an integer"},
      {"a_list", shape("[3]", 12), "should be a tuple, it is '[3]"},
      {"a_comma_alone", shape("(,)", 4), "should be an integer, it is ',)"},
      {"two_commas_in_the_shape", shape("(3,,)", 12), "should be an integer, it is ',)"},
      {"no_comma_in_the_shape", shape("(2 3)", 24), "should be ',' or ')', it is '3)"},
      {"not_closed_shape", shape("(2,", 8), "should be an integer"},
      {"a_negative_extent", shape("(-1,)", 4), "should be an extent that is not negative, it is '-1"},
      {"a_negative_zero", shape("(-0,)"), "not negative"},
      {"a_positive_sign", shape("(+1,)", 4), "should be an integer, it is '+1"},
      {"a_fraction", shape("(1.0,)", 4), "should be ',' or ')', it is '.0"},
      {"an_exponent", shape("(1e3,)", 4000), "should be ',' or ')', it is 'e3"},
      {"a_hexadecimal_extent", shape("(0x1,)", 4), "should be ',' or ')', it is 'x1"},
      {"an_underscore", shape("(1_0,)", 40), "should be ',' or ')', it is '_0"},
      {"leading_zeros", shape("(03,)", 12), "should be an integer without leading zeros, it is '03"},
      {"two_l", shape("(1LL,)", 4), "should be ',' or ')', it is 'L"},
      {"true_as_an_extent", shape("(True,)", 4), "should be an integer, it is 'True"},
      {"none_as_an_extent", shape("(None,)", 4), "should be an integer, it is 'None"},
      {"a_tuple_in_the_tuple", shape("((1,),)", 4), "should be an integer, it is '(1,)"},
      {"extent_2_to_63", shape("(9223372036854775808,)"), "an extent above 2^63 - 1: '9223372036854775808"},
      {"extent_2_to_64_plus_1", shape("(18446744073709551617,)", 4), "an extent above 2^63 - 1"},
      {"extent_of_9000_digits", shape("(" + std::string(9000, '9') + ",)"), "an extent above 2^63 - 1"},
      {"extent_2_to_63_less_1", shape("(9223372036854775807,)"),
       "more elements than can be counted: '<f4' [9223372036854775807]"},
      {"bytes_that_wrap", shape("(4611686018427387904,)"), "more elements than can be counted"},
      {"product_that_wraps_to_0", shape("(4294967296, 4294967296)"), "more elements than can be counted"},
      {"product_that_wraps_beside_0", shape("(0, 4294967296, 4294967296)"), "more elements than can be counted"},
      {"data_missing", shape("(3,)", 0),
       "the array has 0 bytes, its dtype and shape need 12: '<f4' [3]; the file is cut short"},
      {"data_short", shape("(3,)", 11), "the array has 11 bytes, its dtype and shape need 12"},
      {"data_long", shape("(3,)", 13),
       "the array has 13 bytes, its dtype and shape need 12: '<f4' [3]; something follows the array"},
      {"data_of_2_to_40", shape("(1099511627776,)", 4),
       "the array has 4 bytes, its dtype and shape need 4398046511104"},
      {"two_arrays", shape("(3,)", 12) + shape("(3,)", 12), "something follows the array"},
      {"data_behind_none", shape("(0,)", 1), "the array has 1 byte, its dtype and shape need 0"},
  };
}

/// Returns archives; "a" is the tensor that cannot be read, if reading it is what fails.
inline std::vector<Case> of_archives() {
  using namespace zip_test;
  const std::string sound = array("'<f4'", "(2,)", 8);
  const auto one = [](const std::string& name, const std::string& contents) {
    return archive_of({stored(name, contents)});
  };
  const auto change = [&](auto f) {
    Member m = stored("a.npy", sound);
    f(m);
    return archive_of({m});
  };
  const std::string zeros = array("'<f4'", "(250000,)", 1'000'000);
  Member bomb = packed("a.npy", array("'<f4'", "(250000000,)", 20'000));
  bomb.local.size = bomb.central.size =
      static_cast<std::uint32_t>(1'000'000'000 + array("'<f4'", "(250000000,)", 0).size());
  Member cut = packed("a.npy", sound);
  cut.payload.resize(5);
  cut.local.packed = cut.central.packed = 5;
  return {
      {"stored_member", one("a.npy", sound)},
      {"deflated_member", archive_of({packed("a.npy", sound)})},
      {"no_members", archive_of({})},
      {"name_of_nothing", one(".npy", sound)},
      {"not_an_archive", sound, "no end record in"},
      {"no_npy_member", one("a.txt", sound), "a member is no npy file: 'a.txt'"},
      {"a_folder", archive_of({stored("f/", ""), stored("f/a.npy", sound)}), "a member is no npy file: 'f/'"},
      {"npy_by_name_only", one("a.npy", "a few words"), "'a.npy': not an npy file: it begins with 'a few '"},
      {"empty_member", one("a.npy", ""), "'a.npy': too short to be an npy file: 0 bytes"},
      {"empty_deflated_member", archive_of({packed("a.npy", "")}), "'a.npy': too short to be an npy file: 0 bytes"},
      {"member_cut", one("a.npy", sound.substr(0, sound.size() - 1)),
       "'a.npy': the array has 7 bytes, its dtype and shape need 8"},
      {"member_twice", archive_of({stored("a.npy", sound), stored("a.npy", sound)}), "a name occurs twice: 'a.npy'"},
      {"member_that_climbs", one("../a.npy", sound), "climbs out of the archive: '../a.npy'"},
      {"member_absolute", one("/a.npy", sound), "an absolute path: '/a.npy'"},
      {"member_encrypted", change([](Member& m) { m.local.flags = m.central.flags = 1; }), "'a.npy' is encrypted"},
      {"member_with_wrong_crc", change([](Member& m) { m.local.crc = ++m.central.crc; }),
       "'a.npy': the contents are damaged: CRC"},
      {"member_damaged", change([](Member& m) { m.payload.back() = 'x'; }), "'a.npy': the contents are damaged: CRC"},
      {"member_with_zip64", change([](Member& m) {
         m.local.size = m.local.packed = 0xffffffff;
         m.local.extra = extra(1, little(std::uint64_t{m.central.size}) + little(std::uint64_t{m.central.size}));
       })},
      {"member_of_zeros", archive_of({packed("a.npy", zeros)})},
      {"member_bomb", archive_of({bomb}), "'a.npy': claims to inflate to more than it can: "},
      {"member_cut_in_deflate", archive_of({cut}), "'a.npy': the deflated bytes are cut short"},
      {"member_objects", one("a.npy", array("'|O'", "(2,)", 99)), "'a': unsupported dtype: '|O'"},
      {"member_complex", one("a.npy", array("'<c8'", "(2,)", 16))},
      {"member_of_c32", one("a.npy", array("'<c32'", "(2,)", 99)), "'a': unsupported dtype: '<c32'"},
      {"member_u8_too_large", one("a.npy", array("'<u8'", "(1,)", 8, '\xff')),
       "'a': an unsigned integer is above 2^63 - 1"},
      {"member_fields", one("a.npy", array("[('x', '<f4')]", "(2,)", 8)), "'a.npy': the dtype is structured"},
      {"member_bool_2", one("a.npy", array("'|b1'", "(2,)", 2, '\2')), "'a': a BOOL is neither 0 nor 1: 2"},
      {"member_of_nine_axes", one("a.npy", array("'<f4'", "(1,1,1,1,1,1,1,1,1)", 4)), "'a': too many dimensions: 9"},
  };
}

// clang-format on

inline std::vector<Case> all_npy() {
  std::vector<Case> cases;
  for (const auto& part : {of_fronts(), of_grammar(), of_dtypes(), of_shapes()})
    cases.insert(cases.end(), part.begin(), part.end());
  return cases;
}

}  // namespace numpy_test
