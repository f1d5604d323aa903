/// WAV files: files of Python's wave, SciPy and libsndfile are read (tests/data/make_wav_fixtures.py), and these read
/// what we write.
#include "ferrite/io/wav.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "ferrite/io/numpy.h"
#include "ferrite/tensor/ops.h"
#include "support/python.h"
#include "temporary_folder.h"
#include "wav_builder.h"

namespace {

using namespace ferrite;
using io::Audio;
using io::WavFormat;
namespace fs = std::filesystem;

fs::path fixture(const std::string& name) { return fs::path(std::getenv("FERRITE_FIXTURES")) / "wav" / name; }

void check_samples(const Tensor& x, const Shape& shape, const std::vector<float>& expected) {
  BOOST_TEST(x.shape().str() == shape.str());
  BOOST_TEST(x.to_vector<float>() == expected, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wav)

BOOST_AUTO_TEST_CASE(what_others_write) {
  const io::TensorFile expected = io::read_npz(fixture("expected.npz"));
  BOOST_TEST(expected.names().size() == 18U);
  for (const std::string_view name : expected.names()) {
    BOOST_TEST_CONTEXT(name) {
      const Audio audio = io::read_wav(fixture(std::string(name) + ".wav"));
      const Tensor wanted = expected.tensor(name);
      check_samples(audio.samples, wanted.shape(), wanted.to_vector<float>());
      if (name.starts_with("pcm")) BOOST_TEST(audio.rate == 8000 * wanted.shape()[0]);
    }
  }
  BOOST_TEST(io::read_wav(fixture("float_f8.wav")).rate == 44100);
  BOOST_TEST(io::read_wav(fixture("rf64_PCM_16.wav")).rate == 22050);
}

/// Tests the ends of the scales and the smallest steps (ITU-T G.711, tables 1 and 2), in units of 16 bits.
BOOST_AUTO_TEST_CASE(laws_of_telephony) {
  using namespace wav_test;
  const auto read = [](unsigned tag, const std::string& codes) {
    return io::parse_wav(as_bytes(riff(plain(tag, 1, 8000, 8) + chunk("data", codes)))).samples * 32768.0;
  };
  check_samples(read(7, std::string("\x80\xff\xfe\x7f\x7e\x00", 6)), {1, 6}, {32124, 0, 8, 0, -8, -32124});
  check_samples(read(6, "\xaa\xd5\xd4\x55\x54\x2a"), {1, 6}, {32256, 8, 24, -8, -24, -32256});
}

/// Files with sizes of 64 bits, with sizes of a program that could not go back to fill them in, and with chunks of at
/// most 4 GiB.
BOOST_AUTO_TEST_CASE(long_forms) {
  using namespace wav_test;
  const std::string form = plain(1, 1, 8000, 16), samples("\x00\x40\x00\xc0\x7f", 5);
  const auto read = [&](std::uint64_t whole, std::uint64_t data, std::uint64_t in_chunk, const char* word = "RF64") {
    const std::string sizes = number(whole, 8) + number(data, 8) + number(2, 8) + u32(0);
    return io::parse_wav(as_bytes(word + u32(0xffffffff) + "WAVE" + chunk("ds64", sizes) + form + "data" +
                                  u32(in_chunk) + samples))
        .samples;
  };
  constexpr std::uint64_t none = ~std::uint64_t{0};
  check_samples(read(81, 4, 0xffffffff), {1, 2}, {0.5f, -0.5f});
  check_samples(read(81, 2, 0xffffffff), {1, 1}, {0.5f});
  check_samples(read(81, 2, 4), {1, 2}, {0.5f, -0.5f});
  check_samples(read(81, 4, 0xffffffff, "BW64"), {1, 2}, {0.5f, -0.5f});
  check_samples(read(81, none, 0xffffffff), {1, 2}, {0.5f, -0.5f});
  check_samples(read(0, 0, 0xffffffff), {1, 2}, {0.5f, -0.5f});
  check_samples(read(none, 0, 0xffffffff), {1, 2}, {0.5f, -0.5f});
  check_samples(read(81, 0, 0xffffffff), {1, 0}, {});
}

/// The chunk `fact` of formats other than integers holds the number of frames, each of all channels.
BOOST_AUTO_TEST_CASE(float_files_say_how_many_frames_they_have) {
  for (const auto& [channels, frames] : {std::pair<std::int64_t, std::int64_t>{1, 7}, {2, 3}, {5, 300}, {3, 0}}) {
    const auto bytes = io::serialize_wav({full({channels, frames}, 0.5), 8000}, WavFormat::float32);
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t at = text.find("fact");
    BOOST_REQUIRE(at != std::string::npos);
    const std::string wanted = wav_test::u32(4) + wav_test::u32(static_cast<std::uint64_t>(frames));
    BOOST_TEST((text.substr(at + 4, 8) == wanted));
  }
  const auto integers = io::serialize_wav({full({2, 3}, 0.5), 8000});
  BOOST_TEST(std::string(reinterpret_cast<const char*>(integers.data()), integers.size()).find("fact") ==
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(integers_come_back) {
  for (const auto& [name, format] : {std::pair{"pcm16_2.wav", WavFormat::pcm16},
                                     {"pcm16_1.wav", WavFormat::pcm16},
                                     {"pcm24_3.wav", WavFormat::pcm24},
                                     {"pcm24_1.wav", WavFormat::pcm24}}) {
    std::ifstream file(fixture(name), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto ours = io::serialize_wav(io::read_wav(fixture(name)), format);
    BOOST_TEST((std::string(reinterpret_cast<const char*>(ours.data()), ours.size()) == bytes), name);
  }
}

/// Chunks begin at even places: a byte follows samples of an odd size, and RIFF's size counts it.
BOOST_AUTO_TEST_CASE(samples_of_an_odd_size) {
  for (const std::int64_t frames : {1, 2, 3}) {
    const auto bytes = io::serialize_wav({zeros({1, frames}), 8000}, WavFormat::pcm24);
    const auto at = [&](std::size_t i) { return static_cast<std::size_t>(bytes[i]); };
    BOOST_TEST(bytes.size() == 44U + static_cast<std::size_t>(3 * frames + frames % 2));
    BOOST_TEST(at(4) == bytes.size() - 8);
    BOOST_TEST(at(40) == static_cast<std::size_t>(3 * frames));
  }
}

BOOST_AUTO_TEST_CASE(rounding_and_clipping) {
  const float inf = std::numeric_limits<float>::infinity();
  const float step = 1.0f / 32768;
  const Tensor x = Tensor::from<float>(
      {1, -1, 1.5f, -1.5f, inf, -inf, 0.5f * step, 1.5f * step, -0.5f * step, 0.75f * step, 32767.49f * step});
  const Tensor y = io::parse_wav(io::serialize_wav({x, 8000})).samples * 32768.0;
  check_samples(y, {1, 11}, {32767, -32768, 32767, -32768, 32767, -32768, 0, 2, 0, 1, 32767});
  const Tensor z = io::parse_wav(io::serialize_wav({x, 8000}, WavFormat::float32)).samples;
  check_samples(z, {1, 11}, x.to_vector<float>());
  const Tensor fine =
      io::parse_wav(io::serialize_wav({Tensor::from<float>({1, 2.5f / 8388608}), 1}, WavFormat::pcm24)).samples;
  check_samples(fine * 8388608.0, {1, 2}, {8388607, 2});
}

BOOST_AUTO_TEST_CASE(channels_are_rows) {
  const Tensor x = Tensor::from<float>({0, 0.25f, 0.5f, -0.25f, -0.5f, -0.75f}, {2, 3});
  check_samples(io::parse_wav(io::serialize_wav({x, 8000})).samples, {2, 3}, x.to_vector<float>());
  check_samples(io::parse_wav(io::serialize_wav({transpose(x), 8000})).samples, {3, 2},
                {0, -0.25f, 0.25f, -0.5f, 0.5f, -0.75f});
  check_samples(io::parse_wav(io::serialize_wav({full({2, 0}, 0), 8000})).samples, {2, 0}, {});
}

BOOST_AUTO_TEST_CASE(files_of_pipes) {
  using namespace wav_test;
  const std::string samples("\x00\x40\x00\xc0\x7f", 5);  // two samples, and half of a third
  for (const auto& [whole, size] :
       {std::pair{0xffffffffU, 0xffffffffU}, {0U, 0U}, {0xffffffffU, 0U}, {36U, 0xffffffffU}}) {
    const Audio audio = io::parse_wav(as_bytes(riff(whole, plain(1, 1, 8000, 16) + "data" + u32(size) + samples)));
    check_samples(audio.samples, {1, 2}, {0.5f, -0.5f});
  }
  const Audio none = io::parse_wav(as_bytes(riff(36, plain(1, 1, 8000, 16) + "data" + u32(0) + samples)));
  BOOST_TEST(none.samples.shape().str() == "[1, 0]");
}

BOOST_AUTO_TEST_CASE(what_is_not_written) {
  const Tensor x = Tensor::from<float>({0.5f});
  const auto refuse = [](const Audio& audio, WavFormat format = WavFormat::pcm16) { io::serialize_wav(audio, format); };
  BOOST_CHECK_THROW(refuse({x, 0}), ValueError);
  BOOST_CHECK_THROW(refuse({x, std::int64_t{1} << 32}), ValueError);
  BOOST_CHECK_THROW(refuse({full({0, 2}, 0), 8000}), ValueError);
  BOOST_CHECK_THROW(refuse({full({32768, 0}, 0), 8000}), ValueError);
  BOOST_CHECK_THROW(refuse({full({1, 1, 2}, 0), 8000}), ShapeError);
  BOOST_CHECK_THROW(refuse({cast(x, Dtype::f64), 8000}), DtypeError);
  BOOST_CHECK_THROW(refuse({Tensor(), 8000}), IoError);
  const Tensor nan = Tensor::from<float>({std::nanf("")});
  BOOST_CHECK_THROW(refuse({nan, 8000}), ValueError);
  BOOST_TEST(std::isnan(io::parse_wav(io::serialize_wav({nan, 8000}, WavFormat::float32)).samples.item()));
}

BOOST_AUTO_TEST_CASE(an_old_file_stays_where_a_new_one_cannot_be_written) {
  const io_test::TemporaryFolder folder;
  io::write_wav(folder / "a.wav", {Tensor::from<float>({0.5f}), 8000});
  BOOST_CHECK_THROW(io::write_wav(folder / "a.wav", {Tensor::from<float>({std::nanf("")}), 8000}), ValueError);
  check_samples(io::read_wav(folder / "a.wav").samples, {1, 1}, {0.5f});
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_CASE(others_read_what_we_write, *boost::unit_test::precondition(support::python_with("scipy"))) {
  const io_test::TemporaryFolder folder;
  for (const std::int64_t channels : {1, 2, 5}) {
    const Tensor x = uniform({channels, 101}, {.seed = 3}, -1.2, 1.2);
    for (const auto& [name, format, full] : {std::tuple{"pcm16", WavFormat::pcm16, 32768.0},
                                             {"pcm24", WavFormat::pcm24, 8388608.0},
                                             {"float32", WavFormat::float32, 0.0}}) {
      const std::string stem = name + std::to_string(channels);
      io::write_wav(folder / (stem + ".wav"), {x, 22050}, format);
      std::vector<double> integers;
      for (const float v : x.to_vector<float>())
        integers.push_back(std::min(std::max(std::nearbyint(double{v} * full), -full), full - 1));
      io::write_npy(folder / (stem + ".npy"), full == 0 ? x : Tensor::from(integers, x.shape()));
    }
  }
  BOOST_TEST(support::run_script("check_wav_written.py", folder.path()));
}

BOOST_AUTO_TEST_SUITE_END()
