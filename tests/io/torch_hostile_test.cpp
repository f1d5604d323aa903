/// Every hostile PyTorch file, one named case each. With FERRITE_WRITE_CORPUS=<folder> the small ones are also written
/// to <folder>/torch and their pickles to <folder>/pickle where these exist, as seeds for tests/fuzz/torch_fuzz.cpp and
/// pickle_fuzz.cpp.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <span>

#include "ferrite/io/torch.h"
#include "hostile_suite.h"
#include "hostile_torch.h"

namespace {

using ferrite::IoError;
using hostile_torch::Case;
namespace io = ferrite::io;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

void read_all(const std::string& bytes, const std::string& key = "") {
  const io::TensorFile file = io::parse_torch(bytes_of(bytes), key, "x.pt");
  for (const std::string_view name : file.names()) {
    const io::TensorInfo info = file.info(name);
    const ferrite::Tensor tensor = file.tensor(name);
    const ferrite::Spec wanted{ferrite::Shape(info.shape), info.loads_as.value()};
    BOOST_TEST(tensor.spec().str() == wanted.str());
  }
}

void check(const Case& c) {
  if (c.message.empty()) return read_all(c.bytes, c.key);
  BOOST_CHECK_EXCEPTION(read_all(c.bytes, c.key), IoError, hostile_suite::says("x.pt: ", c.message));
}

std::vector<std::string> sound_files() {
  using namespace torch_builder;
  return {checkpoint(named(good_tensor())), legacy(named(good_tensor()))};
}

/// Checks that a sound file cut anywhere is refused, without reading past its end.
void check_all_cuts() {
  for (const std::string& whole : sound_files())
    for (std::size_t n = 0; n < whole.size(); ++n) {
      const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
      BOOST_CHECK_THROW(io::parse_torch(std::as_bytes(std::span(cut))), IoError);
    }
}

/// Checks that a file with any one bit changed is refused or read, nothing else.
void check_all_flips() {
  for (const std::string& whole : sound_files())
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (int bit = 0; bit < 8; ++bit) {
        std::string flipped = whole;
        flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
        try {
          const io::TensorFile file = io::parse_torch(bytes_of(flipped));
          for (const std::string_view name : file.names()) file.tensor(name);
        } catch (const IoError& error) {
          BOOST_TEST(std::string(error.what()).starts_with("torch: "));
        }
      }
}

/// Checks the same for the pickle alone, in an archive with valid CRCs.
void check_all_flips_of_the_pickle() {
  const std::string whole = torch_builder::named(torch_builder::good_tensor());
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try {
        read_all(torch_builder::checkpoint(flipped));
      } catch (const IoError& error) {
        BOOST_TEST(std::string(error.what()).starts_with("x.pt: "));
      }
    }
}

void write_seeds(const Case& c) {
  if (c.bytes.size() > 3000) return;
  hostile_suite::write_seed("torch", c.name, c.bytes);
  if (!ferrite::io::detail::looks_like_zip(bytes_of(c.bytes))) return;
  const ferrite::io::detail::ZipArchive archive(bytes_of(c.bytes), c.name);
  const auto* entry = archive.find("a/data.pkl");
  if (entry != nullptr)
    hostile_suite::write_seed("pickle", c.name, std::string_view(c.bytes).substr(entry->begin, entry->size));
}

bool register_cases() {
  static const std::vector<Case> cases = hostile_torch::all();
  hostile_suite::NamedTests tests;
  for (const Case& c : cases) {
    if (std::getenv("FERRITE_WRITE_CORPUS") != nullptr) write_seeds(c);
    tests.emplace_back(c.name, [&c] { check(c); });
  }
  tests.emplace_back("every_cut", check_all_cuts);
  tests.emplace_back("every_flip", check_all_flips);
  tests.emplace_back("every_flip_of_the_pickle", check_all_flips_of_the_pickle);
  return hostile_suite::add_suite("torch_hostile", tests);
}

const bool registered = register_cases();

}  // namespace
