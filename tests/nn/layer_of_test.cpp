// Layers that keep their options as a struct, and what the base class writes for them: built-in ones and a user's.
#include "ferrite/nn/layer_of.h"

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/per_step.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

struct EchoOptions {
  std::int64_t features = 1;
  double decay = 0.5;
  static constexpr auto fields =
      attr_list(attr("features", &EchoOptions::features), attr("decay", &EchoOptions::decay));
};

/// A layer with options, a parameter, a buffer and a layer inside.
struct Echo final : nn::LayerOf<Echo, EchoOptions> {
  static constexpr auto name = "echo";
  Parameter decay;
  Buffer mean;
  nn::Dropout dropout;
  explicit Echo(const EchoOptions& o, const nn::Init& init = {})
      : LayerOf(o, init), dropout(0.5, init.child("dropout")) {
    decay = parameter("decay", {o.features}, nn::init::uniform(0, o.decay), init);
    mean = buffer("mean", zeros({o.features}, init.dtype));
    adopt("dropout", dropout);
  }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return dropout(x * decay - mean); }
};

/// A layer with neither options nor a constructor.
struct Negated final : nn::LayerOf<Negated> {
  static constexpr auto name = "negated";
  Tensor forward(const Tensor& x, const nn::Context&) const override { return -x; }
};

