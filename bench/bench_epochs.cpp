// Epochs of the example programs, each through `fit` as in the example, on data of the same shapes. Answers the
// questions of compare/epochs.py: bench_epochs NET THREADS trains NET for one more epoch for every line that it reads,
// and prints the seconds of that epoch.
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "ferrite/ferrite.h"
#include "timing.h"

using namespace ferrite;

namespace {

/// Waits for a line before every epoch, and prints how long the epoch took; ends training when there are no more lines.
class Server final : public train::Callback {
 public:
  std::string name() const override { return "server"; }
  void on_epoch_begin(train::Training&) override {
    std::string line;
    if (!std::getline(std::cin, line)) std::exit(0);
    begun_ = bench::now();
  }
  void on_epoch_end(train::Training&) override { std::cout << bench::now() - begun_ << std::endl; }

 private:
  double begun_ = 0;
};

constexpr std::int64_t kEpochs = 1'000'000;

Tensor draw(const Shape& shape, std::uint64_t seed = 1) { return uniform(shape, {.seed = seed}, -1, 1); }
Tensor classes(const Shape& shape, std::int64_t C) { return randint(shape, {.seed = 2}, 0, C); }

/// Returns n sequences of `least` to `most` steps, all lengths equally likely.
std::vector<Tensor> pieces(std::int64_t n, std::int64_t least, std::int64_t most, std::int64_t features) {
  std::vector<Tensor> each;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t T = least + i * 7 % (most - least + 1);
    const RandomKey key{.seed = 3, .call = static_cast<std::uint64_t>(i)};
    each.push_back(features > 0 ? uniform({T, features}, key, -1, 1) : randint({T}, key, 1, 27));
  }
  return each;
}

train::FitOptions options(nn::Optimizer& optimizer, double clip = 0) {
  return {.optimizer = &optimizer, .epochs = kEpochs, .callbacks = {Server()}, .clip_norm = clip};
}

void sunspots() {
  const train::DataLoader data(train::Dataset({draw({206, 24, 1}), draw({206, 1})}), {.batch_size = 16});
  const auto net = dsl::sequence(1).standardize().gru(16).last_step().linear(1).build(0);
  nn::AdamW adam(net.parameters(), {.learning_rate = 5e-3, .weight_decay = 1e-2});
  auto o = options(adam, 1);
  o.loss = "mse";
  (void)train::fit(net, data, o);
}

void text() {
  constexpr std::int64_t kRows = 16, kVocabulary = 96;
  const Tensor characters = classes({15536}, kVocabulary);
  const train::DataLoader data(train::side_by_side(characters, kRows, 50), {.batch_size = kRows, .shuffle = false});
  const auto net = dsl::tokens(kVocabulary).embedding(32).gru(128).linear(kVocabulary).build(0);
  const nn::Carry carry(net, kRows);
  nn::Adam adam(net.parameters(), {.learning_rate = 4e-3});
  const auto forward = [&](const train::Batch& b) {
    const Tensor logits = net(b.x(), {.carry = &carry});
    return train::StepOutput{nn::cross_entropy(logits, b.y(), {.classes_last = true}), logits};
  };
  auto o = options(adam, 1);
  o.metrics = {"perplexity"};
  o.callbacks.push_back(train::LambdaCallback({.on_epoch_begin = [&](train::Training&) { carry.reset(); }}));
  o.compile = train::Compile::always;
  (void)train::fit(net, forward, data, o);
}

void digits_mlp() {
  const train::DataLoader data(train::Dataset({draw({1257, 64}), classes({1257}, 10)}), {.batch_size = 64});
  const auto net = dsl::features(64).linear(64).relu().dropout(0.2).linear(10).build(0);
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  auto o = options(adam);
  o.loss = "cross_entropy", o.metrics = {"accuracy"};
  (void)train::fit(net, data, o);
}

