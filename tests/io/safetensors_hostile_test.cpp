/// Every hostile file, one named case each. With FERRITE_WRITE_CORPUS=<folder> the small ones are also written there,
/// as seeds for tests/fuzz/safetensors_fuzz.cpp.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <span>

#include "ferrite/io/safetensors.h"
#include "hostile_safetensors.h"

namespace {

using ferrite::IoError;
using hostile::Case;
using hostile::Verdict;
namespace io = ferrite::io;
namespace ut = boost::unit_test;

std::span<const std::byte> bytes_of(const Case& c) { return std::as_bytes(std::span(c.bytes)); }

auto says(const Case& c) {
  return [&c](const IoError& error) {
    const std::string text = error.what();
    BOOST_TEST_INFO("the error says: " << text);
    BOOST_TEST(text.starts_with("x.safetensors: "));
    BOOST_TEST(text.find(c.message) != std::string::npos);
    BOOST_TEST(text.size() < 1000u);
    return true;
  };
}

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

/// Any cut of a sound file is refused: it is never read past its end.
void check_all_cuts() {
  const std::string whole = hostile::file_of(hostile::kGood, std::string(16, '\0'));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    BOOST_CHECK_THROW(io::parse_safetensors(std::as_bytes(std::span(cut))), IoError);
  }
}

/// Any one byte of the header changed: refused or read, nothing else.
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

void write_corpus(const std::vector<Case>& cases) {
  const char* folder = std::getenv("FERRITE_WRITE_CORPUS");
  if (folder == nullptr) return;
  for (const Case& c : cases)
    if (c.bytes.size() < 1000) std::ofstream(std::string(folder) + "/" + c.name, std::ios::binary) << c.bytes;
}

bool register_cases() {
  static const std::vector<Case> cases = hostile::all();
  write_corpus(cases);
  ut::test_suite* suite = BOOST_TEST_SUITE("safetensors_hostile");
  for (const Case& c : cases) suite->add(ut::make_test_case([&c] { check(c); }, c.name, __FILE__, __LINE__));
  suite->add(ut::make_test_case(check_all_cuts, "every_cut", __FILE__, __LINE__));
  suite->add(ut::make_test_case(check_all_flips, "every_flip", __FILE__, __LINE__));
  ut::framework::master_test_suite().add(suite);
  return true;
}

const bool registered = register_cases();

}  // namespace
