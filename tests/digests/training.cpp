// Optimisers with their options, whole training steps, and streams.
#include "digests.h"
#include "ferrite/nn/loss.h"

namespace digests {
namespace {

std::vector<Variable> variables_of(const nn::Optimizer& o) {
  std::vector<Variable> all(o.parameters().begin(), o.parameters().end());
  for (const auto& s : o.states()) all.push_back(s.variable);
  return all;
}

template <class Optimizer, class Options>
void add_optimizer(std::vector<Case>& all, const std::string& name, const Options& options) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    all.push_back(training(
        "optimizer/" + name + (dtype == Dtype::f32 ? "" : "/f64"),
        [=]() -> Training {
          const std::vector<Parameter> list = {
              {"w", data({5, 7}, 1, dtype)}, {"b", data({37}, 2, dtype)}, {"idle", data({3}, 3, dtype)}};
          const auto own = std::make_shared<Optimizer>(list, options);
          return {{data({5, 7}, 4, dtype)},
                  [=](const Tensors& in) {
                    Tape tape;
                    const Tensor loss = sum(square(list[0] - in[0])) + sum(exp(list[1]));
                    own->step(tape.grad(loss, list));
                    return Tensors{loss};
                  },
                  variables_of(*own)};
        },
        options.skip_nonfinite ? Planned::own : Planned::same));
}

void add_optimizers(std::vector<Case>& all) {
  add_optimizer<nn::Sgd>(all, "sgd", nn::SgdOptions{});
  add_optimizer<nn::Sgd>(all, "sgd/momentum", nn::SgdOptions{.momentum = 0.9});
  add_optimizer<nn::Sgd>(all, "sgd/nesterov", nn::SgdOptions{.momentum = 0.9, .nesterov = true});
  add_optimizer<nn::Sgd>(all, "sgd/decay", nn::SgdOptions{.momentum = 0.5, .weight_decay = 0.1});
  add_optimizer<nn::Sgd>(all, "sgd/skip", nn::SgdOptions{.skip_nonfinite = true});
  add_optimizer<nn::Adam>(all, "adam", nn::AdamOptions{});
  add_optimizer<nn::Adam>(all, "adam/betas", nn::AdamOptions{.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.7});
  add_optimizer<nn::Adam>(all, "adam/decay", nn::AdamOptions{.epsilon = 1e-3, .weight_decay = 0.1});
  add_optimizer<nn::Adam>(all, "adam/skip", nn::AdamOptions{.skip_nonfinite = true});
  add_optimizer<nn::AdamW>(all, "adamw", nn::AdamOptions{});
  add_optimizer<nn::AdamW>(all, "adamw/decay", nn::AdamOptions{.weight_decay = 0.3});
  add_optimizer<nn::RmsProp>(all, "rmsprop", nn::RmsPropOptions{});
  add_optimizer<nn::RmsProp>(all, "rmsprop/momentum", nn::RmsPropOptions{.alpha = 0.9, .momentum = 0.9});
  add_optimizer<nn::RmsProp>(all, "rmsprop/centered", nn::RmsPropOptions{.epsilon = 1e-3, .centered = true});
  add_optimizer<nn::RmsProp>(all, "rmsprop/decay", nn::RmsPropOptions{.weight_decay = 0.1, .momentum = 0.5});
  add_optimizer<nn::RmsProp>(all, "rmsprop/skip", nn::RmsPropOptions{.skip_nonfinite = true});
  all.push_back(values("optimizer/schedules", [] {
    nn::Sgd own({{"w", data({3})}}, {.learning_rate = 0.5});
    nn::StepSchedule steps(own, 3, 0.5);
    nn::CosineSchedule cosine(own, 7, 0.01);
    std::vector<double> rates;
    for (std::int64_t i = 0; i < 9; ++i) rates.insert(rates.end(), {steps.rate_at(i, 0.5), cosine.rate_at(i, 0.5)});
    return Tensors{Tensor::from(rates, {18})};
  }));
  all.push_back(derivatives("optimizer/clip_grad_norm", []() -> Instance {
    return {{data({5, 7}), data({9}, 2)},
            [](const Tensors& t) {
              const nn::ClippedGradients c = nn::clip_grad_norm(t, 0.5);
              Tensors out = c.grads;
              out.push_back(c.norm);
              return out;
            },
            {}};
  }));
}

/// Adds networks trained by Adam with clipped gradients.
void add_networks(std::vector<Case>& all) {
  const auto classifier = [&](const std::string& name, const dsl::Builder& words, const Tensor& x) {
    all.push_back(training("training/" + name, [=]() -> Training {
      const auto net = std::make_shared<dsl::Network>(words.build(6));
      const auto adam = std::make_shared<nn::Adam>(net->parameters(), nn::AdamOptions{.learning_rate = 0.01});
      std::vector<Variable> variables = variables_of(*adam);
      for (const auto& s : net->named_states()) variables.push_back(s.variable);
      return {{x, below(4, {x.shape()[0]})},
              [=](const Tensors& in) {
                Tape tape;
                const Tensor loss = nn::cross_entropy((*net)(in[0]), in[1]);
                const nn::ClippedGradients g = nn::clip_grad_norm(tape.grad(loss, net->parameters()), 1.0);
                adam->step(g.grads);
                return Tensors{loss, g.norm};
              },
              variables};
    }));
  };
  const Tensor x = data({6, 9, 5});
  classifier("perceptron", dsl::features(20).linear(33).relu().dropout(0.2).linear(4), data({6, 20}));
  classifier("normed", dsl::features(20).linear(33).layer_norm().gelu().linear(4), data({6, 20}));
  classifier("words", dsl::tokens(11).embedding(7).gru(9).last_step().linear(4), below(11, {6, 9}));
  classifier("custom", dsl::sequence(5).recurrent<nn::LayerNormGruCell>(8).mean_over_time().linear(4), x);
  for (const auto& [name, form] : {std::pair{"fused", nn::Form::fused}, std::pair{"unrolled", nn::Form::unrolled},
                                   std::pair{"scan", nn::Form::scan}}) {
    const std::string n = std::string("/") + name;
    classifier("gru" + n, dsl::sequence(5).gru(17, {.form = form}).last_step().linear(4), x);
    classifier("gru-deep" + n,
               dsl::sequence(5)
                   .gru(8, {.layers = 2, .bidirectional = true, .dropout = 0.3, .form = form})
                   .mean_over_time()
                   .linear(4),
               x);
    classifier("lstm" + n, dsl::sequence(5).lstm(17, {.form = form}).last_step().linear(4), x);
    classifier("lstm-projection" + n, dsl::sequence(5).lstm(9, {.form = form, .proj_size = 4}).last_step().linear(4),
               x);
    classifier("rnn" + n, dsl::sequence(5).rnn(17, {.form = form}).last_step().linear(4), x);
  }
}

/// Adds objects with variables other than parameters and optimisers: states carried from piece to piece, tied weights,
/// generators.
void add_variables(std::vector<Case>& all) {
  for (const auto& [name, form] : {std::pair{"fused", nn::Form::fused}, std::pair{"scan", nn::Form::scan}})
    all.push_back(training(std::string("training/carried/") + name, [form = form]() -> Training {
      const auto layer = std::make_shared<nn::Lstm>(5, 7, nn::LstmOptions{.layers = 2, .form = form},
                                                    nn::Init{.seed = 4, .prefix = "layer"});
      const auto carry = std::make_shared<nn::Carry>(*layer, 3);
      const auto adam = std::make_shared<nn::Adam>(layer->parameters());
      std::vector<Variable> variables = variables_of(*adam);
      for (const State& s : carry->variables()) variables.push_back(s);
      return {{data({3, 4, 5})},
              [=](const Tensors& in) {
                nn::Context context;
                context.carry = carry.get();
                Tape tape;
                const Tensor loss = mean(square((*layer)(in[0], context)));
                adam->step(tape.grad(loss, layer->parameters()));
                return Tensors{loss};
              },
              variables};
    }));
  all.push_back(training("training/tied", []() -> Training {
    const auto a = std::make_shared<nn::Linear>(6, 6, nn::Init{.seed = 1, .prefix = "a"});
    const auto b = std::make_shared<nn::Linear>(6, 6, nn::Init{.seed = 2, .prefix = "b"});
    b->weight.tie(a->weight);
    const std::vector<Parameter> list = {a->weight, a->bias, b->bias};
    const auto adam = std::make_shared<nn::Adam>(list);
    return {{data({3, 6})},
            [=](const Tensors& in) {
              Tape tape;
              const Tensor loss = mean(square((*b)(tanh((*a)(in[0])))));
              adam->step(tape.grad(loss, list));
              return Tensors{loss};
            },
            variables_of(*adam)};
  }));
  all.push_back(training("training/generator", []() -> Training {
    const auto noise = std::make_shared<Generator>(7);
    return {{data({3, 6})},
            [=](const Tensors& in) {
              return Tensors{in[0] + noise->normal({3, 6}), noise->uniform({6}) * in[0], noise->bernoulli({5}, 0.5)};
            },
            {noise->calls, noise->key}};
  }));
}

}  // namespace

