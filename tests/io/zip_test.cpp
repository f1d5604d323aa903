/// Zip archives: a named case for every hostile one, round trips, and the memory that reading takes. With
/// FERRITE_WRITE_CORPUS=<folder> the small ones are also written to npz/ there, as seeds for tests/fuzz/npz_fuzz.cpp.
#include "ferrite/io/zip/zip.h"

#include <boost/test/unit_test.hpp>
#include <span>

#include "counting.h"
#include "ferrite/tensor/error.h"
#include "hostile_zip.h"
#include "support/sanitized.h"

namespace {

using ferrite::IoError;
using ferrite::io::detail::looks_like_zip;
using ferrite::io::detail::ZipArchive;
using ferrite::io::detail::ZipData;
using ferrite::io::detail::ZipEntry;
using ferrite::io::detail::ZipWriter;
using zip_test::Case;
using zip_test::Verdict;

constexpr std::uint64_t kMost = 10'000;  // as hostile_zip.h expects

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

auto says(const std::string& message) { return hostile_suite::says("x.zip: ", message); }

void read_all(const ZipArchive& archive) {
  for (const ZipEntry& entry : archive.entries()) {
    BOOST_TEST(archive.find(entry.name) == &entry);
    BOOST_TEST(archive.read(entry, kMost).bytes().size() == entry.size);
    BOOST_TEST(archive.front(entry, 5).bytes().size() == std::min<std::uint64_t>(5, entry.size));
  }
}

void check(const Case& c) {
  if (c.verdict == Verdict::refused) {
    BOOST_CHECK_EXCEPTION(ZipArchive(as_bytes(c.bytes), "x.zip"), IoError, says(c.message));
    return;
  }
  const ZipArchive archive(as_bytes(c.bytes), "x.zip");
  if (c.verdict == Verdict::legal) {
    read_all(archive);
    return;
  }
  const ZipEntry* entry = archive.find("a");
  BOOST_REQUIRE(entry != nullptr);
  BOOST_CHECK_EXCEPTION(archive.read(*entry, kMost), IoError, says(c.message));
}

/// Returns a sound archive with every feature: zip64, a descriptor, extra fields, comments, both methods.
std::string rich() {
  using namespace zip_test;
  Member a = packed("a", "first contents, first contents");
  a.local.flags = a.central.flags = 8;
  a.behind = "PK\7\10" + little(a.local.crc) + little(a.local.packed) + little(a.local.size);
  a.local.crc = a.local.packed = a.local.size = 0;
  a.comment = "comment";
  Member b = stored("b", "second contents");
  b.local.extra = extra(1, little(std::uint64_t{15}) + little(std::uint64_t{15}));
  b.local.size = b.local.packed = 0xffffffff;
  const std::string plain = archive_of({a, b});
  const auto size = static_cast<std::uint32_t>(2 * 47 + 7);
  const auto end = static_cast<std::uint64_t>(plain.size() - 22);
  return archive_of({a, b}, {.between = end64(2, size, end - size, end), .comment = "the end"});
}

/// Reads damaged bytes, which may only throw IoError; if they are read, the contents must be right.
void try_to_read(const std::string& bytes) {
  // Separate memory, so that a sanitizer sees reads beyond the end.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  try {
    const ZipArchive archive(std::as_bytes(std::span(exact)), "x.zip");
    for (const ZipEntry& entry : archive.entries()) {
      archive.front(entry, 10);
      const std::string contents = text_of(archive.read(entry, kMost).bytes());
      BOOST_TEST((contents == "first contents, first contents" || contents == "second contents"));
    }
  } catch (const IoError& error) {
    BOOST_TEST(std::string(error.what()).starts_with("x.zip: "));
  }
}

void check_all_cuts() {
  const std::string whole = rich();
  read_all(ZipArchive(as_bytes(whole), "x.zip"));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    BOOST_CHECK_THROW(ZipArchive(as_bytes(whole).first(n), "x.zip"), IoError);
    try_to_read(whole.substr(0, n));
    try_to_read(whole.substr(n));
  }
}

void check_all_flips() {
  const std::string whole = rich();
  for (std::size_t i = 0; i < 8 * whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << i % 8));
    try_to_read(flipped);
  }
}

bool register_cases() {
  static const std::vector<Case> cases = zip_test::all();
  hostile_suite::NamedTests tests;
  for (const Case& c : cases) {
    if (c.bytes.size() < 1000) hostile_suite::write_seed("npz", "zip_" + c.name, c.bytes);
    tests.emplace_back(c.name, [&c] { check(c); });
  }
  tests.emplace_back("every_cut", check_all_cuts);
  tests.emplace_back("every_flip", check_all_flips);
  return hostile_suite::add_suite("zip_hostile", tests);
}

const bool registered = register_cases();

