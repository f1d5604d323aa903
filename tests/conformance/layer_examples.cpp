// Examples of one layer of every kind.
#include "conformance/layer_examples.h"

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/graph_layer.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/branches.h"
#include "ferrite/nn/layers/per_step.h"
#include "ferrite/nn/layers/standardize.h"
#include "ferrite/nn/layers/wavenet.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"

namespace conformance {
namespace {

using namespace ferrite;
using Made = std::unique_ptr<nn::Layer>;

template <class L, class... A>
std::function<Made()> made(const A&... a) {
  return [=]() -> Made { return std::make_unique<L>(a...); };
}

const nn::Init kInit{.seed = 1};

}  // namespace

std::vector<LayerSection> layer_examples() {
  const nn::ConvOptions conv{.in_channels = 3, .out_channels = 4, .kernel_size = {2}, .channels_last = true};
  const nn::ConvTransposeOptions transposed{.in_channels = 3, .out_channels = 4, .kernel_size = {2}};
  const nn::TransformerLayerOptions block{.d_model = 8, .nhead = 2, .dim_feedforward = 16, .causal = true};
  const auto chain = [](auto container) {
    return [=]() -> Made {
      auto all = std::make_unique<typename decltype(container)::type>();
      all->add("0", std::make_unique<nn::Linear>(3, 3, kInit));
      return all;
    };
  };
  const auto inside = [](auto norm) {
    return [=]() -> Made {
      return std::make_unique<typename decltype(norm)::type>(std::make_unique<nn::Linear>(3, 4, kInit));
    };
  };
  return {
      {"Products, tokens and places",
       "nn/layers/layers.h",
       {{"Linear", "Linear", "Linear", "linear", "LinearOptions", made<nn::Linear>(3, 4)},
        {"Embedding", "Embedding", "Embedding", "embedding", "EmbeddingOptions", made<nn::Embedding>(7, 4)},
        {"Flatten", "Flatten", "Flatten", "flatten", "", made<nn::Flatten>()},
        {"Unflatten", "Unflatten", "Unflatten", "unflatten", "UnflattenOptions",
         made<nn::Unflatten>(nn::UnflattenOptions{.axis = 1, .sizes = {2, 2}})},
        {"LastStep", "LastStep", "", "last_step", "", made<nn::LastStep>()},
        {"MeanOverTime", "MeanOverTime", "", "mean_over_time", "", made<nn::MeanOverTime>()},
        {"Dropout", "Dropout", "Dropout", "dropout", "DropoutOptions", made<nn::Dropout>(0.5)},
        {"LayerNorm", "LayerNorm", "LayerNorm", "layer_norm", "LayerNormOptions", made<nn::LayerNorm>(4)},
        {"Activation", "Activation", "ReLU, Tanh, ...", "relu, tanh, ..., activation", "",
         made<nn::Activation>("relu", nn::activation("relu"))}}},
      {"Functions of a step",
       "nn/layers/per_step.h",
       {{"PerStep", "PerStep", "", "per_step", "PerStepOptions",
         made<nn::PerStep>(nn::PerStepOptions{.name = "saturate",
                                              .function = [](const Tensor& x) { return ferrite::tanh(3 * x) / 3; }})}}},
      {"Standardised inputs",
       "nn/layers/standardize.h",
       {{"Standardize", "Standardize", "", "standardize", "StandardizeOptions", made<nn::Standardize>(4)}}},
      {"Tokens in bags, positions",
       "nn/layers/tokens.h",
       {{"EmbeddingBag", "EmbeddingBag", "EmbeddingBag", "embedding_bag", "EmbeddingBagOptions",
         made<nn::EmbeddingBag>(nn::EmbeddingBagOptions{.vocabulary = 7, .features = 4})},
        {"SinusoidalPositions", "SinusoidalPositions", "", "positions", "SinusoidalPositionsOptions",
         made<nn::SinusoidalPositions>(nn::SinusoidalPositionsOptions{.features = 4})},
        {"LearnedPositions", "LearnedPositions", "", "positions", "LearnedPositionsOptions",
         made<nn::LearnedPositions>(nn::LearnedPositionsOptions{.features = 4, .capacity = 9})}}},
      {"Recurrence: GRU", "nn/recurrent/gru.h", {{"Gru", "Gru", "GRU", "gru", "GruOptions", made<nn::Gru>(3, 4)}}},
      {"Recurrence: LSTM",
       "nn/recurrent/lstm.h",
       {{"Lstm", "Lstm", "LSTM", "lstm", "LstmOptions", made<nn::Lstm>(3, 4)}}},
      {"Recurrence: LSTM with peepholes",
       "nn/recurrent/peephole_lstm.h",
       {{"PeepholeLstm", "PeepholeLstm", "", "", "PeepholeLstmOptions", made<nn::PeepholeLstm>(3, 4)}}},
      {"Recurrence: Elman", "nn/recurrent/rnn.h", {{"Rnn", "Rnn", "RNN", "rnn", "RnnOptions", made<nn::Rnn>(3, 4)}}},
      {"Recurrence: your own cells",
       "nn/recurrent/custom.h",
       {{"Custom", "Custom", "", "recurrent", "CustomOptions",
         [] { return std::make_unique<nn::Custom>(nn::custom<nn::LayerNormGruCell>(3, 4, {}, kInit)); }}}},
      {"Recurrence: minimal GRU and LSTM",
       "nn/recurrent/min_gru.h",
       {{"MinGru", "MinGru", "", "min_gru", "MinGruOptions", made<nn::MinGru>(3, 4)},
        {"MinLstm", "MinLstm", "", "min_lstm", "MinLstmOptions", made<nn::MinLstm>(3, 4)}}},
      {"Recurrence: linear units",
       "nn/recurrent/lru.h",
       {{"Lru", "Lru", "", "lru", "LruOptions", made<nn::Lru>(3, 4)},
        {"RgLru", "RgLru", "", "rg_lru", "RgLruOptions",
         made<nn::RgLru>(nn::RgLruOptions{.features = 4, .heads = 2})}}},
      {"Recurrence: S5", "nn/recurrent/s5.h", {{"S5", "S5", "", "s5", "S5Options", made<nn::S5>(3, 4)}}},
      {"Recurrence: Mamba",
       "nn/recurrent/mamba.h",
       {{"Mamba", "Mamba", "", "mamba", "MambaOptions", made<nn::Mamba>(nn::MambaOptions{.features = 4, .state = 2})}}},
      {"Recurrence: xLSTM, matrices",
       "nn/recurrent/mlstm.h",
       {{"MLstm", "MLstm", "", "mlstm", "MLstmOptions",
         made<nn::MLstm>(nn::MLstmOptions{.embedding_dim = 4, .num_heads = 2, .round_up_to = 8})}}},
      {"Recurrence: xLSTM, numbers",
       "nn/recurrent/slstm.h",
       {{"SLstm", "SLstm", "", "slstm", "SLstmOptions",
         made<nn::SLstm>(nn::SLstmOptions{.embedding_dim = 4, .num_heads = 2})}}},
      {"Convolution over time that sees no later step",
       "nn/layers/causal_conv1d.h",
       {{"CausalConv1d", "CausalConv1d", "", "causal_conv1d", "CausalConv1dOptions",
         made<nn::CausalConv1d>(nn::CausalConv1dOptions{.in_channels = 3, .out_channels = 4, .kernel_size = 3})}}},
      {"Convolutions with skip connections, for amplifiers",
       "nn/layers/wavenet.h",
       {{"Wavenet", "Wavenet", "", "", "WavenetOptions",
         made<nn::Wavenet>(nn::WavenetOptions{
             .arrays = {{.channels = 2, .bottleneck = 2, .units = {{.kernel_size = 2, .dilation = 1}}}}})}}},
      {"Convolutions",
       "nn/layers/convolution.h",
       {{"Conv", "Conv1d, Conv2d, Conv3d", "Conv1d, Conv2d, Conv3d", "conv1d, conv2d, conv3d", "ConvOptions",
         made<nn::Conv1d>(conv)},
        {"ConvTranspose", "ConvTranspose1d, ConvTranspose2d, ConvTranspose3d",
         "ConvTranspose1d, ConvTranspose2d, ConvTranspose3d", "conv_transpose2d, conv_transpose3d",
         "ConvTransposeOptions", made<nn::ConvTranspose2d>(transposed)}}},
      {"Pooling",
       "nn/layers/pooling.h",
       {{"MaxPool", "MaxPool1d, MaxPool2d, MaxPool3d", "MaxPool1d, MaxPool2d, MaxPool3d",
         "max_pool1d, max_pool2d, max_pool3d", "MaxPoolLayerOptions",
         made<nn::MaxPool1d>(nn::MaxPoolLayerOptions{.kernel_size = {2}, .channels_last = true})},
        {"AvgPool", "AvgPool1d, AvgPool2d, AvgPool3d", "AvgPool1d, AvgPool2d, AvgPool3d",
         "avg_pool1d, avg_pool2d, avg_pool3d", "AvgPoolLayerOptions",
         made<nn::AvgPool1d>(nn::AvgPoolLayerOptions{.kernel_size = {2}, .channels_last = true})},
        {"LpPool", "LpPool1d, LpPool2d, LpPool3d", "LPPool1d, LPPool2d, LPPool3d", "lp_pool1d", "LpPoolLayerOptions",
         made<nn::LpPool1d>(nn::LpPoolLayerOptions{.kernel_size = {2}, .channels_last = true})},
        {"AdaptiveAvgPool", "AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d",
         "AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d", "adaptive_avg_pool2d", "AdaptivePoolOptions",
         made<nn::AdaptiveAvgPool2d>(nn::AdaptivePoolOptions{.size = {1}})},
        {"AdaptiveMaxPool", "AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d",
         "AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d", "adaptive_max_pool2d", "",
         made<nn::AdaptiveMaxPool2d>(nn::AdaptivePoolOptions{.size = {1}})}}},
      {"Spectra",
       "nn/layers/spectrograms.h",
       {{"Stft", "Stft", "", "stft", "StftLayerOptions",
         made<nn::Stft>(nn::StftLayerOptions{.n_fft = 8, .center = false})},
        {"InverseStft", "InverseStft", "", "inverse_stft", "InverseStftOptions",
         made<nn::InverseStft>(nn::InverseStftOptions{.n_fft = 8, .center = false})}}},
      {"Mel bands",
       "nn/layers/mel.h",
       {{"MelBands", "MelBands", "", "mel_bands", "MelBandsOptions",
         made<nn::MelBands>(nn::MelBandsOptions{.n_frequencies = 10, .n_mels = 4, .sample_rate = 16000})}}},
      {"Norms with weights",
       "nn/layers/norms.h",
       {{"ChannelNorm", "BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d",
         "BatchNorm1d, ..., InstanceNorm3d", "batch_norm", "ChannelNormOptions",
         made<nn::BatchNorm1d>(nn::BatchNormOptions{.num_features = 4, .channels_last = true})},
        {"GroupNorm", "GroupNorm", "GroupNorm", "group_norm", "GroupNormOptions",
         made<nn::GroupNorm>(nn::GroupNormOptions{.num_groups = 2, .num_channels = 4})},
        {"RmsNorm", "RmsNorm", "RMSNorm", "rms_norm", "RmsNormOptions",
         made<nn::RmsNorm>(nn::RmsNormOptions{.features = 4})}}},
      {"Weights computed from others",
       "nn/layers/parametrized.h",
       {{"WeightNorm", "WeightNorm", "utils.parametrizations.weight_norm", "weight_norm", "WeightNormOptions",
         inside(std::type_identity<nn::WeightNorm>())},
        {"SpectralNorm", "SpectralNorm", "utils.parametrizations.spectral_norm", "spectral_norm", "SpectralNormOptions",
         inside(std::type_identity<nn::SpectralNorm>())}}},
      {"Activations with options",
       "nn/layers/activations.h",
       {{"Elu", "Elu", "ELU", "elu", "AlphaOptions", made<nn::Elu>()},
        {"Celu", "Celu", "CELU", "", "", made<nn::Celu>()},
        {"LeakyRelu", "LeakyRelu", "LeakyReLU", "leaky_relu", "SlopeOptions", made<nn::LeakyRelu>()},
        {"Hardtanh", "Hardtanh", "Hardtanh", "", "BoundsOptions", made<nn::Hardtanh>()},
        {"Softshrink", "Softshrink", "Softshrink", "", "LambdaOptions", made<nn::Softshrink>()},
        {"Hardshrink", "Hardshrink", "Hardshrink", "", "", made<nn::Hardshrink>()},
        {"Threshold", "Threshold", "Threshold", "", "ThresholdOptions", made<nn::Threshold>(nn::ThresholdOptions{})},
        {"Glu", "Glu", "GLU", "glu", "AxisOptions", made<nn::Glu>()},
        {"Prelu", "Prelu", "PReLU", "prelu", "PreluOptions", made<nn::Prelu>()}}},
      {"Attention",
       "nn/layers/attention.h",
       {{"MultiheadAttention", "MultiheadAttention", "MultiheadAttention", "attention", "MultiheadAttentionOptions",
         made<nn::MultiheadAttention>(
             nn::MultiheadAttentionOptions{.embed_dim = 8, .num_heads = 2, .causal = true, .capacity = 9})}}},
      {"Transformers",
       "nn/layers/transformer.h",
       {{"TransformerEncoderLayer", "TransformerEncoderLayer", "TransformerEncoderLayer", "transformer",
         "TransformerLayerOptions", made<nn::TransformerEncoderLayer>(block)},
        {"TransformerDecoderLayer", "TransformerDecoderLayer", "TransformerDecoderLayer", "", "",
         made<nn::TransformerDecoderLayer>(nn::TransformerLayerOptions{.d_model = 8, .dim_feedforward = 16})}}},
      {"Chains",
       "nn/layers/sequential.h",
       {{"Sequential", "Sequential", "Sequential", "stage", "", chain(std::type_identity<nn::Sequential>())},
        {"Residual", "Residual", "", "residual", "", chain(std::type_identity<nn::Residual>())}}},
      {"Branches side by side",
       "nn/layers/branches.h",
       {{"Parallel", "Parallel", "", "parallel", "", chain(std::type_identity<nn::Parallel>())},
        {"Concat", "Concat", "", "concat", "", chain(std::type_identity<nn::Concat>())}}}};
}

}  // namespace conformance
