#pragma once
/// The fluent builder: networks from one line, with sizes inferred from the layer before.
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

/// Numbers along the axes of space: one for all of them, 3, or one for each, {3, 5}.
struct Sizes {
  Shape numbers;
  Sizes(std::int64_t n) : numbers{n} {}
  Sizes(std::initializer_list<std::int64_t> each) : numbers(each) {}
};

/// Describes a chain of layers word by word; `build` makes it. Sizes are inferred from the layer before, batch and
/// time are not part of them.
///
///   auto net = dsl::sequence(12).gru(64).last_step().linear(9).build(/*seed=*/0);
///
/// A layer's name is the prefix of its parameters ("0.weight_ih_l0"): given by the last argument of its word, else its
/// position among all words, as in torch.nn.Sequential.
class Builder {
 public:
  /// Words of a nested chain.
  using Part = std::function<void(Builder&)>;

  explicit Builder(const Input& input) : input_(input) {}

  Builder& linear(std::int64_t features, std::string name = {});
  /// A convolution over time that sees no later step; options as {.dilation = 2, .groups = 4, .bias = false}, whose
  /// sizes stay 0.
  Builder& causal_conv1d(std::int64_t out_channels, std::int64_t kernel_size,
                         const nn::CausalConv1dOptions& options = {}, std::string name = {});
  /// Convolutions over one, two and three axes, and their transposes; options as {.stride = {2}, .padding = {1}}, whose
  /// channels and kernel stay empty. Over images the channels are axis 1, as in PyTorch; over sequences, which conv1d
  /// takes, the last one; without {.padding = ConvolutionPadding::same} other numbers of steps may be left,
  /// which `lengths` of a context do not count: chains then throw ValueError for a context with them.
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
  /// Pooling over the steps of a sequence, two and three axes; options as {.stride = {1}, .padding = {1}}, whose kernel
  /// stays empty.
  Builder& max_pool1d(const Sizes& kernel, const nn::MaxPoolLayerOptions& options = {}, std::string name = {});
  Builder& avg_pool1d(const Sizes& kernel, const nn::AvgPoolLayerOptions& options = {}, std::string name = {});
  Builder& lp_pool1d(double norm, const Sizes& kernel, nn::LpPoolLayerOptions options = {}, std::string name = {});
  Builder& max_pool2d(const Sizes& kernel, const nn::MaxPoolLayerOptions& options = {}, std::string name = {});
  Builder& max_pool3d(const Sizes& kernel, const nn::MaxPoolLayerOptions& options = {}, std::string name = {});
  Builder& avg_pool2d(const Sizes& kernel, const nn::AvgPoolLayerOptions& options = {}, std::string name = {});
  Builder& avg_pool3d(const Sizes& kernel, const nn::AvgPoolLayerOptions& options = {}, std::string name = {});
  Builder& adaptive_avg_pool2d(const Sizes& size, std::string name = {});
  Builder& adaptive_max_pool2d(const Sizes& size, std::string name = {});
  /// Spectra of a sequence of samples, a step for each frame, and back, to a step for each block of hop samples;
  /// options as {.hop_length = 128, .center = false}, which streams, whose n_fft and channels are left to the word.
  Builder& stft(std::int64_t n_fft, const nn::StftLayerOptions& options = {}, std::string name = {});
  Builder& inverse_stft(std::int64_t n_fft, const nn::InverseStftOptions& options = {}, std::string name = {});
  /// The power of spectra in mel bands, behind stft(n, {.spectrum = nn::Spectrum::power}); options as {.log_offset =
  /// 1e-6}, whose frequencies, bands and sample rate are left to the word.
  Builder& mel_bands(std::int64_t n_mels, double sample_rate, const nn::MelBandsOptions& options = {},
                     std::string name = {});
  /// Recurrent layers, batch first; options as {.layers = 2, .bidirectional = true, .dropout = 0.2}.
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
  /// Recurrences without a product in their loop: minimal ones of so many units; diagonal ones of so many complex
  /// states and gated ones, as wide as what comes in.
  Builder& min_gru(std::int64_t hidden_size, const nn::MinGruOptions& options = {}, std::string name = {});
  Builder& min_lstm(std::int64_t hidden_size, const nn::MinLstmOptions& options = {}, std::string name = {});
  Builder& lru(std::int64_t state_size, const nn::LruOptions& options = {}, std::string name = {});
  Builder& s5(std::int64_t state_size, const nn::S5Options& options = {}, std::string name = {});
  Builder& rg_lru(std::int64_t heads = 1, std::string name = {});
  /// Mamba, as wide as what comes in; options as {.state = 8}, whose features stay 0.
  Builder& mamba(const nn::MambaOptions& options = {}, std::string name = {});
  /// The layers of an xLSTM, as wide as the layer before; options as {.num_heads = 2}, whose embedding_dim stays 0.
  Builder& mlstm(const nn::MLstmOptions& options = {}, std::string name = {});
  Builder& slstm(const nn::SLstmOptions& options = {}, std::string name = {});
  /// A layer of cells of one's own (nn/recurrent/custom.h), C(input_size, hidden_size, init):
  /// .recurrent<MinimalGated>(64).
  template <std::derived_from<nn::CustomCell> C>
  Builder& recurrent(std::int64_t hidden_size, const nn::CustomOptions& options = {}, std::string name = {}) {
    return recurrent(
        [hidden_size](std::int64_t D, const nn::Init& init) { return std::make_unique<C>(D, hidden_size, init); },
        hidden_size, options, std::move(name));
  }
  Builder& recurrent(nn::Custom::Make cell, std::int64_t hidden_size, const nn::CustomOptions& options = {},
                     std::string name = {});
  /// Only directly after `tokens`; options as {.padding_idx = 0}, whose sizes stay as they are.
  Builder& embedding(std::int64_t features, const nn::EmbeddingOptions& options = {}, std::string name = {});
  template <std::convertible_to<std::string> Name>
  Builder& embedding(std::int64_t features, Name name) {
    return embedding(features, nn::EmbeddingOptions{}, std::move(name));
  }
  /// Likewise: the rows of all tokens of a sequence joined.
  Builder& embedding_bag(std::int64_t features, const nn::EmbeddingBagOptions& options = {}, std::string name = {});
  /// Adds to every step what tells its place: sines and cosines, or learned rows for so many steps.
  Builder& positions(std::string name = {});
  Builder& positions(std::int64_t learned, std::string name = {});
  /// (x - mean) / deviation of every feature, with numbers that `train::adapt` takes from data; options as
  /// {.skip_missing = true}, whose features stay 0.
  Builder& standardize(const nn::StandardizeOptions& options = {}, std::string name = {});
  template <std::convertible_to<std::string> Name>
  Builder& standardize(Name name) {
    return standardize(nn::StandardizeOptions{}, std::move(name));
  }
  /// A function of yours that treats every step by itself, [B, T, D] -> [B, T, N], so that it streams:
  /// nn::PerStep of that name. `build` throws ValueError where a step alone gives other values than within a sequence.
  Builder& per_step(std::string name, std::function<Tensor(const Tensor&)> f);
  Builder& layer_norm(std::string name = {});
  /// Over the batch and all axes of space or time: of features, sequences and images. Options as {.momentum = 0.01},
  /// whose features stay 0.
  Builder& batch_norm(const nn::BatchNormOptions& options = {}, std::string name = {});
  /// Of images and features.
  Builder& group_norm(std::int64_t groups, const nn::GroupNormOptions& options = {}, std::string name = {});
  Builder& rms_norm(const nn::RmsNormOptions& options = {}, std::string name = {});
  /// Attention of the steps of a sequence to each other; options as {.causal = true, .kv_heads = 2}, whose embed_dim
  /// and num_heads are left to the word.
  Builder& attention(std::int64_t heads, const nn::MultiheadAttentionOptions& options = {}, std::string name = {});
  /// A layer of a transformer, attention and two products: nn::TransformerEncoderLayer, options as {.dim_feedforward =
  /// 512, .norm_first = true, .causal = true}, whose d_model and nhead are left to the word. `repeat` makes many.
  Builder& transformer(std::int64_t heads, const nn::TransformerLayerOptions& options = {}, std::string name = {});
  Builder& dropout(double probability, std::string name = {});
  /// The last step, or the last valid one when the context has lengths.
  Builder& last_step(std::string name = {});
  Builder& mean_over_time(std::string name = {});
  Builder& flatten(std::string name = {});
  /// Features as images or volumes, {3, 8, 8}: axis 1 with these extents.
  Builder& unflatten(const Sizes& sizes, std::string name = {});

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
  /// With one weight for all, or with one for each channel where `per_channel`.
  Builder& prelu(bool per_channel = false, std::string name = {});
  Builder& prelu(const char*, std::string = {}) = delete;  // a text is no bool: the name is the last argument
  /// Half of the features times the sigmoid of the other half.
  Builder& glu(std::string name = {});
  /// Any of nn::activation_names(). Throws ValueError for another.
  Builder& activation(const std::string& kind, std::string name = {});

