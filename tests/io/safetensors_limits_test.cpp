/// Work and memory of reading headers that are made to be slow or large: instructions proportional to the header, and
/// at most ten times its bytes and 1 MiB.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <span>

#include "counting_new.h"
#include "ferrite/io/safetensors.h"
#include "hostile_safetensors.h"
#include "operations.h"
#include "support/sanitized.h"

namespace {

using ferrite::IoError;
using support::unless_sanitized;
namespace io = ferrite::io;

constexpr double kInstructionsAByte = 500;  // measured: 5 to 420
constexpr std::size_t kMost = 100'000'000;
constexpr std::size_t kLong = unless_sanitized(10'000'000, 1'000'000);

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::size_t cost_of(const std::string& file, bool legal) {
  std::size_t bytes = 0;
  operations::check_linear(file.size(), kInstructionsAByte, [&] {
    bytes = counting::peak([&] {
      if (legal)
        io::parse_safetensors(as_bytes(file));
      else
        BOOST_CHECK_THROW(io::parse_safetensors(as_bytes(file)), IoError);
    });
  });
  const double factor = static_cast<double>(bytes) / static_cast<double>(file.size());
  BOOST_TEST_MESSAGE(file.size() << " bytes: memory " << factor << " x");
  BOOST_TEST(bytes <= 10 * file.size() + (1u << 20));
  return bytes;
}

/// Returns a header of many tensors, with names in no order, padded by long names up to `bytes`.
std::string of_tensors(std::size_t count, std::size_t bytes) {
  const std::size_t padding = bytes / count > 90 ? bytes / count - 90 : 0;
  std::string header = "{";
  header.reserve(bytes + 1000);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string name = std::to_string((i * 2654435761u) % 4294967296u) + std::string(padding, 'p');
    const std::string begin = std::to_string(i * 4);
    header += (i > 0 ? ",\"" : "\"") + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[)" + begin + "," +
              std::to_string(i * 4 + 4) + "]}";
  }
  return header + "}";
}

/// Returns pieces repeated up to a size.
std::string filled(const std::string& head, const std::function<std::string(std::size_t)>& piece,
                   const std::string& tail, std::size_t bytes) {
  std::string out = head;
  out.reserve(bytes + 1000);
  for (std::size_t i = 0; out.size() + tail.size() < bytes - 100; ++i) out += (i > 0 ? "," : "") + piece(i);
  return out + tail;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(safetensors_limits)

BOOST_AUTO_TEST_CASE(a_million_tensors_in_100_mb) {
  const std::size_t count = unless_sanitized(1'000'000, 50'000);
  const std::string header = of_tensors(count, unless_sanitized(kMost - 4'000'000, std::size_t{5'000'000}));
  BOOST_TEST(header.size() <= kMost);
  const std::string file = hostile::file_of(header, std::string(4 * count, '\0'));
  BOOST_TEST(cost_of(file, true) > 0u);
}

BOOST_AUTO_TEST_CASE(the_smallest_entries) {
  const auto entry = [](std::size_t i) {
    return "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  };
  cost_of(hostile::file_of(filled("{", entry, "}", kLong)), true);
}

BOOST_AUTO_TEST_CASE(the_longest_shapes) {
  const auto entry = [](std::size_t i) {
    return "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[)" + hostile::repeated("0,", 63) +
           R"(0],"data_offsets":[0,0]})";
  };
  cost_of(hostile::file_of(filled("{", entry, "}", kLong)), true);
}

BOOST_AUTO_TEST_CASE(the_smallest_metadata) {
  const auto entry = [](std::size_t i) { return "\"" + std::to_string(i) + "\":\"\""; };
  cost_of(hostile::file_of(filled("{\"__metadata__\":{", entry, "}}", kLong)), true);
}

BOOST_AUTO_TEST_CASE(many_unknown_fields) {
  const auto field = [](std::size_t) { return std::string("\"\":[]"); };
  const std::string tail = R"(,"dtype":"U8","shape":[0],"data_offsets":[0,0]}})";
  cost_of(hostile::file_of(filled("{\"a\":{", field, tail, kLong)), true);
}

BOOST_AUTO_TEST_CASE(one_long_name) {
  cost_of(hostile::file_of("{" + hostile::byte_at(std::string(kLong, 'n'), "[0,1]") + "}", "x"), true);
}

BOOST_AUTO_TEST_CASE(one_long_string_that_does_not_end) {
  const std::size_t worst = 8'388'700;  // just above a power of two, where buffers that double waste most
  cost_of(hostile::file_of("{\"" + std::string(worst, 'n')), false);
}

BOOST_AUTO_TEST_CASE(one_long_number) {
  cost_of(hostile::one("\"U8\"", "[" + std::string(kLong, '9') + "]", "[0,1]", 1), false);
}

BOOST_AUTO_TEST_CASE(millions_of_nested_lists) {
  cost_of(hostile::one("\"U8\"", "[1],\"x\":" + std::string(kLong, '['), "[0,1]", 1), false);
}

BOOST_AUTO_TEST_CASE(a_small_file_takes_little) {
  const std::string file = hostile::file_of(hostile::kGood, std::string(16, '\0'));
  cost_of(file, true);
}

BOOST_AUTO_TEST_SUITE_END()
