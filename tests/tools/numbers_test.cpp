// Numbers that the command prints in a process whose locale writes 1.234,5.
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "classic_numbers.h"
#include "commands.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/ops.h"
#include "support/comma_locale.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(printed_numbers)

BOOST_AUTO_TEST_CASE(numbers_are_the_same_in_every_locale) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ferrite_numbers_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::filesystem::path a = folder / "a.safetensors", b = folder / "b.safetensors";
  const Tensor x = full({2000}, 2);
  io::write_safetensors(a, std::vector<io::NamedTensor>{{"x", x}});
  io::write_safetensors(b, std::vector<io::NamedTensor>{{"x", x + 0.5}});
  const support::CommaLocale locale;
  std::ostringstream plain;
  plain << 1234.5;
  BOOST_TEST(plain.str() == "1.234,5");  // the process's own locale
  std::ostringstream out, progress;
  tools::info(a, out);
  tools::convert(a, folder / "c.npz", out, false, &progress);
  BOOST_TEST(!tools::diff(a, b, 0, out));
  std::filesystem::remove_all(folder);
  const std::string text = out.str();
  for (const char* part : {"2000 numbers, 7.8 KiB", "largest difference 0.5, relative 0.2"})
    BOOST_TEST(text.find(part) != std::string::npos, text);
  BOOST_TEST(text.find("0,") == std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_stream_has_its_own_format_again) {
  const support::CommaLocale locale;
  std::ostringstream out;
  {
    const tools::ClassicNumbers classic(out);
    out << std::fixed << 0.5 << ' ';
  }
  out << 0.5;
  BOOST_TEST(out.str() == "0.500000 0,5");
}

BOOST_AUTO_TEST_SUITE_END()
