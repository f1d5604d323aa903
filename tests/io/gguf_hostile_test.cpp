/// Every hostile GGUF file, one named case each. With FERRITE_WRITE_CORPUS=<folder> the small ones are also written to
/// gguf/ there, as seeds for tests/fuzz/gguf_fuzz.cpp.
#include <span>

#include "counting.h"
#include "ferrite/io/gguf.h"
#include "hostile_gguf.h"
#include "support/fixtures.h"

namespace {

using ferrite::IoError;
using hostile_gguf::Case;
using hostile_gguf::Verdict;
namespace io = ferrite::io;

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }

auto says(const Case& c) { return hostile_suite::says("x.gguf: ", c.message); }

void check(const Case& c) {
  if (c.verdict == Verdict::refused) {
    BOOST_CHECK_EXCEPTION(io::parse_gguf(bytes_of(c.bytes), "x.gguf"), IoError, says(c));
    BOOST_CHECK_THROW(io::parse_gguf_metadata(bytes_of(c.bytes), "x.gguf"), IoError);
    return;
  }
  const io::TensorFile file = io::parse_gguf(bytes_of(c.bytes), "x.gguf");
  io::parse_gguf_metadata(bytes_of(c.bytes), "x.gguf");
  if (c.verdict == Verdict::refused_later) {
    BOOST_CHECK_EXCEPTION(file.tensor("a"), IoError, says(c));
    return;
  }
  for (const std::string_view name : file.names()) {
    const io::TensorInfo info = file.info(name);
    const ferrite::Spec wanted{ferrite::Shape(info.shape), info.loads_as.value()};
    BOOST_TEST(file.tensor(name).spec().str() == wanted.str());
  }
}

/// Checks that a sound file cut anywhere is refused, without reading past its end.
void check_all_cuts() {
  const std::string whole = hostile_gguf::good().bytes();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    BOOST_CHECK_THROW(io::parse_gguf(std::as_bytes(std::span(cut))), IoError);
  }
}

/// Checks that a file with any one bit of the head changed is refused or read, nothing else.
void check_all_flips() {
  const std::string whole = hostile_gguf::good().bytes();
  for (std::size_t i = 0; i + 32 < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try {
        const io::TensorFile file = io::parse_gguf(bytes_of(flipped));
        for (const std::string_view name : file.names()) file.tensor(name);
      } catch (const IoError& error) {
        BOOST_TEST(std::string(error.what()).starts_with("gguf: "));
      }
    }
  }
}

/// Checks that a file takes at most twice its bytes and 1 MiB until its tensors are read.
void check_memory(const std::string& bytes) {
  std::size_t most = 0;
  most = counting::peak([&] { io::parse_gguf(bytes_of(bytes)).metadata(); });
  BOOST_TEST_MESSAGE(bytes.size() << " bytes: " << most << " of memory");
  BOOST_TEST(most <= bytes.size() + (std::size_t{1} << 20));
}

void check_memory_of_many_tensors() {
  hostile_gguf::File f = hostile_gguf::good();
  f.tensors.clear();
  for (std::size_t i = 0; i < 200'000; ++i) f.tensors.push_back(hostile_gguf::tensor(std::to_string(i), {}, 1000, 0));
  check_memory(f.bytes());
}

void check_memory_of_long_lists() {
  std::string texts;
  for (int i = 0; i < 500'000; ++i) texts += hostile_gguf::text("");
  check_memory(hostile_gguf::with_key(hostile_gguf::key(
      "l", hostile_gguf::kList, hostile_gguf::u32(hostile_gguf::kString) + hostile_gguf::u64(500'000) + texts)));
}

void check_memory_of_a_small_file_that_says_it_is_large() {
  const std::string bytes = hostile_gguf::with_tensor(hostile_gguf::tensor("a", {1ULL << 40}, 1000, 0));
  std::size_t most = counting::peak([&] { BOOST_CHECK_THROW(io::parse_gguf(bytes_of(bytes)).tensor("a"), IoError); });
  BOOST_TEST(most <= std::size_t{1} << 16);
}

bool register_cases() {
  static const std::vector<Case> cases = hostile_gguf::all();
  hostile_suite::NamedTests tests;
  for (const Case& c : cases) {
    if (c.bytes.size() < 1000) hostile_suite::write_seed("gguf", c.name, c.bytes);
    tests.emplace_back(c.name, [&c] { check(c); });
  }
  tests.emplace_back("every_cut", check_all_cuts);
  tests.emplace_back("every_flip", check_all_flips);
  tests.emplace_back("memory_of_many_tensors", check_memory_of_many_tensors);
  tests.emplace_back("memory_of_long_lists", check_memory_of_long_lists);
  tests.emplace_back("memory_of_a_small_file_that_says_it_is_large",
                     check_memory_of_a_small_file_that_says_it_is_large);
  return hostile_suite::add_suite("gguf_hostile", tests);
}

const bool registered = register_cases();

}  // namespace
