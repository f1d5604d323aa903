/// Every hostile npy and npz file, one named case each. With FERRITE_WRITE_CORPUS=<folder> the small ones are also
/// written to npy/ and npz/ there, as seeds for tests/fuzz.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <span>

#include "counting.h"
#include "ferrite/io/numpy.h"
#include "hostile_numpy.h"
#include "hostile_suite.h"

namespace {

using ferrite::IoError;
using numpy_test::Case;
namespace io = ferrite::io;

using Bytes = std::span<const std::byte>;
using Parse = std::function<void(Bytes)>;

void parse_npy(Bytes bytes) { io::parse_npy(bytes, "x"); }

void parse_npz(Bytes bytes) {
  const io::TensorFile file = io::parse_npz(bytes, "x");
  for (const std::string_view name : file.names()) {
    const io::TensorInfo info = file.info(name);
    const ferrite::Tensor tensor = file.tensor(name);
    BOOST_TEST((info.loads_as == tensor.dtype()));
    BOOST_TEST(ferrite::Shape(info.shape).str() == tensor.shape().str());
  }
}

/// Checks a case, and its memory: never much for such small files.
void check(const Case& c, const Parse& parse) {
  const Bytes bytes = std::as_bytes(std::span(c.bytes));
  const std::size_t peak = counting::peak([&] {
    if (c.message.empty())
      parse(bytes);
    else
      BOOST_CHECK_EXCEPTION(parse(bytes), IoError, hostile_suite::says("x: ", c.message));
  });
  BOOST_TEST(peak <= 10 * c.bytes.size() + (1u << 20));
}

/// Checks that a sound file cut anywhere is refused, without reading past its end.
void check_cuts(const std::string& whole, const Parse& parse) {
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    BOOST_CHECK_THROW(parse(std::as_bytes(std::span(cut))), IoError);
  }
}

/// Checks that a file with any one bit changed is refused or read, nothing else.
void check_flips(const std::string& whole, const Parse& parse) {
  for (std::size_t i = 0; i < 8 * whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i / 8] = static_cast<char>(flipped[i / 8] ^ (1 << i % 8));
    const std::vector<char> exact(flipped.begin(), flipped.end());
    try {
      parse(std::as_bytes(std::span(exact)));
    } catch (const IoError& error) {
      BOOST_TEST(std::string(error.what()).starts_with("x: "));
    }
  }
}

void add(const std::string& kind, const std::vector<Case>& cases, const Parse& parse, const std::string& sound) {
  hostile_suite::NamedTests tests;
  for (const Case& c : cases) {
    if (c.bytes.size() < 1000) hostile_suite::write_seed(kind, c.name, c.bytes);
    tests.emplace_back(c.name, [&c, parse] { check(c, parse); });
  }
  tests.emplace_back("every_cut", [=] { check_cuts(sound, parse); });
  tests.emplace_back("every_flip", [=] { check_flips(sound, parse); });
  hostile_suite::add_suite(kind + "_hostile", tests);
}

bool register_cases() {
  static const std::vector<Case> npy = numpy_test::all_npy();
  static const std::vector<Case> npz = numpy_test::of_archives();
  const std::string sound = numpy_test::array("'<f4'", "(2, 3)", 24, '\1');
  add("npy", npy, parse_npy, sound);
  add("npz", npz, parse_npz,
      zip_test::archive_of({zip_test::stored("a.npy", sound), zip_test::packed("b.npy", sound)}));
  return true;
}

const bool registered = register_cases();

}  // namespace
