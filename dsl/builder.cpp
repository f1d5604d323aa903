/// Defines the words of the builder; each adds a layer of inferred size. The sections: general layers, channels,
/// recurrences without a product in their loop, and tokens as transformers read them.
#include "ferrite/dsl/builder.h"

#include "ferrite/dsl/detail/dry_run.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/branches.h"
#include "ferrite/nn/layers/per_step.h"

namespace ferrite::dsl {
namespace {

using LayerPtr = std::unique_ptr<nn::Layer>;

std::int64_t features_of(const Flow& in) {
  const std::optional<std::int64_t> features =
      in.spec.shape.size() < 2 ? std::nullopt : in.spec.shape.back().constant();
  if (!is_float(in.spec.dtype) || !features)
    throw ShapeError("expects features, the layer before it gives " + detail::text_of(in));
  return *features;
}

Flow flow_of(const Input& input, Dtype dtype) {
  switch (input.kind) {
    case InputKind::sequence: return {{{detail::batch(), detail::time(), input.size}, dtype}, 0};
    case InputKind::features: return {{{detail::batch(), input.size}, dtype}, 0};
    case InputKind::image: {
      SymbolicSpec spec{{detail::batch(), input.size}, dtype};
      for (const std::int64_t n : input.space) spec.shape.emplace_back(n);
      return {spec, 0};
    }
    case InputKind::tokens: break;
  }
  return {{{detail::batch(), detail::time()}, Dtype::i64}, input.size};
}

std::string label(std::size_t position, const std::string& kind, const std::string& name) {
  return "layer " + std::to_string(position) + " (" + kind + " \"" + name + "\"): ";
}

void check_part(const char* word, const Builder::Part& part) {
  if (!part) throw ValueError(std::string(word) + ": the part is empty");
}

/// A ShapeError that already names the layer and its input; an enclosing chain only adds its own layer.
class LayerShapeError : public ShapeError {
 public:
  using ShapeError::ShapeError;
};

/// Returns the end of an error message: the shape that the layer received.
std::string what_came(std::size_t position, const Flow& in) {
  return std::string(position ? "; the layer before it gives " : "; the input is ") + detail::shape_of(in);
}

/// Returns a function that makes a recurrent layer of one kind by make(features, init).
template <class Options, class Make>
auto batch_first_recurrent(const Options& options, Make make) {
  return [options, make](const Flow& in, const nn::Init& init) -> LayerPtr {
    if (!options.batch_first) throw ValueError("time-first input does not fit a chain, which is batch-first");
    std::unique_ptr<nn::Recurrent> layer = make(features_of(in), init);
    if (in.spec.shape.size() != 3)  // without a batch it would be a sequence, which a chain does not read
      throw ShapeError(layer->kind() + ": expects input [B, T, " + std::to_string(layer->input_size()) + "], got " +
                       detail::shape_of(in));
    return layer;
  };
}
template <class L, class Options>
auto recurrent_of(std::int64_t hidden_size, const Options& options) {
  return batch_first_recurrent(options, [=](std::int64_t features, const nn::Init& init) {
    return std::make_unique<L>(features, hidden_size, options, init);
  });
}

Builder checked(InputKind kind, const char* word, std::int64_t size) {
  if (size < 1) throw ValueError(std::string(word) + ": the size must be positive, got " + std::to_string(size));
  return Builder({kind, size});
}

Builder on_space(const char* word, std::int64_t channels, const Shape& space) {
  for (const std::int64_t n : space)
    if (n < 1 || channels < 1)
      throw ValueError(std::string(word) + ": sizes must be positive, got " + std::to_string(channels) +
                       " channels of " + space.str());
  return Builder({InputKind::image, channels, space});
}

}  // namespace

Builder sequence(std::int64_t features) { return checked(InputKind::sequence, "sequence", features); }
Builder features(std::int64_t n) { return checked(InputKind::features, "features", n); }
Builder tokens(std::int64_t vocabulary) { return checked(InputKind::tokens, "tokens", vocabulary); }
Builder image(std::int64_t channels, std::int64_t height, std::int64_t width) {
  return on_space("image", channels, {height, width});
}
Builder volume(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width) {
  return on_space("volume", channels, {depth, height, width});
}

Builder& Builder::word(std::string kind, std::string name, Make make) {
  words_.push_back({std::move(kind), std::move(name), std::move(make)});
  return *this;
}

Builder& Builder::linear(std::int64_t n, std::string name) {
  return word("linear", std::move(name), [n](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::Linear>(features_of(in), n, init);
  });
}

Builder& Builder::causal_conv1d(std::int64_t out_channels, std::int64_t kernel_size,
                                const nn::CausalConv1dOptions& options, std::string name) {
  if (options.in_channels != 0 || options.out_channels != 0 || options.kernel_size != 0)
    throw ValueError("causal_conv1d: the options give sizes, " + std::to_string(options.in_channels) + " to " +
                     std::to_string(options.out_channels) + " channels and kernel_size " +
                     std::to_string(options.kernel_size) + "; give the word the last two, it infers the first");
  return word("causal_conv1d", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::CausalConv1dOptions all = options;
    all.in_channels = features_of(in);
    all.out_channels = out_channels;
    all.kernel_size = kernel_size;
    return std::make_unique<nn::CausalConv1d>(all, init);
  });
}

