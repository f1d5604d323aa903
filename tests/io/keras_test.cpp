/// Models of Keras by way of scripts/keras_weights.py, against what Keras makes of an input.
#include <cstdlib>

#include "ferrite/dsl/builder.h"
#include "ferrite/io/keras.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "support/python.h"
#include "temporary_folder.h"

namespace {

using ferrite::Tensor;
using support::within;
namespace fs = std::filesystem;
namespace io = ferrite::io;
namespace nn = ferrite::nn;

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

void check(const fs::path& folder) {
  const io::TensorFile expected = io::read_safetensors(folder / "expected.safetensors");
  const Net net;
  io::load(net, io::from_keras(io::read_safetensors(folder / "net.safetensors")), {.strict = false});
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

BOOST_AUTO_TEST_CASE(models_made_now_do_so,
                     *boost::unit_test::precondition(support::python_with("keras, h5py, safetensors"))) {
  const io_test::TemporaryFolder folder;
  BOOST_REQUIRE(support::run_script("make_keras_fixtures.py", folder.path()));
  check(folder / "keras");
}

BOOST_AUTO_TEST_SUITE_END()
