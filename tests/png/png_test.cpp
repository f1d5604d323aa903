// PNG files: every form in the specification (tests/data/make_png_fixtures.py), our own files, and hostile files.
// With FERRITE_WRITE_CORPUS=<folder> the hostile ones are also written to png/ there, as seeds for tests/fuzz.
#include "ferrite/io/png.h"

#include <zlib.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ferrite/io/numpy.h"
#include "ferrite/tensor/ops.h"
#include "io/counting_new.h"
#include "io/hostile_suite.h"
#include "io/temporary_folder.h"
#include "support/python.h"

namespace {

using namespace ferrite;
using io::PngDepth;
namespace fs = std::filesystem;

fs::path fixture(const std::string& name) { return fs::path(std::getenv("FERRITE_FIXTURES")) / "png" / name; }

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void check_equal(const Tensor& x, const Tensor& wanted) {
  BOOST_TEST(x.shape().str() == wanted.shape().str());
  BOOST_TEST(x.to_vector<float>() == wanted.to_vector<float>(), boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(png)

BOOST_AUTO_TEST_CASE(every_form) {
  const io::TensorFile expected = io::read_npz(fixture("expected.npz"));
  BOOST_TEST(expected.names().size() == 21U);
  for (const std::string_view name : expected.names())
    BOOST_TEST_CONTEXT(name) check_equal(io::read_png(fixture(std::string(name) + ".png")), expected.tensor(name));
}

BOOST_AUTO_TEST_CASE(samples_come_back) {
  for (const std::string name : {"grey", "grey_alpha", "rgb", "rgba"})
    for (const auto& [bits, depth] : {std::pair{"8", PngDepth::bits8}, {"16", PngDepth::bits16}}) {
      const Tensor x = io::read_png(fixture(name + bits + ".png"));
      check_equal(io::parse_png(io::serialize_png(x, depth)), x);
    }
}

BOOST_AUTO_TEST_CASE(rounding_and_clipping) {
  const Tensor x = Tensor::from<float>({-1, 0, 0.25f, 0.5f, 1, 7}, {2, 3});
  check_equal(io::parse_png(io::serialize_png(x)),
              Tensor::from<float>({0, 0, 64 / 255.f, 128 / 255.f, 1, 1}, {1, 2, 3}));
  check_equal(io::parse_png(io::serialize_png(transpose(x), PngDepth::bits16)),
              Tensor::from<float>({0, 32768 / 65535.f, 0, 1, 16384 / 65535.f, 1}, {1, 3, 2}));
}

BOOST_AUTO_TEST_CASE(what_is_not_written) {
  const io_test::TemporaryFolder folder;
  io::write_png(folder / "a.png", full({2, 2}, 0.2f));
  for (const Shape& shape :
       {Shape{5, 1, 1}, Shape{0, 2}, Shape{2}, Shape{1, 1, 1, 1}, Shape{0, 1, 1}, Shape{20000, 20000}})
    BOOST_CHECK_THROW(io::write_png(folder / "a.png", expand(full({1}, 0), shape)), ShapeError);
  BOOST_CHECK_THROW(io::write_png(folder / "a.png", full({1, 1}, 0, Dtype::f64)), DtypeError);
  BOOST_CHECK_THROW(io::write_png(folder / "a.png", full({1, 1}, std::nanf(""))), ValueError);
  check_equal(io::read_png(folder / "a.png"), full({1, 2, 2}, 51 / 255.f));
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_CASE(limits) {
  const auto bytes = io::serialize_png(full({3, 4, 5}, 0.5));
  BOOST_TEST(io::parse_png(bytes, "x", 60).numel() == 60);
  BOOST_CHECK_EXCEPTION(io::parse_png(bytes, "x", 59), IoError,
                        hostile_suite::says("x: ", "more than 59 values: 3 x 4 x 5"));
  BOOST_CHECK_THROW(io::parse_png(bytes, "x", -1), IoError);
}

BOOST_AUTO_TEST_CASE(pillow_reads_what_we_write, *boost::unit_test::precondition(support::python_with("PIL"))) {
  const io_test::TemporaryFolder folder;
  const auto write = [&](const std::string& name, const Tensor& x, PngDepth depth) {
    io::write_png(folder / (name + ".png"), x, depth);
    io::write_npy(folder / (name + ".npy"), x);
  };
  for (const std::int64_t channels : {1, 2, 3, 4})
    write("c" + std::to_string(channels), uniform({channels, 6, 5}, {.seed = 1}, -0.1, 1.1), PngDepth::bits8);
  write("deep", uniform({1, 6, 5}, {.seed = 2}, -0.1, 1.1), PngDepth::bits16);  // of more channels Pillow keeps 8 bits
  BOOST_TEST(support::run_script("check_png_written.py", folder.path()));
}

BOOST_AUTO_TEST_SUITE_END()

namespace {

std::string big_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string chunk(const std::string& name, const std::string& content) {
  const std::string body = name + content;
  return big_endian(content.size()) + body +
         big_endian(crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()));
}

std::string deflated(const std::string& data) {
  uLongf size = compressBound(static_cast<uLong>(data.size()));
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(data.data()), data.size());
  out.resize(size);
  return out;
}

std::string header(std::uint64_t width, std::uint64_t height, char bits, char kind, char interlace = 0) {
  return chunk("IHDR", big_endian(width) + big_endian(height) + std::string({bits, kind, 0, 0, interlace}));
}

struct Case {
  std::string name, bytes, message;  ///< empty `message`: the file is legal
};

std::vector<Case> cases() {
  const std::string front = "\x89PNG\r\n\x1a\n", end = chunk("IEND", ""), pixel = chunk("IDAT", deflated({0, 0x55}));
  const std::string grey = header(1, 1, 8, 0), three = chunk("PLTE", "abcdefghi");
  std::string wrong_sum = front + grey + pixel + end;
  wrong_sum[front.size() + grey.size() + 10] ^= 1;
  const std::string bomb = deflated(std::string(1 << 22, '\0'));
  return {
      {"sound", front + grey + pixel + end, ""},
      {"empty", "", "not a PNG file: it begins with ''"},
      {"signature_cut", front.substr(0, 7), "not a PNG file"},
      {"signature_alone", front, "the file is cut short"},
      {"jpeg", "\xff\xd8\xff\xe0somethingelse", "not a PNG file: it begins with"},
      {"no_header", front + pixel + end, "damaged"},
      {"header_twice", front + grey + grey + pixel + end, "damaged"},
      {"header_cut", front + grey.substr(0, 20), "the file is cut short"},
      {"header_short", front + chunk("IHDR", "abc") + pixel + end, "damaged"},
      {"no_width", front + header(0, 1, 8, 0) + pixel + end, "damaged"},
      {"no_height", front + header(1, 0, 8, 0) + pixel + end, "damaged"},
      {"width_2_31", front + header(0x80000000, 1, 8, 0) + pixel + end, "damaged"},
      {"huge", front + header(0x7fffffff, 0x7fffffff, 8, 6) + pixel + end,
       "more than 268435456 values: 4 x 2147483647"},
      {"very_wide", front + header(0x7fffffff, 1, 8, 0) + pixel + end,
       "more than 268435456 values: 1 x 1 x 2147483647"},
      {"very_high", front + header(1, 0x7fffffff, 8, 2) + pixel + end,
       "more than 268435456 values: 3 x 2147483647 x 1"},
      {"bits_3", front + header(1, 1, 3, 0) + pixel + end, "damaged"},
      {"bits_32", front + header(1, 1, 32, 0) + pixel + end, "damaged"},
      {"kind_1", front + header(1, 1, 8, 1) + pixel + end, "damaged"},
      {"palette_of_16", front + header(1, 1, 16, 3) + pixel + end, "damaged"},
      {"interlace_2", front + header(1, 1, 8, 0, 2) + pixel + end, "damaged"},
      {"no_palette", front + header(1, 1, 8, 3) + pixel + end, "damaged"},
      {"palette_of_4_bytes", front + header(1, 1, 8, 3) + chunk("PLTE", "abcd") + pixel + end, "damaged"},
      {"index_beyond_the_palette", front + header(1, 1, 8, 3) + chunk("PLTE", "abc") + pixel + end,
       "damaged: the pixel at row 0, column 0 has colour 85 of a palette of 1"},
      {"index_one_beyond_the_palette",
       front + header(2, 2, 2, 3) + three + chunk("IDAT", deflated({0, 0x10, 0, 0x30})) + end,
       "damaged: the pixel at row 1, column 1 has colour 3 of a palette of 3"},
      {"index_beyond_the_palette_interlaced",
       front + header(1, 1, 4, 3, 1) + three + chunk("IDAT", deflated({0, 0x70})) + end,
       "has colour 7 of a palette of 3"},
      {"index_last_of_the_palette",
       front + header(2, 2, 2, 3) + three + chunk("IDAT", deflated({0, 0x10, 0, 0x20})) + end, ""},
      {"bits_behind_a_row_beyond_the_palette",
       front + header(1, 1, 4, 3) + three + chunk("IDAT", deflated({0, 0x2f})) + end, ""},
      {"more_opacities_than_colours",
       front + header(1, 1, 4, 3) + three + chunk("tRNS", "abcd") + chunk("IDAT", deflated({0, 0x20})) + end, ""},
      {"palette_empty", front + header(1, 1, 8, 3) + chunk("PLTE", "") + pixel + end, "damaged"},
      {"no_samples", front + grey + end, "damaged"},
      {"no_end", front + grey + pixel, "the file is cut short"},
      {"samples_short", front + header(9, 9, 8, 0) + pixel + end, "damaged"},
      {"samples_long", front + grey + chunk("IDAT", bomb) + end, ""},
      {"samples_no_zlib", front + grey + chunk("IDAT", "abcdef") + end, "damaged"},
      {"samples_sum", wrong_sum, "damaged"},
      {"filter_9", front + grey + chunk("IDAT", deflated({9, 0x55})) + end, "damaged"},
      {"chunk_of_2_31", front + grey + big_endian(0xffffffff) + "IDATabc", "damaged"},
      {"chunk_beyond_the_end", front + grey + big_endian(0x7fffffff) + "IDATabc", "the file is cut short"},
      {"critical_chunk_unknown", front + grey + chunk("ABCD", "x") + pixel + end, "damaged"},
      {"profile_bomb", front + grey + chunk("iCCP", std::string("a\0\0", 3) + bomb) + pixel + end, ""},
      {"text_bomb", front + grey + chunk("zTXt", std::string("a\0\0", 3) + bomb) + pixel + end, ""},
      {"behind_the_end", front + grey + pixel + end + "anything", ""},
  };
}

Tensor parse(std::span<const char> bytes) { return io::parse_png(std::as_bytes(bytes), "x"); }

/// Checks a case, and its memory, libpng's included, most of which is zlib's window.
void check(const Case& c) {
  const std::vector<char> exact(c.bytes.begin(), c.bytes.end());
  const std::size_t peak = counting::peak([&] {
    if (c.message.empty())
      BOOST_TEST(parse(exact).numel() > 0);
    else
      BOOST_CHECK_EXCEPTION(parse(exact), IoError, hostile_suite::says("x: ", c.message));
  });
  BOOST_TEST(peak < 1u << 17);
}

/// Checks that a file cut anywhere, or with any one bit changed, is refused or read, nothing else.
void check_changes() {
  for (const char* name : {"interlaced_rgb.png", "palette_alpha.png"}) {
    const std::string sound = text_of(fixture(name));
    for (std::size_t n = 0; n < 9 * sound.size(); ++n) {
      std::vector<char> changed(sound.begin(),
                                sound.begin() + static_cast<std::ptrdiff_t>(n < sound.size() ? n : sound.size()));
      if (n >= sound.size()) changed[(n - sound.size()) / 8] ^= static_cast<char>(1 << n % 8);
      try {
        parse(changed);
      } catch (const IoError& error) {
        BOOST_REQUIRE(std::string(error.what()).starts_with("x: "));
      }
    }
  }
}

bool register_cases() {
  static const std::vector<Case> all = cases();
  hostile_suite::NamedTests tests;
  for (const Case& c : all) {
    hostile_suite::write_seed("png", c.name, c.bytes);
    tests.emplace_back(c.name, [&c] { check(c); });
  }
  tests.emplace_back("every_change", check_changes);
  return hostile_suite::add_suite("png_hostile", tests);
}

const bool registered = register_cases();

}  // namespace
