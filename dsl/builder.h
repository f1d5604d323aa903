#pragma once
/// The fluent builder: describes a network in one line and infers the sizes of layers.
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/dsl/network.h"
#include "ferrite/nn/layers/attention.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/convolution.h"
#include "ferrite/nn/layers/mel.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/layers/parametrized.h"
#include "ferrite/nn/layers/pooling.h"
#include "ferrite/nn/layers/spectrograms.h"
#include "ferrite/nn/layers/standardize.h"
#include "ferrite/nn/layers/tokens.h"
#include "ferrite/nn/layers/transformer.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/mamba.h"
#include "ferrite/nn/recurrent/min_gru.h"
#include "ferrite/nn/recurrent/mlstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/nn/recurrent/s5.h"
#include "ferrite/nn/recurrent/slstm.h"

namespace ferrite::dsl {

/// Kernels or extents along the axes of space: one for all axes, as in 3, or one for each axis, as in {3, 5}.
struct Sizes {
  Shape numbers;
  Sizes(std::int64_t n) : numbers{n} {}
  Sizes(std::initializer_list<std::int64_t> each) : numbers(each) {}
};

/// Describes a chain of layers, one word per layer; `build` makes the network. The input size of each layer is inferred
/// from the layer before; batch and time are not part of the sizes.
///
///   auto net = dsl::sequence(12).gru(64).last_step().linear(9).build(/*seed=*/0);
///
/// The name of a layer is the prefix of its parameters ("0.weight_ih_l0"). The last argument of a word gives the name;
/// by default it is the word's position in the chain, as in torch.nn.Sequential.
class Builder {
 public:
  /// A function that adds the words of a nested chain.
  using Part = std::function<void(Builder&)>;

  explicit Builder(const Input& input) : input_(input) {}

