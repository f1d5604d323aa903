// float16 and bfloat16 compared with PyTorch 2.13: tests/data/make_half_fixtures.py writes the checksums.
#include <zlib.h>

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "ferrite/tensor/dtype.h"
#include "support/fixtures.h"

using namespace ferrite;

namespace {

template <class T>
std::int64_t crc_of(const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const Bytef*>(values.data());
  return static_cast<std::int64_t>(crc32_z(crc32_z(0, nullptr, 0), bytes, values.size() * sizeof(T)));
}

template <class Half>
std::int64_t crc_to_float() {
  std::vector<std::uint32_t> bits;
  for (std::uint32_t pattern = 0; pattern < 65536; ++pattern) {
    const auto v = static_cast<float>(Half::from_bits(static_cast<std::uint16_t>(pattern)));
    bits.push_back(std::isnan(v) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(v));
  }
  return crc_of(bits);
}

/// Converts from float, or from the same number as a double.
template <class Half, class From>
std::int64_t crc_from() {
  std::vector<std::uint16_t> patterns;
  patterns.reserve(std::size_t{1} << 23);
  for (std::uint32_t k = 0; k < std::uint32_t{1} << 22; ++k)
    for (const std::uint32_t bits : {k << 10, (k << 10) + 1}) {
      const auto v = std::bit_cast<float>(bits);
      patterns.push_back(std::isnan(v) ? 0x7fffU : Half(static_cast<From>(v)).bits());
    }
  return crc_of(patterns);
}

template <class Half>
void check(const std::string& name) {
  const io::TensorFile file = support::fixture("halves.safetensors");
  BOOST_TEST(crc_to_float<Half>() == file.tensor(name + "/to_float").template item<std::int64_t>());
  const auto wanted = file.tensor(name + "/from_float").template item<std::int64_t>();
  BOOST_TEST((crc_from<Half, float>() == wanted));
  BOOST_TEST((crc_from<Half, double>() == wanted));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(halves)

BOOST_AUTO_TEST_CASE(float16_converts_as_pytorch_does) { check<float16>("f16"); }
BOOST_AUTO_TEST_CASE(bfloat16_converts_as_pytorch_does) { check<bfloat16>("bf16"); }

BOOST_AUTO_TEST_SUITE_END()