Builder& Builder::gru(std::int64_t hidden_size, const nn::GruOptions& options, std::string name) {
  return word("gru", std::move(name), recurrent_of<nn::Gru>(hidden_size, options));
}

Builder& Builder::lstm(std::int64_t hidden_size, const nn::LstmOptions& options, std::string name) {
  return word("lstm", std::move(name), recurrent_of<nn::Lstm>(hidden_size, options));
}

Builder& Builder::rnn(std::int64_t hidden_size, const nn::RnnOptions& options, std::string name) {
  return word("rnn", std::move(name), recurrent_of<nn::Rnn>(hidden_size, options));
}

Builder& Builder::recurrent(nn::Custom::Make cell, std::int64_t hidden_size, const nn::CustomOptions& options,
                            std::string name) {
  return word("recurrent", std::move(name),
              batch_first_recurrent(options, [=, cell = std::move(cell)](std::int64_t features, const nn::Init& init) {
                return std::make_unique<nn::Custom>(cell, features, hidden_size, options, init);
              }));
}

Builder& Builder::standardize(const nn::StandardizeOptions& options, std::string name) {
  if (options.features != 0)
    throw ValueError("standardize: the options give features, " + std::to_string(options.features) +
                     ", which the word infers");
  return word("standardize", std::move(name), [options](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::StandardizeOptions all = options;
    all.features = features_of(in);
    return std::make_unique<nn::Standardize>(all, init);
  });
}

Builder& Builder::per_step(std::string name, std::function<Tensor(const Tensor&)> f) {
  const nn::PerStepOptions given{.name = name, .function = std::move(f)};
  (void)nn::PerStep(given);
  return word("per_step", std::move(name), [given](const Flow& in, const nn::Init&) -> LayerPtr {
    nn::PerStepOptions all = given;
    all.features = features_of(in);
    all.dtype = in.spec.dtype;
    auto layer = std::make_unique<nn::PerStep>(all);
    layer->check_promise();
    return layer;
  });
}

Builder& Builder::layer_norm(std::string name) {
  return word("layer_norm", std::move(name), [](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::LayerNorm>(features_of(in), init);
  });
}

Builder& Builder::dropout(double probability, std::string name) {
  return word("dropout", std::move(name), [probability](const Flow&, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::Dropout>(probability, init);
  });
}

Builder& Builder::last_step(std::string name) { return add(std::make_unique<nn::LastStep>(), std::move(name)); }
Builder& Builder::mean_over_time(std::string name) {
  return add(std::make_unique<nn::MeanOverTime>(), std::move(name));
}
Builder& Builder::flatten(std::string name) { return add(std::make_unique<nn::Flatten>(), std::move(name)); }

Builder& Builder::activation(const std::string& kind, std::string name) {
  const nn::Activation::Function f = nn::activation(kind);
  if (!f) {
    std::string known;
    for (const std::string& n : nn::activation_names()) known += (known.empty() ? "" : ", ") + n;
    throw ValueError("activation: '" + kind + "' is unknown; known are " + known);
  }
  return add(std::make_unique<nn::Activation>(kind, f), std::move(name));
}