std::vector<Case> training_cases() {
  std::vector<Case> all;
  add_optimizers(all);
  add_networks(all);
  add_variables(all);
  return all;
}

std::vector<Case> stream_cases() {
  std::vector<Case> all;
  const auto stream = [&](const std::string& name, auto make, const Tensor& x) {
    all.push_back(streamed(
        "stream/" + name, [=]() -> std::unique_ptr<nn::Layer> { return make(); }, x));
  };
  const nn::Init init{.seed = 7, .prefix = "layer"};
  for (const std::int64_t B : {1, 3}) {
    const std::string n = "/" + std::to_string(B);
    const Tensor x = data({8, B, 6});
    stream(
        "linear" + n, [=] { return std::make_unique<nn::Linear>(6, 19, init); }, x);
    for (const std::int64_t groups : {1, 2, 6}) {
      const nn::CausalConv1dOptions o{
          .in_channels = 6, .out_channels = 12, .kernel_size = 3, .dilation = 2, .groups = groups};
      stream(
          "causal_conv1d/" + std::to_string(groups) + n, [=] { return std::make_unique<nn::CausalConv1d>(o, init); },
          x);
    }
    stream(
        "mlstm" + n,
        [=] {
          return std::make_unique<nn::MLstm>(
              nn::MLstmOptions{.embedding_dim = 6, .num_heads = 2, .round_up_to = 8, .chunk = 1}, init);
        },
        x);
    stream(
        "slstm" + n,
        [=] { return std::make_unique<nn::SLstm>(nn::SLstmOptions{.embedding_dim = 6, .num_heads = 2}, init); }, x);
    for (const nn::Positions positions : {nn::Positions::none, nn::Positions::rotary, nn::Positions::alibi}) {
      const nn::MultiheadAttentionOptions o{
          .embed_dim = 6, .num_heads = 3, .kv_heads = 1, .causal = true, .positions = positions, .capacity = 9};
      stream(
          "attention/" + std::to_string(static_cast<int>(positions)) + n,
          [=] { return std::make_unique<nn::MultiheadAttention>(o, init); }, x);
    }
    const nn::TransformerLayerOptions block{
        .d_model = 6, .nhead = 3, .dim_feedforward = 12, .norm_first = true, .causal = true, .capacity = 9};
    stream(
        "transformer" + n, [=] { return std::make_unique<nn::TransformerEncoderLayer>(block, init); }, x);
    stream(
        "positions" + n,
        [=] { return std::make_unique<nn::SinusoidalPositions>(nn::SinusoidalPositionsOptions{.features = 6}); }, x);
    stream(
        "standardize_missing" + n,
        [=] {
          return std::make_unique<nn::Standardize>(nn::StandardizeOptions{.features = 6, .skip_missing = true}, init);
        },
        x);
    stream(
        "mel_bands" + n,
        [=] {
          return std::make_unique<nn::MelBands>(
              nn::MelBandsOptions{.n_frequencies = 6, .n_mels = 2, .sample_rate = 8000}, init);
        },
        x);
    stream(
        "layer_norm" + n, [=] { return std::make_unique<nn::LayerNorm>(6, init); }, x);
    stream(
        "weight_norm" + n, [=] { return std::make_unique<nn::WeightNorm>(std::make_unique<nn::Linear>(6, 5, init)); },
        x);
    stream(
        "dropout" + n, [=] { return std::make_unique<nn::Dropout>(0.5, init); }, x);
    for (const std::string& a : nn::activation_names())
      stream(
          a + n, [=] { return std::make_unique<nn::Activation>(a, nn::activation(a)); }, x);
    for (const auto& [form_name, form] : {std::pair{"fused", nn::Form::fused},
                                          std::pair{"unrolled", nn::Form::unrolled}, std::pair{"scan", nn::Form::scan}})
      for (const std::int64_t layers : {1, 2}) {
        const std::string of = std::string("/") + form_name + "/" + std::to_string(layers) + n;
        const nn::GruOptions gru{.layers = layers, .form = form};
        nn::GruOptions before = gru;
        before.reset_after = false;
        stream(
            "gru" + of, [=] { return std::make_unique<nn::Gru>(6, 19, gru, init); }, x);
        stream(
            "gru-reset-before" + of, [=] { return std::make_unique<nn::Gru>(6, 19, before, init); }, x);
        const nn::LstmOptions lstm{.layers = layers, .form = form};
        nn::LstmOptions projected = lstm;
        projected.proj_size = 5;
        stream(
            "lstm" + of, [=] { return std::make_unique<nn::Lstm>(6, 19, lstm, init); }, x);
        stream(
            "lstm-projection" + of, [=] { return std::make_unique<nn::Lstm>(6, 19, projected, init); }, x);
        const nn::RnnOptions rnn{.layers = layers, .form = form};
        nn::RnnOptions relu = rnn;
        relu.nonlinearity = nn::Nonlinearity::relu;
        stream(
            "rnn" + of, [=] { return std::make_unique<nn::Rnn>(6, 19, rnn, init); }, x);
        stream(
            "rnn-relu" + of, [=] { return std::make_unique<nn::Rnn>(6, 19, relu, init); }, x);
      }
    stream(
        "layer_norm_gru" + n,
        [=] { return std::make_unique<nn::Custom>(nn::custom<nn::LayerNormGruCell>(6, 9, nn::CustomOptions{}, init)); },
        x);
    stream(
        "network" + n,
        [] {
          return std::make_unique<dsl::Network>(dsl::sequence(6)
                                                    .linear(24)
                                                    .relu()
                                                    .residual([](dsl::Builder& b) { b.layer_norm().linear(24); })
                                                    .gru(17)
                                                    .linear(4)
                                                    .softmax()
                                                    .build(1));
        },
        x);
  }
  return all;
}

}  // namespace digests
