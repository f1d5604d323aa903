// A variational autoencoder learns to draw digits (Kingma and Welling 2014, arXiv 1312.6114).
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

constexpr std::int64_t kPixels = 64, kLatent = 8;

struct Autoencoder : nn::Module {
  dsl::Network encoder = dsl::features(kPixels).linear(128).relu().linear(2 * kLatent).build();
  dsl::Network decoder = dsl::features(kLatent).linear(128).relu().linear(kPixels).build();
  explicit Autoencoder(std::uint64_t seed) : Module({.seed = seed}) {
    adopt("encoder", encoder), adopt("decoder", decoder);
  }

  /// Returns minus the evidence lower bound, in nats an image: pixels in 0..1 as probabilities of ink.
  Tensor loss(const Tensor& images, Generator& draws) const {
    const Tensors halves = split(encoder(images), kLatent, 1);
    const nn::Normal latent(halves[0], exp(halves[1])), prior(zeros_like(halves[0]), ones_like(halves[0]));
    const Tensor logits = decoder(latent.rsample(draws));
    const Tensor ink = nn::bce_with_logits(logits, images, nn::Reduction::sum);
    return (ink + sum(kl_divergence(latent, prior))) / static_cast<double>(images.shape()[0]);
  }
};

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/digits.safetensors", out = ".";
  std::int64_t epochs = 60;
  std::uint64_t seed = 0;
  CLI::App app("Learns to draw digits and fails above 25.5 nats an image of those that it has not seen");
  app.add_option("--data", path), app.add_option("--out", out, "A folder"), app.add_option("--seed", seed);
  app.add_option("--epochs", epochs)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const Tensor all = flatten(cast(io::read_safetensors(path).tensor("images"), Dtype::f32), 1) / 16;
  const Tensor unseen = slice(all, 0, 0, 360);
  const train::DataLoader training(train::Dataset({slice(all, 0, 360)}), {.batch_size = 64, .seed = seed});
  const train::DataLoader held_out(train::Dataset({unseen}), {.batch_size = 360, .shuffle = false});
  const Autoencoder net(seed);
  Generator draws(seed + 1);
  nn::Adam adam(net.parameters(), {.learning_rate = 2e-3});
  train::FitOptions options{.optimizer = &adam, .epochs = epochs, .validation = &held_out};
  options.callbacks = {train::ProgressBar(std::cout, train::ProgressBar::on_terminal())};
  options.compile = train::Compile::always;
  const auto forward = [&](const train::Batch& b) { return train::StepOutput{net.loss(b.x(), draws)}; };
  const double bound = train::fit(net, forward, training, options)["val_loss"].back();
  std::cout << "held out " << bound << " nats an image\n";

  const Tensor some = slice(unseen, 0, 0, 12), again = sigmoid(net.decoder(slice(net.encoder(some), 1, 0, kLatent)));
  const Tensor drawn = sigmoid(net.decoder(normal({24, kLatent}, {seed, stream_of("drawings"), 0})));
  const Tensor grid = train::image_grid(reshape(concat({some, again, drawn}), {48, 8, 8}), {.columns = 12});
  train::write_heat_map(out + "/digits_vae.svg", grid, {.title = "Digits, decoded again, and drawn", .scale = false});
  return bound <= 25.5 ? 0 : 1;
} catch (const std::exception& e) {
  std::cerr << "digits_vae: " << e.what() << '\n';
  return 1;
}
