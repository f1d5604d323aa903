// Layers on channels: errors and their messages, running statistics in compiled training, channels as the last axis.
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/convolution.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/layers/pooling.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/tensor/shapes.h"
#include "support/compare.h"
#include "support/wrong_calls.h"

using namespace ferrite;
using support::identical;

namespace {

const nn::Init kSeed{.seed = 3};

Tensor draw(const Shape& shape, std::uint64_t stream = 1) {
  return uniform(shape, {.seed = 8, .stream = stream}, -1, 1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(channel_layers)

BOOST_AUTO_TEST_CASE(wrong_options_say_what_is_wrong) {
  using nn::Conv1d, nn::Conv2d, nn::ConvTranspose2d, nn::BatchNorm2d, nn::GroupNorm, nn::RmsNorm, nn::Prelu;
  support::check_refused<ValueError>({
      {[] { Conv2d layer({.in_channels = 0, .out_channels = 4, .kernel_size = {3}}); },
       "conv2d: channels and groups must be positive, got 0 to 4 and 1"},
      {[] { Conv2d layer({.in_channels = 3, .out_channels = 4, .kernel_size = {3}, .groups = 3}); },
       "conv2d: groups must divide the numbers of channels, got 3 groups of 3 to 4"},
      {[] { Conv2d layer({.in_channels = 3, .out_channels = 4}); },
       "conv2d: kernel_size needs one number or 2, got []"},
      {[] { Conv1d layer({.in_channels = 3, .out_channels = 4, .kernel_size = {0}}); },
       "conv1d: kernel_size must be positive, got [0]"},
      {[] {
         ConvTranspose2d layer({.in_channels = 3, .out_channels = 4, .kernel_size = {1, 2, 3}});
       },
       "conv_transpose2d: kernel_size needs one number or 2, got [1, 2, 3]"},
      {[] {
         nn::MaxPool2d layer({.kernel_size = {2, -1}});
       },
       "max_pool2d: kernel_size must be positive, got [2, -1]"},
      {[] {
         nn::AvgPool1d layer({.kernel_size = {2, 2}});
       },
       "avg_pool1d: kernel_size needs one number or 1, got [2, 2]"},
      {[] { nn::LpPool3d layer({}); }, "lp_pool3d: kernel_size needs one number or 3, got []"},
      {[] {
         nn::AdaptiveAvgPool2d layer({.size = {1, 2, 3}});
       },
       "adaptive_avg_pool2d: size needs one number or 2, got [1, 2, 3]"},
      {[] { BatchNorm2d layer({}); }, "batch_norm2d: there must be features, got 0"},
      {[] { BatchNorm2d layer({.num_features = 2, .epsilon = -1}); },
       "batch_norm2d: epsilon must be finite and must not be negative, got -1.0"},
      {[] { BatchNorm2d layer({.num_features = 2, .momentum = 2}); },
       "batch_norm2d: the momentum must lie in [0, 1], got 2.0"},
      {[] { GroupNorm layer({.num_groups = 3, .num_channels = 4}); }, "group_norm: 3 groups do not divide 4 channels"},
      {[] { RmsNorm layer({}); }, "rms_norm: there must be features, got 0"},
      {[] { Prelu layer({.num_parameters = 0}); }, "prelu: there must be parameters, got 0"},
      {[] { nn::Celu layer({0}); }, "celu: alpha must not be 0, got 0.0"},
  });
}

BOOST_AUTO_TEST_CASE(wrong_inputs_say_what_is_wrong) {
  const nn::Conv2d conv({.in_channels = 3, .out_channels = 4, .kernel_size = {3}}, kSeed);
  const nn::Conv1d last({.in_channels = 3, .out_channels = 4, .kernel_size = {1}, .channels_last = true}, kSeed);
  const nn::BatchNorm1d norm({.num_features = 3});
  support::check_refused<ShapeError>({
      {[&] {
         (void)conv(draw({2, 3, 5}));
       },
       "conv2d: expects [B, C, ...] of rank 4, got [2, 3, 5]"},
      {[&] {
         (void)conv(draw({2, 4, 5, 5}));
       },
       "conv2d: expects 3 channels, got [2, 4, 5, 5]"},
      {[&] {
         (void)last(draw({2, 3, 5}));
       },
       "conv1d: expects 3 channels, got [2, 3, 5]"},
      {[&] {
         (void)nn::MaxPool2d({.kernel_size = {2}})(draw({2, 3, 5}));
       },
       "max_pool2d: expects [B, C, ...] of rank 4, got [2, 3, 5]"},
      {[&] {
         (void)norm(draw({1, 3}));
       },
       "batch_norm1d: training needs more than one value a channel, got [1, 3]"},
      {[&] {
         (void)norm(draw({2, 4}));
       },
       "batch_norm1d: expects 3 channels, got [2, 4]"},
      {[&] {
         (void)nn::InstanceNorm1d({.num_features = 3})(draw({2, 3, 1}));
       },
       "instance_norm1d: training needs more than one value a channel, got [2, 3, 1]"},
      {[&] {
         (void)nn::GroupNorm({.num_groups = 1, .num_channels = 3})(draw({2, 4}));
       },
       "group_norm: expects 3 channels, got [2, 4]"},
      {[&] {
         (void)nn::RmsNorm({.features = 3})(draw({2, 4}));
       },
       "rms_norm: expects 3 features, got [2, 4]"},
  });
  support::check_refused<DtypeError>({
      {[&] {
         (void)conv(cast(draw({2, 3, 5, 5}), Dtype::f64));
       },
       "conv2d: the weights are f32, got f64[2, 3, 5, 5]; cast the input"},
      {[&] { (void)nn::RmsNorm({.features = 3})(zeros({3}, Dtype::f64)); },
       "rms_norm: the weight is f32, got f64[3]; cast the input"},
  });
  norm.eval();
  BOOST_TEST(norm(draw({1, 3})).shape().str() == "[1, 3]");
}

/// Every layer with the channels last has the results that it has with the axes exchanged.
BOOST_AUTO_TEST_CASE(channels_may_stand_last) {
  const Tensor x = draw({2, 4, 6, 5}), last = movedim(x, {1}, {3});
  const auto check = [&](const nn::Layer& first, const nn::Layer& other) {
    BOOST_TEST(identical(movedim(other(last), {3}, {1}), first(x)), first.kind());
  };
  const auto conv = [](bool channels_last) {
    return nn::Conv2d(
        {.in_channels = 4, .out_channels = 6, .kernel_size = {3}, .groups = 2, .channels_last = channels_last}, kSeed);
  };
  const auto transposed = [](bool channels_last) {
    return nn::ConvTranspose2d(
        {.in_channels = 4, .out_channels = 3, .kernel_size = {2}, .channels_last = channels_last}, kSeed);
  };
  check(conv(false), conv(true));
  check(transposed(false), transposed(true));
  check(nn::MaxPool2d({.kernel_size = {2}}), nn::MaxPool2d({.kernel_size = {2}, .channels_last = true}));
  check(nn::AvgPool2d({.kernel_size = {2}}), nn::AvgPool2d({.kernel_size = {2}, .channels_last = true}));
  check(nn::LpPool2d({.kernel_size = {2}}), nn::LpPool2d({.kernel_size = {2}, .channels_last = true}));
  check(nn::AdaptiveAvgPool2d({.size = {2}}), nn::AdaptiveAvgPool2d({.size = {2}, .channels_last = true}));
  check(nn::AdaptiveMaxPool2d({.size = {2}}), nn::AdaptiveMaxPool2d({.size = {2}, .channels_last = true}));
  check(nn::BatchNorm2d({.num_features = 4}), nn::BatchNorm2d({.num_features = 4, .channels_last = true}));
  check(nn::InstanceNorm2d({.num_features = 4}), nn::InstanceNorm2d({.num_features = 4, .channels_last = true}));
  check(nn::GroupNorm({.num_groups = 2, .num_channels = 4}),
        nn::GroupNorm({.num_groups = 2, .num_channels = 4, .channels_last = true}));
  check(nn::Prelu({.num_parameters = 4}), nn::Prelu({.num_parameters = 4, .channels_last = true}));
}

/// A compiled training step assigns the running statistics as an eager one does, once per call.
BOOST_AUTO_TEST_CASE(running_numbers_of_a_compiled_step) {
  const nn::BatchNorm1d eager({.num_features = 3}, kSeed), compiled({.num_features = 3}, kSeed);
  const auto step = [](const nn::BatchNorm1d& norm, const Tensor& x) {
    Tape tape;
    return tape.grad(sum(square(norm(x) * x)), norm.parameters());
  };
  const auto fast = compile([&](const Tensor& x) { return step(compiled, x); });
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Tensor x = draw({4, 3, 2}, i + 1);
    const Tensors a = step(eager, x), b = fast(x);
    for (std::size_t k = 0; k < a.size(); ++k) BOOST_TEST(identical(a[k], b[k]));
  }
  BOOST_TEST(eager.num_batches_tracked.peek().item<std::int64_t>() == 3);
  for (std::size_t k = 0; k < 3; ++k)
    BOOST_TEST(identical(eager.named_buffers()[k].variable.peek(), compiled.named_buffers()[k].variable.peek()));
}

BOOST_AUTO_TEST_CASE(summaries) {
  BOOST_TEST(nn::Conv2d({.in_channels = 3, .out_channels = 4, .kernel_size = {3}}).summary() ==
             "conv2d(in_channels=3, out_channels=4, kernel_size=[3])");
  BOOST_TEST(nn::Conv1d({.in_channels = 2,
                         .out_channels = 4,
                         .kernel_size = {3},
                         .padding = ConvolutionPadding::same,
                         .bias = false,
                         .padding_mode = PaddingMode::reflect})
                 .summary() ==
             "conv1d(in_channels=2, out_channels=4, kernel_size=[3], padding=same, bias=false, padding_mode=reflect)");
  BOOST_TEST(
      nn::ConvTranspose1d({.in_channels = 2, .out_channels = 4, .kernel_size = {3}, .output_padding = {1}}).summary() ==
      "conv_transpose1d(in_channels=2, out_channels=4, kernel_size=[3], output_padding=[1])");
  BOOST_TEST(nn::BatchNorm3d({.num_features = 4, .momentum = 0.5}).summary() ==
             "batch_norm3d(num_features=4, momentum=0.5)");
}

BOOST_AUTO_TEST_SUITE_END()