Builder& Builder::stage(std::string name, const Part& part) {
  check_part("stage", part);
  Builder inner(input_);
  part(inner);
  return word("stage", std::move(name), [inner](const Flow& in, const nn::Init& init) -> LayerPtr {
    auto chain = std::make_unique<nn::Sequential>();
    inner.build_into(*chain, in, init, nullptr);
    return chain;
  });
}

Builder& Builder::residual(const Part& part, std::string name) {
  check_part("residual", part);
  Builder inner(input_);
  part(inner);
  return word("residual", std::move(name), [inner](const Flow& in, const nn::Init& init) -> LayerPtr {
    auto chain = std::make_unique<nn::Residual>();
    inner.build_into(*chain, in, init, nullptr);
    return chain;
  });
}

Builder::Make Builder::only_word(const char* kind, const Part& part, const Input& input) {
  check_part(kind, part);
  Builder inner(input);
  part(inner);
  if (inner.words_.size() != 1)
    throw ValueError(std::string(kind) + ": takes the part of one word, got " + std::to_string(inner.words_.size()));
  return [make = inner.words_[0].make](const Flow& in, const nn::Init& init) {
    return make(in, {.seed = {}, .prefix = {}, .dtype = init.dtype});
  };
}

Builder& Builder::weight_norm(const Part& part, const nn::WeightNormOptions& options, std::string name) {
  const Make make = only_word("weight_norm", part, input_);
  return word("weight_norm", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    auto layer = std::make_unique<nn::WeightNorm>(make(in, init), options);
    if (init.seed) layer->draw(init);
    return layer;
  });
}

Builder& Builder::spectral_norm(const Part& part, const nn::SpectralNormOptions& options, std::string name) {
  const Make make = only_word("spectral_norm", part, input_);
  return word("spectral_norm", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    auto layer = std::make_unique<nn::SpectralNorm>(make(in, init), options);
    if (init.seed) layer->draw(init);
    return layer;
  });
}

template <class Branches>
Builder& Builder::branches(const char* kind, const std::vector<Part>& parts, std::string name) {
  if (parts.empty()) throw ValueError(std::string(kind) + ": there are no parts");
  std::vector<Builder> inner;
  for (const Part& part : parts) {
    check_part(kind, part);
    part(inner.emplace_back(input_));
  }
  return word(kind, std::move(name), [inner](const Flow& in, const nn::Init& init) -> LayerPtr {
    auto all = std::make_unique<Branches>();
    for (std::size_t i = 0; i < inner.size(); ++i) {
      auto chain = std::make_unique<nn::Sequential>();
      inner[i].build_into(*chain, in, init.child(std::to_string(i)), nullptr);
      all->add(std::to_string(i), std::move(chain));
    }
    return all;
  });
}

Builder& Builder::parallel(const std::vector<Part>& parts, std::string name) {
  return branches<nn::Parallel>("parallel", parts, std::move(name));
}

Builder& Builder::concat(const std::vector<Part>& parts, std::string name) {
  return branches<nn::Concat>("concat", parts, std::move(name));
}

Builder& Builder::unflatten(const Sizes& sizes, std::string name) {
  return add(std::make_unique<nn::Unflatten>(nn::UnflattenOptions{.axis = 1, .sizes = sizes.numbers}), std::move(name));
}

Builder& Builder::repeat(int n, const Part& part) {
  check_part("repeat", part);
  if (n < 0) throw ValueError("repeat: the count must not be negative, got " + std::to_string(n));
  for (int i = 0; i < n; ++i) part(*this);
  return *this;
}

Builder& Builder::add(std::unique_ptr<nn::Layer> layer, std::string name) {
  if (!layer) throw ValueError("add: the layer is null");
  std::string kind = layer->kind();
  const std::shared_ptr<const nn::Layer> original = std::move(layer);
  return word(std::move(kind), std::move(name), [original](const Flow&, const nn::Init& init) {
    std::unique_ptr<nn::Layer> copy = original->clone();
    if (init.seed) copy->draw(init);
    return copy;
  });
}

