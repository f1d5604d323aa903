#pragma once
/// Hostile, and odd but legal zip archives, made in memory: the file, and how reading it must end.
#include <functional>
#include <string>
#include <vector>

#include "hostile_suite.h"
#include "zip_builder.h"

namespace zip_test {

using hostile_suite::Case;
using hostile_suite::Verdict;

using Change = std::function<void(Member&)>;

/// Returns an archive of the members "a", changed, and "b".
inline std::string with(const Change& change) {
  Member a = stored("a", "first contents");
  change(a);
  return archive_of({a, stored("b", "second contents")});
}

/// Returns an archive of the members "a", deflated and changed, and "b".
inline std::string with_packed(const Change& change, const std::string& contents = "first contents") {
  Member a = packed("a", contents);
  change(a);
  return archive_of({a});
}

/// Returns a change of both headers.
inline Change both(const std::function<void(Header&)>& change) {
  return [change](Member& m) {
    change(m.local);
    change(m.central);
  };
}

inline std::string named(const std::string& name) {
  return with(both([&](Header& h) { h.name = name; }));
}

inline std::string two(const Around& around) {
  return archive_of({stored("a", "first contents"), stored("b", "second contents")}, around);
}

/// Offsets in `two({})`: the central directory, its size and the end record.
inline constexpr std::uint32_t kBegin = 2 * 31 + 14 + 15;
inline constexpr std::uint32_t kSize = 2 * 47;
inline constexpr std::uint64_t kEnd = kBegin + kSize;

// clang-format off: one case a line

inline std::vector<Case> of_ends() {
  using enum Verdict;
  const std::string plain = two({});
  const std::string nothing = archive_of({});
  const std::string again = archive_of({stored("a", "other contents")});
  return {
      {"two_members", plain, legal, ""},
      {"no_members", nothing, legal, ""},
      {"empty_file", "", refused, "too short to be a zip archive: 0 bytes"},
      {"21_bytes", nothing.substr(0, 21), refused, "too short to be a zip archive: 21 bytes"},
      {"no_archive", std::string(100, 'x'), refused, "no end record in 100 bytes; is it a zip archive, or cut short?"},
      {"cut_in_the_end_record", plain.substr(0, plain.size() - 1), refused, "the end record does not end the archive"},
      {"cut_before_the_end_record", plain.substr(0, plain.size() - 22), refused, "no end record"},
      {"cut_at_the_front", plain.substr(1), refused, "the central directory does not end at the end record"},
      {"bytes_in_front", "x" + plain, refused, "the central directory does not end at the end record"},
      {"bytes_in_front_that_offsets_know", two({.before = "front"}), legal, ""},
      {"bytes_behind", two({.behind = "x"}), refused, "the end record does not end the archive"},
      {"a_comment", two({.comment = "a comment"}), legal, ""},
      {"the_longest_comment", two({.comment = std::string(65535, 'c')}), legal, ""},
      {"a_comment_with_a_signature", two({.comment = "PK\5\6"}), refused,
       "two end records: at byte 185 and at byte 207"},
      {"a_comment_with_an_archive", two({.comment = again}), refused, "two end records"},
      {"a_comment_with_an_end_record", two({.comment = nothing}), refused, "two end records"},
      {"an_archive_behind", plain + again, refused, "the central directory does not end at the end record"},
      {"an_archive_stored_within", with([&](Member& m) { m = stored("a", again); }), legal, ""},
      {"something_between", two({.between = "x"}), refused, "94 bytes from byte 91, the record is at byte 186"},
      {"directory_too_long", two({.size = kSize + 1}), refused, "does not end at the end record"},
      {"directory_too_short", two({.size = kSize - 1}), refused, "does not end at the end record"},
      {"directory_beyond_the_file", two({.begin = 0xfffffff0}), refused, "does not end at the end record"},
      {"directory_of_the_largest_size", two({.size = 0xffffffff, .begin = 0xffffffff}), refused, "does not end at"},
      {"one_member_too_many", two({.total = 3}), refused, "more members than the central directory has room for"},
      {"one_member_too_many_with_room", archive_of({stored(std::string(60, 'n'), "")}, {.total = 2}), refused,
       "the central directory is cut short: 46 bytes wanted"},
      {"one_member_too_few", two({.total = 1}), refused,
       "something follows the last member in the central directory: 47 bytes"},
      {"65535_members", two({.total = 65535}), refused,
       "more members than the central directory has room for: 65535 in 94 bytes"},
      {"members_in_another_volume", two({.here = 1}), refused, "one of several volumes: 1 of 2 members are in it"},
      {"another_volume", two({.volume = 1}), refused, "one of several volumes"},
      {"zip64", two({.between = end64(2, kSize, kBegin, kEnd)}), legal, ""},
      {"zip64_that_replaces_all",
       two({.between = end64(2, kSize, kBegin, kEnd), .total = 65535, .size = 0xffffffff, .begin = 0xffffffff}), legal,
       ""},
      {"zip64_that_disagrees_on_members", two({.between = end64(1, kSize, kBegin, kEnd)}), refused,
       "the end records disagree: 2 and 1"},
      {"zip64_that_disagrees_on_the_size", two({.between = end64(2, kSize - 1, kBegin, kEnd)}), refused,
       "the end records disagree: 94 and 93"},
      {"zip64_that_disagrees_on_the_place", two({.between = end64(2, kSize, 0, kEnd)}), refused,
       "the end records disagree: 91 and 0"},
      {"zip64_elsewhere", two({.between = end64(2, kSize, kBegin, kEnd - 1)}), refused,
       "no zip64 end record where the archive says: at byte 184"},
      {"zip64_beyond_the_file", two({.between = end64(2, kSize, kBegin, ~0ULL)}), refused,
       "at byte 18446744073709551615"},
      {"zip64_of_the_largest_length", two({.between = end64(2, kSize, kBegin, kEnd, ~0ULL)}), refused,
       "does not end at its locator"},
      {"zip64_with_2_to_63_members", two({.between = end64(1ULL << 63, kSize, kBegin, kEnd), .total = 65535}), refused,
       "more members than the central directory has room for"},
      {"zip64_directory_wraps", two({.between = end64(2, ~0ULL - 10, kBegin, kEnd), .size = 0xffffffff}), refused,
       "does not end at the end record"},
  };
}

inline std::vector<Case> of_names() {
  using enum Verdict;
  return {
      {"name_in_folders", named("top/data/0"), legal, ""},
      {"name_of_a_folder", named("top/"), legal, ""},
      {"name_with_dots", named("a..b/...c/.d"), legal, ""},
      {"name_with_a_colon", named("a:b"), legal, ""},
      {"name_in_utf8", named("\xc3\xa9"), legal, ""},
      {"name_empty", named(""), refused, "a member has no name"},
      {"name_twice", named("b"), refused, "a name occurs twice: 'b'"},
      {"name_climbs", named("../a"), refused, "a member's name climbs out of the archive: '../a'"},
      {"name_climbs_within", named("x/../../a"), refused, "climbs out"},
      {"name_climbs_at_the_end", named("x/.."), refused, "climbs out"},
      {"name_climbs_backwards", named("x\\..\\a"), refused, "climbs out"},
      {"name_absolute", named("/etc/passwd"), refused, "a member's name is an absolute path: '/etc/passwd'"},
      {"name_absolute_backwards", named("\\a"), refused, "absolute path"},
      {"name_with_a_drive", named("C:\\a"), refused, "absolute path"},
      {"name_with_a_nul", named(std::string("a\0b", 3)), refused, "a member's name holds a NUL: 'a\\x00b'"},
      {"name_not_utf8", named("\xff"), refused, "a member's name is not UTF-8: '\\xff'"},
      {"name_of_65535_bytes", named(std::string(65535, 'n')), legal, ""},
  };
}

inline std::vector<Case> of_members() {
  using enum Verdict;
  const std::string disagrees = "'a' has a local header that disagrees with the central directory: ";
  const auto wide = [](std::uint64_t size, std::uint64_t packed_size) {
    return extra(1, little(size) + little(packed_size));
  };
  const auto saturate = [](Header& h, const std::string& field) {
    h.size = h.packed = 0xffffffff;
    h.extra = field;
  };
  return {
      {"deflated", with_packed([](Member&) {}), legal, ""},
      {"deflated_empty", with_packed([](Member&) {}, ""), legal, ""},
      {"encrypted", with(both([](Header& h) { h.flags = 1; })), refused, "'a' is encrypted: flags 1"},
      {"encrypted_strongly", with(both([](Header& h) { h.flags = 0x41; })), refused, "'a' is encrypted: flags 65"},
      {"encrypted_locally", with([](Member& m) { m.local.flags = 1; }), refused, "'a' is encrypted"},
      {"directory_encrypted", with(both([](Header& h) { h.flags = 0x2000; })), refused, "'a' is encrypted"},
      {"packed_by_bzip2", with(both([](Header& h) { h.method = 12; })), refused,
       "'a' is packed by method 12; supported are"},
      {"packed_by_deflate64", with(both([](Header& h) { h.method = 9; })), refused, "'a' is packed by method 9"},
      {"in_another_volume", with([](Member& m) { m.volume = 3; }), refused, "'a' is in another volume: 3"},
      {"with_a_comment", with([](Member& m) { m.comment = "comment"; }), legal, ""},
      {"with_extra_fields", with([](Member& m) {
         m.local.extra = extra(0x4246, "ZZZ");
         m.central.extra = extra(7, "");
       }),
       legal, ""},
      {"extra_field_cut", with([](Member& m) { m.central.extra = extra(7, "12345").substr(0, 8); }), refused,
       "'a' has an extra field that is cut short: 5 bytes, 4 left"},
      {"extra_field_cut_locally", with([](Member& m) { m.local.extra = extra(7, "12345").substr(0, 8); }), refused,
       "extra field that is cut short"},
      {"zip64_twice", with([&](Member& m) { m.central.extra = wide(14, 14) + wide(14, 14); }), refused,
       "'a' has two zip64 extra fields"},
      {"zip64_not_needed", with([&](Member& m) { m.local.extra = wide(14, 14); }), legal, ""},
      {"zip64_sizes", with(both([&](Header& h) { saturate(h, wide(14, 14)); })), legal, ""},
      {"zip64_sizes_locally", with([&](Member& m) { saturate(m.local, wide(14, 14)); }), legal, ""},
      {"zip64_place", with([](Member& m) {
         m.at = 0xffffffff;
         m.central.extra = extra(1, little(std::uint64_t{0}));
       }),
       legal, ""},
      {"zip64_too_short", with([&](Member& m) { saturate(m.central, extra(1, little(std::uint64_t{14}))); }), refused,
       "'a' has a zip64 extra field that is too short"},
      {"zip64_absent", with([&](Member& m) { saturate(m.central, ""); }), refused,
       "'a' reaches beyond the members: 4294967295 bytes"},
      {"zip64_of_the_largest_sizes", with([&](Member& m) { saturate(m.central, wide(~0ULL, ~0ULL)); }), refused,
       "'a' reaches beyond the members: 18446744073709551615 bytes"},
      {"zip64_place_beyond", with([](Member& m) {
         m.at = 0xffffffff;
         m.central.extra = extra(1, little(~0ULL));
       }),
       refused, "from byte 18446744073709551615"},
      {"zip64_sizes_that_disagree", with([&](Member& m) { saturate(m.local, wide(13, 14)); }), refused,
       disagrees + "size 13 and 14"},
      {"sizes_behind", with([](Member& m) {
         m.local.flags = m.central.flags = 8;
         m.local.size = m.local.packed = m.local.crc = 0;
         m.behind = "PK\7\10" + std::string(12, '\0');
       }),
       legal, ""},
      {"sizes_behind_and_in_front", with(both([](Header& h) { h.flags = 8; })), legal, ""},
      {"sizes_behind_and_wrong", with([](Member& m) {
         m.local.flags = m.central.flags = 8;
         m.local.size = 13;
       }),
       refused, disagrees + "size 13 and 14"},
      {"sizes_missing", with([](Member& m) { m.local.size = m.local.packed = m.local.crc = 0; }), refused,
       disagrees + "CRC 0 and "},
      {"local_name_differs", with([](Member& m) { m.local.name = "c"; }), refused, disagrees + "name 'c' and 'a'"},
      {"local_name_longer", with([](Member& m) { m.local.name = "aa"; }), refused, disagrees + "name 'aa' and 'a'"},
      {"local_method_differs", with([](Member& m) { m.local.method = 8; }), refused, disagrees + "method 8 and 0"},
      {"local_crc_differs", with([](Member& m) { m.local.crc = 1; }), refused, disagrees + "CRC 1 and "},
      {"local_size_differs", with_packed([](Member& m) { m.local.size = 5; }), refused, disagrees + "size 5 and 14"},
      {"local_packed_size_differs", with_packed([](Member& m) { m.local.packed = 5; }), refused,
       disagrees + "packed size 5 and "},
      {"no_local_header", with([](Member& m) { m.at = 1; }), refused, "'a' has no local header at byte 1"},
      {"local_header_in_the_directory", with([](Member& m) { m.at = kBegin; }), refused,
       "'a' reaches beyond the members"},
      {"local_header_beyond_the_file", with([](Member& m) { m.at = 0xfffffffe; }), refused, "from byte 4294967294"},
      {"payload_reaches_into_the_directory", with(both([](Header& h) { h.size = h.packed = 100; })), refused,
       "'a' reaches beyond the members: 100 bytes from byte 0"},
      {"payload_overlaps", with(both([](Header& h) { h.size = h.packed = 15; })), refused,
       "'a' overlaps 'b': it ends at byte 46, the other begins at byte 45"},
      {"members_at_one_place",
       archive_of({stored("a", "x"),
                   [] {
                     Member m = stored("a", "x");
                     m.at = 0;
                     return m;
                   }()}),
       refused, "'a' overlaps 'a'"},
      {"stored_of_two_sizes", with(both([](Header& h) { h.size = 13; })), refused,
       "'a' is stored, but of two sizes: 13 and 14"},
      {"no_member", with([](Member& m) {
         m.central.extra = "\1\1\1";
         m.central.name = "";
       }),
       refused, ""},
      {"crc_wrong", with(both([](Header& h) { h.crc = 5; })), refused_later, "'a': the contents are damaged: CRC "},
      {"crc_of_the_contents_wrong", with([](Member& m) { m.payload[0] = 'F'; }), refused_later,
       "'a': the contents are damaged"},
      {"crc_of_deflated_wrong", with_packed(both([](Header& h) { h.crc ^= 1; })), refused_later,
       "'a': the contents are damaged"},
      {"inflates_to_more", with_packed(both([](Header& h) { h.size = 13; })), refused_later,
       "'a': inflates to more than its size: 13 bytes"},
      {"inflates_to_less", with_packed(both([](Header& h) { h.size = 15; })), refused_later,
       "'a': inflates to less than its size: 14 of 15 bytes"},
      {"inflates_to_something_not_nothing", with_packed(both([](Header& h) { h.size = 0; })), refused_later,
       "'a': inflates to more than its size: 0 bytes"},
      {"deflated_cut", with_packed([](Member& m) {
         m.payload.pop_back();
         --m.local.packed;
         --m.central.packed;
       }),
       refused_later, "'a': the deflated bytes are cut short"},
      {"deflated_none",
       with_packed(
           [](Member& m) {
             m.payload = "";
             m.local.packed = m.central.packed = 0;
           },
           ""),
       refused_later, "'a': the deflated bytes are cut short: 0 of 0 bytes"},
      {"deflated_and_more", with_packed([](Member& m) {
         m.payload += 'x';
         ++m.local.packed;
         ++m.central.packed;
       }),
       refused_later, "'a': something follows the deflated bytes: 1 byte"},
      {"deflated_of_no_kind", with_packed([](Member& m) { m.payload[0] = '\7'; }), refused_later,
       "'a': the deflated bytes are damaged: invalid block type"},
      {"deflated_zeros", with_packed([](Member&) {}, std::string(10'000, '\0')), legal, ""},
      {"deflate_bomb", with_packed([](Member& m) { m.local.size = m.central.size = 9'900; }, "ab"), refused_later,
       "'a': claims to inflate to more than it can: 4 bytes to 9900"},
      {"larger_than_expected", with_packed([](Member&) {}, std::string(20'000, 'x')), refused_later,
       "'a': is larger than expected: 20000 bytes, at most 10000"},
      {"stored_larger_than_expected", with([](Member& m) { m = stored("a", std::string(20'000, 'x')); }), refused_later,
       "'a': is larger than expected"},
  };
}

// clang-format on

inline std::vector<Case> all() {
  std::vector<Case> cases;
  for (const auto& part : {of_ends(), of_names(), of_members()}) cases.insert(cases.end(), part.begin(), part.end());
  return cases;
}

}  // namespace zip_test
