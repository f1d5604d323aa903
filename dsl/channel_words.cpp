/// The words of the builder for layers on channels: convolutions, pooling, normalisation, activations with options.
#include "ferrite/dsl/builder.h"
#include "ferrite/dsl/detail/dry_run.h"
#include "ferrite/nn/layers/activations.h"

namespace ferrite::dsl {
namespace {

using LayerPtr = std::unique_ptr<nn::Layer>;

/// The channels of what flows, and where they stand: behind the steps of a sequence, else on axis 1.
struct Channels {
  std::int64_t count = 0;
  bool last = false;
};

/// Throws ShapeError unless there are `axes` axes of space or time behind or before channels of a known number.
Channels channels_of(const Flow& in, std::size_t axes) {
  const std::vector<SymbolicNumber>& shape = in.spec.shape;
  if (is_float(in.spec.dtype) && shape.size() == axes + 2) {
    const bool last = axes == 1 && !shape[1].constant();
    if (const std::optional<std::int64_t> n = shape[last ? 2 : 1].constant()) return {*n, last};
  }
  const std::string wanted = axes == 1 ? "[B, T, C]" : axes == 2 ? "[B, C, H, W]" : "[B, C, D, H, W]";
  throw ShapeError("expects " + wanted + ", the layer before it gives " + detail::text_of(in));
}

/// Those of the steps of a sequence. Throws ShapeError for anything else.
std::int64_t step_channels_of(const Flow& in) {
  const Channels channels = channels_of(in, 1);
  if (!channels.last) throw ShapeError("expects [B, T, C], the layer before it gives " + detail::text_of(in));
  return channels.count;
}

/// Of features [B, n], sequences, images and volumes.
Channels any_channels_of(const Flow& in) {
  const std::vector<SymbolicNumber>& shape = in.spec.shape;
  if (shape.size() == 2 && is_float(in.spec.dtype))
    if (const std::optional<std::int64_t> n = shape[1].constant()) return {*n, false};
  return channels_of(in, std::max<std::size_t>(shape.size(), 3) - 2);
}

void check_left_to_word(const char* word, const std::string& what, bool left) {
  if (!left) throw ValueError(std::string(word) + ": the options give " + what + ", which the word gives or infers");
}

template <int N, template <int> class Layer, class Options>
auto convolution_of(const char* word, std::int64_t out_channels, const Sizes& kernel, const Options& options) {
  check_left_to_word(word, "channels or a kernel",
                     options.in_channels == 0 && options.out_channels == 0 && options.kernel_size.rank() == 0);
  return [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    const Channels channels = channels_of(in, N);
    Options all = options;
    all.in_channels = channels.count;
    all.out_channels = out_channels;
    all.kernel_size = kernel.numbers;
    all.channels_last = channels.last;
    return std::make_unique<Layer<N>>(all, init);
  };
}

template <int N, template <int> class Layer, class Options>
auto pool_of(const char* word, const Sizes& kernel, const Options& options) {
  check_left_to_word(word, "a kernel", options.kernel_size.rank() == 0);
  return [=](const Flow& in, const nn::Init&) -> LayerPtr {
    Options all = options;
    all.kernel_size = kernel.numbers;
    all.channels_last = channels_of(in, N).last;
    return std::make_unique<Layer<N>>(all);
  };
}

}  // namespace

Builder& Builder::conv1d(std::int64_t n, const Sizes& kernel, const nn::ConvOptions& options, std::string name) {
  return word("conv1d", std::move(name), convolution_of<1, nn::Conv>("conv1d", n, kernel, options));
}
Builder& Builder::conv2d(std::int64_t n, const Sizes& kernel, const nn::ConvOptions& options, std::string name) {
  return word("conv2d", std::move(name), convolution_of<2, nn::Conv>("conv2d", n, kernel, options));
}
Builder& Builder::conv3d(std::int64_t n, const Sizes& kernel, const nn::ConvOptions& options, std::string name) {
  return word("conv3d", std::move(name), convolution_of<3, nn::Conv>("conv3d", n, kernel, options));
}
Builder& Builder::conv_transpose2d(std::int64_t n, const Sizes& kernel, const nn::ConvTransposeOptions& options,
                                   std::string name) {
  return word("conv_transpose2d", std::move(name),
              convolution_of<2, nn::ConvTranspose>("conv_transpose2d", n, kernel, options));
}
Builder& Builder::conv_transpose3d(std::int64_t n, const Sizes& kernel, const nn::ConvTransposeOptions& options,
                                   std::string name) {
  return word("conv_transpose3d", std::move(name),
              convolution_of<3, nn::ConvTranspose>("conv_transpose3d", n, kernel, options));
}

Builder& Builder::max_pool1d(const Sizes& kernel, const nn::MaxPoolLayerOptions& options, std::string name) {
  return word("max_pool1d", std::move(name), pool_of<1, nn::MaxPool>("max_pool1d", kernel, options));
}
Builder& Builder::avg_pool1d(const Sizes& kernel, const nn::AvgPoolLayerOptions& options, std::string name) {
  return word("avg_pool1d", std::move(name), pool_of<1, nn::AvgPool>("avg_pool1d", kernel, options));
}
Builder& Builder::lp_pool1d(double norm, const Sizes& kernel, nn::LpPoolLayerOptions options, std::string name) {
  check_left_to_word("lp_pool1d", "a norm", options.norm == nn::LpPoolLayerOptions{}.norm);
  options.norm = norm;
  return word("lp_pool1d", std::move(name), pool_of<1, nn::LpPool>("lp_pool1d", kernel, options));
}
Builder& Builder::max_pool2d(const Sizes& kernel, const nn::MaxPoolLayerOptions& options, std::string name) {
  return word("max_pool2d", std::move(name), pool_of<2, nn::MaxPool>("max_pool2d", kernel, options));
}
Builder& Builder::max_pool3d(const Sizes& kernel, const nn::MaxPoolLayerOptions& options, std::string name) {
  return word("max_pool3d", std::move(name), pool_of<3, nn::MaxPool>("max_pool3d", kernel, options));
}
Builder& Builder::avg_pool2d(const Sizes& kernel, const nn::AvgPoolLayerOptions& options, std::string name) {
  return word("avg_pool2d", std::move(name), pool_of<2, nn::AvgPool>("avg_pool2d", kernel, options));
}
Builder& Builder::avg_pool3d(const Sizes& kernel, const nn::AvgPoolLayerOptions& options, std::string name) {
  return word("avg_pool3d", std::move(name), pool_of<3, nn::AvgPool>("avg_pool3d", kernel, options));
}
Builder& Builder::adaptive_avg_pool2d(const Sizes& size, std::string name) {
  return word("adaptive_avg_pool2d", std::move(name), [size](const Flow& in, const nn::Init&) -> LayerPtr {
    (void)channels_of(in, 2);
    return std::make_unique<nn::AdaptiveAvgPool2d>(nn::AdaptivePoolOptions{size.numbers});
  });
}
Builder& Builder::adaptive_max_pool2d(const Sizes& size, std::string name) {
  return word("adaptive_max_pool2d", std::move(name), [size](const Flow& in, const nn::Init&) -> LayerPtr {
    (void)channels_of(in, 2);
    return std::make_unique<nn::AdaptiveMaxPool2d>(nn::AdaptivePoolOptions{size.numbers});
  });
}

Builder& Builder::stft(std::int64_t n_fft, const nn::StftLayerOptions& options, std::string name) {
  check_left_to_word("stft", "n_fft or channels", options.n_fft == 0 && options.channels == 1);
  return word("stft", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::StftLayerOptions all = options;
    all.n_fft = n_fft;
    all.channels = step_channels_of(in);
    return std::make_unique<nn::Stft>(all, init);
  });
}
Builder& Builder::inverse_stft(std::int64_t n_fft, const nn::InverseStftOptions& options, std::string name) {
  check_left_to_word("inverse_stft", "n_fft or channels", options.n_fft == 0 && options.channels == 1);
  return word("inverse_stft", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    const std::int64_t values = step_channels_of(in), each = n_fft < 1 ? 1 : 2 * (n_fft / 2 + 1);
    if (values % each != 0)
      throw ShapeError("expects " + std::to_string(each) +
                       " values of each channel's frame, the layer before it gives " + detail::text_of(in));
    nn::InverseStftOptions all = options;
    all.n_fft = n_fft;
    all.channels = values / each;
    return std::make_unique<nn::InverseStft>(all, init);
  });
}