void Builder::build_into(nn::Sequential& chain, Flow flow, const nn::Init& init, std::vector<SummaryRow>* rows) const {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const Word& w = words_[i];
    const std::string name = w.name.empty() ? std::to_string(i) : w.name;
    const auto wrapped = [&](const std::exception& e) { return label(i, w.kind, name) + e.what(); };
    try {
      std::unique_ptr<nn::Layer> layer = w.make(flow, init.child(name));
      const Flow output = detail::dry_run(*layer, flow, w.kind);
      if (rows)
        rows->push_back({name, layer->kind(), detail::shape_of(output), layer->parameter_count(),
                         detail::multiply_adds(*layer, flow, output)});
      flow = output;
      chain.add(name, std::move(layer));
    } catch (const LayerShapeError& e) {
      throw LayerShapeError(wrapped(e));
    } catch (const ShapeError& e) {
      throw LayerShapeError(wrapped(e) + what_came(i, flow));
    } catch (const DtypeError& e) {
      throw DtypeError(wrapped(e));
    } catch (const TraceError& e) {
      throw TraceError(wrapped(e));
    } catch (const ValueError& e) {
      throw ValueError(wrapped(e));
    }
  }
}

Network Builder::build(std::optional<std::uint64_t> seed, Dtype dtype) const {
  if (words_.empty()) throw ValueError("build: the network has no layers");
  Network net(input_, {});
  std::vector<SummaryRow> rows;
  build_into(net, flow_of(input_, dtype), {seed, {}, dtype}, &rows);
  net.rows_ = std::move(rows);
  return net;
}

// ---- channels --------------------------------------------------------------------------------------------

namespace {

/// The number of channels of a value, and whether they are the last axis, as in sequences, or axis 1.
struct Channels {
  std::int64_t count = 0;
  bool last = false;
};

/// Returns the channels of a value. Throws ShapeError unless it has `axes` axes of space or time and a known number of
/// channels.
Channels channels_of(const Flow& in, std::size_t axes) {
  const std::vector<SymbolicNumber>& shape = in.spec.shape;
  if (is_float(in.spec.dtype) && shape.size() == axes + 2) {
    const bool last = axes == 1 && !shape[1].constant();
    if (const std::optional<std::int64_t> n = shape[last ? 2 : 1].constant()) return {*n, last};
  }
  const std::string wanted = axes == 1 ? "[B, T, C]" : axes == 2 ? "[B, C, H, W]" : "[B, C, D, H, W]";
  throw ShapeError("expects " + wanted + ", the layer before it gives " + detail::text_of(in));
}

/// Returns the channels of a sequence. Throws ShapeError for anything else.
std::int64_t step_channels_of(const Flow& in) {
  const Channels channels = channels_of(in, 1);
  if (!channels.last) throw ShapeError("expects [B, T, C], the layer before it gives " + detail::text_of(in));
  return channels.count;
}

/// Returns the channels of features [B, n], sequences, images or volumes.
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

// ---- recurrences -----------------------------------------------------------------------------------------

namespace {

/// Returns the number of features of each step of a sequence. Throws ShapeError for anything else.
std::int64_t features_of_steps(const Flow& in) {
  const std::vector<SymbolicNumber>& shape = in.spec.shape;
  if (shape.size() == 3 && is_float(in.spec.dtype))
    if (const std::optional<std::int64_t> n = shape[2].constant()) return *n;
  throw ShapeError("expects [B, T, D], the layer before it gives " + detail::text_of(in));
}

/// Returns a function that makes a layer L(input features, hidden_size, options, init).
template <class L, class Options>
auto sized(std::int64_t hidden_size, const Options& options) {
  return [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<L>(features_of_steps(in), hidden_size, options, init);
  };
}

/// Returns a function that makes a layer over sequences whose embedding_dim is the number of input features.
template <class L, class Options>
auto as_wide(const char* word, const Options& options) {
  if (options.embedding_dim != 0)
    throw ValueError(std::string(word) + ": the options give embedding_dim " + std::to_string(options.embedding_dim) +
                     ", which the word infers");
  return [options](const Flow& in, const nn::Init& init) -> LayerPtr {
    Options all = options;
    all.embedding_dim = features_of_steps(in);
    return std::make_unique<L>(all, init);
  };
}

}  // namespace

Builder& Builder::min_gru(std::int64_t hidden_size, const nn::MinGruOptions& options, std::string name) {
  return word("min_gru", std::move(name), sized<nn::MinGru>(hidden_size, options));
}

Builder& Builder::min_lstm(std::int64_t hidden_size, const nn::MinLstmOptions& options, std::string name) {
  return word("min_lstm", std::move(name), sized<nn::MinLstm>(hidden_size, options));
}

Builder& Builder::lru(std::int64_t state_size, const nn::LruOptions& options, std::string name) {
  return word("lru", std::move(name), sized<nn::Lru>(state_size, options));
}

Builder& Builder::s5(std::int64_t state_size, const nn::S5Options& options, std::string name) {
  return word("s5", std::move(name), sized<nn::S5>(state_size, options));
}

Builder& Builder::rg_lru(std::int64_t heads, std::string name) {
  return word("rg_lru", std::move(name), [heads](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::RgLru>(nn::RgLruOptions{features_of_steps(in), heads}, init);
  });
}

Builder& Builder::mlstm(const nn::MLstmOptions& options, std::string name) {
  return word("mlstm", std::move(name), as_wide<nn::MLstm>("mlstm", options));
}

Builder& Builder::slstm(const nn::SLstmOptions& options, std::string name) {
  return word("slstm", std::move(name), as_wide<nn::SLstm>("slstm", options));
}

Builder& Builder::mamba(const nn::MambaOptions& options, std::string name) {
  if (options.features != 0)
    throw ValueError("mamba: the options give features " + std::to_string(options.features) +
                     ", which the word infers");
  return word("mamba", std::move(name), [options](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::MambaOptions all = options;
    all.features = features_of_steps(in);
    return std::make_unique<nn::Mamba>(all, init);
  });
}

// ---- tokens ----------------------------------------------------------------------------------------------

namespace {

std::int64_t vocabulary_of(const Flow& in) {
  if (in.vocabulary < 1)
    throw ShapeError("expects tokens, the layer before it gives " + detail::text_of(in) +
                     "; start with dsl::tokens(vocabulary)");
  return in.vocabulary;
}

}  // namespace

Builder& Builder::embedding(std::int64_t features, const nn::EmbeddingOptions& options, std::string name) {
  if (options.vocabulary != 1 || options.features != 1)
    throw ValueError("embedding: the options give sizes, which the word infers and gives");
  return word("embedding", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::EmbeddingOptions all = options;
    all.vocabulary = vocabulary_of(in);
    all.features = features;
    return std::make_unique<nn::Embedding>(all, init);
  });
}

