/// Hostile WAV files, one named case each. With FERRITE_WRITE_CORPUS=<folder> they are also written to wav/ there, as
/// seeds for tests/fuzz.
#include <boost/test/unit_test.hpp>

#include "counting.h"
#include "ferrite/io/wav.h"
#include "hostile_suite.h"
#include "wav_builder.h"

namespace {

using ferrite::IoError;
namespace io = ferrite::io;
using namespace wav_test;

struct Case {
  std::string name, bytes, message;  ///< empty `message`: the file is legal
};

/// Returns an RF64 that declares these sizes; its samples are four bytes.
std::string long_form(std::uint64_t whole, std::uint64_t samples, const std::string& chunks) {
  return "RF64" + u32(0xffffffff) + "WAVE" +
         chunk("ds64", number(whole, 8) + number(samples, 8) + number(2, 8) + u32(0)) + chunks;
}

std::vector<Case> cases() {
  const std::string form = plain(1, 1, 8000, 16), four = chunk("data", "abcd");
  const std::string good = riff(form + four);
  const auto with_frame = [](unsigned frame) {
    return riff(chunk("fmt ", u16(1) + u16(2) + u32(8000) + u32(32000) + u16(frame) + u16(16)) + chunk("data", "abcd"));
  };
  const auto format = [&](unsigned tag, unsigned channels, unsigned rate, unsigned bits) {
    return riff(plain(tag, channels, rate, bits) + four);
  };
  const std::string data = "data" + u32(0xffffffff) + "abcd";
  std::string subtype = riff(extensible(1, 1, 8000, 16, 16) + four);
  subtype[20 + 30] = 'x';
  return {
      {"good", good, ""},
      {"empty", "", "too short for a WAV file: 0 bytes"},
      {"front_cut", good.substr(0, 11), "too short for a WAV file: 11 bytes"},
      {"not_riff", "OggS" + good.substr(4), "it begins with 'OggS'"},
      {"big_endian", "RIFX" + good.substr(4), "it begins with 'RIFX'"},
      {"long_form_without_sizes", "RF64" + good.substr(4), "its sizes are missing: the first chunk is no whole 'ds64'"},
      {"long_form_empty", "RF64" + u32(4) + "WAVE", "its sizes are missing"},
      {"long_form_good", long_form(54, 4, form + data), ""},
      {"long_form_twice", long_form(54, 4, long_form(1, 1, "").substr(12) + form + data), ""},
      {"long_form_sizes_late", "RF64" + u32(4) + "WAVE" + form + long_form(54, 4, "").substr(12) + data,
       "its sizes are missing"},
      {"long_form_sizes_short", "RF64" + u32(4) + "WAVE" + chunk("ds64", number(54, 8) + number(4, 8)) + form + data,
       "its sizes are missing"},
      {"long_form_sizes_cut", long_form(54, 4, "").substr(0, 40), "its sizes are missing"},
      {"long_form_not_wave", "RF64" + u32(4) + "AVI ", "RF64, but not a WAV file: its form is 'AVI '"},
      {"long_samples_cut", long_form(54, 6, form + data), "the samples are cut short: 4 of 6 bytes"},
      {"long_samples_halved", long_form(54, 3, form + data), "no whole number of frames: 3 bytes in frames of 2"},
      {"long_samples_huge", long_form(54, std::uint64_t{1} << 63, form + data),
       "the samples are cut short: 4 of 9223372036854775808 bytes"},
      {"long_samples_wrap", long_form(54, (std::uint64_t{1} << 32) + 4, form + data),
       "the samples are cut short: 4 of 4294967300 bytes"},
      {"long_samples_unknown", long_form(0, ~std::uint64_t{0}, form + data + "e"), ""},
      {"long_chunk_of_4_gib", long_form(54, 4, "LIST" + u32(0xffffffff) + form + data),
       "the chunk 'LIST' is cut short"},
      {"sizes_of_64_bits_in_riff", riff(long_form(1, 1, "").substr(12) + form + four), ""},
      {"not_wave", "RIFF" + u32(4) + "AVI ", "its form is 'AVI '"},
      {"nothing_inside", riff(""), "there are no samples"},
      {"format_alone", riff(form), "there are no samples"},
      {"samples_first", riff(four + form), "the samples come before their format"},
      {"two_formats", riff(form + form + four), "there are two formats"},
      {"behind_the_samples", good + "anything", ""},
      {"second_data", riff(form + four + four), ""},
      {"whole_size_wrong", riff(7, form + four), ""},
      {"odd_chunk", riff(chunk("LIST", "abc") + form + chunk("note", "x") + four), ""},
      {"odd_chunk_without_its_byte", riff("LIST" + u32(3) + "abc" + form + four), "is cut short"},
      {"chunk_cut", riff("LIST" + u32(5) + "abcd"), "the chunk 'LIST' is cut short: 4 of 5 bytes"},
      {"chunk_huge", riff("LIST" + u32(0xffffffff) + form + four), "is cut short"},
      {"chunk_unprintable", riff("\x01\x02\xff\x7f" + u32(9)), "the chunk '\\x01\\x02\\xff\\x7f' is cut short"},
      {"chunk_front_cut", riff(form + "dat"), "there are no samples"},
      {"many_empty_chunks", riff([] {
         std::string all;
         for (int i = 0; i < 10'000; ++i) all += chunk("LIST", "");
         return all;
       }()),
       "there are no samples"},
      {"format_cut", riff(chunk("fmt ", std::string(14, '\1')) + four), "the format is cut short: 14 bytes of 16"},
      {"format_beyond_the_end", riff("fmt " + u32(400) + "abcd"), "the chunk 'fmt ' is cut short"},
      {"format_of_18", riff(chunk("fmt ", form.substr(8) + u16(0)) + four), ""},
      {"extensible", riff(extensible(1, 1, 8000, 16, 16) + four), ""},
      {"extensible_cut", riff(chunk("fmt ", u16(0xfffe) + form.substr(10)) + four),
       "the extensible format is cut short: 16 bytes of 40"},
      {"extensible_other", subtype, "the extensible format is not one of PCM"},
      {"extensible_in_itself", riff(extensible(0xfffe, 1, 8000, 16, 16) + four), "unsupported format: 65534"},
      {"extensible_too_many_bits", riff(extensible(1, 1, 8000, 16, 17) + four),
       "more bits of a sample are valid than there are: 17 of 16"},
      {"tag_0", format(0, 1, 8000, 16), "unsupported format: 0"},
      {"tag_adpcm", format(2, 1, 8000, 16), "unsupported format: 2; supported are"},
      {"tag_gsm", format(49, 1, 8000, 8), "unsupported format: 49; supported are 1 (integers), 3 (floats), 6 (A-law)"},
      {"a_law", format(6, 1, 8000, 8), ""},
      {"mu_law_of_four_channels", format(7, 4, 8000, 8), ""},
      {"mu_law_extensible", riff(extensible(7, 1, 8000, 8, 8) + four), ""},
      {"a_law_of_16_bits", format(6, 1, 8000, 16), "samples in A-law of other than 8 bits: 16"},
      {"mu_law_of_0_bits", format(7, 1, 8000, 0), "samples in mu-law of other than 8 bits: 0"},
      {"no_channels", format(1, 0, 8000, 16), "no channels"},
      {"no_rate", format(1, 1, 0, 16), "no samples a second"},
      {"bits_0", format(1, 1, 8000, 0), "integers of other than 8, 16, 24 and 32 bits: 0"},
      {"bits_12", format(1, 1, 8000, 12), "integers of other than 8, 16, 24 and 32 bits: 12"},
      {"bits_64", format(1, 1, 8000, 64), "integers of other than"},
      {"bits_65528", format(1, 1, 8000, 65528), "integers of other than"},
      {"float_16", format(3, 1, 8000, 16), "floats of other than 32 and 64 bits: 16"},
      {"frame_of_0", with_frame(0), "the size of a frame contradicts its format: 0 bytes for 2 channels of 16 bits"},
      {"frame_of_3", with_frame(3), "contradicts its format: 3 bytes"},
      {"channels_overflow", riff(chunk("fmt ", u16(1) + u16(65535) + u32(1) + u32(1) + u16(65532) + u16(32)) + four),
       "contradicts its format"},
      {"many_channels", format(1, 20'000, 1, 16), "no whole number of frames: 4 bytes in frames of 40000"},
      {"no_samples", riff(form + chunk("data", "")), ""},
      {"samples_cut", riff(form + "data" + u32(6) + "abcd"), "the samples are cut short: 4 of 6 bytes"},
      {"samples_huge", riff(form + "data" + u32(0xfffffffe) + "abcd"), "cut short: 4 of 4294967294 bytes"},
      {"samples_halved", riff(form + chunk("data", "abc")), "no whole number of frames: 3 bytes in frames of 2"},
      {"pipe", riff(0xffffffff, form + "data" + u32(0xffffffff) + "abcde"), ""},
      {"pipe_empty", riff(0, form + "data" + u32(0)), ""},
      {"float_nan", riff(plain(3, 1, 8000, 32) + chunk("data", "\xff\xff\xff\x7f")), ""},
      {"double_too_large", riff(plain(3, 1, 8000, 64) + chunk("data", "\xff\xff\xff\xff\xff\xff\xef\x7f")), ""},
  };
}

io::Audio parse(std::span<const char> bytes) { return io::parse_wav(std::as_bytes(bytes), "x"); }

void check(const Case& c) {
  const std::vector<char> exact(c.bytes.begin(), c.bytes.end());
  const std::size_t peak = counting::peak([&] {
    if (c.message.empty())
      BOOST_TEST(parse(exact).samples.defined());
    else
      BOOST_CHECK_EXCEPTION(parse(exact), IoError, hostile_suite::says("x: ", c.message));
  });
  BOOST_TEST(peak <= 10 * c.bytes.size() + (1u << 16));
}

/// Checks that a file cut anywhere, or with any one byte changed, is refused or read, nothing else.
void check_changes(const std::string& sound) {
  for (std::size_t n = 0; n < sound.size(); ++n)
    for (int byte = -1; byte < 256; ++byte) {
      std::vector<char> changed(sound.begin(),
                                sound.begin() + static_cast<std::ptrdiff_t>(byte < 0 ? n : sound.size()));
      if (byte >= 0) changed[n] = static_cast<char>(byte);
      try {
        parse(changed);
        BOOST_REQUIRE(byte >= 0);  // a cut file is never sound
      } catch (const IoError& error) {
        BOOST_REQUIRE(std::string(error.what()).starts_with("x: "));
      }
    }
}

bool register_cases() {
  static const std::vector<Case> all = cases();
  hostile_suite::NamedTests tests;
  for (const Case& c : all) {
    if (c.bytes.size() < 1000) hostile_suite::write_seed("wav", c.name, c.bytes);
    tests.emplace_back(c.name, [&c] { check(c); });
  }
  const std::string data = "data" + u32(0xffffffff) + "abcdefghijkl";
  tests.emplace_back("every_change", [] {
    check_changes(riff(extensible(1, 2, 8000, 24, 24) + chunk("note", "odd") + chunk("data", "abcdefghijkl")));
  });
  tests.emplace_back("every_change_of_a_long_form",
                     [data] { check_changes(long_form(84, 12, extensible(7, 2, 8000, 8, 8) + data)); });
  return hostile_suite::add_suite("wav_hostile", tests);
}

const bool registered = register_cases();

}  // namespace
