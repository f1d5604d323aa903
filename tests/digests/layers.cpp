// Every layer that is not recurrent, initialiser, loss and container, with its options.
#include "digests.h"
#include "ferrite/nn/loss.h"

namespace digests {
namespace {

const nn::Init kInit{.seed = 3, .prefix = "layer"};

nn::Init init(Dtype dtype = Dtype::f32) {
  nn::Init i = kInit;
  i.dtype = dtype;
  return i;
}

using Layer = std::function<std::shared_ptr<nn::Layer>()>;

Case of(const std::string& name, Layer make, const Tensor& x, const nn::Context& context = {}, bool train = true) {
  return derivatives("layer/" + name, [=]() -> Instance {
    const std::shared_ptr<nn::Layer> layer = make();
    layer->train(train);
    return {{x}, [=](const Tensors& in) { return Tensors{(*layer)(in[0], context)}; }, layer->parameters()};
  });
}

template <class L, class... A>
Layer make(A... a) {
  return [=] { return std::make_shared<L>(a...); };
}

void add_layers(std::vector<Case>& all) {
  all.push_back(of("linear", make<nn::Linear>(7, 19, init()), data({5, 7})));
  all.push_back(of("linear/no-bias", make<nn::Linear>(7, 19, init(), false), data({5, 7})));
  all.push_back(of("linear/f64", make<nn::Linear>(7, 19, init(Dtype::f64)), data({5, 7}, 1, Dtype::f64)));
  all.push_back(of("linear/vector", make<nn::Linear>(7, 4, init()), data({7})));
  all.push_back(of("linear/sequence", make<nn::Linear>(7, 4, init()), data({2, 3, 7})));
  all.push_back(of("linear/empty", make<nn::Linear>(7, 4, init()), data({0, 7})));
  all.push_back(of("linear/refused", make<nn::Linear>(7, 4, init()), data({2, 6})));
  all.push_back(of("linear/dtype", make<nn::Linear>(7, 4, init()), data({2, 7}, 1, Dtype::f64)));
  for (const std::int64_t groups : {1, 2, 6}) {
    const nn::CausalConv1dOptions o{
        .in_channels = 6, .out_channels = 12, .kernel_size = 3, .dilation = 2, .groups = groups};
    const std::string n = "causal_conv1d/" + std::to_string(groups);
    all.push_back(of(n, make<nn::CausalConv1d>(o, init()), data({2, 9, 6})));
    all.push_back(of(n + "/f64", make<nn::CausalConv1d>(o, init(Dtype::f64)), data({2, 9, 6}, 1, Dtype::f64)));
    nn::CausalConv1dOptions strided = o;
    strided.stride = 2;
    all.push_back(of(n + "/stride", make<nn::CausalConv1d>(strided, init()), data({2, 9, 6})));
  }
  for (const std::int64_t chunk : {1, 4, 64}) {
    const nn::MLstmOptions o{.embedding_dim = 6, .num_heads = 2, .round_up_to = 8, .chunk = chunk};
    all.push_back(of("mlstm/" + std::to_string(chunk), make<nn::MLstm>(o, init()), data({2, 9, 6})));
  }
  const nn::SLstmOptions scalar{.embedding_dim = 6, .num_heads = 2};
  all.push_back(of("slstm", make<nn::SLstm>(scalar, init()), data({2, 9, 6})));
  const nn::LstmOptions zones{.layers = 2, .proj_size = 3, .zoneout = 0.25, .zoneout_cell = 0.5};
  all.push_back(of("lstm/zoneout", make<nn::Lstm>(6, 5, zones, init()), data({2, 9, 6})));
  all.push_back(of("lstm/zoneout/eval", make<nn::Lstm>(6, 5, zones, init()), data({2, 9, 6}), {}, false));
  const nn::BatchNormOptions batch{.num_features = 6, .channels_last = true};
  all.push_back(of("batch_norm/lengths", make<nn::BatchNorm1d>(batch, init()), data({2, 9, 6}),
                   {.lengths = Tensor::from<std::int64_t>({9, 4})}));
  const nn::GroupNormOptions grouped{.num_groups = 2, .num_channels = 6, .channels_last = true};
  all.push_back(of("group_norm/lengths", make<nn::GroupNorm>(grouped, init()), data({2, 9, 6}),
                   {.lengths = Tensor::from<std::int64_t>({9, 4})}));
  for (const bool center : {true, false}) {
    const std::string n = center ? "" : "/streaming";
    all.push_back(
        of("stft" + n, make<nn::Stft>(nn::StftLayerOptions{.n_fft = 12, .center = center}, init()), data({2, 40, 1})));
    all.push_back(of("inverse_stft" + n,
                     make<nn::InverseStft>(nn::InverseStftOptions{.n_fft = 12, .center = center}, init()),
                     data({2, 9, 14})));
  }
  all.push_back(of(
      "mel_bands",
      make<nn::MelBands>(
          nn::MelBandsOptions{.n_frequencies = 7, .n_mels = 3, .sample_rate = 8000, .log_offset = 0.5, .channels = 2},
          init()),
      square(data({2, 9, 14}))));
  all.push_back(of("standardize/missing",
                   make<nn::Standardize>(nn::StandardizeOptions{.features = 4, .skip_missing = true}, init()),
                   log(data({5, 4}))));
  all.push_back(of(
      "weight_norm", [] { return std::make_shared<nn::WeightNorm>(make<nn::Linear>(7, 4, init())()->clone()); },
      data({5, 7})));
  all.push_back(of(
      "spectral_norm",
      [] {
        return std::make_shared<nn::SpectralNorm>(make<nn::Linear>(7, 4, init())()->clone(), nn::SpectralNormOptions{},
                                                  init());
      },
      data({5, 7})));
  for (const nn::Positions positions : {nn::Positions::none, nn::Positions::rotary, nn::Positions::alibi})
    for (const bool causal : {false, true}) {
      const nn::MultiheadAttentionOptions o{
          .embed_dim = 8, .num_heads = 4, .kv_heads = 2, .dropout = 0.25, .causal = causal, .positions = positions};
      const std::string n = "attention/" + std::to_string(static_cast<int>(positions)) + (causal ? "/causal" : "");
      all.push_back(of(n, make<nn::MultiheadAttention>(o, init()), data({2, 9, 8})));
      all.push_back(of(n + "/f64", make<nn::MultiheadAttention>(o, init(Dtype::f64)), data({2, 9, 8}, 1, Dtype::f64)));
      all.push_back(of(n + "/lengths", make<nn::MultiheadAttention>(o, init()), data({2, 9, 8}),
                       {.lengths = Tensor::from<std::int64_t>({9, 4})}, false));
    }
  for (const bool first : {false, true}) {
    const nn::TransformerLayerOptions o{
        .d_model = 8, .nhead = 2, .dim_feedforward = 12, .activation = "gelu", .norm_first = first};
    const std::string n = first ? "transformer/first" : "transformer";
    all.push_back(of(n, make<nn::TransformerEncoderLayer>(o, init()), data({2, 5, 8})));
    all.push_back(
        of(n + "/f64", make<nn::TransformerEncoderLayer>(o, init(Dtype::f64)), data({2, 5, 8}, 1, Dtype::f64)));
    all.push_back(of(n + "/eval", make<nn::TransformerEncoderLayer>(o, init()), data({2, 5, 8}), {}, false));
  }
  for (const nn::BagMode mode : {nn::BagMode::sum, nn::BagMode::mean, nn::BagMode::max}) {
    const nn::EmbeddingBagOptions o{.vocabulary = 11, .features = 5, .mode = mode, .padding_idx = 3};
    all.push_back(of("embedding_bag/" + std::to_string(static_cast<int>(mode)), make<nn::EmbeddingBag>(o, init()),
                     below(11, {3, 4})));
  }
  const nn::EmbeddingOptions padded{.vocabulary = 11, .features = 5, .padding_idx = 3};
  all.push_back(of("embedding/padding", make<nn::Embedding>(padded, init()), below(11, {3, 4})));
  const nn::SinusoidalPositionsOptions sines{.features = 7};
  all.push_back(of("positions", make<nn::SinusoidalPositions>(sines), data({2, 9, 7})));
  const nn::LearnedPositionsOptions learned{.features = 7, .capacity = 9};
  all.push_back(of("positions/learned", make<nn::LearnedPositions>(learned, init()), data({2, 9, 7})));
  all.push_back(of("embedding", make<nn::Embedding>(11, 5, init()), below(11, {3, 4})));
  all.push_back(of("embedding/f64", make<nn::Embedding>(11, 5, init(Dtype::f64)), below(11, {6})));
  all.push_back(of("embedding/refused", make<nn::Embedding>(5, 3, init()), below(11, {30})));
  all.push_back(of("layer_norm", make<nn::LayerNorm>(19, init()), data({3, 4, 19})));
  all.push_back(of("layer_norm/epsilon", make<nn::LayerNorm>(6, init(), 0.1), data({3, 6})));
  all.push_back(of("layer_norm/f64", make<nn::LayerNorm>(6, init(Dtype::f64)), data({3, 6}, 1, Dtype::f64)));
  for (const double p : {0.0, 0.3, 1.0}) {
    const std::string n = "dropout/" + std::to_string(p).substr(0, 3);
    all.push_back(of(n, make<nn::Dropout>(p, init()), data({5, 37})));
    all.push_back(of(n + "/eval", make<nn::Dropout>(p, init()), data({5, 37}), {}, false));
    all.push_back(of(n + "/f64", make<nn::Dropout>(p, init()), data({5, 37}, 1, Dtype::f64)));
  }
  for (const std::string& name : nn::activation_names())
    all.push_back(of("activation/" + name, make<nn::Activation>(name, nn::activation(name)), data({4, 21})));
  nn::Context lengths;
  lengths.lengths = Tensor::from<std::int64_t>({5, 1, 3});
  const Tensor x = data({3, 5, 7});
  all.push_back(of("last_step", make<nn::LastStep>(), x));
  all.push_back(of("last_step/lengths", make<nn::LastStep>(), x, lengths));
  all.push_back(of("mean_over_time", make<nn::MeanOverTime>(), x));
  all.push_back(of("mean_over_time/lengths", make<nn::MeanOverTime>(), x, lengths));
  all.push_back(of("flatten", make<nn::Flatten>(), x));
}

void add_losses(std::vector<Case>& all) {
  const Tensor a = data({6, 9}, 1, Dtype::f32, -4, 4), b = data({6, 9}, 2, Dtype::f32, 0, 1), y = below(9, {6});
  const auto loss = [&](const std::string& name, const Tensors& in,
                        std::function<Tensor(const Tensors&, nn::Reduction)> f) {
    for (const auto& [reduction, how] : {std::pair{nn::Reduction::mean, "/mean"}, std::pair{nn::Reduction::sum, "/sum"},
                                         std::pair{nn::Reduction::none, "/none"}})
      all.push_back(derivatives("loss/" + name + how, [=, r = reduction]() -> Instance {
        return {in, [=](const Tensors& t) { return Tensors{f(t, r)}; }, {}};
      }));
  };
  const auto entropy = [](const Tensors& t, nn::Reduction r) { return nn::cross_entropy(t[0], t[1], r); };
  loss("cross_entropy", {a, y}, entropy);
  loss("cross_entropy/i32", {a, cast(y, Dtype::i32)}, entropy);
  loss("cross_entropy/f64", {cast(a, Dtype::f64), y}, entropy);
  loss("cross_entropy/refused", {a, y + 5}, entropy);
  loss("cross_entropy/shapes", {a, below(9, {5})}, entropy);
  loss("mse", {a, b}, [](const Tensors& t, nn::Reduction r) { return nn::mse_loss(t[0], t[1], r); });
  loss("mse/shapes", {a, data({6, 1})}, [](const Tensors& t, nn::Reduction r) { return nn::mse_loss(t[0], t[1], r); });
  loss("l1", {a, b}, [](const Tensors& t, nn::Reduction r) { return nn::l1_loss(t[0], t[1], r); });
  loss("bce", {a, b}, [](const Tensors& t, nn::Reduction r) { return nn::bce_with_logits(t[0], t[1], r); });
  loss("bce/large", {a * 100, b}, [](const Tensors& t, nn::Reduction r) { return nn::bce_with_logits(t[0], t[1], r); });
  all.push_back(text("loss/accuracy", "values", [=] { return std::to_string(nn::accuracy(a, y)); }));
}

void add_fills(std::vector<Case>& all) {
  const std::vector<std::pair<std::string, nn::Fill>> fills = {{"constant", nn::init::constant(0.5)},
                                                               {"uniform", nn::init::uniform(-1, 2)},
                                                               {"normal", nn::init::normal(1, 2)},
                                                               {"xavier_uniform", nn::init::xavier_uniform()},
                                                               {"xavier_normal", nn::init::xavier_normal()},
                                                               {"kaiming_uniform", nn::init::kaiming_uniform()},
                                                               {"kaiming_normal", nn::init::kaiming_normal(1)},
                                                               {"orthogonal", nn::init::orthogonal()}};
  for (const auto& [name, fill] : fills)
    all.push_back(values("init/" + name, [fill = fill] {
      const RandomKey key = kInit.key("weight");
      return Tensors{fill({7, 12}, key, Dtype::f32), fill({12, 5}, key, Dtype::f64)};
    }));
}

/// Adds the weights of a network, as its seed makes them, by name.
void add_network(std::vector<Case>& all, const std::string& name, const dsl::Builder& words, const Tensor& x,
                 const nn::Context& context = {}) {
  const auto build = [=] { return std::make_shared<dsl::Network>(words.build(5)); };
  all.push_back(text("network/" + name + "/summary", "values", [=] {
    const auto net = build();
    std::string s = net->summary();
    for (const auto& p : net->named_parameters()) s += p.name + " " + p.variable.spec().str() + "\n";
    for (const auto& p : net->named_states()) s += p.name + " " + p.variable.spec().str() + "\n";
    return s;
  }));
  all.push_back(values("network/" + name + "/weights", [=] {
    Tensors w;
    for (const Parameter& p : build()->parameters()) w.push_back(p.peek());
    return w;
  }));
  for (const bool train : {true, false})
    all.push_back(derivatives("network/" + name + (train ? "/train" : "/eval"), [=]() -> Instance {
      const auto net = build();
      net->train(train);
      return {{x}, [=](const Tensors& in) { return Tensors{(*net)(in[0], context)}; }, net->parameters()};
    }));
}

void add_networks(std::vector<Case>& all) {
  const Tensor x = data({3, 5, 7});
  nn::Context lengths;
  lengths.lengths = Tensor::from<std::int64_t>({5, 1, 3});
  add_network(all, "perceptron", dsl::features(12).linear(20).relu().linear(6).log_softmax(), data({4, 12}));
  add_network(all, "normed", dsl::features(12).linear(20).layer_norm().gelu().dropout(0.25).linear(6), data({4, 12}));
  add_network(all, "gru", dsl::sequence(7).gru(9).last_step().linear(4), x);
  add_network(all, "gru-lengths", dsl::sequence(7).gru(9).last_step().linear(4), x, lengths);
  add_network(all, "words",
              dsl::tokens(13).embedding(6).lstm(8, {.layers = 2, .dropout = 0.3}).mean_over_time().linear(5),
              below(13, {3, 5}));
  add_network(all, "both-ways", dsl::sequence(7).rnn(5, {.bidirectional = true}).mean_over_time().linear(3), x,
              lengths);
  add_network(
      all, "residual",
      dsl::features(10)
          .repeat(2,
                  [](dsl::Builder& b) { b.residual([](dsl::Builder& part) { part.layer_norm().linear(10).silu(); }); })
          .linear(2),
      data({4, 10}));
  add_network(all, "stage",
              dsl::sequence(7)
                  .stage("encoder", [](dsl::Builder& b) { b.linear(6, "in").tanh().gru(5); })
                  .last_step()
                  .linear(3, "head"),
              x);
  add_network(all, "variables", dsl::sequence(7).recurrent<nn::LayerNormGruCell>(5).last_step().linear(3), x);
}

}  // namespace

std::vector<Case> layer_cases() {
  std::vector<Case> all;
  add_layers(all);
  add_losses(all);
  add_fills(all);
  add_networks(all);
  return all;
}

}  // namespace digests