Builder& Builder::mel_bands(std::int64_t n_mels, double sample_rate, const nn::MelBandsOptions& options,
                            std::string name) {
  check_left_to_word("mel_bands", "frequencies, bands or a sample rate",
                     options.n_frequencies == 0 && options.n_mels == 0 && options.sample_rate == 0);
  return word("mel_bands", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    const std::int64_t values = step_channels_of(in);
    if (options.channels > 0 && values % options.channels != 0)
      throw ShapeError("expects the frequencies of " + std::to_string(options.channels) +
                       " channels, the layer before it gives " + detail::text_of(in));
    nn::MelBandsOptions all = options;
    all.n_mels = n_mels;
    all.sample_rate = sample_rate;
    all.n_frequencies = options.channels > 0 ? values / options.channels : values;
    return std::make_unique<nn::MelBands>(all, init);
  });
}

Builder& Builder::batch_norm(const nn::BatchNormOptions& options, std::string name) {
  check_left_to_word("batch_norm", "features", options.num_features == 0);
  return word("batch_norm", std::move(name), [options](const Flow& in, const nn::Init& init) -> LayerPtr {
    const Channels channels = any_channels_of(in);
    nn::BatchNormOptions all = options;
    all.num_features = channels.count;
    all.channels_last = channels.last;
    if (in.spec.shape.size() == 4) return std::make_unique<nn::BatchNorm2d>(all, init);
    if (in.spec.shape.size() == 5) return std::make_unique<nn::BatchNorm3d>(all, init);
    return std::make_unique<nn::BatchNorm1d>(all, init);
  });
}

