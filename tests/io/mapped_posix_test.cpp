/// Mapped files that are replaced and removed, as only POSIX allows.
#include <boost/test/unit_test.hpp>

#include "ferrite/io/safetensors.h"
#include "small_modules.h"
#include "support/compare.h"
#include "temporary_folder.h"

namespace {

using namespace io_test;
using support::identical;
namespace fs = std::filesystem;

constexpr io::ReadOptions kMap{.map = true};

}  // namespace

BOOST_AUTO_TEST_SUITE(mapped_on_posix)

BOOST_AUTO_TEST_CASE(saving_over_a_mapped_file_leaves_its_values) {
  const TemporaryFolder folder;
  const fs::path path = folder / "net.safetensors";
  io::write_safetensors(path, std::vector<io::NamedTensor>{{"x", counting({100}, 1)}});
  const Tensor old = io::read_safetensors(path, kMap).tensor("x");
  io::write_safetensors(path, std::vector<io::NamedTensor>{{"x", old * 2}});
  BOOST_TEST(identical(old, counting({100}, 1)));
  BOOST_TEST(identical(io::read_safetensors(path, kMap).tensor("x"), counting({100}, 1) * 2));
  io::write_safetensors(path, std::vector<io::NamedTensor>{{"x", old}});  // from the old file to the new one
  BOOST_TEST(identical(io::read_safetensors(path).tensor("x"), old));
  fs::remove(path);
  BOOST_TEST(identical(old, counting({100}, 1)));
}

BOOST_AUTO_TEST_SUITE_END()