Builder& Builder::embedding_bag(std::int64_t features, const nn::EmbeddingBagOptions& options, std::string name) {
  if (options.vocabulary != 0 || options.features != 0)
    throw ValueError("embedding_bag: the options give sizes, which the word infers and gives");
  return word("embedding_bag", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::EmbeddingBagOptions all = options;
    all.vocabulary = vocabulary_of(in);
    all.features = features;
    return std::make_unique<nn::EmbeddingBag>(all, init);
  });
}

Builder& Builder::positions(std::string name) {
  return word("positions", std::move(name), [](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::SinusoidalPositions>(nn::SinusoidalPositionsOptions{.features = features_of_steps(in)},
                                                     init);
  });
}

Builder& Builder::positions(std::int64_t learned, std::string name) {
  return word("positions", std::move(name), [learned](const Flow& in, const nn::Init& init) -> LayerPtr {
    return std::make_unique<nn::LearnedPositions>(
        nn::LearnedPositionsOptions{.features = features_of_steps(in), .capacity = learned}, init);
  });
}

Builder& Builder::transformer(std::int64_t heads, const nn::TransformerLayerOptions& options, std::string name) {
  if (options.d_model != 0 || options.nhead != 1)
    throw ValueError("transformer: the options give d_model or nhead, which the word infers and gives");
  return word("transformer", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::TransformerLayerOptions all = options;
    all.d_model = features_of_steps(in);
    all.nhead = heads;
    return std::make_unique<nn::TransformerEncoderLayer>(all, init);
  });
}

Builder& Builder::attention(std::int64_t heads, const nn::MultiheadAttentionOptions& options, std::string name) {
  if (options.embed_dim != 0 || options.num_heads != 1)
    throw ValueError("attention: the options give embed_dim or num_heads, which the word infers and gives");
  return word("attention", std::move(name), [=](const Flow& in, const nn::Init& init) -> LayerPtr {
    nn::MultiheadAttentionOptions all = options;
    all.embed_dim = features_of_steps(in);
    all.num_heads = heads;
    return std::make_unique<nn::MultiheadAttention>(all, init);
  });
}

}  // namespace ferrite::dsl
