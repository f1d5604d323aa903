// Files of whole nets: recognised by their contents, written with words, and refused where they hold something else.
#include "ferrite/train/net_file.h"

#include <fstream>

#include "ferrite/io/guitarml.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/nam.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/text_file.h"
#include "ferrite/train/words.h"
#include "io/temporary_folder.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::identical;
using support::says;
namespace fs = std::filesystem;

namespace {

constexpr const char* kWords = "sequence(2).gru(5).batch_norm().linear(3)";

/// Checks that a file of another program is read as its own reader reads it.
void check_read(const fs::path& path, const std::string& format, const nn::Layer& expected,
                std::optional<double> rate) {
  BOOST_TEST_CONTEXT(path.filename().string()) {
    const train::NetFile file = train::read_net(path);
    BOOST_TEST(file.format == format);
    BOOST_TEST((file.rate == rate));
    const Tensor x = uniform({1, 30, expected.step_input().width}, {.seed = 1}, -1, 1);
    BOOST_TEST(identical((*file.net)(x), expected(x)));
    BOOST_TEST(!file.net->training());
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(net_file)

BOOST_AUTO_TEST_CASE(formats_are_recognised_by_their_contents) {
  const fs::path guitarml = support::fixture_path("guitarml") / "lstm.json";
  check_read(guitarml, "guitarml", *io::read_guitarml(guitarml), {});
  const fs::path rtneural = support::fixture_path("rtneural") / "gru.json";
  const auto expected = io::read_rtneural(rtneural);
  expected->eval();
  check_read(rtneural, "rtneural", *expected, {});
  const fs::path nam = support::fixture_path("nam") / "lstm.nam";
  const io::NamModel model = io::read_nam(nam);
  check_read(nam, "nam", *model.layer, model.sample_rate);
}

/// The rate, the running statistics and the weights come back; the net that is read does not train.
BOOST_AUTO_TEST_CASE(a_net_is_written_and_read) {
  const io_test::TemporaryFolder folder;
  const fs::path path = folder / "net.safetensors";
  const dsl::Network net = train::parse_words(kWords).build(3);
  const Tensor x = uniform({4, 6, 2}, {.seed = 1}, -1, 1);
  (void)net(x);  // moves the running statistics
  train::save_net(net, kWords, path, {.rate = 44100});
  net.eval();
  const train::NetFile file = train::read_net(path);
  BOOST_TEST(file.format == "ferrite");
  BOOST_TEST(file.rate.value() == 44100);
  BOOST_TEST(!file.net->training());
  BOOST_TEST(identical((*file.net)(x), net(x)));
  BOOST_TEST(identical(train::read_network(path)(x), net(x)));
  const std::string text = io::read_text(path);
  BOOST_TEST(identical((*train::parse_net(std::as_bytes(std::span(text))).net)(x), net(x)));
  train::save_net(net, kWords, path, {.metadata = {{"threshold", "0.3"}}});
  BOOST_TEST(!train::read_net(path).rate.has_value());
  BOOST_TEST(io::read_safetensors(path).metadata().at("threshold") == "0.3");
  BOOST_CHECK_EXCEPTION(train::save_net(net, kWords, path, {.metadata = {{"ferrite.rate", "3"}}}), ValueError,
                        says("save_net: the metadata 'ferrite.rate' is of the kind that it writes itself"));
}

BOOST_AUTO_TEST_CASE(words_that_describe_another_net_are_refused) {
  const io_test::TemporaryFolder folder;
  const fs::path path = folder / "net.safetensors";
  const dsl::Network net = train::parse_words(kWords).build(3);
  for (const char* words : {"sequence(2).gru(6).batch_norm().linear(3)", "sequence(2).lstm(5).batch_norm().linear(3)",
                            "sequence(2).gru(5).layer_norm().linear(3)", "sequence(2).gru(5).linear(3)",
                            "sequence(2).gru(5).batch_norm().relu().linear(3)"})
    BOOST_CHECK_EXCEPTION(train::save_net(net, words, path), ValueError, says("save_net: the words do not describe"));
  BOOST_CHECK_EXCEPTION(train::save_net(net, "sequence(2).grru(5)", path), ValueError, says("did you mean 'gru'?"));
  for (const double rate : {0.0, -1.0, 1.0 / 0.0, std::nan("")})
    BOOST_CHECK_EXCEPTION(train::save_net(net, kWords, path, {.rate = rate}), ValueError,
                          says("rate must be positive"));
  BOOST_TEST(!fs::exists(path));
}

BOOST_AUTO_TEST_CASE(other_files_are_refused) {
  const io_test::TemporaryFolder folder;
  const fs::path path = folder / "net";
  const auto refused = [&](const std::string& words) {
    BOOST_CHECK_EXCEPTION((void)train::read_net(path), IoError, says(words));
  };
  const dsl::Network net = train::parse_words(kWords).build(3);
  const fs::path safetensors = folder / "net.safetensors";
  const auto refused_with = [&](const io::Metadata& metadata, const std::string& words) {
    io::save(net, safetensors, {.metadata = metadata});
    fs::copy_file(safetensors, path, fs::copy_options::overwrite_existing);
    refused(words);
  };
  refused_with({}, "does not say what net it is of");
  refused_with({{"ferrite.net", "sequence(2).gru(6).batch_norm().linear(3)"}}, "shape");
  for (const char* rate : {"fast", "0", "-3", "inf", "44100 Hz", ""})
    refused_with({{"ferrite.net", kWords}, {"ferrite.rate", rate}},
                 "the metadata ferrite.rate is not a positive number");
  io::save(net, safetensors, {.metadata = {{"ferrite.net", "sequence(2).grru(5)"}}});
  BOOST_CHECK_EXCEPTION((void)train::read_net(safetensors), IoError, says("did you mean 'gru'?"));
  io::save(net, safetensors, {.metadata = {{"ferrite.net", "sequence(1).linear(300000000)"}}});
  BOOST_CHECK_EXCEPTION((void)train::read_net(safetensors), IoError, says("describes no net of this file"));
  for (const char* text : {"", "{", "{}", "[]", "no net", "{\"architecture\": 1}", "{\"model_data\": 1}"}) {
    io::write_text(path, text);
    refused(path.string());
  }
  BOOST_CHECK_THROW((void)train::read_net(folder / "missing.nam"), IoError);
  BOOST_CHECK_THROW((void)train::read_network(support::fixture_path("nam") / "lstm.nam"), IoError);
}

/// Numbers that decide what a layer computes and do not show in its shapes, functions, and the type of the weights.
BOOST_AUTO_TEST_CASE(words_say_all_that_the_net_is) {
  const io_test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "net.safetensors";
  const auto refused = [&](const std::string& net, const std::string& words, Dtype dtype = Dtype::f32) {
    BOOST_CHECK_EXCEPTION(train::save_net(train::parse_words(net).build(1, dtype), words, path), ValueError,
                          says("the words do not describe the net"));
  };
  refused("sequence(1).causal_conv1d(4, 3, 8)", "sequence(1).causal_conv1d(4, 3, 4)");
  refused("sequence(1).linear(4).tanh()", "sequence(1).linear(4).relu()");
  refused("sequence(1).linear(4)", "sequence(1).linear(4)", Dtype::f64);
}

/// What a key inside of a file says does not matter.
BOOST_AUTO_TEST_CASE(formats_are_told_by_the_outermost_keys) {
  const std::string nam = io::read_text(support::fixture_path("nam") / "lstm.nam");
  std::string odd = nam;
  const std::size_t at = odd.find('{') + 1;
  odd.insert(at, "\"metadata\": {\"model_data\": {\"a\": [1, {\"layers\": \"}\\\"\"}]}}, ");
  const std::size_t other = odd.find("\"metadata\"", at + 20);
  if (other != std::string::npos) odd.replace(other, 10, "\"formerly\"");
  const train::NetFile file = train::parse_net(std::as_bytes(std::span(odd)));
  BOOST_TEST(file.format == "nam");
}

/// A safetensors file whose first byte is that of an opening brace.
BOOST_AUTO_TEST_CASE(a_length_that_looks_like_json_is_none) {
  std::string header = "{\"__metadata__\":{\"ferrite.net\":\"sequence(1).relu()\"}}";
  header.resize('{', ' ');
  std::string text(8, '\0');
  text[0] = '{';
  text += header;
  const train::NetFile file = train::parse_net(std::as_bytes(std::span(text)));
  BOOST_TEST(file.format == "ferrite");
  BOOST_TEST(identical((*file.net)(full({1, 2, 1}, -1)), zeros({1, 2, 1})));
}

BOOST_AUTO_TEST_SUITE_END()
