// Summaries of calls of modules that are not chains.
#include "ferrite/nn/summary.h"

#include "ferrite/dsl/builder.h"
#include "support/compare.h"

using namespace ferrite;
using support::says;

namespace {

struct Matcher : nn::Module {
  nn::Linear left{3, 8}, right{5, 8}, unused{2, 2};
  nn::GroupNorm norm{nn::GroupNormOptions{.num_groups = 2, .num_channels = 8}};
  Parameter scale;
  Matcher() : Module({.seed = 1}) {
    adopt("left", left), adopt("right", right), adopt("norm", norm), adopt("unused", unused);
    scale = parameter("scale", {8}, nn::init::constant(1), {});
  }
  Tensor forward(const Tensor& a, const Tensor& b) const {
    const Tensor x = left(a), y = right(b);
    return scale * norm(x + y);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(summary)

BOOST_AUTO_TEST_CASE(a_call_is_told_layer_by_layer) {
  const Matcher m;
  const Tensor a = Tensor::abstract({{4, 3}, Dtype::f32}), b = Tensor::abstract({{4, 5}, Dtype::f32});
  BOOST_TEST(nn::summary(m, [&] { return m.forward(a, b); }) ==
             "layer     output     parameters  multiply-adds\n"
             "----------------------------------------------\n"
             "left      f32[4, 8]          32             96\n"
             "right     f32[4, 8]          48            160\n"
             "(itself)  f32[4, 8]           8              0\n"
             "norm      f32[4, 8]          16              0\n"
             "unused    -                   6              0\n"
             "----------------------------------------------\n"
             "total                       110            256\n");
}

/// A chain's own summary counts the same, for one step of one sequence.
BOOST_AUTO_TEST_CASE(a_chain_costs_what_its_words_say) {
  const dsl::Network net = dsl::sequence(3).gru(4).causal_conv1d(6, 2).linear(2).build(1);
  const Tensor x = Tensor::abstract({{1, 1, 3}, Dtype::f32});
  const std::string table = nn::summary(net, [&] { return net(x); });
  std::int64_t multiply_adds = 0;
  for (const dsl::SummaryRow& row : net.rows()) {
    multiply_adds += row.multiply_adds;
    BOOST_TEST((table.find("\n" + row.name + " ") != std::string::npos), table);
  }
  BOOST_TEST(
      table.ends_with(std::to_string(net.parameter_count()) + "            " + std::to_string(multiply_adds) + "\n"),
      table);
}

BOOST_AUTO_TEST_CASE(nothing_changes_and_wrong_calls_are_refused) {
  const dsl::Network net = dsl::features(3).batch_norm().build(1);
  const Tensor x = uniform({4, 3}, {.seed = 2}, -1, 1);
  (void)nn::summary(net, [&] { return net(x); });
  BOOST_TEST(net.named_buffers()[2].variable.peek().item<std::int64_t>() == 0);
  BOOST_CHECK_EXCEPTION(nn::summary(net, nullptr), ValueError, says("summary: the call is null"));
  BOOST_CHECK_THROW(nn::summary(net, [&] { return (net(x) * 2).to_vector<float>(); }), TraceError);
}

BOOST_AUTO_TEST_SUITE_END()
