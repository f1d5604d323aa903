// Cells of scripts/bench-gate: layers and networks, forward, in training, scanned and compiled.
#include <memory>

#include "../scalar_scan.h"
#include "cells.h"
#include "ferrite/ferrite.h"
#include "minimal_gated.h"

using namespace ferrite;

namespace gate {
namespace {

struct Sizes {
  std::int64_t H, T, B;
};

std::string named(const std::string& what, const Sizes& s) {
  return what + "/" + std::to_string(s.H) + "/" + std::to_string(s.T) + "/" + std::to_string(s.B);
}

nn::Init init() { return {.seed = 1, .prefix = "layer"}; }

Tensor data(const Shape& shape) { return uniform(shape, {1, 1, 1}, -1, 1); }

Tensor labels(std::int64_t B, std::int64_t classes) {
  std::vector<std::int64_t> t;
  for (std::int64_t b = 0; b < B; ++b) t.push_back(b % classes);
  return Tensor::from(std::span<const std::int64_t>(t), {B});
}

using LayerMaker = std::function<std::shared_ptr<nn::Layer>(std::int64_t H)>;

LayerMaker gru(const nn::GruOptions& options = {}) {
  return [options](std::int64_t H) { return std::make_shared<nn::Gru>(H, H, options, init()); };
}
LayerMaker lstm() {
  return [](std::int64_t H) { return std::make_shared<nn::Lstm>(H, H, nn::LstmOptions{}, init()); };
}
LayerMaker rnn() {
  return [](std::int64_t H) { return std::make_shared<nn::Rnn>(H, H, nn::RnnOptions{}, init()); };
}
LayerMaker custom() {
  return [](std::int64_t H) {
    return std::make_shared<nn::Custom>(nn::custom<MinimalGated>(H, H, nn::CustomOptions{}, init()));
  };
}

/// Returns a cell that runs a layer: x [B, T, H] -> all outputs.
Cell forward(const std::string& kind, const LayerMaker& make, const Sizes& s, const nn::Context& context = {}) {
  return {named("forward/" + kind, s), [=]() -> Run {
            const auto layer = make(s.H);
            const Tensor x = data({s.B, s.T, s.H});
            return [=] { bench::keep(layer->forward(x, context)); };
          }};
}

/// Returns a cell that trains a layer: the mean of its squared outputs, with gradients and Adam.
Cell training(const std::string& kind, const LayerMaker& make, const Sizes& s) {
  return {named("train/" + kind, s), [=]() -> Run {
            const auto layer = make(s.H);
            const auto adam = std::make_shared<nn::Adam>(layer->parameters());
            const Tensor x = data({s.B, s.T, s.H});
            return [=] {
              Tape tape;
              const Tensor loss = mean(square(layer->forward(x, {})));
              adam->step(tape.grad(loss, adam->parameters()));
            };
          }};
}

/// A network with its optimiser on one batch.
struct Classifier {
  Classifier(dsl::Network n, Tensor batch, std::int64_t classes)
      : net(std::move(n)), adam(net.parameters()), x(std::move(batch)), y(labels(x.shape()[0], classes)) {}
  Tensor step(const Tensor& in, const Tensor& target) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(in), target);
    adam.step(tape.grad(loss, net.parameters()));
    return loss;
  }
  dsl::Network net;
  nn::Adam adam;
  Tensor x, y;
};

std::shared_ptr<Classifier> perceptron(std::int64_t B) {
  return std::make_shared<Classifier>(dsl::features(784).linear(128).relu().linear(10).build(1), data({B, 784}), 10);
}
/// Returns the demo's network with a batch.
std::shared_ptr<Classifier> vowels(std::int64_t B) {
  return std::make_shared<Classifier>(dsl::sequence(12).gru(64).last_step().linear(9).build(1), data({B, 16, 12}), 9);
}
std::shared_ptr<Classifier> words(std::int64_t B) {
  return std::make_shared<Classifier>(dsl::sequence(24)
                                          .layer_norm()
                                          .gru(32, nn::GruOptions{.layers = 2, .dropout = 0.2})
                                          .last_step()
                                          .linear(9)
                                          .build(1),
                                      data({B, 20, 24}), 9);
}

template <class Make>
Cell eager(const std::string& name, Make make) {
  return {"train/" + name, [=]() -> Run {
            const std::shared_ptr<Classifier> c = make();
            return [c] { bench::keep(c->step(c->x, c->y)); };
          }};
}

template <class Make>
Cell compiled(const std::string& name, Make make) {
  return {"compiled/" + name, [=]() -> Run {
            const std::shared_ptr<Classifier> c = make();
            const auto step = compile([c](const Tensor& x, const Tensor& y) { return c->step(x, y); });
            return [c, step] { bench::keep(step(c->x, c->y)); };
          }};
}