void digits() {
  const train::DataLoader data(train::Dataset({draw({1437, 1, 8, 8}), classes({1437}, 10)}), {.batch_size = 64});
  dsl::Builder words = dsl::image(1, 8, 8);
  words.conv2d(16, 3, {.padding = {1}}).batch_norm().relu().conv2d(32, 3, {.padding = {1}}).batch_norm().relu();
  words.max_pool2d(2).conv2d(32, 3, {.padding = {1}}).batch_norm().relu().flatten().dropout(0.3).linear(10);
  const auto net = words.build(0);
  nn::Adam adam(net.parameters(), {.learning_rate = 2e-3});
  auto o = options(adam);
  o.loss = "cross_entropy", o.metrics = {"accuracy"};
  (void)train::fit(net, data, o);
}

void fine_tune() {
  const train::DataLoader data(train::Dataset({train::sequences(pieces(54, 7, 26, 12)), classes({54}, 3)}),
                               {.batch_size = 8});
  const auto net = dsl::sequence(12).gru(64).last_step().linear(3).build(0);
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-4});
  auto o = options(adam, 1);
  o.loss = "cross_entropy";
  (void)train::fit(net, data, o);
}

void overdrive() {
  const Tensor dry = draw({256, 1000, 1});
  const train::DataLoader data(train::Dataset({dry, tanh(3 * dry)}), {.batch_size = 8});
  dsl::Builder words = dsl::sequence(1).causal_conv1d(12, 3).tanh();
  for (const std::int64_t dilation : {2, 4, 8, 16, 32})
    words.residual([&](dsl::Builder& b) { b.causal_conv1d(12, 3, {.dilation = dilation}).tanh().linear(12); });
  const auto net = words.linear(1).build(0);
  nn::Adam adam(net.parameters(), {.learning_rate = 4e-3});
  auto o = options(adam);
  o.loss = [](const Tensor& y, const Tensor& t) { return nn::esr_loss(y, t); };
  (void)train::fit(net, data, o);
}

/// The net of examples/digits_vae.cpp.
struct Autoencoder : nn::Module {
  dsl::Network encoder = dsl::features(64).linear(128).relu().linear(16).build();
  dsl::Network decoder = dsl::features(8).linear(128).relu().linear(64).build();
  Autoencoder() : Module({.seed = 0}) { adopt("encoder", encoder), adopt("decoder", decoder); }
  Tensor loss(const Tensor& images, Generator& draws) const {
    const Tensors halves = split(encoder(images), 8, 1);
    const nn::Normal latent(halves[0], exp(halves[1])), prior(zeros_like(halves[0]), ones_like(halves[0]));
    const Tensor ink = nn::bce_with_logits(decoder(latent.rsample(draws)), images, nn::Reduction::sum);
    return (ink + sum(kl_divergence(latent, prior))) / static_cast<double>(images.shape()[0]);
  }
};

void digits_vae() {
  const train::DataLoader data(train::Dataset({uniform({1437, 64}, {.seed = 1})}), {.batch_size = 64});
  const Autoencoder net;
  Generator draws(1);
  nn::Adam adam(net.parameters(), {.learning_rate = 2e-3});
  auto o = options(adam);
  o.compile = train::Compile::always;
  (void)train::fit(
      net, [&](const train::Batch& b) { return train::StepOutput{net.loss(b.x(), draws)}; }, data, o);
}

/// One update of examples/pole.cpp: six epochs over the observations of 16 carts, by a separate call of fit.
void pole() {
  const train::Dataset set({draw({2048, 4}), classes({2048}, 2), log(uniform({2048}, {.seed = 4}, 0.4, 0.6)),
                            draw({2048}, 5), draw({2048}, 6)});
  const auto net = dsl::features(4).linear(64).tanh().linear(64).tanh().linear(3).build(0);
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-3});
  const auto forward = [&](const train::Batch& b) {
    const Tensor y = net(b.x()), log_p = log_softmax(slice(y, 1, 0, 2), 1);
    const Tensor ratio = exp(squeeze(gather(log_p, 1, unsqueeze(b.field(1), 1)), 1) - b.field(2));
    const Tensor gain = minimum(ratio * b.field(3), clamp(ratio, 0.8, 1.2) * b.field(3));
    const Tensor wrong = square(select(y, 1, 2) - b.field(4)), chance = -sum(exp(log_p) * log_p, {1});
    return train::StepOutput{mean(0.5 * wrong - gain - 0.01 * chance)};
  };
  std::string line;
  for (std::uint64_t i = 0; std::getline(std::cin, line); ++i) {
    const double begun = bench::now();
    (void)train::fit(net, forward, train::DataLoader(set, {.batch_size = 256, .seed = i}),
                     {.optimizer = &adam, .epochs = 6, .clip_norm = 0.5});
    std::cout << bench::now() - begun << std::endl;
  }
}