/// Options without a list of fields, and a different kind.
struct PowerOptions {
  int exponent = 2;
};
struct Power final : nn::LayerOf<Power, PowerOptions> {
  explicit Power(const PowerOptions& o) : LayerOf(o) {}
  std::string kind() const override { return "power_" + std::to_string(options().exponent); }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return pow(x, options().exponent); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(layer_of)

BOOST_AUTO_TEST_CASE(a_copy_has_options_values_and_mode_of_its_own) {
  const Echo layer({.features = 3, .decay = 0.25}, {.seed = 5, .prefix = "echo", .dtype = Dtype::f64});
  layer.mean.assign(Tensor::from<double>({1, 2, 3}));
  layer.eval();
  const std::unique_ptr<nn::Layer> copy = layer.clone();
  const auto& echo = dynamic_cast<const Echo&>(*copy);
  BOOST_TEST(echo.options().features == 3);
  BOOST_TEST(echo.options().decay == 0.25);
  BOOST_TEST((echo.decay.dtype() == Dtype::f64));
  BOOST_TEST(!echo.dropout.training());
  const Tensor x = uniform({2, 3}, {1, 1, 0}, -1, 1, Dtype::f64), before = layer(x);
  BOOST_TEST(identical((*copy)(x), before));
  layer.decay.assign(zeros({3}, Dtype::f64));
  BOOST_TEST(identical((*copy)(x), before));
  BOOST_TEST(!identical(layer(x), before));
}

BOOST_AUTO_TEST_CASE(a_copy_of_what_was_not_drawn_is_drawn_by_its_own_model) {
  const auto words = [] { return dsl::sequence(3).add(Echo({.features = 3}), "echo").linear(2); };
  const auto a = words().build(1), b = words().build(1), c = words().build(2);
  BOOST_TEST(identical(a.parameters()[0].peek(), b.parameters()[0].peek()));
  BOOST_TEST(!identical(a.parameters()[0].peek(), c.parameters()[0].peek()));
  BOOST_TEST(a.parameters()[0].name() == "echo.decay");
}

BOOST_AUTO_TEST_CASE(kinds_and_summaries) {
  const auto both = [](const nn::Layer& layer, const std::string& kind, const std::string& summary) {
    BOOST_TEST(layer.kind() == kind);
    BOOST_TEST(layer.summary() == summary);
    BOOST_TEST(layer.clone()->summary() == summary);
  };
  both(Echo({.features = 3, .decay = 0.25}, {.seed = 1}), "echo", "echo(features=3, decay=0.25)");
  both(Echo({.features = 3}, {.seed = 1}), "echo", "echo(features=3)");
  both(Negated(), "negated", "negated");
  both(Power({.exponent = 3}), "power_3", "power_3");
  both(nn::Linear(3, 4), "linear", "linear(in_features=3, out_features=4)");
  both(nn::Linear({.in_features = 3, .out_features = 4, .bias = false}), "linear",
       "linear(in_features=3, out_features=4, bias=false)");
  both(nn::CausalConv1d({.in_channels = 3, .out_channels = 4, .kernel_size = 2, .dilation = 8}), "causal_conv1d",
       "causal_conv1d(in_channels=3, out_channels=4, kernel_size=2, dilation=8)");
  both(nn::MinGru(3, 4, {.proj_size = 2}), "min_gru", "min_gru(input_size=3, hidden_size=4, proj_size=2)");
  both(nn::Mamba({.features = 6, .state = 8}), "mamba", "mamba(features=6, state=8)");
  both(nn::MinLstm(3, 4), "min_lstm", "min_lstm(input_size=3, hidden_size=4)");
  both(nn::Lru(3, 4, {.r_min = 0.5}), "lru", "lru(input_size=3, hidden_size=4, r_min=0.5)");
  both(nn::S5(3, 4, {.blocks = 2, .bilinear = true}), "s5", "s5(input_size=3, hidden_size=4, blocks=2, bilinear=true)");
  both(nn::RgLru({.features = 6, .heads = 3}), "rg_lru", "rg_lru(features=6, heads=3)");
  both(nn::MLstm({.embedding_dim = 8, .chunk = 1}), "mlstm", "mlstm(embedding_dim=8, chunk=1)");
  both(nn::SLstm({.embedding_dim = 8, .num_heads = 2}), "slstm", "slstm(embedding_dim=8, num_heads=2)");
  both(nn::Embedding(7, 2), "embedding", "embedding(vocabulary=7, features=2)");
  both(nn::MultiheadAttention({.embed_dim = 8, .num_heads = 2, .causal = true, .positions = nn::Positions::alibi}),
       "multihead_attention", "multihead_attention(embed_dim=8, num_heads=2, causal=true, positions=alibi)");
  both(
      nn::TransformerEncoderLayer({.d_model = 8, .nhead = 2, .activation = "gelu", .positions = nn::Positions::rotary}),
      "transformer_encoder_layer", "transformer_encoder_layer(d_model=8, nhead=2, activation=gelu, positions=rotary)");
  both(nn::TransformerDecoderLayer({.d_model = 8, .dim_feedforward = 16, .norm_first = true}),
       "transformer_decoder_layer", "transformer_decoder_layer(d_model=8, dim_feedforward=16, norm_first=true)");
  both(nn::Embedding(nn::EmbeddingOptions{7, 2, -1}), "embedding",
       "embedding(vocabulary=7, features=2, padding_idx=-1)");
  both(nn::EmbeddingBag({.vocabulary = 7, .features = 2, .mode = nn::BagMode::max}), "embedding_bag",
       "embedding_bag(vocabulary=7, features=2, mode=max)");
  both(nn::Stft({.n_fft = 8}), "stft", "stft(n_fft=8, hop_length=2)");
  both(nn::Stft({.n_fft = 8,
                 .hop_length = 3,
                 .win_length = 6,
                 .window = nn::SpectralWindow::kaiser,
                 .spectrum = nn::Spectrum::magnitude,
                 .padding = StftPadding::replicate,
                 .normalized = true,
                 .channels = 2}),
       "stft",
       "stft(n_fft=8, hop_length=3, win_length=6, window=kaiser, spectrum=magnitude, padding=replicate, "
       "normalized=true, channels=2)");
  both(nn::InverseStft({.n_fft = 8, .window = nn::SpectralWindow::ones, .center = false}), "inverse_stft",
       "inverse_stft(n_fft=8, hop_length=2, window=ones, center=false)");
  both(nn::MelBands(
           {.n_frequencies = 9, .n_mels = 3, .sample_rate = 8000, .scale = MelScale::slaney, .unit_area = true}),
       "mel_bands", "mel_bands(n_frequencies=9, n_mels=3, sample_rate=8000, scale=slaney, unit_area=true)");
  both(nn::Standardize({.features = 3, .skip_missing = true}), "standardize",
       "standardize(features=3, skip_missing=true)");
  both(nn::PerStep({.name = "twice", .function = [](const Tensor& x) { return 2 * x; }}), "twice", "twice");
  both(nn::SinusoidalPositions({.features = 6}), "sinusoidal_positions", "sinusoidal_positions(features=6)");
  both(nn::LearnedPositions({.features = 6, .capacity = 9}), "learned_positions",
       "learned_positions(features=6, capacity=9)");
  both(nn::LayerNorm(3, {}, 1e-3), "layer_norm", "layer_norm(features=3, epsilon=0.001)");
  both(nn::Dropout(0.25), "dropout", "dropout(probability=0.25)");
  both(nn::Activation("relu", nn::activation("relu")), "relu", "relu");
  both(nn::Flatten(), "flatten", "flatten");
  both(nn::Unflatten({.sizes = {2, 3}}), "unflatten", "unflatten(sizes=[2, 3])");
  both(nn::Gru(3, 4), "gru", "gru(input_size=3, hidden_size=4)");
  both(nn::Gru(3, 4, {.layers = 2, .reset_after = false}), "gru",
       "gru(input_size=3, hidden_size=4, layers=2, reset_after=false)");
  both(nn::Lstm(3, 4, {.bidirectional = true, .proj_size = 2}), "lstm",
       "lstm(input_size=3, hidden_size=4, bidirectional=true, proj_size=2)");
  both(nn::PeepholeLstm(3, 4, {.bias = false}), "peephole_lstm",
       "peephole_lstm(input_size=3, hidden_size=4, bias=false)");
  both(nn::Rnn(3, 4, {.nonlinearity = nn::Nonlinearity::relu}), "rnn", "rnn(input_size=3, hidden_size=4)");
  both(nn::custom<nn::LayerNormGruCell>(3, 4, {.layers = 2}, {.seed = 1}), "layer_norm_gru",
       "layer_norm_gru(input_size=3, hidden_size=4, layers=2)");
}

/// Every option of a recurrent layer is copied.
BOOST_AUTO_TEST_CASE(copies_of_recurrent_layers_have_all_options) {
  const nn::Rnn rnn(3, 4, {.nonlinearity = nn::Nonlinearity::relu}, {.seed = 1});
  const nn::Gru gru(3, 4, {.layers = 2, .bias = false, .form = nn::Form::scan, .reset_after = false}, {.seed = 1});
  const Tensor x = uniform({2, 5, 3}, {1, 2, 0}, -1, 1);
  BOOST_TEST(identical((*rnn.clone())(x), rnn(x)));
  BOOST_TEST(identical((*gru.clone())(x), gru(x)));
  const auto copy = gru.clone();
  const auto& g = dynamic_cast<const nn::Gru&>(*copy);
  BOOST_TEST(!g.reset_after());
  BOOST_TEST((g.sizes().form == nn::Form::scan));
  BOOST_TEST(!g.sizes().bias);
}

BOOST_AUTO_TEST_SUITE_END()