Cell compiled_layer(const std::string& kind, const LayerMaker& make, const Sizes& s) {
  return {named("compiled/" + kind, s), [=]() -> Run {
            const auto layer = make(s.H);
            const auto adam = std::make_shared<nn::Adam>(layer->parameters());
            const Tensor x = data({s.B, s.T, s.H});
            const auto step = compile([=](const Tensor& in) {
              Tape tape;
              const Tensor loss = mean(square(layer->forward(in, {})));
              adam->step(tape.grad(loss, adam->parameters()));
              return loss;
            });
            return [=] { bench::keep(step(x)); };
          }};
}

/// Returns a cell of a scan written by hand, outside any layer: T steps of h = tanh(x W + h U), with the gradient of
/// its last state.
Cell scanned(const Sizes& s, std::int64_t every) {
  return {named(every ? "scan/checkpoint" : "scan/gradient", s), [=]() -> Run {
            const Tensor w = 0.1 * data({s.H, s.H}), u = 0.2 * data({s.H, s.H}), xs = data({s.T, s.B, s.H});
            const Tensor h0 = zeros({s.B, s.H});
            return [=] {
              Tape tape;
              const Tensor tw = tape.watch(w), tu = tape.watch(u);
              const ScanResult r =
                  scan([&](const Tensors& carry,
                           const Tensors& x) -> ScanStep { return {{tanh(matmul(x[0], tw) + matmul(carry[0], tu))}}; },
                       {h0}, {xs}, {.checkpoint_every = every});
              bench::keep(tape.grad(sum(r.carry[0]), {tw, tu}));
            };
          }};
}

/// Returns a cell of the gradient through 100 compiled steps of `carries` numbers, each a separate value.
Cell scalars(std::size_t carries) {
  return {"scan/scalars-" + std::to_string(carries), [=]() -> Run {
            const Tensor xs = data({100});
            const auto gradient = bench::scalar_gradient(carries, xs);
            const Tensor x = zeros({}) + 0.1;
            return [=] { bench::keep(gradient(x)); };
          }};
}

nn::Context lengths(std::int64_t B, std::int64_t T) {
  std::vector<std::int64_t> n;
  for (std::int64_t b = 0; b < B; ++b) n.push_back(1 + (b * 7) % T);
  nn::Context context;
  context.lengths = Tensor::from(std::span<const std::int64_t>(n), {B});
  return context;
}

}  // namespace

std::vector<Cell> layer_cells() {
  return {
      forward("gru", gru(), {16, 1, 1}),
      forward("gru", gru(), {64, 100, 1}),
      forward("gru", gru(), {256, 50, 1}),
      forward("gru", gru(), {64, 50, 32}),
      forward("gru", gru(), {256, 10, 32}),
      forward("gru-lengths", gru(), {64, 50, 16}, lengths(16, 50)),
      forward("gru-both-ways", gru({.layers = 2, .bidirectional = true}), {32, 50, 8}),
      forward("lstm", lstm(), {128, 50, 1}),
      forward("lstm", lstm(), {64, 50, 32}),
      forward("lstm", lstm(), {128, 50, 8}),
      forward("lstm", lstm(), {256, 20, 16}),
      forward("rnn", rnn(), {64, 50, 16}),
      forward("custom", custom(), {64, 100, 1}),
      forward("custom", custom(), {64, 50, 32}),
      training("gru", gru(), {16, 10, 1}),
      training("gru", gru(), {32, 1, 1}),
      training("gru", gru(), {128, 1, 1}),
      training("gru", gru(), {64, 50, 1}),
      training("gru", gru(), {64, 50, 32}),
      training("gru", gru(), {256, 10, 32}),
      training("gru-unrolled", gru({.form = nn::Form::unrolled}), {32, 20, 4}),
      training("lstm", lstm(), {32, 50, 16}),
      training("rnn", rnn(), {64, 20, 16}),
      training("custom", custom(), {64, 50, 1}),
      training("custom", custom(), {32, 50, 32}),
      eager("perceptron/1", [] { return perceptron(1); }),
      eager("perceptron/32", [] { return perceptron(32); }),
      eager("vowels/32", [] { return vowels(32); }),
      eager("words/16", [] { return words(16); }),
      compiled("perceptron/1", [] { return perceptron(1); }),
      compiled("perceptron/32", [] { return perceptron(32); }),
      compiled("vowels/1", [] { return vowels(1); }),
      compiled("vowels/32", [] { return vowels(32); }),
      compiled("words/16", [] { return words(16); }),
      compiled_layer("gru", gru(), {32, 10, 1}),
      compiled_layer("custom", custom(), {32, 50, 8}),
      compiled_layer("gru-unrolled", gru({.form = nn::Form::unrolled}), {32, 20, 4}),
      scanned({64, 50, 4}, 0),
      scanned({64, 50, 4}, 7),
      scalars(8),
  };
}

}  // namespace gate