/// The net of examples/dates.cpp, with letters made in advance.
struct Translator : nn::Module {
  nn::Embedding letters{96, 32}, digits{96, 32};
  nn::Gru encoder{32, 32, {.bidirectional = true}}, decoder{32, 64};
  nn::Linear head{128, 96};
  Translator() : Module({.seed = 0}) {
    adopt("letters", letters), adopt("digits", digits), adopt("encoder", encoder), adopt("decoder", decoder),
        adopt("head", head);
  }
  Tensor forward(const Tensor& x, const Tensor& lengths, const Tensor& y) const {
    const Tensor read = encoder(letters(x), {.lengths = lengths}), said = decoder(digits(y));
    const Tensor seen = unsqueeze(nn::length_mask(lengths, x.shape()[1]), 1);
    return head(concat({said, scaled_dot_product_attention(said, read, read, {.mask = seen})}, 2));
  }
};

void dates() {
  const train::DataLoader data(
      train::Dataset({train::sequences(pieces(4000, 8, 22, 0)), classes({4000, 10}, 96), classes({4000, 10}, 96)}),
      {.batch_size = 64, .bucket_lengths = {12, 24}, .threads = 1});
  const Translator net;
  nn::Adam adam(net.parameters(), {.learning_rate = 3e-3});
  const auto forward = [&](const train::Batch& b) {
    const Tensor logits = net.forward(b.x(), b.lengths[0], b.field(1));
    return train::StepOutput{nn::cross_entropy(logits, b.field(2), {.classes_last = true})};
  };
  auto o = options(adam, 1);
  o.compile = train::Compile::always;
  (void)train::fit(net, forward, data, o);
}

void anomaly() {
  const train::DataLoader data(train::Dataset({draw({246, 64, 1}), draw({246, 64, 1}, 7)}));
  const auto net = dsl::sequence(1).gru(16).linear(1).build(0);
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
  auto o = options(adam, 1);
  o.loss = "mse";
  (void)train::fit(net, data, o);
}

void ensemble() {
  const train::DataLoader data(train::Dataset({draw({200, 1}), draw({200, 1}, 7)}));
  const auto net = dsl::features(1).linear(32).tanh().linear(32).tanh().linear(1).build(0);
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
  auto o = options(adam);
  o.loss = "mse";
  (void)train::fit(net, data, o);
}

void names() {
  const std::vector<Tensor> x = pieces(4647, 3, 12, 0);
  const train::DataLoader data(train::Dataset({train::sequences(x), train::sequences(x)}));
  const auto block = [](dsl::Builder& b) {
    b.transformer(4, {.dim_feedforward = 128,
                      .dropout = 0.1,
                      .activation = "gelu",
                      .norm_first = true,
                      .causal = true,
                      .capacity = 17});
  };
  const auto net = dsl::tokens(27).embedding(48).positions(17).repeat(2, block).layer_norm().linear(27).build(0);
  nn::AdamW adam(net.parameters(), {.learning_rate = 2e-3});
  auto o = options(adam, 1);
  o.loss = "cross_entropy_classes_last";
  (void)train::fit(net, data, o);
}

const std::map<std::string, void (*)()> kNets = {
    {"sunspots", sunspots},   {"text", text},           {"digits_mlp", digits_mlp}, {"digits", digits},
    {"fine_tune", fine_tune}, {"overdrive", overdrive}, {"digits_vae", digits_vae}, {"pole", pole},
    {"dates", dates},         {"anomaly", anomaly},     {"ensemble", ensemble},     {"names", names}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || !kNets.contains(argv[1])) {
    std::cerr << "bench_epochs NET THREADS\n";
    return 1;
  }
  set_threads(std::atoi(argv[2]));
  std::cout << "ready" << std::endl;
  kNets.at(argv[1])();
  return 0;
}
