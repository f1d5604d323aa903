/// The folders around frozen nets: their files, the names in them, and the nets that they refuse. scripts/test-freeze
/// compiles and runs them.
#include <boost/test/unit_test.hpp>

#include "ferrite/dsl/builder.h"
#include "ferrite/exchange/freeze_folders.h"
#include "support/compare.h"

using namespace ferrite;

namespace {

exchange::FrozenNet frozen_gru(const std::string& name) {
  return exchange::freeze(dsl::sequence(2).gru(4).linear(1).build(1), {1, 2, Dtype::f32}, {.name = name});
}

std::vector<std::string> names_of(const std::map<std::string, std::string>& files) {
  std::vector<std::string> names;
  for (const auto& [path, text] : files) names.push_back(path);
  return names;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(frozen_folders)

BOOST_AUTO_TEST_CASE(arduino) {
  const exchange::FrozenNet net = frozen_gru("door_bell_");
  const auto files = exchange::arduino_folder(net, "door_bell_");
  const std::vector<std::string> expected = {"examples/Stream/Stream.ino", "library.json", "library.properties",
                                             "src/door_bell_.c", "src/door_bell_.h"};
  BOOST_TEST(names_of(files) == expected, boost::test_tools::per_element());
  BOOST_TEST(files.at("src/door_bell_.c") == net.source);
  BOOST_TEST(files.at("src/door_bell_.h") == net.header);
  BOOST_TEST(contains(files.at("library.properties"), "name=door_bell_\n"));
  BOOST_TEST(contains(files.at("library.properties"), "of 2 inputs and 1 output,"));
  BOOST_TEST(contains(files.at("library.json"), "\"name\": \"door-bell\""));  // PlatformIO's names
  BOOST_TEST(contains(files.at("examples/Stream/Stream.ino"), "door_bell__step(&stream, x, y)"));
  BOOST_TEST(contains(files.at("examples/Stream/Stream.ino"), "x[DOOR_BELL__INPUTS]"));
}

BOOST_AUTO_TEST_CASE(browser) {
  const auto files = exchange::browser_folder(frozen_gru("echo"), "echo");
  const std::vector<std::string> expected = {"README.md", "echo.c",      "echo.d.ts",  "echo.h",
                                             "echo.js",   "echo_wasm.c", "index.html", "worklet.js"};
  BOOST_TEST(names_of(files) == expected, boost::test_tools::per_element());
  for (const auto& [path, text] : files) BOOST_TEST((path == "echo.c" || !contains(text, "@")), path);
  BOOST_TEST(contains(files.at("worklet.js"), "from \"./echo.js\""));
  BOOST_TEST(contains(files.at("echo_wasm.c"), "return ECHO_INPUTS;"));
}

BOOST_AUTO_TEST_CASE(refusals) {
  const exchange::FrozenNet net = frozen_gru("echo");
  BOOST_CHECK_THROW(exchange::arduino_folder(net), ValueError);  // its name is another
  const std::string longest(50, 'a'), longer(51, 'a');
  BOOST_TEST(exchange::arduino_folder(frozen_gru(longest), longest).size() == 5U);
  BOOST_CHECK_THROW(exchange::arduino_folder(frozen_gru(longer), longer), ValueError);

  const auto doubles = exchange::freeze(dsl::sequence(2).gru(4).build(1, Dtype::f64), {1, 2, Dtype::f64});
  BOOST_CHECK_THROW(exchange::arduino_folder(doubles), ValueError);
  BOOST_CHECK_THROW(exchange::browser_folder(doubles), ValueError);
  const std::vector<Spec> two{{{3}}, {{3}}};
  const auto program = exchange::freeze([](const Tensors& in) { return Tensors{in[0] + in[1]}; }, two);
  BOOST_CHECK_THROW(exchange::browser_folder(program), ValueError);

  // A net that strides gives no output at some steps: the example of Arduino skips them, the module has no such steps.
  const auto strides =
      exchange::freeze(dsl::sequence(2).causal_conv1d(3, 4, {.stride = 2}).linear(1).build(1), {1, 2, Dtype::f32});
  BOOST_TEST(exchange::arduino_folder(strides).size() == 5U);
  BOOST_CHECK_THROW(exchange::browser_folder(strides), ValueError);
}

BOOST_AUTO_TEST_SUITE_END()