  /// A chain of its own under a dotted prefix: "encoder.0.weight_ih_l0".
  Builder& stage(std::string name, const Part& part);
  /// x + part(x).
  Builder& residual(const Part& part, std::string name = {});
  /// The one word of the part, whose layer gets a weight in two parts, length and direction (nn/layers/parametrized.h);
  /// options as {.parameter = "weight_hh_l0", .axis = 1}.
  Builder& weight_norm(const Part& part, const nn::WeightNormOptions& options = {}, std::string name = {});
  /// Likewise a weight that is divided by its largest singular value.
  Builder& spectral_norm(const Part& part, const nn::SpectralNormOptions& options = {}, std::string name = {});
  /// part(x) + part(x) + ..., each a chain of its own, under the prefixes "0.", "1.", ...
  Builder& parallel(const std::vector<Part>& parts, std::string name = {});
  /// What the parts give, joined along the features, or the channels of images.
  Builder& concat(const std::vector<Part>& parts, std::string name = {});
  /// The words of the part, n times over.
  Builder& repeat(int n, const Part& part);
  /// Any layer; every `build` takes a copy, and draws what has no value yet.
  Builder& add(std::unique_ptr<nn::Layer> layer, std::string name = {});
  template <std::derived_from<nn::Layer> L>
  Builder& add(L layer, std::string name = {}) {
    return add(std::make_unique<L>(std::move(layer)), std::move(name));
  }

  /// Makes the network; one seed fixes all weights. Without one they have no values yet: what adopts the network draws
  /// them, or a file gives them (see nn::Init). Throws ShapeError when a layer does not fit the one before it,
  /// naming position, kind, name and both shapes, and ValueError for sizes, names and options out of range.
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
  /// How the layer of a part of one word is made, without values.
  static Make only_word(const char* kind, const Part& part, const Input& input);
  /// Fills a chain with the layers of all words.
  void build_into(nn::Sequential& chain, Flow flow, const nn::Init& init, std::vector<SummaryRow>* rows) const;

  Input input_;
  std::vector<Word> words_;
};

/// Sequences x [B, T, features].
Builder sequence(std::int64_t features);
/// Vectors x [B, n].
Builder features(std::int64_t n);
/// Images x [B, channels, height, width].
Builder image(std::int64_t channels, std::int64_t height, std::int64_t width);
/// Volumes x [B, channels, depth, height, width].
Builder volume(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width);
/// Sequences of tokens i64 [B, T], each below `vocabulary`.
Builder tokens(std::int64_t vocabulary);

}  // namespace ferrite::dsl
