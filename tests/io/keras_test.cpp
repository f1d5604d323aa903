/// Models of Keras, converted by scripts/keras_weights.py, compared with Keras's results.
#include <cmath>
#include <cstdlib>

#include "ferrite/dsl/builder.h"
#include "ferrite/io/keras.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/convolution.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "support/python.h"
#include "support/system.h"
#include "temporary_folder.h"

namespace {

using ferrite::Tensor;
using support::within;
namespace fs = std::filesystem;
namespace io = ferrite::io;
namespace nn = ferrite::nn;

/// Selects a backend for Keras: its default one may not be installed.
const bool kBackend = std::getenv("KERAS_BACKEND") || (support::set_environment("KERAS_BACKEND", "torch"), true);

struct Net : nn::Module {
  nn::Gru g{3, 4};
  nn::Lstm both{4, 2, nn::LstmOptions{.bidirectional = true}};
  nn::CausalConv1d conv{nn::CausalConv1dOptions{4, 6, 3, 2, 1, 2}};
  nn::BatchNorm1d norm{nn::BatchNormOptions{.num_features = 6, .epsilon = 1e-3, .channels_last = true}};
  nn::Linear out{6, 2};
  Net() { adopt("g", g), adopt("both", both), adopt("conv", conv), adopt("norm", norm), adopt("out", out); }
  Tensor operator()(const Tensor& x) const { return ferrite::tanh(out(norm(conv(both(g(x)))))); }
};

struct Plain : nn::Module {
  nn::Rnn r{3, 4};
  nn::Linear out{4, 2};
  Plain() { adopt("r", r), adopt("out", out); }
  Tensor operator()(const Tensor& x) const { return out(ferrite::select(r(x), 1, -1)); }
};

struct Inner : nn::Module {
  nn::Linear same_name{4, 4, {}, false};
  nn::LayerNorm norm{4, {}, 0.3};
  Inner() { adopt("same_name", same_name), adopt("norm", norm); }
};

/// The model that with_options of make_keras_fixtures.py builds, except for the numbers that a test changes.
struct WithOptions : nn::Module {
  struct Numbers {
    double scaled = 0.02, plain = 0.1;
    bool reset_after = false;
    std::int64_t dilation = 3, stride = 2;
    ferrite::ConvolutionPadding padding = ferrite::ConvolutionPadding::same;
  };
  nn::Embedding table{7, 2};
  nn::Conv1d same, valid;
  Inner inner;
  nn::Gru g{4, 4, nn::GruOptions{.bias = false}};
  nn::BatchNorm1d scaled, moved{nn::BatchNormOptions{.num_features = 4, .epsilon = 0.05, .channels_last = true}};
  nn::Gru both;
  nn::Lstm l{4, 4, nn::LstmOptions{.bias = false}};
  nn::Prelu prelu{nn::PreluOptions{.num_parameters = 4, .channels_last = true}};
  nn::CausalConv1d strided;
  nn::LayerNorm plain;
  nn::Linear each{4, 2};
  explicit WithOptions(const Numbers& n)
      : same(nn::ConvOptions{.in_channels = 5,
                             .out_channels = 4,
                             .kernel_size = {4},
                             .padding = n.padding,
                             .dilation = {n.dilation},
                             .bias = false,
                             .channels_last = true}),
        valid(nn::ConvOptions{
            .in_channels = 4, .out_channels = 4, .kernel_size = {2}, .stride = {2}, .channels_last = true}),
        scaled(nn::BatchNormOptions{.num_features = 4, .epsilon = n.scaled, .channels_last = true}),
        both(4, 2, nn::GruOptions{.bidirectional = true, .reset_after = n.reset_after}),
        strided(nn::CausalConv1dOptions{4, 4, 3, 1, n.stride}),
        plain(4, {}, n.plain) {
    adopt("table", table), adopt("same", same), adopt("inner", inner), adopt("g", g), adopt("scaled", scaled);
    adopt("both", both), adopt("moved", moved), adopt("l", l), adopt("prelu", prelu), adopt("strided", strided);
    adopt("plain", plain), adopt("valid", valid), adopt("each.same_name", each);
  }
  Tensor operator()(const Tensor& x, const Tensor& tokens) const {
    const Tensor y = inner.norm(inner.same_name(same(ferrite::concat({x, table(tokens)}, 2))));
    return each(valid(plain(strided(prelu(l(moved(both(scaled(g(y))))))))));
  }
};

void check_options(const fs::path& folder) {
  const io::TensorFile expected = io::read_safetensors(folder / "expected_options.safetensors");
  const WithOptions net({});
  io::load(net, io::from_keras(io::read_safetensors(folder / "options.safetensors")));
  net.eval();
  BOOST_TEST(within(net(expected.tensor("x"), expected.tensor("tokens")), expected.tensor("y"), 1e-6));
}

void check(const fs::path& folder) {
  const io::TensorFile expected = io::read_safetensors(folder / "expected.safetensors");
  const Net net;
  io::load(net, io::from_keras(io::read_safetensors(folder / "net.safetensors")));
  net.eval();
  BOOST_TEST(within(net(expected.tensor("x")), expected.tensor("y"), 1e-6));
  const Plain plain;
  io::load(plain, io::from_keras(io::read_safetensors(folder / "plain.safetensors")));
  BOOST_TEST(within(plain(expected.tensor("x")),
                    io::read_safetensors(folder / "expected_plain.safetensors").tensor("y"), 1e-6));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(keras)

BOOST_AUTO_TEST_CASE(weights_of_a_model_compute_what_keras_computes) { check(support::fixture_path("keras")); }

BOOST_AUTO_TEST_CASE(every_option_that_is_carried_computes_what_keras_computes) {
  check_options(support::fixture_path("keras"));
}

BOOST_AUTO_TEST_CASE(a_net_with_another_option_than_the_model_is_refused) {
  const io::TensorFile file =
      io::from_keras(io::read_safetensors(support::fixture_path("keras") / "options.safetensors"));
  const auto refuses = [&](const WithOptions::Numbers& numbers, const std::string& message) {
    const WithOptions net(numbers);
    for (const bool strict : {true, false})
      BOOST_CHECK_EXCEPTION(io::load(net, file, {.strict = strict}), ferrite::IoError, [&](const ferrite::IoError& e) {
        BOOST_TEST(std::string(e.what()).find(message) != std::string::npos, e.what());
        return true;
      });
    BOOST_TEST(net.plain.weight.peek().to_vector<float>() == std::vector<float>(4, 1.0F));  // nothing was loaded
  };
  refuses({.scaled = 1e-5},
          "'scaled.epsilon' is 0.02 in the file, 1e-05 in the model: build the layer with the file's");
  refuses({.plain = 0.1 * (1 + 1e-5)}, "'plain.epsilon' is 0.1 in the file");
  refuses({.reset_after = true}, "'both.reset_after' is 0 in the file, 1 in the model");
  refuses({.dilation = 2}, "'same.dilation' is 3 in the file, 2 in the model");
  refuses({.stride = 1}, "'strided.stride' is 2 in the file, 1 in the model");
  refuses({.padding = ferrite::ConvolutionPadding::causal}, "'same.padding_left' is 4 in the file, 9 in the model");
  refuses({.padding = {4}}, "'same.padding_right' is 5 in the file, 4 in the model");
  const WithOptions net({.plain = 0.1F});  // a program that keeps it as an f32
  io::load(net, file);
  io::load(net, file.renamed([](std::string_view name) { return "keras." + std::string(name); }), {.prefix = "keras."});
}

/// A file has a number of the model in another form; a file of PyTorch has none of them.
BOOST_AUTO_TEST_CASE(settings_in_other_forms) {
  const nn::LayerNorm norm(2);
  const Tensor two = ferrite::ones({2});
  const auto load = [&](const Tensor& epsilon) {
    io::load(norm, io::tensor_file_of({{"weight", two}, {"bias", two}, {"epsilon", epsilon}}, "k"));
  };
  load(ferrite::full({}, 1e-5, ferrite::Dtype::f64));
  load(ferrite::full({}, 1e-5, ferrite::Dtype::f32));
  BOOST_CHECK_THROW(load(ferrite::full({}, 1.0001e-5, ferrite::Dtype::f64)), ferrite::IoError);
  BOOST_CHECK_THROW(load(ferrite::full({}, std::nan(""), ferrite::Dtype::f64)), ferrite::IoError);
  BOOST_CHECK_THROW(load(ferrite::full({}, 0, ferrite::Dtype::i64)), ferrite::IoError);
  BOOST_CHECK_THROW(load(ferrite::full({1}, 1e-5)), ferrite::IoError);
  io::load(norm, io::tensor_file_of({{"weight", two}, {"bias", two}}, "k"));
}

/// JSON weights have a bias alone: a GRU that resets before the product has one bias.
BOOST_AUTO_TEST_CASE(the_bias_of_a_gru_tells_when_it_resets) {
  const io::TensorFile file = io::from_keras(io::tensor_file_of(
      {{"kernel", ferrite::ones({2, 9})}, {"recurrent_kernel", ferrite::ones({3, 9})}, {"bias", ferrite::ones({9})}},
      "k"));
  BOOST_CHECK_THROW(io::load(nn::Gru(2, 3), file), ferrite::IoError);
  io::load(nn::Gru(2, 3, nn::GruOptions{.reset_after = false}), file);
}

BOOST_AUTO_TEST_CASE(models_made_now_do_so,
                     *boost::unit_test::precondition(support::python_with("keras, h5py, safetensors"))) {
  const io_test::TemporaryFolder folder;
  BOOST_REQUIRE(kBackend);
  BOOST_REQUIRE(support::run_script("make_keras_fixtures.py", folder.path()));
  check(folder / "keras");
  check_options(folder / "keras");
}

BOOST_AUTO_TEST_SUITE_END()
