/// Work and memory of reading JSON are proportional to the text: many keys, many layers, many small lists.
#include "ferrite/io/json_weights.h"
#include "ferrite/io/rtneural.h"
#include "io/counting.h"
#include "io/operations.h"
#include "support/compare.h"

using namespace ferrite;
using support::says;
using support::unless_sanitized;

namespace {

constexpr double kInstructionsAByte = 800;  // measured: 100 to 330
constexpr std::size_t kLong = unless_sanitized(4'000'000, 200'000);

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Returns head, piece(0), piece(1), ... and tail, about `bytes` bytes long.
template <class Piece>
std::string filled(const std::string& head, Piece piece, const std::string& tail, std::size_t bytes = kLong) {
  std::string s = head;
  for (std::size_t i = 0; s.size() < bytes; ++i) s += (i ? "," : "") + piece(i);
  return s + tail;
}

/// Checks that f takes at most a multiple of the text's length, and 1 MiB, beyond the text.
template <class F>
void check_cost(const std::string& text, double most, F&& read) {
  std::size_t peak = 0;
  operations::check_linear(text.size(), kInstructionsAByte, [&] { peak = counting::peak(read); });
  const double times = static_cast<double>(peak) / static_cast<double>(text.size());
  BOOST_TEST_MESSAGE(text.substr(0, 40) << ": memory " << times << " x");
  BOOST_TEST(static_cast<double>(peak) <= most * static_cast<double>(text.size()) + (1 << 20), text.substr(0, 40));
}

void check_weights(const std::string& text, std::size_t tensors) {
  check_cost(text, 10, [&] { BOOST_TEST(io::parse_json_weights(bytes_of(text)).size() == tensors); });
}
void check_refused_weights(const std::string& text, const char* message) {
  check_cost(text, 10,
             [&] { BOOST_CHECK_EXCEPTION((void)io::parse_json_weights(bytes_of(text)), IoError, says(message)); });
}
void check_refused_net(const std::string& text, const char* message) {
  check_cost(text, 10,
             [&] { BOOST_CHECK_EXCEPTION((void)io::parse_rtneural(bytes_of(text)), IoError, says(message)); });
}

std::size_t commas(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), ','));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(json_limits)

BOOST_AUTO_TEST_CASE(hundreds_of_thousands_of_keys) {
  const auto key = [](std::size_t i) { return "\"" + std::to_string(i * 2654435761U % 4294967296U) + "\":"; };
  for (const char* value : {"0", "[]", "[1]", "[[[[[[[[1]]]]]]]]", "[1,2,3]"}) {
    const std::string text = filled(
        "{", [&](std::size_t i) { return key(i) + value; }, "}");
    check_weights(text, (commas(text) + 1) / (1 + commas(value)));
  }
  const std::string prefix(200, 'p');
  const std::string text = filled(
      "{", [&](std::size_t i) { return "\"" + prefix + std::to_string(i) + "\":0"; }, "}");
  check_weights(text, commas(text) + 1);
}

BOOST_AUTO_TEST_CASE(tensors_of_many_keys_are_found) {
  const std::string text = filled(
      "{", [](std::size_t i) { return "\"k" + std::to_string(i) + "\":[[" + std::to_string(i) + ",1]]"; }, "}",
      100'000);
  const io::TensorFile file = io::parse_json_weights(bytes_of(text));
  for (std::size_t i = 0; i < file.size(); i += 97) {
    const std::string name = "k" + std::to_string(i);
    BOOST_REQUIRE(file.names()[i] == name);
    BOOST_REQUIRE(support::identical(file.tensor(name), Tensor::from({static_cast<float>(i), 1.0F}, {1, 2})));
  }
  BOOST_TEST(!file.contains("k"));
  BOOST_CHECK_EXCEPTION((void)file.tensor("k"), IoError, says("no tensor of this name"));
}

BOOST_AUTO_TEST_CASE(long_lists_of_what_is_no_number) {
  for (const char* item : {"null", "\"\"", "{}", "[]", "[[]]", "true"}) {
    const std::string text = filled(
        "{\"a\":[0,", [&](std::size_t) { return std::string(item); }, "]}");
    check_refused_weights(text, "'a' is a ragged list");
  }
}

BOOST_AUTO_TEST_CASE(a_key_that_occurs_twice_among_many) {
  const auto key = [](std::size_t i) { return "\"" + std::to_string(i) + "\":0"; };
  check_refused_weights(filled("{", key, ",\"7\":1}"), "the key '7' occurs twice");
  check_refused_net(filled("{", key, ",\"7\":1}"), "the key '7' occurs twice");
}

BOOST_AUTO_TEST_CASE(what_a_net_does_not_need_costs_little) {
  const std::string dense = R"({"type":"dense","weights":[[[1]],[0]]})";
  const auto one = [&](const std::string& head, const char* item, const std::string& tail) {
    return filled(
        head, [&](std::size_t) { return std::string(item); }, tail);
  };
  for (const char* item : {"0", "null", "{}", "[]", "[[1],[2]]", "\"x\""}) {
    const std::string besides = one("{\"x\":[", item, "],\"layers\":[" + dense + "]}");
    check_cost(besides, 10, [&] { BOOST_TEST(io::parse_rtneural(bytes_of(besides))->size() == 1U); });
    const std::string inside = one("{\"layers\":[{\"x\":[", item, "],\"type\":\"dense\",\"weights\":[[[1]],[0]]}]}");
    check_cost(inside, 10, [&] { BOOST_TEST(io::parse_rtneural(bytes_of(inside))->size() == 1U); });
    check_refused_net(one("{\"layers\":[{\"type\":\"dense\",\"weights\":[", item, "]}]}"), "dense needs 2 arrays");
  }
  check_refused_net("{\"layers\":{\"a\":" + dense + "}}", "has no layers: 'layers' is empty or no list");
  check_refused_net("{\"layers\":[{\"type\":\"dense\",\"weights\":{\"a\":[[1]],\"b\":[0]}}]}", "has 0");
}

/// The layers themselves are the result, so only work limits their number.
BOOST_AUTO_TEST_CASE(thousands_of_layers) {
  for (const char* entry : {R"({"type":"dense","activation":"tanh","weights":[[[1]],[0]]})",
                            R"({"type":"gru","weights":[[[1,2,3]],[[1,2,3]],[1,2,3]]})"})
    for (const std::size_t bytes : {kLong / 40, kLong / 10}) {
      const std::string text = filled(
          "{\"layers\":[", [&](std::size_t) { return std::string(entry); }, "]}", bytes);
      operations::check_linear(text.size(), 2500,
                               [&] { BOOST_TEST(io::parse_rtneural(bytes_of(text))->size() > bytes / 100); });
    }
}

BOOST_AUTO_TEST_SUITE_END()
