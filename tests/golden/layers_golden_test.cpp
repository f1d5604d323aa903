// Layers compared with PyTorch's modules in training and in evaluation: values, buffers, gradients and double backward.
// tests/data/make_layer_fixtures.py writes the cases.
#include <map>
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/convolution.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/layers/parametrized.h"
#include "ferrite/nn/layers/pooling.h"
#include "ferrite/nn/layers/spectrograms.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::within;

namespace {

using Made = std::unique_ptr<nn::Layer>;
using Make = std::function<Made()>;
const nn::Init kDoubles{.dtype = Dtype::f64};

template <class L, class Options>
Make made(const Options& o) {
  return [o]() -> Made {
    if constexpr (std::constructible_from<L, const Options&, const nn::Init&>) {
      return std::make_unique<L>(o, kDoubles);
    } else {
      return std::make_unique<L>(o);
    }
  };
}

using Layers = std::map<std::string, Make>;

Layers convolutions() {
  using C = nn::ConvOptions;
  using T = nn::ConvTransposeOptions;
  return {
      {"conv1d", made<nn::Conv1d>(C{.in_channels = 3, .out_channels = 4, .kernel_size = {3}})},
      {"conv1d_same", made<nn::Conv1d>(C{.in_channels = 2,
                                         .out_channels = 4,
                                         .kernel_size = {4},
                                         .padding = ConvolutionPadding::same,
                                         .dilation = {2},
                                         .groups = 2})},
      {"conv1d_circular", made<nn::Conv1d>(C{.in_channels = 2,
                                             .out_channels = 3,
                                             .kernel_size = {3},
                                             .stride = {2},
                                             .padding = {2},
                                             .bias = false,
                                             .padding_mode = PaddingMode::circular})},
      {"conv2d", made<nn::Conv2d>(C{.in_channels = 2, .out_channels = 3, .kernel_size = {3}, .padding = {1}})},
      {"conv2d_uneven", made<nn::Conv2d>(C{.in_channels = 4,
                                           .out_channels = 6,
                                           .kernel_size = {2, 3},
                                           .stride = {2, 1},
                                           .padding = {1, 0},
                                           .dilation = {1, 2},
                                           .groups = 2})},
      {"conv2d_reflect", made<nn::Conv2d>(C{.in_channels = 1,
                                            .out_channels = 2,
                                            .kernel_size = {3},
                                            .padding = {2},
                                            .padding_mode = PaddingMode::reflect})},
      {"conv2d_depthwise", made<nn::Conv2d>(C{.in_channels = 3,
                                              .out_channels = 6,
                                              .kernel_size = {3},
                                              .padding = ConvolutionPadding::valid,
                                              .groups = 3,
                                              .bias = false})},
      {"conv3d", made<nn::Conv3d>(C{.in_channels = 2,
                                    .out_channels = 3,
                                    .kernel_size = {2},
                                    .stride = {1, 2, 1},
                                    .padding = {1},
                                    .padding_mode = PaddingMode::replicate})},
      {"conv_transpose1d", made<nn::ConvTranspose1d>(T{.in_channels = 3,
                                                       .out_channels = 4,
                                                       .kernel_size = {3},
                                                       .stride = {2},
                                                       .padding = {1},
                                                       .output_padding = {1}})},
      {"conv_transpose2d", made<nn::ConvTranspose2d>(T{.in_channels = 4,
                                                       .out_channels = 6,
                                                       .kernel_size = {2, 3},
                                                       .stride = {2, 1},
                                                       .groups = 2,
                                                       .dilation = {1, 2}})},
      {"conv_transpose3d", made<nn::ConvTranspose3d>(T{
                               .in_channels = 2, .out_channels = 2, .kernel_size = {2}, .stride = {2}, .bias = false})},
  };
}

Layers pools() {
  using M = nn::MaxPoolLayerOptions;
  using A = nn::AvgPoolLayerOptions;
  using P = nn::LpPoolLayerOptions;
  using S = nn::AdaptivePoolOptions;
  return {
      {"max_pool1d", made<nn::MaxPool1d>(M{.kernel_size = {3}, .stride = {2}, .padding = {1}})},
      {"max_pool2d", made<nn::MaxPool2d>(M{.kernel_size = {2}})},
      {"max_pool2d_ceil",
       made<nn::MaxPool2d>(M{.kernel_size = {3, 2}, .stride = {2, 1}, .dilation = {1, 2}, .ceil_mode = true})},
      {"max_pool3d", made<nn::MaxPool3d>(M{.kernel_size = {2}, .stride = {1}})},
      {"avg_pool1d", made<nn::AvgPool1d>(A{.kernel_size = {2}})},
      {"avg_pool2d",
       made<nn::AvgPool2d>(
           A{.kernel_size = {3}, .stride = {2}, .padding = {1}, .ceil_mode = true, .count_include_pad = false})},
      {"avg_pool3d", made<nn::AvgPool3d>(A{.kernel_size = {2}, .divisor_override = 3})},
      {"lp_pool1d", made<nn::LpPool1d>(P{.norm = 3, .kernel_size = {2}})},
      {"lp_pool2d", made<nn::LpPool2d>(P{.kernel_size = {3}, .stride = {2}})},
      {"lp_pool3d", made<nn::LpPool3d>(P{.kernel_size = {2}})},
      {"adaptive_avg_pool1d", made<nn::AdaptiveAvgPool1d>(S{.size = {3}})},
      {"adaptive_avg_pool2d", made<nn::AdaptiveAvgPool2d>(S{.size = {2, 3}})},
      {"adaptive_avg_pool3d", made<nn::AdaptiveAvgPool3d>(S{.size = {1}})},
      {"adaptive_max_pool1d", made<nn::AdaptiveMaxPool1d>(S{.size = {2}})},
      {"adaptive_max_pool2d", made<nn::AdaptiveMaxPool2d>(S{.size = {-1, 2}})},
      {"adaptive_max_pool3d", made<nn::AdaptiveMaxPool3d>(S{.size = {2}})},
  };
}

Layers norms() {
  using B = nn::BatchNormOptions;
  using I = nn::InstanceNormOptions;
  const Layers both = {
      {"batch_norm1d", made<nn::BatchNorm1d>(B{.num_features = 4})},
      {"batch_norm1d_flat", made<nn::BatchNorm1d>(B{.num_features = 3, .epsilon = 0.1})},
      {"batch_norm2d", made<nn::BatchNorm2d>(B{.num_features = 3, .momentum = 0.3})},
      {"batch_norm2d_mean", made<nn::BatchNorm2d>(B{.num_features = 2, .momentum = {}})},
      {"batch_norm3d", made<nn::BatchNorm3d>(B{.num_features = 2, .affine = false})},
      {"batch_norm_untracked", made<nn::BatchNorm1d>(B{.num_features = 3, .track_running_stats = false})},
      {"instance_norm2d", made<nn::InstanceNorm2d>(I{.num_features = 2, .affine = true, .track_running_stats = true})},
      {"instance_norm3d", made<nn::InstanceNorm3d>(I{.num_features = 2, .momentum = 0.4, .track_running_stats = true})},
  };
  Layers all = {
      {"group_norm", made<nn::GroupNorm>(nn::GroupNormOptions{.num_groups = 3, .num_channels = 6})},
      {"group_norm_flat",
       made<nn::GroupNorm>(nn::GroupNormOptions{.num_groups = 2, .num_channels = 4, .affine = false})},
      {"instance_norm1d", made<nn::InstanceNorm1d>(I{.num_features = 3})},
      {"rms_norm", made<nn::RmsNorm>(nn::RmsNormOptions{.features = 5})},
      {"rms_norm_epsilon", made<nn::RmsNorm>(nn::RmsNormOptions{.features = 4, .epsilon = 0.1, .affine = false})},
  };
  for (const auto& [name, make] : both) all[name] = all[name + "_eval"] = make;
  return all;
}

Layers activations() {
  return {
      {"prelu", made<nn::Prelu>(nn::PreluOptions{})},
      {"prelu_channels", made<nn::Prelu>(nn::PreluOptions{.num_parameters = 3})},
      {"elu", made<nn::Elu>(nn::AlphaOptions{0.5})},
      {"celu", made<nn::Celu>(nn::AlphaOptions{2})},
      {"leaky_relu", made<nn::LeakyRelu>(nn::SlopeOptions{0.2})},
      {"hardtanh", made<nn::Hardtanh>(nn::BoundsOptions{-0.5, 1.5})},
      {"softshrink", made<nn::Softshrink>(nn::LambdaOptions{0.3})},
      {"hardshrink", made<nn::Hardshrink>(nn::LambdaOptions{0.7})},
      {"threshold", made<nn::Threshold>(nn::ThresholdOptions{0.2, -3})},
      {"glu", made<nn::Glu>(nn::AxisOptions{})},
      {"glu_channels", made<nn::Glu>(nn::AxisOptions{1})},
  };
}

/// Returns L(options) with one parameter computed by Norm.
template <class Norm, class L, class Options, class NormOptions>
Make normed(const Options& o, const NormOptions& n = {}) {
  return [o, n]() -> Made { return std::make_unique<Norm>(std::make_unique<L>(o, kDoubles), n); };
}

Layers parametrized() {
  using C = nn::ConvOptions;
  using W = nn::WeightNormOptions;
  using S = nn::SpectralNormOptions;
  const C plain{.in_channels = 2, .out_channels = 3, .kernel_size = {2}, .bias = false};
  const C conv2d{.in_channels = 2, .out_channels = 3, .kernel_size = {2}};
  const C conv1d{.in_channels = 2, .out_channels = 3, .kernel_size = {3}};
  const nn::ConvTransposeOptions transposed{.in_channels = 2, .out_channels = 3, .kernel_size = {2}};
  const nn::LinearOptions linear{.in_features = 3, .out_features = 4};
  const Layers both = {
      {"spectral_norm_conv2d", normed<nn::SpectralNorm, nn::Conv2d>(conv2d, S{})},
      {"spectral_norm_linear", normed<nn::SpectralNorm, nn::Linear>(linear, S{.power_iterations = 3})},
      {"spectral_norm_axis", normed<nn::SpectralNorm, nn::Conv1d>(plain, S{.axis = 2})},
      {"spectral_norm_conv_transpose1d", normed<nn::SpectralNorm, nn::ConvTranspose1d>(transposed, S{})},
  };
  Layers all = {
      {"weight_norm_conv1d", normed<nn::WeightNorm, nn::Conv1d>(conv1d, W{})},
      {"weight_norm_axis", normed<nn::WeightNorm, nn::Conv2d>(conv2d, W{.axis = 1})},
      {"weight_norm_whole", normed<nn::WeightNorm, nn::Conv1d>(plain, W{.axis = {}})},
      {"weight_norm_linear", normed<nn::WeightNorm, nn::Linear>(linear, W{})},
      {"weight_norm_linear_axis", normed<nn::WeightNorm, nn::Linear>(linear, W{.axis = 1})},
      {"weight_norm_bias", normed<nn::WeightNorm, nn::Linear>(linear, W{.parameter = "bias"})},
      {"spectral_norm_bias", normed<nn::SpectralNorm, nn::Linear>(linear, S{.parameter = "bias", .epsilon = 0.5})},
  };
  for (const auto& [name, make] : both) all[name] = all[name + "_eval"] = make;
  return all;
}

Layers spectra() {
  using S = nn::StftLayerOptions;
  using I = nn::InverseStftOptions;
  return {
      {"stft", made<nn::Stft>(S{.n_fft = 8})},
      {"stft_channels", made<nn::Stft>(S{.n_fft = 6, .hop_length = 2, .normalized = true, .channels = 2})},
      {"stft_streaming",
       made<nn::Stft>(S{.n_fft = 8, .hop_length = 3, .win_length = 6, .center = false, .channels = 2})},
      {"stft_magnitude",
       made<nn::Stft>(
           S{.n_fft = 5, .hop_length = 2, .spectrum = nn::Spectrum::magnitude, .center = false, .channels = 2})},
      {"stft_power", made<nn::Stft>(S{.n_fft = 8, .spectrum = nn::Spectrum::power, .padding = StftPadding::constant})},
      {"inverse_stft", made<nn::InverseStft>(I{.n_fft = 8, .hop_length = 2})},
      {"inverse_stft_channels",
       made<nn::InverseStft>(I{.n_fft = 6, .hop_length = 3, .win_length = 5, .normalized = true, .channels = 2})},
      {"inverse_stft_streaming", made<nn::InverseStft>(I{.n_fft = 8, .hop_length = 2, .center = false})},
      {"inverse_stft_uneven",
       made<nn::InverseStft>(I{.n_fft = 7, .hop_length = 3, .center = false, .normalized = true, .channels = 2})},
      {"inverse_stft_apart", made<nn::InverseStft>(I{.n_fft = 4, .hop_length = 4, .center = false})},
  };
}

const Layers& layers() {
  static const Layers all = [] {
    Layers list = convolutions();
    for (Layers more : {pools(), norms(), activations(), parametrized(), spectra()}) list.merge(more);
    return list;
  }();
  return all;
}

const io::TensorFile& file() {
  static const io::TensorFile f = support::fixture("layers.safetensors");
  return f;
}

/// Returns a tensor of the file as the parameter is stored in memory.
Tensor in_memory(const Parameter& p, const Tensor& x) {
  return p.layout() == FileLayout::transposed ? contiguous(transpose(x, 0, 1)) : x;
}

/// Returns the layer of a case with its parameters and buffers.
Made loaded(const std::string& name) {
  Made layer = layers().at(name)();
  layer->train(!name.ends_with("_eval"));
  for (const auto& [p, variable] : layer->named_parameters())
    variable.assign(in_memory(variable, file().tensor(name + "/p/" + p)));
  for (const auto& [b, variable] : layer->named_buffers()) variable.assign(file().tensor(name + "/b/" + b));
  return layer;
}

void check_case(const std::string& name) {
  constexpr double kMost = 1e-10;
  const auto at = [&](const std::string& what) { return file().tensor(name + "/" + what); };
  const Made layer = loaded(name);
  Tape tape;
  const Tensor x = tape.watch(at("x")), y = (*layer)(x);
  BOOST_TEST(within(y, at("y"), kMost));
  for (const auto& [b, variable] : layer->named_buffers())
    BOOST_TEST(within(variable.peek(), at("a/" + b), variable.dtype() == Dtype::i64 ? 0 : kMost), b);

  std::vector<std::string> names{"x"};
  for (const auto& p : layer->named_parameters()) names.push_back(p.name);
  const std::vector<Parameter> parameters = layer->parameters();
  const auto of = [&](const char* kind, std::size_t i) {
    const Tensor t = at(kind + names[i]);
    return i == 0 ? t : in_memory(parameters[i - 1], t);
  };
  const GradOf cotangent{y, at("cot")};
  Tensors g = tape.grad({cotangent}, {x}, {.create_graph = true});
  for (const Tensor& t : tape.grad({cotangent}, parameters, {.create_graph = true})) g.push_back(t);
  Tensor total;
  for (std::size_t i = 0; i < names.size(); ++i) {
    BOOST_TEST(within(g[i], of("g/", i), kMost), "gradient of " << names[i]);
    const Tensor part = sum(g[i] * of("v/", i));
    total = total.defined() ? total + part : part;
  }
  Tensors h;
  if (total.tape_slot() == 0) {  // linear: no gradient depends on anything
    for (std::size_t i = 0; i < names.size(); ++i) h.push_back(zeros(of("h/", i).shape(), Dtype::f64));
  } else {
    h = tape.grad({{total}}, {x}, {.retain = true});
    for (const Tensor& t : tape.grad({{total}}, parameters)) h.push_back(t);
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    BOOST_TEST(within(h[i], of("h/", i), kMost), "double backward of " << names[i]);
}

bool add_cases() {
  for (const auto& [name, make] : layers())
    boost::unit_test::framework::current_auto_test_suite().add(
        boost::unit_test::make_test_case([name = name] { check_case(name); }, "torch_" + name, __FILE__, __LINE__));
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layers_golden)

const bool registered = add_cases();

BOOST_AUTO_TEST_CASE(every_case_of_the_fixture_has_its_counterpart) {
  BOOST_TEST(registered);
  std::set<std::string> cases;
  for (const std::string_view n : file().names()) cases.insert(std::string(n.substr(0, n.find('/'))));
  for (const std::string& name : cases) BOOST_TEST(layers().contains(name), name);
  BOOST_TEST(cases.size() == layers().size());
}

/// The layer's parameters and buffers have the names that PyTorch gives them, and both have all of them.
BOOST_AUTO_TEST_CASE(names_are_those_of_pytorch) {
  for (const auto& [name, make] : layers()) {
    std::set<std::string> theirs, ours;
    for (const std::string_view n : file().names())
      for (const std::string kind : {"/p/", "/b/"})
        if (n.starts_with(name + kind)) theirs.insert(std::string(n.substr(name.size() + 3)));
    const Made layer = make();
    for (const auto& p : layer->named_parameters()) ours.insert(p.name);
    for (const auto& b : layer->named_buffers()) ours.insert(b.name);
    BOOST_TEST(theirs == ours, boost::test_tools::per_element());
  }
}

/// Checks the gradient of a compiled layer, a copy, and the same layer in f32.
BOOST_AUTO_TEST_CASE(copies_and_compiled_layers_give_the_same_bits) {
  for (const auto& [name, make] : layers()) {
    const Tensor x = file().tensor(name + "/x");
    const Made layer = loaded(name), other = loaded(name)->clone();
    const auto compiled = layer->compiled();
    const Tensor y = (*other)(x);
    BOOST_TEST(support::identical(compiled(x), y), name);
    BOOST_TEST(other->summary() == layer->summary());
    for (std::size_t i = 0; i < layer->named_buffers().size(); ++i)
      BOOST_TEST(
          support::identical(layer->named_buffers()[i].variable.peek(), other->named_buffers()[i].variable.peek()),
          name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