Builder& Builder::group_norm(std::int64_t groups, const nn::GroupNormOptions& options, std::string name) {
  check_left_to_word("group_norm", "groups or channels", options.num_groups == 0 && options.num_channels == 0);
  return word("group_norm", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    const Channels channels = any_channels_of(in);
    nn::GroupNormOptions all = options;
    all.num_groups = groups;
    all.num_channels = channels.count;
    all.channels_last = channels.last;
    return std::make_unique<nn::GroupNorm>(all, init);
  });
}

Builder& Builder::rms_norm(const nn::RmsNormOptions& options, std::string name) {
  check_left_to_word("rms_norm", "features", options.features == 0);
  return word("rms_norm", std::move(name), [options](const Flow& in, const nn::Init& init) -> LayerPtr {
    const std::optional<std::int64_t> n = in.spec.shape.back().constant();
    if (!n || !is_float(in.spec.dtype))
      throw ShapeError("expects features, the layer before it gives " + detail::text_of(in));
    nn::RmsNormOptions all = options;
    all.features = *n;
    return std::make_unique<nn::RmsNorm>(all, init);
  });
}

Builder& Builder::elu(double alpha, std::string name) {
  return add(std::make_unique<nn::Elu>(nn::AlphaOptions{alpha}), std::move(name));
}
Builder& Builder::leaky_relu(double slope, std::string name) {
  return add(std::make_unique<nn::LeakyRelu>(nn::SlopeOptions{slope}), std::move(name));
}
Builder& Builder::prelu(bool per_channel, std::string name) {
  return word("prelu", std::move(name), [per_channel](const Flow& in, const nn::Init& init) -> LayerPtr {
    if (!per_channel) return std::make_unique<nn::Prelu>(nn::PreluOptions{}, init);
    const Channels channels = any_channels_of(in);
    return std::make_unique<nn::Prelu>(
        nn::PreluOptions{.num_parameters = channels.count, .channels_last = channels.last}, init);
  });
}
Builder& Builder::glu(std::string name) { return add(std::make_unique<nn::Glu>(), std::move(name)); }

}  // namespace ferrite::dsl