  /// Adds a linear layer with `features` outputs, y = x W + b over the features of the layer before.
  Builder& linear(std::int64_t features, std::string name = {});
  /// Adds a convolution over time that sees no later step. Options such as {.dilation = 2, .groups = 4, .bias = false}
  /// leave the sizes to the builder.
  Builder& causal_conv1d(std::int64_t out_channels, std::int64_t kernel_size,
                         const nn::CausalConv1dOptions& options = {}, std::string name = {});
  /// Adds a convolution over one, two or three axes, or a transposed one. Options such as {.stride = {2}, .padding =
  /// {1}} leave channels and kernel empty. Over images the channels are axis 1, as in PyTorch; conv1d reads sequences,
  /// whose channels are the last axis. Without {.padding = ConvolutionPadding::same} the number of steps may change;
  /// `lengths` of a context do not follow that, so the chain then throws ValueError for a context with lengths.
  Builder& conv1d(std::int64_t out_channels, const Sizes& kernel, const nn::ConvOptions& options = {},
                  std::string name = {});
  Builder& conv2d(std::int64_t out_channels, const Sizes& kernel, const nn::ConvOptions& options = {},
                  std::string name = {});
  Builder& conv3d(std::int64_t out_channels, const Sizes& kernel, const nn::ConvOptions& options = {},
                  std::string name = {});
  Builder& conv_transpose2d(std::int64_t out_channels, const Sizes& kernel,
                            const nn::ConvTransposeOptions& options = {}, std::string name = {});
  Builder& conv_transpose3d(std::int64_t out_channels, const Sizes& kernel,
                            const nn::ConvTransposeOptions& options = {}, std::string name = {});
  /// Adds a pooling layer over the steps of a sequence or over two or three axes of space. Options such as {.stride =
  /// {1}, .padding = {1}} leave the kernel to the word.
  Builder& max_pool1d(const Sizes& kernel, const nn::MaxPoolLayerOptions& options = {}, std::string name = {});
  Builder& avg_pool1d(const Sizes& kernel, const nn::AvgPoolLayerOptions& options = {}, std::string name = {});
  Builder& lp_pool1d(double norm, const Sizes& kernel, nn::LpPoolLayerOptions options = {}, std::string name = {});
  Builder& max_pool2d(const Sizes& kernel, const nn::MaxPoolLayerOptions& options = {}, std::string name = {});
  Builder& max_pool3d(const Sizes& kernel, const nn::MaxPoolLayerOptions& options = {}, std::string name = {});
  Builder& avg_pool2d(const Sizes& kernel, const nn::AvgPoolLayerOptions& options = {}, std::string name = {});
  Builder& avg_pool3d(const Sizes& kernel, const nn::AvgPoolLayerOptions& options = {}, std::string name = {});
  Builder& adaptive_avg_pool2d(const Sizes& size, std::string name = {});
  Builder& adaptive_max_pool2d(const Sizes& size, std::string name = {});
  /// Adds nn::Stft, from samples to one step per frame, or nn::InverseStft, to one step per block of hop samples.
  /// Options such as {.hop_length = 128, .center = false}, which stream, leave n_fft and channels to the word.
  Builder& stft(std::int64_t n_fft, const nn::StftLayerOptions& options = {}, std::string name = {});
  Builder& inverse_stft(std::int64_t n_fft, const nn::InverseStftOptions& options = {}, std::string name = {});
  /// Adds mel bands of power spectra, after stft(n, {.spectrum = nn::Spectrum::power}). Options such as {.log_offset =
  /// 1e-6} leave frequencies, bands and sample rate to the word.
  Builder& mel_bands(std::int64_t n_mels, double sample_rate, const nn::MelBandsOptions& options = {},
                     std::string name = {});
  /// Adds a recurrent layer, batch first. Options: {.layers = 2, .bidirectional = true, .dropout = 0.2}.
  Builder& gru(std::int64_t hidden_size, const nn::GruOptions& options = {}, std::string name = {});
  Builder& lstm(std::int64_t hidden_size, const nn::LstmOptions& options = {}, std::string name = {});
  Builder& rnn(std::int64_t hidden_size, const nn::RnnOptions& options = {}, std::string name = {});
  template <std::convertible_to<std::string> Name>
  Builder& gru(std::int64_t hidden_size, Name name) {
    return gru(hidden_size, nn::GruOptions{}, std::move(name));
  }
  template <std::convertible_to<std::string> Name>
  Builder& lstm(std::int64_t hidden_size, Name name) {
    return lstm(hidden_size, nn::LstmOptions{}, std::move(name));
  }
  template <std::convertible_to<std::string> Name>
  Builder& rnn(std::int64_t hidden_size, Name name) {
    return rnn(hidden_size, nn::RnnOptions{}, std::move(name));
  }
  /// Adds a recurrence without a matrix product in its loop: min_gru and min_lstm with `hidden_size` units, lru and s5
  /// with `state_size` complex states. lru, s5 and rg_lru give as many features as they read.
  Builder& min_gru(std::int64_t hidden_size, const nn::MinGruOptions& options = {}, std::string name = {});
  Builder& min_lstm(std::int64_t hidden_size, const nn::MinLstmOptions& options = {}, std::string name = {});
  Builder& lru(std::int64_t state_size, const nn::LruOptions& options = {}, std::string name = {});
  Builder& s5(std::int64_t state_size, const nn::S5Options& options = {}, std::string name = {});
  Builder& rg_lru(std::int64_t heads = 1, std::string name = {});
  /// Adds Mamba, as wide as the layer before, for which options such as {.state = 8} leave features unset.
  Builder& mamba(const nn::MambaOptions& options = {}, std::string name = {});
  /// Adds a layer of an xLSTM, as wide as the layer before. Options such as {.num_heads = 2} leave embedding_dim 0.
  Builder& mlstm(const nn::MLstmOptions& options = {}, std::string name = {});
  Builder& slstm(const nn::SLstmOptions& options = {}, std::string name = {});
  /// Adds a layer of your own cells (nn/recurrent/custom.h), C(input_size, hidden_size, init): .recurrent<MyCell>(64).
  template <std::derived_from<nn::CustomCell> C>
  Builder& recurrent(std::int64_t hidden_size, const nn::CustomOptions& options = {}, std::string name = {}) {
    return recurrent(
        [hidden_size](std::int64_t D, const nn::Init& init) { return std::make_unique<C>(D, hidden_size, init); },
        hidden_size, options, std::move(name));
  }
  Builder& recurrent(nn::Custom::Make cell, std::int64_t hidden_size, const nn::CustomOptions& options = {},
                     std::string name = {});
  /// Adds an embedding, directly after `tokens`. Options such as {.padding_idx = 0} leave the sizes to the builder.
  Builder& embedding(std::int64_t features, const nn::EmbeddingOptions& options = {}, std::string name = {});
  template <std::convertible_to<std::string> Name>
  Builder& embedding(std::int64_t features, Name name) {
    return embedding(features, nn::EmbeddingOptions{}, std::move(name));
  }
  /// Adds an embedding bag, directly after `tokens`: joins the embeddings of all tokens of a sequence.
  Builder& embedding_bag(std::int64_t features, const nn::EmbeddingBagOptions& options = {}, std::string name = {});
  /// Adds an encoding of its position to every step: sines and cosines, or learned rows for up to `learned` steps.
  Builder& positions(std::string name = {});
  Builder& positions(std::int64_t learned, std::string name = {});
  /// Adds (x - mean) / deviation for every feature, with numbers that `train::adapt` computes from data. The builder
  /// infers the features; options that give them, as {.features = 3}, throw ValueError.
  Builder& standardize(const nn::StandardizeOptions& options = {}, std::string name = {});
  template <std::convertible_to<std::string> Name>
  Builder& standardize(Name name) {
    return standardize(nn::StandardizeOptions{}, std::move(name));
  }
  /// Adds your function of one step, [B, T, D] -> [B, T, N], as an nn::PerStep of that name, which streams. `build`
  /// throws ValueError if the function gives other values for a step alone than within a sequence.
  Builder& per_step(std::string name, std::function<Tensor(const Tensor&)> f);
  /// Adds layer normalisation of the features.
  Builder& layer_norm(std::string name = {});
  /// Adds batch normalisation of features, sequences, images or volumes, over the batch and all axes of space or time.
  /// The builder infers the number of features; options such as {.momentum = 0.01} must not give it.
  Builder& batch_norm(const nn::BatchNormOptions& options = {}, std::string name = {});
  /// Adds group normalisation of features, sequences, images or volumes.
  Builder& group_norm(std::int64_t groups, const nn::GroupNormOptions& options = {}, std::string name = {});
  /// Adds normalisation of features by their root mean square. The builder infers their number; options leave it out.
  Builder& rms_norm(const nn::RmsNormOptions& options = {}, std::string name = {});
  /// Adds self-attention over the steps of a sequence. Options such as {.causal = true, .kv_heads = 2} leave embed_dim
  /// and num_heads to the word.
  Builder& attention(std::int64_t heads, const nn::MultiheadAttentionOptions& options = {}, std::string name = {});
  /// Adds nn::TransformerEncoderLayer, attention and two products. Options such as {.dim_feedforward = 512, .norm_first
  /// = true} leave d_model and nhead to the word; `repeat` stacks several layers.
  Builder& transformer(std::int64_t heads, const nn::TransformerLayerOptions& options = {}, std::string name = {});
  /// Adds dropout, which zeroes features with this probability while training.
  Builder& dropout(double probability, std::string name = {});
  /// Adds a layer that keeps the last step, or the last valid one when the context has lengths.
  Builder& last_step(std::string name = {});
  /// Adds a layer that gives the mean over the steps, or over the valid ones when the context has lengths.
  Builder& mean_over_time(std::string name = {});
  /// Adds a layer that joins all axes after the batch, [B, ...] -> [B, N].
  Builder& flatten(std::string name = {});
  /// Adds a layer that reshapes features [B, n] to images or volumes: unflatten({3, 8, 8}) gives axis 1 these extents.
  Builder& unflatten(const Sizes& sizes, std::string name = {});