std::vector<std::byte> written(const std::vector<std::pair<std::string, std::string>>& members, std::size_t alignment) {
  ZipWriter writer(alignment);
  for (const auto& [name, contents] : members) writer.add(name, as_bytes(contents));
  return writer.finish();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(zip)

BOOST_AUTO_TEST_CASE(stored_members_are_views) {
  const std::string bytes = zip_test::two({});
  const ZipArchive archive(as_bytes(bytes), "x.zip");
  const ZipData data = archive.read(*archive.find("b"), kMost);
  BOOST_TEST(text_of(data.bytes()) == "second contents");
  BOOST_TEST(static_cast<const void*>(data.bytes().data()) == bytes.data() + bytes.find("second"));
  BOOST_TEST(archive.find("c") == nullptr);
}

BOOST_AUTO_TEST_CASE(deflated_members_are_inflated) {
  std::string contents;
  for (int i = 0; contents.size() < 300'000; ++i) contents += std::to_string(i * i);
  const std::string bytes = zip_test::archive_of({zip_test::packed("a", contents)});
  const ZipArchive archive(as_bytes(bytes), "x.zip");
  const ZipEntry& entry = archive.entries()[0];
  BOOST_TEST(entry.deflated);
  BOOST_TEST((text_of(archive.read(entry, contents.size()).bytes()) == contents));
  BOOST_TEST(text_of(archive.front(entry, 9).bytes()) == contents.substr(0, 9));
  BOOST_CHECK_EXCEPTION(archive.read(entry, contents.size() - 1), IoError, says("larger than expected"));
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  const std::vector<std::pair<std::string, std::string>> members = {
      {"z", "contents"}, {"a/b", ""}, {"\xc3\xa9", std::string(1000, 'x')}, {"long" + std::string(300, 'n'), "y"}};
  for (const std::size_t alignment : {1u, 2u, 64u, 4096u}) {
    const std::vector<std::byte> bytes = written(members, alignment);
    const ZipArchive archive(bytes, "x.zip");
    BOOST_TEST(archive.entries().size() == members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      const ZipEntry& entry = archive.entries()[i];
      BOOST_TEST(entry.name == members[i].first);
      BOOST_TEST(entry.begin % alignment == 0u);
      BOOST_TEST(text_of(archive.read(entry, kMost).bytes()) == members[i].second);
    }
    BOOST_TEST((written(members, alignment) == bytes));
  }
}

BOOST_AUTO_TEST_CASE(parts_are_joined) {
  ZipWriter writer;
  writer.add("a", as_bytes("first "), as_bytes("second"));
  writer.add("b", {}, as_bytes("second"));
  const std::vector<std::byte> bytes = writer.finish();
  const ZipArchive archive(bytes, "x.zip");
  BOOST_TEST(text_of(archive.read(archive.entries()[0], kMost).bytes()) == "first second");
  BOOST_TEST(text_of(archive.read(archive.entries()[1], kMost).bytes()) == "second");
}

BOOST_AUTO_TEST_CASE(a_writer_starts_anew) {
  ZipWriter writer;
  writer.add("a", as_bytes("x"));
  const std::vector<std::byte> first = writer.finish();
  BOOST_TEST((writer.finish() == written({}, 1)));
  writer.add("a", as_bytes("x"));
  BOOST_TEST((writer.finish() == first));
}

BOOST_AUTO_TEST_CASE(the_writer_refuses_names) {
  ZipWriter writer(1, "x.zip");
  BOOST_CHECK_EXCEPTION(writer.add("../a", {}), IoError, says("climbs out of the archive: '../a'"));
  BOOST_CHECK_EXCEPTION(writer.add("", {}), IoError, says("a member has no name"));
  BOOST_CHECK_EXCEPTION(writer.add(std::string(65536, 'n'), {}), IoError, says("too long: 65536 bytes"));
  writer.add("a", {});
  writer.add("a", {});
  BOOST_CHECK_EXCEPTION(writer.finish(), IoError, says("a name occurs twice: 'a'"));
}

/// 65535 members and more need zip64. Reading may take ten times the directory.
BOOST_AUTO_TEST_CASE(many_members_take_little_memory) {
  for (const int count : {65534, 65535, 65536, 100'000}) {
    if (support::kSanitized && count != 65535) continue;
    ZipWriter writer;
    for (int i = 0; i < count; ++i) writer.add(std::to_string((i * 7919LL) % count) + "/" + std::to_string(i), {});
    const std::vector<std::byte> bytes = writer.finish();
    const std::size_t directory = bytes.size() * 46 / (46 + 30);
    const std::size_t peak = counting::peak([&] {
      const ZipArchive archive(bytes, "x.zip");
      BOOST_TEST(archive.entries().size() == static_cast<std::size_t>(count));
      BOOST_TEST(archive.find("0/0") == &archive.entries()[0]);
    });
    BOOST_TEST(peak <= 10 * directory);
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_taken_for_a_bomb) {
  const std::string bytes = zip_test::archive_of({zip_test::packed("a", std::string(20'000'000, '\0'))});
  BOOST_TEST(bytes.size() < 25'000u);
  const ZipArchive patient(as_bytes(bytes), "x.zip");
  BOOST_TEST(patient.read(patient.entries()[0], 1u << 30).bytes().size() == 20'000'000u);
  const std::size_t peak = counting::peak([&] {
    const ZipArchive archive(as_bytes(bytes), "x.zip", 19'999'999);
    BOOST_CHECK_EXCEPTION(archive.read(archive.entries()[0], 1u << 30), IoError,
                          says("'a': inflates to more than is allowed: 20000000 bytes, at most 19999999"));
    BOOST_CHECK_EXCEPTION(archive.read(archive.entries()[0], 1u << 20), IoError, says("larger than expected"));
    BOOST_TEST(archive.front(archive.entries()[0], 100).bytes().size() == 100u);
  });
  BOOST_TEST(peak < (1u << 20));
}

BOOST_AUTO_TEST_CASE(archives_are_told_by_their_front) {
  BOOST_TEST(looks_like_zip(as_bytes(zip_test::two({}))));
  BOOST_TEST(looks_like_zip(as_bytes(zip_test::archive_of({}))));
  BOOST_TEST(!looks_like_zip(as_bytes("PK\3")));
  BOOST_TEST(!looks_like_zip(as_bytes("\x93NUMPY")));
}

BOOST_AUTO_TEST_SUITE_END()
