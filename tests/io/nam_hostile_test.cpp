/// Hostile `.nam` files: every cut and every flipped bit of a sound one, limits, and the memory that reading takes.
/// With FERRITE_WRITE_CORPUS=<folder> small ones are written to nam/ there, as seeds for tests/fuzz/nam_fuzz.cpp.
#include <span>

#include "counting.h"
#include "ferrite/io/nam.h"
#include "hostile_suite.h"

namespace {

using ferrite::IoError;
using hostile_suite::Case;
using hostile_suite::Verdict;
namespace io = ferrite::io;

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }

std::string repeated(const std::string& text, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += text;
  return out;
}

/// Returns a model of an LSTM of one unit: 4 * 2 + 6 + 2 weights.
std::string lstm(const std::string& weights, const std::string& more = "") {
  return R"({"version": "0.5.4", "architecture": "LSTM", "config": {"input_size": 1, "hidden_size": 1,)"
         R"( "num_layers": 1}, "weights": )" +
         weights + more + "}";
}
const std::string kWeights = "[1, 2, 3, 4, 5, 6, 7, 8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]";

std::string wavenet(const std::string& array, const std::string& weights) {
  return R"({"version": "0.5.4", "architecture": "WaveNet", "config": {"layers": [)" + array +
         R"(], "head": null, "head_scale": 1}, "weights": )" + weights + "}";
}
std::string container(const std::string& models) {
  return R"({"version": "0.7.0", "architecture": "SlimmableContainer", "config": {"submodels": [)" + models +
         R"(]}, "weights": []})";
}

std::vector<Case> all() {
  using enum Verdict;
  const std::string array = R"({"input_size": 1, "condition_size": 1, "head_size": 1, "channels": 1, "kernel_size": 1,)"
                            R"( "dilations": [1], "activation": "Tanh", "gated": false, "head_bias": false})";
  std::string nested = lstm(kWeights);
  for (int i = 0; i < 8; ++i) nested = container(R"({"max_value": 1, "model": )" + nested + "}");
  return {
      {"good", lstm(kWeights), legal, ""},
      {"good_wavenet", wavenet(array, "[1, 2, 3, 4, 5, 6, 7, 8]"), legal, ""},
      {"good_container", container(R"({"max_value": 1, "model": )" + lstm(kWeights) + "}"), legal, ""},
      {"unknown_keys_of_the_root", lstm(kWeights, R"(, "x": [1, {"y": null}])"), legal, ""},
      {"empty", "", refused, "is not JSON"},
      {"a_list", "[]", refused, "is no JSON object"},
      {"an_empty_object", "{}", refused, "has no 'version'"},
      {"no_utf8", "{\"\xff\": 1}", refused, "is not UTF-8: byte 2"},
      {"two_objects", lstm(kWeights) + "{}", refused, "is not JSON"},
      {"key_twice", lstm(kWeights, R"(, "version": "0.5.4")"), refused, "the key 'version' occurs twice"},
      {"weights_twice", lstm(kWeights, ", \"weights\": []"), refused, "the key 'weights' occurs twice"},
      {"levels_33", lstm(kWeights, ", \"x\": " + repeated("[", 40) + repeated("]", 40)), refused,
       "is nested deeper than 32 levels"},
      {"levels_100000", repeated("[", 100000), refused, "is no JSON object"},
      {"containers_in_containers", nested, refused, "is nested deeper than 32 levels"},
      {"values_8193", lstm(kWeights, ", \"x\": [" + repeated("0,", 8192) + "0]"), refused, "has more than 8192 values"},
      {"no_weights", lstm("[]"), refused, "has 0 weights, its sizes need 16"},
      {"weights_null", lstm("null"), refused, "has no 'weights'"},
      {"weights_an_object", lstm("{}"), refused, "'weights' are no list of numbers"},
      {"weights_nested", lstm("[[1]]"), refused, "'weights' are no list of numbers"},
      {"weights_of_text", lstm("[\"1\"]"), refused, "'weights' are no list of numbers"},
      {"weights_with_a_nan", lstm("[NaN]"), refused, "is not JSON"},
      {"weights_of_1e999", lstm("[1e999]"), refused, "a number is too large"},
      {"weights_of_1e39", lstm("[1e39]"), refused, "a weight does not fit f32"},
      {"text_of_65536", lstm(kWeights, ", \"x\": \"" + std::string(65536, 'x') + "\""), legal, ""},
      {"text_of_65537", lstm(kWeights, ", \"x\": \"" + std::string(65537, 'x') + "\""), refused,
       "a text is longer than 65536 bytes"},
      {"weights_of_1001_digits", lstm("[" + std::string(1001, '1') + "]"), refused,
       "a number is longer than 1000 bytes"},
      {"config_a_list", R"({"version": "0.5.4", "architecture": "LSTM", "config": [], "weights": []})", refused,
       "config: is no object"},
      {"architecture_a_number", R"({"version": "0.5.4", "architecture": 1, "config": {}, "weights": []})", refused,
       "'architecture' is no text"},
      {"metadata_a_text", lstm(kWeights, R"(, "metadata": "x")"), refused, "'metadata' is no object"},
      {"layers_empty", wavenet("", "[1]"), refused, "layers: is no list"},
      {"layers_of_numbers", wavenet("1", "[1]"), refused, "layers 0: is no object"},
      {"container_empty", container(""), refused, "submodels: is not a list of models"},
      {"container_of_numbers", container("1"), refused, "submodels 0: is no object"},
      {"container_without_a_model", container(R"({"max_value": 1})"), refused, "has no 'model'"},
  };
}

