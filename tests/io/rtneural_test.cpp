/// RTNeural's JSON: convolutions, norms and activations compared with PyTorch, and recurrent layers at other sample
/// rates with numpy.
#include <fstream>
#include <iterator>
#include <map>

#include "ferrite/io/rtneural.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/fixtures.h"

namespace {

using ferrite::IoError;
using ferrite::Tensor;
using ferrite::ValueError;
using support::identical;
using support::says;
using support::within;
namespace fs = std::filesystem;
namespace io = ferrite::io;
namespace nn = ferrite::nn;

fs::path fixtures() { return support::fixture_path("rtneural"); }
io::TensorFile expected() { return io::read_safetensors(fixtures() / "expected.safetensors"); }

std::unique_ptr<nn::Sequential> net(const std::string& name, double ratio = 1) {
  return io::read_rtneural(fixtures() / (name + ".json"), {.rate_ratio = ratio});
}
std::unique_ptr<nn::Sequential> parsed(const std::string& text) {
  return io::parse_rtneural(std::as_bytes(std::span(text)), "n.json");
}

Tensor input() { return ferrite::unsqueeze(expected().tensor("x"), 0); }
Tensor wanted(const std::string& name) { return ferrite::unsqueeze(expected().tensor(name), 0); }

Tensor streamed(const nn::Layer& l, const Tensor& x) {
  nn::Stream stream = l.stream();
  BOOST_TEST(stream.on_tensors() == 0u);
  const std::vector<float> in = x.to_vector<float>();
  std::vector<float> out(in.size());
  stream.steps(static_cast<std::int64_t>(in.size()), in, out);
  return Tensor::from<float>(out, x.shape());
}

const std::map<std::string, double> kRatios = {
    {"1", 1.0}, {"2", 2.0}, {"48", 48000.0 / 44100}, {"96", 96000.0 / 44100}, {"3", 3.0}};

}  // namespace

BOOST_AUTO_TEST_SUITE(rtneural)

BOOST_AUTO_TEST_CASE(convolutions_norms_and_activations_compute_what_pytorch_computes) {
  const auto n = net("conv");
  BOOST_TEST(n->size() == 12u);
  BOOST_TEST(within((*n)(input()), wanted("conv"), 1e-6));
  BOOST_TEST(identical(streamed(*n, input()), (*n)(input())));
}

/// Keras's Dense and Conv1D with use_bias=False, as in RTNeural's models/dense.json; the results are computed by hand.
BOOST_AUTO_TEST_CASE(layers_without_bias_are_read) {
  const auto n = parsed(R"({"in_shape": [null, 2], "layers": [
      {"type": "dense", "activation": "", "shape": [null, 3], "weights": [[[1, 2, 3], [4, 5, 6]]]},
      {"type": "conv1d", "activation": "relu", "shape": [null, 1], "kernel_size": [2], "dilation": [1],
       "weights": [[[[1], [0], [0]], [[0], [1], [-1]]]]}]})");
  BOOST_REQUIRE(n->size() == 3u);
  BOOST_TEST(!dynamic_cast<const nn::Linear&>((*n)[0]).bias.defined());
  BOOST_TEST(!dynamic_cast<const nn::CausalConv1d&>((*n)[1]).bias.defined());
  // Rows (1, 0) and (0, 1) become (1, 2, 3) and (4, 5, 6): 0 + 2 - 3, then 1 + 5 - 6.
  const Tensor y = (*n)(Tensor::from<float>({1, 0, 0, 1}, {1, 2, 2}));
  BOOST_TEST(y.to_vector<float>() == (std::vector<float>{0, 0}));
  const Tensor z = (*n)(Tensor::from<float>({1, -1, 0, -1}, {1, 2, 2}));  // (-3, -3, -3), (-4, -5, -6): 0, -3 + 1
  BOOST_TEST(z.to_vector<float>() == (std::vector<float>{0, 0}));
  const Tensor w = (*n)(Tensor::from<float>({-1, 0, 0, -1}, {1, 2, 2}));  // (-1, -2, -3), (-4, -5, -6): 1, -1 + 1
  BOOST_TEST(w.to_vector<float>() == (std::vector<float>{1, 0}));
  const auto again = parsed(io::serialize_rtneural(*n));  // with biases of zeros
  const Tensor x = ferrite::uniform({1, 5, 2}, {.seed = 1}, -1, 1);
  BOOST_TEST(identical((*again)(x), (*n)(x)));
  BOOST_CHECK_EXCEPTION(parsed(R"({"layers": [{"type": "gru", "weights": [[[1]], [[1]]]}]})"), IoError,
                        says("gru needs 3 arrays of weights, has 2"));
}

BOOST_AUTO_TEST_CASE(such_nets_are_written_again) {
  const auto n = net("conv");
  const std::string text = io::serialize_rtneural(*n);
  const auto again = parsed(text);
  BOOST_TEST(identical((*again)(input()), (*n)(input())));
  BOOST_TEST(io::serialize_rtneural(*again) == text);
  nn::Sequential strided;
  strided.add("a", std::make_unique<nn::CausalConv1d>(
                       nn::CausalConv1dOptions{.in_channels = 1, .out_channels = 1, .kernel_size = 2, .stride = 2},
                       nn::Init{.seed = 1}));
  BOOST_CHECK_EXCEPTION((void)io::serialize_rtneural(strided), IoError, says("a stride cannot be written"));
}