  /// Adds the activation after which the word is called; `name` is the layer's name.
  Builder& relu(std::string name = {}) { return activation("relu", std::move(name)); }
  Builder& tanh(std::string name = {}) { return activation("tanh", std::move(name)); }
  Builder& sigmoid(std::string name = {}) { return activation("sigmoid", std::move(name)); }
  Builder& gelu(std::string name = {}) { return activation("gelu", std::move(name)); }
  Builder& silu(std::string name = {}) { return activation("silu", std::move(name)); }
  Builder& softplus(std::string name = {}) { return activation("softplus", std::move(name)); }
  Builder& log_sigmoid(std::string name = {}) { return activation("log_sigmoid", std::move(name)); }
  Builder& selu(std::string name = {}) { return activation("selu", std::move(name)); }
  Builder& mish(std::string name = {}) { return activation("mish", std::move(name)); }
  Builder& hardswish(std::string name = {}) { return activation("hardswish", std::move(name)); }
  Builder& hardsigmoid(std::string name = {}) { return activation("hardsigmoid", std::move(name)); }
  Builder& softmax(std::string name = {}) { return activation("softmax", std::move(name)); }
  Builder& log_softmax(std::string name = {}) { return activation("log_softmax", std::move(name)); }
  Builder& elu(double alpha = 1, std::string name = {});
  Builder& leaky_relu(double slope = 0.01, std::string name = {});
  /// Adds a leaky rectifier with one learned weight, or with one for each channel if `per_channel`.
  Builder& prelu(bool per_channel = false, std::string name = {});
  Builder& prelu(const char*, std::string = {}) = delete;  // a text as the name would become a bool
  /// Adds a gated linear unit: the first half of the features times the sigmoid of the second.
  Builder& glu(std::string name = {});
  /// Adds the activation `kind`, any of nn::activation_names(). Throws ValueError for an unknown name.
  Builder& activation(const std::string& kind, std::string name = {});