void check(const Case& c) {
  if (c.verdict == Verdict::legal) {
    const io::NamModel m = io::parse_nam(bytes_of(c.bytes), "x.nam");
    BOOST_TEST((*m.layer)(ferrite::zeros({1, 3, 1})).shape().str() == "[1, 3, 1]");
    io::parse_nam(bytes_of(io::serialize_nam(m)));
    return;
  }
  BOOST_CHECK_EXCEPTION(io::parse_nam(bytes_of(c.bytes), "x.nam"), IoError, hostile_suite::says("x.nam", c.message));
}

void check_all_cuts() {
  const std::string whole = lstm(kWeights);
  for (std::size_t n = 0; n < whole.size(); ++n)
    BOOST_CHECK_THROW(io::parse_nam(bytes_of(whole.substr(0, n))), IoError);
}

void check_all_flips() {
  const std::string whole = lstm(kWeights);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      try {
        io::parse_nam(bytes_of(flipped));
      } catch (const IoError& error) {
        BOOST_TEST(std::string(error.what()).starts_with("nam"));
      }
    }
  }
}

/// Checks that a refused file takes at most twice its bytes and 1 MiB, whatever sizes it declares.
void check_memory() {
  const std::string wide = R"({"input_size": 1, "condition_size": 1, "head_size": 1, "channels": 2000000000,)"
                           R"( "kernel_size": 1, "dilations": [1], "activation": "Tanh", "head_bias": false})";
  for (const std::string& bytes :
       {lstm("[" + repeated("0,", 1'000'000) + "0]"), wavenet(wide, "[1, 2]"),
        lstm(kWeights, ", \"x\": [" + repeated("[],", 8000) + "0"),
        lstm(kWeights, ", \"x\": \"" + std::string(3'000'000, 'x')),
        lstm(kWeights, ", \"x\": \"" + repeated("\\\\", 30'000) + std::string(30'000, '['))}) {
    const std::size_t most = counting::peak([&] { BOOST_CHECK_THROW(io::parse_nam(bytes_of(bytes)), IoError); });
    BOOST_TEST_MESSAGE(bytes.size() << " bytes: " << most << " of memory");
    BOOST_TEST(most <= 2 * bytes.size() + (std::size_t{1} << 20));
  }
}

bool register_cases() {
  static const std::vector<Case> cases = all();
  hostile_suite::NamedTests tests;
  for (const Case& c : cases) {
    if (c.bytes.size() < 2000) hostile_suite::write_seed("nam", c.name, c.bytes);
    tests.emplace_back(c.name, [&c] { check(c); });
  }
  tests.emplace_back("every_cut", check_all_cuts);
  tests.emplace_back("every_flip", check_all_flips);
  tests.emplace_back("memory", check_memory);
  return hostile_suite::add_suite("nam_hostile", tests);
}

const bool registered = register_cases();

}  // namespace
