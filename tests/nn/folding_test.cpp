// Batch norms folded into the layers before them: the results of evaluation, and norms that must stay separate.
#include "ferrite/nn/layers/sequential.h"

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor numbers(const Shape& shape, std::uint64_t seed) { return uniform(shape, {seed}, 0.5, 2, Dtype::f64); }

/// Builds a net and draws new values for every parameter and buffer.
dsl::Network seen(const dsl::Builder& words) {
  dsl::Network net = words.build(1, Dtype::f64);
  std::uint64_t seed = 10;
  for (const auto& p : net.named_parameters()) p.variable.assign(numbers(p.variable.shape(), ++seed));
  for (const auto& b : net.named_buffers())
    if (is_float(b.variable.dtype())) b.variable.assign(numbers(b.variable.shape(), ++seed));
  net.eval();
  return net;
}

std::size_t count(const nn::Sequential& chain, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    n += chain[i].kind().find(part) != std::string::npos;
    if (const auto* inner = dynamic_cast<const nn::Sequential*>(&chain[i])) n += count(*inner, part);
  }
  return n;
}

/// Checks that `folded` norms are folded and `left` remain, with the results of the net.
void try_folding(const dsl::Builder& words, const Shape& x_shape, std::size_t folded, std::size_t left = 0) {
  const dsl::Network net = seen(words);
  const Tensor x = numbers(x_shape, 3) - 1;
  BOOST_TEST(count(net, "_norm") == folded + left);
  const auto plain = nn::fold_batch_norms(net);
  BOOST_TEST(count(*plain, "_norm") == left);
  BOOST_TEST(within((*plain)(x), net(x), 1e-12));
  BOOST_TEST(!plain->training());
}

using B = dsl::Builder;

}  // namespace

BOOST_AUTO_TEST_SUITE(folding)

BOOST_AUTO_TEST_CASE(images_and_volumes) {
  try_folding(dsl::image(2, 6, 5).conv2d(4, 3).batch_norm().relu().conv2d(3, 1, {.bias = false}).batch_norm(),
              {2, 2, 6, 5}, 2);
  try_folding(dsl::image(4, 5, 5)
                  .conv2d(6, 3, {.padding = {1}, .groups = 2, .padding_mode = PaddingMode::reflect})
                  .batch_norm({.affine = false}),
              {2, 4, 5, 5}, 1);
  try_folding(dsl::image(4, 3, 3).conv_transpose2d(6, 2, {.stride = {2}, .groups = 2}).batch_norm(), {2, 4, 3, 3}, 1);
  try_folding(dsl::volume(2, 3, 4, 3).conv3d(3, 2).batch_norm(), {1, 2, 3, 4, 3}, 1);
  try_folding(dsl::volume(2, 3, 2, 3).conv_transpose3d(2, 2, {.bias = false}).batch_norm(), {1, 2, 3, 2, 3}, 1);
}

BOOST_AUTO_TEST_CASE(sequences_and_features) {
  try_folding(dsl::sequence(3).causal_conv1d(4, 2).batch_norm().tanh().conv1d(4, 3).batch_norm(), {2, 7, 3}, 2);
  try_folding(dsl::sequence(3).linear(4).batch_norm().gru(3).batch_norm(), {2, 5, 3}, 1, 1);
  try_folding(dsl::features(3).linear(4).batch_norm({.epsilon = 0.5}).relu().linear(2), {5, 3}, 1);
}

BOOST_AUTO_TEST_CASE(inner_chains_and_computed_weights) {
  const auto part = [](B& b) { b.conv2d(2, 3, {.padding = {1}}).batch_norm().relu(); };
  try_folding(dsl::image(2, 4, 4).residual(part).stage("more", part).batch_norm(), {2, 2, 4, 4}, 2, 1);
  try_folding(dsl::image(2, 4, 4).weight_norm([](B& b) { b.conv2d(3, 2); }).batch_norm(), {2, 2, 4, 4}, 2);
}

/// A folded net streams with the bits that it has on the whole sequence, and keeps the names of its layers.
BOOST_AUTO_TEST_CASE(a_folded_net_streams) {
  const dsl::Network net = seen(dsl::sequence(2).causal_conv1d(3, 2, {}, "conv").batch_norm().linear(1, "head"));
  const auto plain = nn::fold_batch_norms(net);
  BOOST_TEST(plain->named_parameters()[0].name == "conv.weight");
  BOOST_TEST(plain->named_parameters()[2].name == "head.weight");
  const Tensor x = numbers({1, 4, 2}, 3);
  nn::Stream stream = plain->stream();
  std::vector<double> y(4);
  stream.steps(4, x.to_vector<double>(), y);
  BOOST_TEST(identical(Tensor::from(y, {1, 4, 1}), (*plain)(x)));
}

/// A norm whose channels are on another axis than the layer's outputs does not belong to that layer, even if the
/// numbers agree.
BOOST_AUTO_TEST_CASE(other_channels_stay_apart) {
  const nn::Init init{.seed = 2, .prefix = {}, .dtype = Dtype::f64};
  const auto chain = [&](auto layer, auto norm) {
    nn::Sequential net;
    net.add("layer", std::make_unique<decltype(layer)>(std::move(layer)));
    norm.running_var.assign(numbers(norm.running_var.shape(), 8));
    net.add("norm", std::make_unique<decltype(norm)>(std::move(norm)));
    net.eval();
    return net;
  };
  const auto batch_norm = [&](bool last) { return nn::BatchNorm1d({.num_features = 4, .channels_last = last}, init); };
  const Tensor x = numbers({2, 4, 4}, 3);
  for (const bool conv_last : {false, true})
    for (const bool norm_last : {false, true}) {
      const auto net =
          chain(nn::Conv1d({.in_channels = 4, .out_channels = 4, .kernel_size = {1}, .channels_last = conv_last}, init),
                batch_norm(norm_last));
      const auto plain = nn::fold_batch_norms(net);
      BOOST_TEST(plain->size() == (conv_last == norm_last ? 1U : 2U));
      BOOST_TEST(within((*plain)(x), net(x), 1e-12));
    }
  const auto net = chain(nn::Linear(4, 4, init), batch_norm(false));
  const auto plain = nn::fold_batch_norms(net);
  BOOST_TEST(within((*plain)(numbers({3, 4}, 4)), net(numbers({3, 4}, 4)), 1e-12));
  BOOST_CHECK_EXCEPTION((*plain)(x), ShapeError, says("is joined with a batch norm of features"));
  BOOST_TEST(within((*plain->clone())(numbers({3, 4}, 4)), net(numbers({3, 4}, 4)), 1e-12));
  const nn::Sequential untracked = [&] {
    nn::Sequential both;
    both.add("conv", std::make_unique<nn::Conv1d>(
                         nn::ConvOptions{.in_channels = 4, .out_channels = 4, .kernel_size = {2}}, init));
    both.add("norm", std::make_unique<nn::InstanceNorm1d>(nn::InstanceNormOptions{.num_features = 4}, init));
    return both;
  }();
  BOOST_TEST(nn::fold_batch_norms(untracked)->size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
