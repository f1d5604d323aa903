// Needs of recurrent programs besides plain sequences: lengths, resets, the first step of a user's cell, the same bits
// for any batch, many small layers. Answers the questions of compare/strengths.py: bench_strengths reads lines "job H T
// B seconds" and prints microseconds; for `bits` the largest difference.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/denormals.h"
#include "timing.h"

using namespace ferrite;

namespace {

struct Question {
  std::int64_t H = 0, T = 0, B = 0;
};
constexpr int kLayers = 28;

Tensor input(const Question& c) { return uniform({c.B, c.T, c.H}, {1, 1, 1}, -1, 1); }

/// Returns lengths evenly spaced from 1 to T, in an order without trend.
Tensor lengths(const Question& c) {
  return Tensor::build<std::int64_t>({c.B}, [&](std::span<std::int64_t> n) {
    for (std::int64_t b = 0; b < c.B; ++b)
      n[static_cast<std::size_t>(b)] = 1 + (c.T - 1) * (b * 7 % c.B) / std::max<std::int64_t>(1, c.B - 1);
  });
}

Tensor resets(const Question& c) { return lt(uniform({c.B, c.T}, {3, 1, 1}, 0, 1), 0.05); }

std::function<void()> layer_job(const std::string& name, const Question& c) {
  const auto gru = std::make_shared<nn::Gru>(c.H, c.H, nn::GruOptions{}, nn::Init{.seed = 1, .prefix = "gru"});
  const auto context = std::make_shared<nn::Context>();
  if (name.starts_with("lengths")) context->lengths = lengths(c);
  if (name.starts_with("resets")) context->reset_mask = resets(c);
  const Tensor x = input(c);
  if (!name.ends_with("_train")) return [=] { bench::keep((*gru)(x, *context)); };
  const auto adam = std::make_shared<nn::Adam>(gru->parameters());
  return [=] {
    Tape tape;
    const Tensor loss = mean(square((*gru)(x, *context)));
    adam->step(tape.grad(loss, adam->parameters()));
  };
}

/// Makes a layer from scratch and runs its first training step.
void first_step(const Question& c) {
  const nn::Custom layer = nn::custom<nn::LayerNormGruCell>(c.H, c.H, {}, {.seed = 1, .prefix = "layer"});
  nn::Adam adam(layer.parameters());
  const Tensor x = input(c);
  Tape tape;
  const Tensor loss = mean(square(layer(x)));
  adam.step(tape.grad(loss, adam.parameters()));
}

double bits(const Question& c) {
  const nn::Gru gru(c.H, c.H, {}, {.seed = 1, .prefix = "gru"});
  const Tensor x = input(c), all = gru(x);
  double worst = 0;
  for (std::int64_t b = 0; b < c.B; ++b)
    worst =
        std::max(worst, static_cast<double>(amax(abs(gru(slice(x, 0, b, b + 1)) - slice(all, 0, b, b + 1))).item()));
  return worst;
}

std::function<void()> many(const Question& c, bool streamed) {
  const auto layers = std::make_shared<std::vector<std::unique_ptr<nn::Gru>>>();
  for (int k = 0; k < kLayers; ++k)
    layers->push_back(
        std::make_unique<nn::Gru>(c.H, c.H, nn::GruOptions{}, nn::Init{.seed = 1, .prefix = "g" + std::to_string(k)}));
  const Tensor x = input(c);
  if (!streamed)
    return [=] {
      for (const auto& gru : *layers) bench::keep((*gru)(x));
    };
  const auto streams = std::make_shared<std::vector<nn::Stream>>();
  for (const auto& gru : *layers) streams->push_back(gru->stream(c.B));
  const auto frames = std::make_shared<std::vector<float>>(x.to_vector<float>());
  const auto y = std::make_shared<std::vector<float>>(static_cast<std::size_t>(c.B * c.H));
  return [=] {
    const auto row = static_cast<std::size_t>(c.H);
    for (std::size_t t = 0; t < static_cast<std::size_t>(c.T); ++t)
      for (nn::Stream& s : *streams) s.step(std::span<const float>(frames->data() + t * row, row), *y);
  };
}

double answer(const std::string& name, const Question& c, double seconds) {
  if (name == "bits") return bits(c);
  if (name == "first") {
    const double start = bench::now();
    first_step(c);
    return 1e6 * (bench::now() - start);
  }
  const std::function<void()> run = name.starts_with("many") ? many(c, name == "many_streams") : layer_job(name, c);
  return 1e6 * bench::interleaved_for({run}, seconds)[0];
}

}  // namespace

int main() {
  const FlushDenormals guard;
  std::cout << "ours" << std::endl;
  std::string name;
  Question c;
  double seconds = 0;
  while (std::cin >> name >> c.H >> c.T >> c.B >> seconds) std::cout << answer(name, c, seconds) << std::endl;
}
