// Cells of scripts/bench-gate: streams, and the time to make one.
#include <algorithm>
#include <memory>

#include "cells.h"
#include "ferrite/ferrite.h"

using namespace ferrite;

namespace gate {
namespace {

constexpr std::int64_t kBlock = 64;  // steps of a block

/// A chain of layers and the number of values that a step takes and returns.
struct Net {
  std::int64_t features, outputs;
  std::function<void(dsl::Builder&)> words;
};

dsl::Network build(const Net& net) {
  dsl::Builder b = dsl::sequence(net.features);
  net.words(b);
  return b.build(1);
}

struct Streaming {
  Streaming(const dsl::Network& model, const Net& net, std::int64_t batch, std::int64_t steps)
      : stream(model.stream(batch)),
        x(static_cast<std::size_t>(steps * batch * net.features)),
        y(static_cast<std::size_t>(steps * batch * net.outputs)) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01F * static_cast<float>(i * 37 % 101) - 0.5F;
  }
  nn::Stream stream;
  std::vector<float> x, y;
};

Cell steps(const std::string& name, const Net& net, std::int64_t batch = 1) {
  return {"stream/" + name, [=]() -> Run {
            const auto s = std::make_shared<Streaming>(build(net), net, batch, 1);
            return [s] { s->stream.step(std::span<const float>(s->x), std::span<float>(s->y)); };
          }};
}
Cell blocks(const std::string& name, const Net& net, std::int64_t batch = 1) {
  return {"stream/" + name + "-in-blocks", [=]() -> Run {
            const auto s = std::make_shared<Streaming>(build(net), net, batch, kBlock);
            return [s] { s->stream.steps(kBlock, std::span<const float>(s->x), std::span<float>(s->y)); };
          }};
}
/// Returns a run that feeds a block step by step; not every step returns an output.
Run feeding(const std::shared_ptr<Streaming>& s) {
  return [s] {
    for (std::int64_t i = 0; i < kBlock; ++i) s->stream.feed(std::span<const float>(s->x), std::span<float>(s->y));
  };
}
Cell fed(const std::string& name, const Net& net) {
  return {"stream/" + name, [=]() -> Run { return feeding(std::make_shared<Streaming>(build(net), net, 1, 1)); }};
}
/// Returns a cell of four sequences, each begun one step after the one before it.
Cell apart(const std::string& name, const Net& net) {
  return {"stream/" + name + "-rows-apart", [=]() -> Run {
            const auto s = std::make_shared<Streaming>(build(net), net, 4, 1);
            for (std::int64_t row = 1; row < 4; ++row) {
              s->stream.feed(std::span<const float>(s->x), std::span<float>(s->y));
              s->stream.reset(row);
            }
            return feeding(s);
          }};
}
/// Returns a cell of a block from the beginning, for layers whose steps take longer the more came before.
Cell anew(const std::string& name, const Net& net, bool at_once) {
  return {"stream/" + name + (at_once ? "-in-blocks" : ""), [=]() -> Run {
            const auto s = std::make_shared<Streaming>(build(net), net, 1, at_once ? kBlock : 1);
            return [s, at_once] {
              const std::span<const float> x(s->x);
              const std::span<float> y(s->y);
              s->stream.reset();
              if (at_once) return s->stream.steps(kBlock, x, y);
              for (std::int64_t i = 0; i < kBlock; ++i) s->stream.step(x, y);
            };
          }};
}
Cell made(const std::string& name, const Net& net) {
  return {"stream/make-" + name, [=]() -> Run {
            const auto model = std::make_shared<dsl::Network>(build(net));
            return [model] { bench::keep(model->stream()); };
          }};
}

Net gru(std::int64_t H) {
  return {H, H, [=](dsl::Builder& b) { b.gru(H); }};
}
Net lstm(std::int64_t H) {
  return {H, H, [=](dsl::Builder& b) { b.lstm(H); }};
}
/// Returns the network of an amplifier, which RTNeural and NAM Core run, too.
Net amplifier(std::int64_t H) {
  return {1, 1, [=](dsl::Builder& b) { b.lstm(H).linear(1); }};
}
Net small_gru(std::int64_t H) {
  return {1, 1, [=](dsl::Builder& b) { b.gru(H).linear(1); }};
}
Net chain() {
  return {12, 9, [](dsl::Builder& b) { b.linear(24).relu().gru(48).linear(9); }};
}
Net convolutions() {
  return {1, 1, [](dsl::Builder& b) {
            for (std::int64_t dilation = 1; dilation <= 64; dilation *= 2)
              b.causal_conv1d(8, 3, {.dilation = dilation}).tanh();
            b.linear(1);
          }};
}
Net wavenet(std::int64_t channels, const std::string& activation) {
  nn::WavenetArray array{.channels = channels, .bottleneck = channels};
  for (std::int64_t dilation = 1; dilation <= 512; dilation *= 2)
    array.units.push_back({.kernel_size = 3, .dilation = dilation, .activation = {.name = activation}});
  return {1, 1, [=](dsl::Builder& b) { b.add(nn::Wavenet({.arrays = {array}}, {.seed = 1, .prefix = "wavenet"})); }};
}
Net attention() {
  return {32, 32, [](dsl::Builder& b) { b.attention(4, {.causal = true, .capacity = kBlock}).linear(32); }};
}
Net strided() {
  return {1, 8, [](dsl::Builder& b) { b.causal_conv1d(8, 5, {.stride = 4}).gru(8); }};
}

}  // namespace

std::vector<Cell> stream_cells() {
  return {
      steps("gru-16", gru(16)),
      steps("gru-128", gru(128)),
      steps("lstm-64", lstm(64)),
      steps("network", chain()),
      steps("gru-64-of-4", gru(64), 4),
      steps("amplifier-16", amplifier(16)),
      steps("amplifier-40", amplifier(40)),
      steps("amplifier-gru-12", small_gru(12)),
      steps("amplifier-gru-24", small_gru(24)),
      steps("convolutions", convolutions()),
      steps("wavenet-8", wavenet(8, "tanh")),
      steps("wavenet-8-leaky", wavenet(8, "leaky_relu")),
      blocks("gru-16", gru(16)),
      blocks("lstm-64", lstm(64)),
      blocks("network", chain()),
      blocks("gru-64-of-4", gru(64), 4),
      blocks("amplifier-16", amplifier(16)),
      blocks("amplifier-40", amplifier(40)),
      blocks("amplifier-gru-24", small_gru(24)),
      blocks("convolutions", convolutions()),
      blocks("convolutions-of-4", convolutions(), 4),
      blocks("wavenet-3", wavenet(3, "tanh")),
      blocks("wavenet-8", wavenet(8, "tanh")),
      blocks("wavenet-16", wavenet(16, "tanh")),
      blocks("wavenet-8-leaky", wavenet(8, "leaky_relu")),
      anew("attention", attention(), false),
      anew("attention", attention(), true),
      fed("strided", strided()),
      apart("strided", strided()),
      made("gru-16", gru(16)),
      made("wavenet-8", wavenet(8, "tanh")),
  };
}

}  // namespace gate
