// Files parsed in memory: bytes that were moved into a file live as long as the file or a copy of it.
#include <functional>

#include "ferrite/io/numpy.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/torch.h"
#include "small_modules.h"
#include "support/compare.h"

using namespace io_test;
using Bytes = std::vector<std::byte>;

namespace {

struct Format {
  const char* name;
  Bytes (*written)(std::span<const io::NamedTensor>);
  io::TensorFile (*parsed)(Bytes&&);
};

const Format kFormats[] = {
    {"torch", io::serialize_torch, [](Bytes&& b) { return io::parse_torch(std::move(b)); }},
    {"safetensors", [](std::span<const io::NamedTensor> t) { return io::serialize_safetensors(t); },
     [](Bytes&& b) { return io::parse_safetensors(std::move(b)); }},
    {"npz", io::serialize_npz, [](Bytes&& b) { return io::parse_npz(std::move(b)); }},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(parsed_bytes)

BOOST_AUTO_TEST_CASE(bytes_that_are_given_away_live_as_long_as_the_file) {
  const std::vector<io::NamedTensor> tensors{{"x", ferrite::arange(1000)}};
  for (const Format& format : kFormats) {
    BOOST_TEST_CONTEXT(format.name) {
      Bytes bytes = format.written(tensors);
      const io::TensorFile copy = [&] {
        const io::TensorFile file = format.parsed(std::move(bytes));
        return file;
      }();
      BOOST_TEST(bytes.empty());
      BOOST_TEST(support::identical(copy.tensor("x"), tensors[0].tensor));
      BOOST_TEST(copy.where() == format.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(bytes_of_a_damaged_file_stay_where_they_were) {
  for (const Format& format : kFormats) {
    BOOST_TEST_CONTEXT(format.name) {
      Bytes bytes(100, std::byte{1});
      BOOST_CHECK_THROW(format.parsed(std::move(bytes)), ferrite::IoError);
      BOOST_TEST(bytes.size() == 100U);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