  /// Adds a nested chain, whose parameters have a dotted prefix: "encoder.0.weight_ih_l0".
  Builder& stage(std::string name, const Part& part);
  /// Adds x + part(x), a residual connection around the part.
  Builder& residual(const Part& part, std::string name = {});
  /// Adds the one layer of the part with one of its weights split into length and direction (nn/layers/parametrized.h).
  /// Options: {.parameter = "weight_hh_l0", .axis = 1}.
  Builder& weight_norm(const Part& part, const nn::WeightNormOptions& options = {}, std::string name = {});
  /// Adds the one layer of the part with one of its weights divided by the weight's largest singular value.
  Builder& spectral_norm(const Part& part, const nn::SpectralNormOptions& options = {}, std::string name = {});
  /// Adds part(x) + part(x) + ...: each part is a chain with the prefix "0.", "1.", ...
  Builder& parallel(const std::vector<Part>& parts, std::string name = {});
  /// Adds the outputs of the parts, joined along the features, or along the channels of images.
  Builder& concat(const std::vector<Part>& parts, std::string name = {});
  /// Adds the words of the part n times, one after the other, each time with parameters of their own.
  Builder& repeat(int n, const Part& part);
  /// Adds a copy of any layer to every network that is built; `build` draws what has no value yet.
  Builder& add(std::unique_ptr<nn::Layer> layer, std::string name = {});
  template <std::derived_from<nn::Layer> L>
  Builder& add(L layer, std::string name = {}) {
    return add(std::make_unique<L>(std::move(layer)), std::move(name));
  }

  /// Makes the network. One seed fixes all weights. Without a seed they have no values yet: a layer that adopts the
  /// network draws them, or a file gives them (see nn::Init). Throws ShapeError when a layer does not fit the one
  /// before it, naming position, kind, name and both shapes, and ValueError for sizes, names and options out of range.
  Network build(std::optional<std::uint64_t> seed = {}, Dtype dtype = Dtype::f32) const;

 private:
  using Make = std::function<std::unique_ptr<nn::Layer>(const Flow& in, const nn::Init& init)>;
  struct Word {
    std::string kind;
    std::string name;
    Make make;
  };

  Builder& word(std::string kind, std::string name, Make make);
  template <class Branches>
  Builder& branches(const char* kind, const std::vector<Part>& parts, std::string name);
  /// Returns the function that makes the layer of a one-word part, without drawing values.
  static Make only_word(const char* kind, const Part& part, const Input& input);
  /// Fills `chain` with the layers of all words.
  void build_into(nn::Sequential& chain, Flow flow, const nn::Init& init, std::vector<SummaryRow>* rows) const;

  Input input_;
  std::vector<Word> words_;
};

/// Starts a chain that reads sequences x [B, T, features].
Builder sequence(std::int64_t features);
/// Starts a chain that reads vectors x [B, n].
Builder features(std::int64_t n);
/// Starts a chain that reads images x [B, channels, height, width].
Builder image(std::int64_t channels, std::int64_t height, std::int64_t width);
/// Starts a chain that reads volumes x [B, channels, depth, height, width].
Builder volume(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width);
/// Starts a chain that reads sequences of tokens i64 [B, T], each below `vocabulary`.
Builder tokens(std::int64_t vocabulary);

}  // namespace ferrite::dsl
