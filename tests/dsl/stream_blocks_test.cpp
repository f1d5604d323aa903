// Layers without memory that are written in operations, streamed in blocks: they have the bits of single steps, and run
// several steps at once if that is proved to be the same.
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/per_step.h"
#include "ferrite/nn/layers/wavenet.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/cumulative.h"
#include "support/compare.h"

using namespace ferrite;

namespace {

constexpr std::int64_t kBlockSteps = 93;  // 64, 16 and 13 single steps
constexpr std::int64_t kBlockFeatures = 6;

/// Checks that blocks of a stream have the bits of single steps.
void check_blocks(const nn::Layer& layer, std::int64_t batch, std::int64_t width) {
  nn::Stream single = layer.stream(batch), several = layer.stream(batch);
  const std::vector<float> x = uniform({kBlockSteps * batch * width}, {7, 3, 1}, -3, 3).to_vector<float>();
  std::vector<float> one(x.size()), all(x.size());
  const auto n = static_cast<std::size_t>(batch * width);
  for (std::size_t t = 0; t < kBlockSteps; ++t)
    single.step(std::span<const float>(x).subspan(t * n, n), std::span<float>(one).subspan(t * n, n));
  several.steps(kBlockSteps, x, all);
  BOOST_TEST(support::identical(Tensor::from(one), Tensor::from(all)));
}
std::int64_t most_at_once(const nn::Layer& layer, std::int64_t batch, std::int64_t width) {
  return nn::detail::step_of(layer, {batch, width, Dtype::f32})->most_at_once();
}

using Function = std::function<Tensor(const Tensor&)>;
nn::PerStep per_step(const Function& f) {
  return nn::PerStep({.name = "f", .function = f, .features = kBlockFeatures});
}

std::unique_ptr<nn::Wavenet> wavenet_of(const nn::WavenetActivation& activation) {
  const nn::WavenetArray array{
      .channels = 4,
      .bottleneck = 4,
      .units = {{.dilation = 1, .activation = activation}, {.dilation = 4, .activation = activation}}};
  return std::make_unique<nn::Wavenet>(nn::WavenetOptions{.arrays = {array}}, nn::Init{.seed = 3, .prefix = "wavenet"});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_blocks)

/// Several layers read a value, one of them twice, and results are written where an input was.
BOOST_AUTO_TEST_CASE(values_that_are_read_again_are_not_overwritten) {
  using B = dsl::Builder;
  const auto given = [](B& b) { b.dropout(0.5); };
  const auto other = [](B& b) { b.linear(6); };
  const auto bent = [](B& b) { b.linear(6).tanh(); };
  const std::vector<dsl::Network> nets = [&] {
    std::vector<dsl::Network> all;
    all.push_back(dsl::sequence(6).linear(6).parallel({given, given}).build(1));
    all.push_back(dsl::sequence(6).linear(6).parallel({given, given, bent}).build(1));
    all.push_back(dsl::sequence(6).linear(6).parallel({given, given, given}).linear(6).build(1));
    all.push_back(dsl::sequence(6).linear(6).parallel({other, given, given}).linear(6).build(1));
    all.push_back(dsl::sequence(6).linear(6).parallel({bent, other, given, given, other}).linear(6).build(1));
    all.push_back(
        dsl::sequence(6).linear(6).residual(given).residual(bent).residual([&](B& b) { b.residual(other); }).build(1));
    all.push_back(dsl::sequence(6).parallel({given, given, other}).linear(6).build(1));
    all.push_back(dsl::sequence(6).gru(6).residual([&](B& b) { b.parallel({bent, given}).tanh(); }).build(1));
    all.push_back(dsl::sequence(6).dropout(0.5).build(1));
    all.push_back(dsl::sequence(6).residual(given).build(1));
    all.push_back(dsl::sequence(6).parallel({given, given}).build(1));
    return all;
  }();
  for (const dsl::Network& net : nets) {
    BOOST_TEST_CONTEXT(net.summary()) {
      net.eval();
      const Tensor x = uniform({2, kBlockSteps, 6}, {5, 3, 1}, -1, 1), whole = net(x);
      const std::vector<float> in = contiguous(transpose(x, 0, 1)).to_vector<float>();
      std::vector<float> out(in.size());
      nn::Stream stream = net.stream(2);
      stream.steps(kBlockSteps, in, out);
      BOOST_TEST(stream.report().at_once == 64);
      BOOST_TEST(support::identical(Tensor::from(out, {kBlockSteps, 2, 6}), contiguous(transpose(whole, 0, 1))));
      check_blocks(net, 2, 6);
    }
  }
}

BOOST_AUTO_TEST_CASE(pointwise_layers_take_blocks_with_the_bits_of_steps) {
  std::vector<std::unique_ptr<nn::Layer>> layers;
  layers.push_back(std::make_unique<nn::LeakyRelu>(nn::SlopeOptions{.slope = 0.2}));
  layers.push_back(std::make_unique<nn::Elu>(nn::AlphaOptions{.alpha = 0.7}));
  layers.push_back(std::make_unique<nn::Celu>(nn::AlphaOptions{.alpha = 1.3}));
  layers.push_back(std::make_unique<nn::Hardtanh>(nn::BoundsOptions{.low = -0.5, .high = 2}));
  layers.push_back(std::make_unique<nn::Softshrink>(nn::LambdaOptions{.lambda = 0.4}));
  layers.push_back(std::make_unique<nn::Hardshrink>(nn::LambdaOptions{.lambda = 0.4}));
  layers.push_back(std::make_unique<nn::Threshold>(nn::ThresholdOptions{.bound = 0.1, .value = 7}));
  layers.push_back(
      std::make_unique<nn::Prelu>(nn::PreluOptions{.num_parameters = kBlockFeatures, .channels_last = true}));
  layers.push_back(std::make_unique<nn::PerStep>(per_step([](const Tensor& x) { return tanh(3 * x) / 3 - x * x; })));
  for (const auto& layer : layers)
    for (const std::int64_t batch : {1, 3}) {
      BOOST_TEST_CONTEXT(layer->kind() << " of " << batch) {
        BOOST_TEST(most_at_once(*layer, batch, kBlockFeatures) > kBlockSteps);
        check_blocks(*layer, batch, kBlockFeatures);
      }
    }
}

BOOST_AUTO_TEST_CASE(a_wavenet_keeps_its_blocks_whatever_its_activations_are) {
  for (const char* name : {"tanh", "leaky_relu", "hardtanh", "softplus", "silu"}) {
    BOOST_TEST_CONTEXT(name) {
      const auto net = wavenet_of({.name = name, .slope = 0.3, .low = -0.4, .high = 0.6});
      BOOST_TEST(most_at_once(*net, 1, 1) == 64);
      check_blocks(*net, 1, 1);
      check_blocks(*net, 2, 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_that_meet_are_never_taken_as_steps_of_a_block) {
  // The batch is 3: values that depend on it, or join its rows, differ for the 192 rows of a block.
  const Tensor two = Tensor::from(std::vector<float>{2}, {}), four = Tensor::from(std::vector<float>{4}, {});
  const Parameter three("three", 1.5 * two), five("five", 1.25 * four);
  const std::vector<std::pair<const char*, Function>> functions = {
      {"a mean over the batch", [](const Tensor& x) { return x - mean(x, {0}, true); }},
      {"the size of the batch", [](const Tensor& x) { return x / static_cast<double>(x.shape()[0]); }},
      {"a product of rows", [](const Tensor& x) { return x * reshape(x, x.shape()); }},
      {"the number of the row",
       [](const Tensor& x) {
         return x + reshape(cast(arange(x.shape()[0]), Dtype::f32), {-1, 1, 1});
       }},
      {"a tensor for each size", [&](const Tensor& x) { return x * (x.shape()[0] == 3 ? two : four); }},
      {"a parameter for each size", [&](const Tensor& x) { return x * (x.shape()[0] == 3 ? three : five); }},
      {"an operation for each size", [](const Tensor& x) { return x.shape()[0] == 3 ? tanh(x) : sigmoid(x); }},
      {"a value for each size",
       [](const Tensor& x) { return x * Tensor::from(std::vector<float>{x.shape()[0] == 3 ? 2.0F : 4.0F}, {}); }},
      {"a number computed from the size",
       [](const Tensor& x) { return x / (1 + sum(cast(arange(x.shape()[0]), Dtype::f32))); }},
      {"an order for each size",
       [](const Tensor& x) {
         const Tensor table = reshape(x, x.shape()[0] == 3 ? Shape{3, 2, 3} : Shape{-1, 3, 2});
         return reshape(transpose(table, 1, 2), x.shape());
       }},
      {"a running sum of rows", [](const Tensor& x) { return cumsum(x, 0); }},
      {"a running sum of features", [](const Tensor& x) { return cumsum(x, -1); }},
      {"rows in turn", [](const Tensor& x) { return x + flip(x, {0}); }},
      {"a sum of features", [](const Tensor& x) { return x / sum(square(x), {-1}, true); }},
      {"a row for each of the batch", [](const Tensor& x) {
         return x.shape()[0] == 3 ? x * Tensor::from(std::vector<float>{1, 2, 3}, {3, 1, 1}) : x;
       }}};
  for (const auto& [what, f] : functions) {
    BOOST_TEST_CONTEXT(what) { check_blocks(per_step(f), 3, kBlockFeatures); }
  }
  // A shape [1, 1, 1], right for one row, fits any number of rows.
  const auto first = [](const Tensor& x) { return x * Tensor::from(std::vector<float>{2}, {1, 1, 1}); };
  check_blocks(per_step(first), 1, kBlockFeatures);
}

/// A block ends before the step that throws: the steps before it were run, and the stream continues from there.
BOOST_AUTO_TEST_CASE(blocks_end_where_a_step_would_throw) {
  const auto full_after = dsl::sequence(3).gru(4).attention(2, {.causal = true, .capacity = 21}).linear(2).build(1);
  const Tensor x = uniform({1, 24, 3}, {.seed = 2}, -1, 1);
  const std::vector<float> in = x.to_vector<float>(), whole = full_after(slice(x, 1, 0, 21)).to_vector<float>();
  nn::Stream stream = full_after.stream();
  BOOST_TEST(stream.report().at_once > 1);
  std::vector<float> out(24 * 2, 7);
  BOOST_CHECK_THROW(stream.steps(24, in, out), nn::CapacityError);
  BOOST_TEST(std::equal(whole.begin(), whole.end(), out.begin()));
  BOOST_TEST(out[42] == 7);
  std::vector<float> y(2);
  BOOST_CHECK_THROW(stream.step(std::span(in).subspan(63, 3), y), nn::CapacityError);

  const auto tokens = dsl::tokens(5).embedding(3).positions(40).gru(4).build(1);
  nn::Stream of_tokens = tokens.stream();
  BOOST_TEST(of_tokens.report().at_once > 1);
  std::vector<std::int64_t> t(30);
  for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<std::int64_t>(i % 5);
  const std::vector<float> all = tokens(Tensor::from(t, {1, 30})).to_vector<float>();
  std::vector<std::int64_t> wrong = t;
  wrong[17] = 5;
  std::vector<float> made(30 * 4);
  BOOST_CHECK_EXCEPTION(of_tokens.steps(30, wrong, made), ShapeError, support::says("token 5 lies outside 0..4"));
  BOOST_TEST(std::equal(all.begin(), all.begin() + 17 * 4, made.begin()));
  of_tokens.steps(13, std::span(t).subspan(17), std::span(made).subspan(std::size_t{17} * 4));
  BOOST_TEST(made == all);
  BOOST_CHECK_THROW(of_tokens.steps(13, std::span(t).first(13), std::span(made).first(std::size_t{13} * 4)),
                    ShapeError);
}

BOOST_AUTO_TEST_CASE(blocks_take_the_present_values_of_parameters) {
  nn::Prelu layer({.num_parameters = kBlockFeatures, .channels_last = true});
  nn::Stream stream = layer.stream(1);
  const std::vector<float> x(64 * kBlockFeatures, -1.0F);
  std::vector<float> y(x.size());
  stream.steps(64, x, y);
  BOOST_TEST(y[0] == -0.25F);
  layer.weight.assign(Tensor::from(std::vector<float>(kBlockFeatures, 0.5F)));
  nn::Stream copy = stream.clone();
  copy.steps(64, x, y);
  BOOST_TEST(y.back() == -0.25F);
  stream.refresh();
  stream.steps(64, x, y);
  BOOST_TEST(y.back() == -0.5F);
}

BOOST_AUTO_TEST_SUITE_END()
