/// GuitarML's files: compared with PyTorch's results, streamed, and refused if their contents contradict their header.
#include <fstream>
#include <iterator>

#include "ferrite/io/any_file.h"
#include "ferrite/io/guitarml.h"
#include "ferrite/io/json_weights.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/fixtures.h"

namespace {

using ferrite::IoError;
using ferrite::Tensor;
using support::identical;
using support::says;
using support::within;
namespace fs = std::filesystem;
namespace io = ferrite::io;
namespace nn = ferrite::nn;

fs::path fixtures() { return support::fixture_path("guitarml"); }
io::TensorFile expected() { return io::read_safetensors(fixtures() / "expected.safetensors"); }
const std::vector<std::string> kNets = {"lstm", "gru", "knob", "deep"};
std::unique_ptr<io::GuitarmlNet> net(const std::string& name) {
  return io::read_guitarml(fixtures() / (name + ".json"));
}

Tensor input(const io::GuitarmlNet& n) { return ferrite::slice(expected().tensor("x"), -1, 0, n.options().input_size); }

std::string content(const std::string& name) {
  std::ifstream in(fixtures() / (name + ".json"), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(guitarml)

BOOST_AUTO_TEST_CASE(nets_compute_what_pytorch_computes) {
  for (const std::string& name : kNets) BOOST_TEST_CONTEXT(name) {
      const auto n = net(name);
      BOOST_TEST(within((*n)(input(*n)), expected().tensor(name), 1e-6));
    }
}

BOOST_AUTO_TEST_CASE(streams_and_pieces_have_the_bits_of_the_whole) {
  for (const std::string& name : kNets) {
    BOOST_TEST_CONTEXT(name) {
      const auto n = net(name);
      const Tensor x = input(*n), whole = (*n)(x);
      nn::Stream stream = n->stream();
      BOOST_TEST(stream.on_tensors() == 0u);
      const std::vector<float> in = ferrite::contiguous(x).to_vector<float>();
      std::vector<float> out(50);
      stream.steps(50, in, out);
      BOOST_TEST(identical(Tensor::from<float>(out, whole.shape()), whole));
      const nn::Carry carry(*n, 1);
      const Tensor first = (*n)(ferrite::slice(x, 1, 0, 20), {.carry = &carry});
      const Tensor rest = (*n)(ferrite::slice(x, 1, 20, 50), {.carry = &carry});
      BOOST_TEST(identical(ferrite::concat({first, rest}, 1), whole));
      BOOST_TEST(identical((*n->clone())(x), whole));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_weights_alone_are_read_with_what_the_file_says_of_them) {
  const io::TensorFile file = io::read_tensors(fixtures() / "gru.json");
  BOOST_TEST(file.size() == 6u);
  BOOST_TEST(file.tensor("rec.weight_ih_l0").shape().str() == "[12, 1]");
  BOOST_TEST(file.metadata().at("unit_type") == "GRU");
  BOOST_TEST(file.metadata().at("hidden_size") == "4");
}

BOOST_AUTO_TEST_CASE(plain_weights_may_have_the_names_of_the_wrapper) {
  const std::string text = R"({"state_dict": [1], "model_data": [2, 3]})";
  BOOST_TEST(io::parse_json_weights(std::as_bytes(std::span(text))).tensor("model_data").shape().str() == "[2]");
}

/// CoreAudioML writes such files with bias_fl = False. Without the bias the same file computes less by that bias.
BOOST_AUTO_TEST_CASE(a_product_without_a_bias_is_read) {
  std::string text = content("lstm");
  const auto parse = [&] { return io::parse_guitarml(std::as_bytes(std::span(text)), "g.json"); };
  const auto whole = parse();
  const std::size_t at = text.rfind(',', text.find("\"lin.bias\""));
  text.erase(at, text.find(']', at) + 1 - at);
  const auto without = parse();
  BOOST_TEST(!without->lin().bias.defined());
  const Tensor x = ferrite::uniform({1, 9, 1}, {.seed = 1}, -1, 1);
  whole->lin().bias.assign(ferrite::zeros({1}));
  BOOST_TEST(support::within((*without)(x), (*whole)(x), 1e-6));
}

BOOST_AUTO_TEST_CASE(what_is_no_such_file_is_refused) {
  const std::string good = content("lstm");
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& message) {
    std::string text = good;
    const std::size_t at = text.find(from);
    BOOST_REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    BOOST_TEST_CONTEXT(to) {
      BOOST_CHECK_EXCEPTION((void)io::parse_guitarml(std::as_bytes(std::span(text)), "g.json"), IoError,
                            says("g.json: " + message));
    }
  };
  refused("SimpleRNN", "RecNet", "model_data: the model 'RecNet' is not supported");
  refused("\"LSTM\"", "\"RNN\"", "model_data: the unit_type 'RNN' is not supported");
  refused("\"LSTM\"", "\"GRU\"", "'rec.weight_ih_l0' has shape [20, 1], the sizes of model_data need [15, 1]");
  refused("\"skip\": 1", "\"skip\": 2", "model_data: 'skip' is neither 0 nor the size of the output: 2");
  refused("\"skip\": 1", "\"skip\": 0.5", "model_data: 'skip' is no size: '0.5'");
  refused("\"skip\": 1", "\"skip\": null", "model_data: 'skip' is no size: ''");
  refused("\"skip\": 1", "\"skip\": [1]", "model_data: 'skip' is no size: 'a list'");
  refused("\"hidden_size\": 5", "\"hidden_size\": 6", "'rec.weight_ih_l0' has shape [20, 1]");
  refused("\"hidden_size\": 5", "\"hidden_size\": 100000000", "model_data: 'hidden_size' is no size");
  refused("\"num_layers\": 1", "\"num_layers\": 2", "state_dict has no 'rec.weight_ih_l1'");
  refused("\"num_layers\": 1", "\"num_layers\": 1, \"clip\": 3", "model_data: the key 'clip' is not supported");
  refused("\"num_layers\": 1", "\"num_layers\": 1, \"skip\": 1", "the key 'skip' occurs twice");
  refused("\"lin.bias\"", "\"lin.bias\": [0], \"more\"", "state_dict has 7 tensors, the sizes need 6");
  refused("\"lin.bias\"", "\"lin.weight\"", "the key 'lin.weight' occurs twice");
  refused("\"state_dict\"", "\"weights\"", "'model_data' is not made of numbers");
  refused("\"model_data\": {", "\"model_data\": {}, \"x\": {", "has no 'model_data' and 'state_dict'");
  refused("\"state_dict\": {", "\"state_dict\": {\"a\": {}, ", "'a' is not made of numbers");
  refused("{\"model_data\"", "[{\"model_data\"", "is not JSON");
}

BOOST_AUTO_TEST_CASE(wrong_options_are_refused) {
  using ferrite::ValueError;
  BOOST_CHECK_THROW(io::GuitarmlNet({.hidden_size = 0}), ValueError);
  BOOST_CHECK_THROW(io::GuitarmlNet({.skip = 2}), ValueError);
}

BOOST_AUTO_TEST_SUITE_END()
