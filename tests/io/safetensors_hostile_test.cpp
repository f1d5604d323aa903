/// Every hostile file, one named case each. With FERRITE_WRITE_CORPUS=<folder> the small ones are also written to
/// safetensors/ there, as seeds for tests/fuzz/safetensors_fuzz.cpp.
#include <boost/test/unit_test.hpp>
#include <span>

#include "ferrite/io/safetensors.h"
#include "hostile_safetensors.h"

namespace {

using ferrite::IoError;
using hostile::Case;
using hostile::Verdict;
namespace io = ferrite::io;

std::span<const std::byte> bytes_of(const Case& c) { return std::as_bytes(std::span(c.bytes)); }

auto says(const Case& c) { return hostile_suite::says("x.safetensors: ", c.message); }

void read_all(const io::TensorFile& file) {
  for (const std::string_view name : file.names()) {
    const io::TensorInfo info = file.info(name);
    const ferrite::Tensor tensor = file.tensor(name);
    const ferrite::Spec wanted{ferrite::Shape(info.shape), info.loads_as.value()};
    BOOST_TEST(tensor.spec().str() == wanted.str());
  }
}

void check(const Case& c) {
  if (c.verdict == Verdict::refused) {
    BOOST_CHECK_EXCEPTION(io::parse_safetensors(bytes_of(c), "x.safetensors"), IoError, says(c));
    return;
  }
  const io::TensorFile file = io::parse_safetensors(bytes_of(c), "x.safetensors");
  if (c.verdict == Verdict::legal)
    read_all(file);
  else
    BOOST_CHECK_EXCEPTION(file.tensor("a"), IoError, says(c));
}

/// Checks that a sound file cut anywhere is refused, without reading past its end.
void check_all_cuts() {
  const std::string whole = hostile::file_of(hostile::kGood, std::string(16, '\0'));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    BOOST_CHECK_THROW(io::parse_safetensors(std::as_bytes(std::span(cut))), IoError);
  }
}

/// Checks that a file with any one byte of the header changed is refused or read, nothing else.
void check_all_flips() {
  const std::string whole = hostile::file_of(hostile::kGood, std::string(16, '\0'));
  for (std::size_t i = 0; i < 8 + hostile::kGood.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try {
        const io::TensorFile file = io::parse_safetensors(std::as_bytes(std::span(flipped)));
        BOOST_TEST(file.size() == 1u);
        file.tensor(file.names().front());
      } catch (const IoError& error) {
        BOOST_TEST(std::string(error.what()).starts_with("safetensors: "));
      }
    }
  }
}

bool register_cases() {
  static const std::vector<Case> cases = hostile::all();
  hostile_suite::NamedTests tests;
  for (const Case& c : cases) {
    if (c.bytes.size() < 1000) hostile_suite::write_seed("safetensors", c.name, c.bytes);
    tests.emplace_back(c.name, [&c] { check(c); });
  }
  tests.emplace_back("every_cut", check_all_cuts);
  tests.emplace_back("every_flip", check_all_flips);
  return hostile_suite::add_suite("safetensors_hostile", tests);
}

const bool registered = register_cases();

}  // namespace