BOOST_AUTO_TEST_CASE(recurrent_layers_at_other_rates_compute_what_rtneural_computes) {
  for (const std::string kind : {"gru", "lstm"})
    for (const auto& [name, ratio] : kRatios) {
      BOOST_TEST_CONTEXT(kind << " at " << ratio) {
        const auto n = net(kind, ratio);
        const Tensor whole = (*n)(input());
        BOOST_TEST(within(whole, wanted(kind + "." + name), 1e-6));
        BOOST_TEST(identical(streamed(*n, input()), whole));
        BOOST_TEST(identical((*n->clone())(input()), whole));
        const nn::Carry carry(*n, 1);
        const Tensor first = (*n)(ferrite::slice(input(), 1, 0, 23), {.carry = &carry});
        const Tensor rest = (*n)(ferrite::slice(input(), 1, 23, 60), {.carry = &carry});
        BOOST_TEST(identical(ferrite::concat({first, rest}, 1), whole));
      }
    }
}

BOOST_AUTO_TEST_CASE(a_corrected_net_is_written_without_its_correction) {
  BOOST_TEST(io::serialize_rtneural(*net("lstm", 2)) == io::serialize_rtneural(*net("lstm")));
}

BOOST_AUTO_TEST_CASE(a_ratio_of_one_is_the_layer_itself) {
  const auto corrected = std::make_unique<io::RateCorrected>(std::make_unique<nn::Gru>(1, 3, nn::Init{.seed = 1}), 1.0);
  BOOST_TEST(within((*corrected)(input()), corrected->layer()(input()), 1e-6));
}

BOOST_AUTO_TEST_CASE(wrong_ratios_and_layers_are_refused) {
  for (const double ratio : {0.0, 0.5, 64.5, -1.0, static_cast<double>(NAN)}) {
    BOOST_CHECK_EXCEPTION((void)net("gru", ratio), ValueError, says("rate_ratio must be from 1 to 64"));
    BOOST_CHECK_THROW(io::RateCorrected(std::make_unique<nn::Gru>(1, 2), ratio), ValueError);
  }
  BOOST_CHECK_THROW(io::RateCorrected(nullptr, 2), ValueError);
  BOOST_CHECK_THROW(io::RateCorrected(std::make_unique<nn::Gru>(1, 2, nn::GruOptions{.layers = 2}), 2), ValueError);
  BOOST_CHECK_THROW(io::RateCorrected(std::make_unique<nn::Gru>(1, 2, nn::GruOptions{.bidirectional = true}), 2),
                    ValueError);
  const auto n = net("gru", 2);
  BOOST_CHECK_EXCEPTION((*n)(input(), {.lengths = Tensor::from<std::int64_t>({5})}), ValueError,
                        says("takes sequences of one length"));
}

BOOST_AUTO_TEST_CASE(hostile_layers_are_refused_in_one_sentence) {
  const auto refused = [](const std::string& fields, const char* message) {
    const std::string text = "{\"in_shape\": [null, null, 1], \"layers\": [{" + fields + "}]}";
    BOOST_TEST_CONTEXT(fields) { BOOST_CHECK_EXCEPTION((void)parsed(text), IoError, says(message)); }
  };
  const auto conv = [&](const std::string& more, const char* message) {
    refused("\"type\": \"conv1d\", \"weights\": [[[[1, 2]], [[3, 4]]], [1, 2]]" + more, message);
  };
  conv("", "n.json: layer 0: a conv1d has no 'kernel_size'");
  conv(", \"kernel_size\": [2]", "a conv1d has no 'dilation'");
  conv(", \"kernel_size\": [3], \"dilation\": 1", "the kernel_size is 3, the weights have shape [2, 1, 2]");
  conv(", \"kernel_size\": 2, \"dilation\": 0", "'dilation' is no size from 1 to 1000000");
  conv(", \"kernel_size\": 2, \"dilation\": 1.5", "'dilation' is no size from 1 to 1000000");
  conv(", \"kernel_size\": 2, \"dilation\": 1e30", "'dilation' is no size from 1 to 1000000");
  conv(", \"kernel_size\": 2, \"dilation\": 1, \"groups\": 3", "3 groups do not divide 2 channels");
  conv(", \"kernel_size\": 2, \"dilation\": 1, \"strides\": 3", "a conv1d with strides of 3 is not supported");
  conv(", \"kernel_size\": 2, \"dilation\": 1, \"padding\": \"same\"", "the padding 'same' is not supported");
  refused("\"type\": \"conv1d\", \"kernel_size\": 1, \"dilation\": 1, \"weights\": [[[[1, 2]]], [1]]",
          "weights 1 have shape [1], must be [2]");
  refused("\"type\": \"conv1d\", \"weights\": [[[1]], [1]]", "weights 0 are no kernel of three axes");
  refused("\"type\": \"conv2d\", \"weights\": []", "the type 'conv2d' is not supported");
  refused("\"type\": \"batchnorm2d\", \"weights\": []", "the type 'batchnorm2d' is not supported");
  refused("\"type\": \"prelu\", \"weights\": [[1]]", "weights 0 are no matrix");
  refused("\"type\": \"prelu\", \"weights\": [[[1], [2]]]", "a prelu's weights have shape [2, 1], not [1, C]");
  refused("\"type\": \"batchnorm\", \"weights\": [[1], [1]]", "a batchnorm has no 'epsilon' of 0 or more");
  refused("\"type\": \"batchnorm\", \"epsilon\": -1, \"weights\": [[1], [1]]", "no 'epsilon' of 0 or more");
  refused("\"type\": \"batchnorm\", \"epsilon\": 1, \"weights\": [[1], [1], [1]]",
          "batchnorm needs 4 arrays of weights, has 3");
  refused("\"type\": \"batchnorm\", \"epsilon\": 1, \"weights\": [[1], [1, 2]]",
          "weights 1 have shape [2], must be [1]");
  refused("\"type\": \"batchnorm\", \"epsilon\": 1, \"weights\": [[], []]", "a batchnorm has no channels");
}

BOOST_AUTO_TEST_SUITE_END()
