// docs/layers.md is generated from the headers in nn/ and from a layer of every kind; this test keeps it current.
// FERRITE_REGENERATE=1 writes it.
#include <filesystem>
#include <set>
#include <sstream>

#include "conformance/header_text.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/graph_layer.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/branches.h"
#include "ferrite/nn/layers/standardize.h"
#include "ferrite/nn/layers/wavenet.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"

using namespace ferrite;

namespace {

using Made = std::unique_ptr<nn::Layer>;

/// A class and what it is called elsewhere. Its options are those of its header that are named `options`.
struct Entry {
  std::string name;     ///< of the class in its header
  std::string title;    ///< of all that the class stands for
  std::string pytorch;  ///< "" for none
  std::string word;     ///< of the builder, "" for none
  std::string options;
  std::function<Made()> example;
};
struct Section {
  const char *title, *header;
  std::vector<Entry> entries;
};

template <class L, class... A>
std::function<Made()> made(const A&... a) {
  return [=]() -> Made { return std::make_unique<L>(a...); };
}

const nn::Init kInit{.seed = 1};

std::vector<Section> sections() {
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

bool declares(const std::string& line, const std::string& name) {
  return (line.starts_with("class " + name + " ") || line.starts_with("class " + name + ";")) && line.back() == '{';
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& p : parts) all += (all.empty() ? "" : ", ") + p;
  return all.empty() ? "-" : all;
}
std::string code(const std::string& text) { return text.empty() ? "-" : "`" + text + "`"; }

std::string variables_of(const nn::Layer& layer) {
  std::vector<std::string> all;
  for (const auto& p : layer.named_parameters())
    all.push_back(code(p.name) + " " + p.variable.shape().str() +
                  (p.variable.layout() == FileLayout::transposed ? "^T" : ""));
  for (const auto& b : layer.named_buffers()) all.push_back(code(b.name) + " " + b.variable.shape().str());
  return joined(all);
}

/// What a stream of one row holds between its steps.
std::string stream_of(const nn::Layer& layer) {
  layer.eval();
  if (!layer.streams()) return "no";
  std::vector<std::string> all;
  const nn::StepInput in = layer.step_input();
  for (const nn::StepState& s : layer.states({1, std::max<std::int64_t>(in.width, 1), in.dtype}))
    all.push_back(s.name + " " + s.spec().shape.str());
  if (all.empty())
    for (const nn::CarriedState& s : layer.carried_states())
      all.push_back(s.name + " " + Shape{s.layers, 1, s.width}.str());
  return all.empty() ? "yes" : "yes: " + joined(all);
}

constexpr const char* kBegin = R"(# Layers

Generated from the headers in `nn/` and from a layer of every kind; do not edit. Names, options, first values and results
are PyTorch's where it has the layer (`tests/golden/layers_golden_test.cpp`, `attention_golden_test.cpp`,
`recurrent_golden_test.cpp`). A net is a chain of the builder's words, and any layer fits into one by `add`;
`net.summary()` gives shapes, parameters and multiply-adds of all of them. Layers of your own:
[writing a layer](writing-layers.md).

`variables` are those of the layer as its summary shows it; `^T`: [out, in] in files, [in, out] in memory. `streams` tells
what a stream of one row carries from step to step; `no`: a step's output depends on later steps, or on all of them.
)";

std::string page() {
  std::ostringstream table, text;
  for (const Section& section : sections()) {
    text << "## " << section.title << "\n\n`" << section.header << "`\n\n";
    for (const Entry& e : section.entries) {
      const Made layer = e.example();
      table << "| " << code(layer->summary()) << " | " << code(e.pytorch) << " | " << code(e.word) << " | "
            << variables_of(*layer) << " | " << stream_of(*layer) << " |\n";
      text << "### `nn::" << e.title << "`\n\n"
           << pages::docstring(section.header, [&](const std::string& line) { return declares(line, e.name); }) << "\n";
      if (e.options.empty()) continue;
      const std::string members = pages::members(section.header, e.options);
      BOOST_TEST_REQUIRE(!members.empty(), e.options);
      text << "Options, with their defaults:\n\n" << members << "\n";
    }
  }
  std::string activations;
  for (const std::string& name : nn::activation_names()) activations += (activations.empty() ? "" : ", ") + name;
  std::string all =
      std::string(kBegin) + "\n| layer | `torch.nn` | word | variables | streams |\n|---|---|---|---|---|\n" +
      table.str() +
      "\nActivations without options, by `.activation(name)` and most of them by words of their own: " + activations +
      ".\n\n" + text.str();
  all.pop_back();
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reference_pages)

BOOST_AUTO_TEST_CASE(layers_md) { pages::check_page("docs/layers.md", page()); }

/// Every layer that a header declares is on the page.
BOOST_AUTO_TEST_CASE(every_layer_is_on_the_page) {
  std::set<std::string> known{"GraphLayer"};  // of files: docs of its own
  for (const Section& section : sections())
    for (const Entry& e : section.entries) known.insert(e.name);
  namespace fs = std::filesystem;
  for (const char* folder : {"nn/layers", "nn/recurrent"})
    for (const fs::directory_entry& file : fs::directory_iterator(fs::path(FERRITE_SOURCE_DIR) / folder)) {
      if (file.path().extension() != ".h") continue;
      for (const std::string& line : pages::lines_of(std::string(folder) + "/" + file.path().filename().string())) {
        const bool layer = line.find(" : public LayerOf<") != std::string::npos ||
                           line.find(" : public Layer ") != std::string::npos ||
                           line.find(" : public Parametrized ") != std::string::npos ||
                           line.find(" : public Sequential ") != std::string::npos ||
                           line.find(" : public Branches ") != std::string::npos ||
                           line.find("ElementLayer<") != std::string::npos;
        if (!layer || !line.starts_with("class ")) continue;
        const std::string name = line.substr(6, line.find(' ', 6) - 6);
        const bool base = line.find(" final ") == std::string::npos && name != "Sequential";
        BOOST_TEST((base || known.contains(name)), name << " is not in docs/layers.md");
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
