// The nets of the examples, built with the same words and sizes.
#include "onnx/example_nets.h"

#include "../examples/custom_cell/cells.h"
#include "../examples/silero_vad/vad.h"
#include "ferrite/ferrite.h"

namespace onnx_test {
namespace {

using namespace ferrite;

Tensor numbers(const Shape& shape, Dtype dtype = Dtype::f32) { return cast(uniform(shape, {.seed = 5}, -1, 1), dtype); }
Tensor tokens(std::int64_t most, const Shape& shape = {2, 7}) {
  return cast(uniform(shape, {.seed = 6}, 0, static_cast<double>(most)), Dtype::i64);
}

struct List {
  std::vector<ExampleNet> all{};

  /// Adds a chain of layers.
  void add(const std::string& name, const dsl::Builder& words, const Tensor& x, bool exact = true) {
    const auto net = std::make_shared<dsl::Network>(words.build(3, is_float(x.dtype()) ? x.dtype() : Dtype::f32));
    net->eval();
    all.push_back({name, [net](const Tensors& in) { return Tensors{(*net)(in[0])}; }, {x}, exact});
  }
};

/// The net of the example dates: an encoder in both directions, a decoder, and attention by lengths between them.
struct Translator : nn::Module {
  nn::Embedding letters{40, 32}, digits{40, 32};
  nn::Gru encoder{32, 32, {.bidirectional = true}}, decoder{32, 64};
  nn::Linear head{128, 40};
  Translator() : Module({.seed = 3}) {
    adopt("letters", letters), adopt("digits", digits), adopt("encoder", encoder), adopt("decoder", decoder),
        adopt("head", head);
  }
  Tensors operator()(const Tensor& x, const Tensor& lengths, const Tensor& y) const {
    const Tensor read = encoder(letters(x), {.lengths = lengths}), said = decoder(digits(y));
    const Tensor there = unsqueeze(nn::length_mask(lengths, x.shape()[1]), 1);
    const Tensor seen = softmax(where(there, matmul(said, transpose(read, 1, 2)) / 8, -1e9), 2);
    return {head(concat({said, matmul(seen, read)}, 2)), seen};
  }
};

/// The net of the example g2p: the last state of an encoder, and one step of a decoder.
struct Pronouncer : nn::Module {
  nn::Embedding letters{29, 256};
  nn::Gru encoder{256, 256};
  nn::Embedding phonemes{74, 256};
  nn::GruCell decoder{256, 256};
  nn::Linear head{256, 74};
  Pronouncer() : Module({.seed = 3}) {
    adopt("letters", letters), adopt("encoder", encoder), adopt("phonemes", phonemes), adopt("decoder", decoder),
        adopt("head", head);
  }
};

void add_chains(List& list) {
  list.add("hello_gru, train_on_ranks", dsl::sequence(1).gru(16).last_step().linear(2), numbers({2, 9, 1}));
  list.add("vowels, compiled_training", dsl::sequence(12).gru(32).last_step().linear(9), numbers({2, 9, 12}));
  list.add("fine_tune", dsl::sequence(12).gru(64).last_step().linear(3, "head"), numbers({2, 9, 12}));
  list.add("anomaly", dsl::sequence(1).gru(16).linear(1), numbers({2, 9, 1}));
  list.add("cart_pole", dsl::sequence(2).gru(64).linear(3), numbers({2, 9, 2}));
  list.add("pole", dsl::features(4).linear(64).tanh().linear(64).tanh().linear(3), numbers({2, 4}));
  list.add("ensemble", dsl::features(1).linear(32).tanh().linear(32).tanh().linear(1), numbers({2, 1}));
  list.add("digits_mlp", dsl::features(64).linear(64).relu().dropout(0.2).linear(10), numbers({2, 64}));
  list.add("digits_vae, encoder", dsl::features(64).linear(128).relu().linear(16), numbers({2, 64}));
  list.add("digits_vae, decoder", dsl::features(8).linear(128).relu().linear(64), numbers({2, 8}));
  list.add("oscillator", dsl::features(1).linear(24).activation("sin").linear(24).activation("sin").linear(1),
           numbers({2, 1}, Dtype::f64));
  list.add("sunspots", dsl::sequence(1).standardize().gru(16).last_step().linear(1), numbers({2, 24, 1}));
  list.add("text", dsl::tokens(60).embedding(32).gru(128).linear(60), tokens(60));
  list.add("words", dsl::tokens(28).embedding(32).gru(64).linear(28), tokens(28));
  list.add("vowels_bidirectional",
           dsl::sequence(12).lstm(32, {.layers = 2, .bidirectional = true, .dropout = 0.2}).mean_over_time().linear(9),
           numbers({2, 9, 12}));
  list.add("vowels_convolutional",
           dsl::sequence(12)
               .causal_conv1d(48, 5)
               .batch_norm()
               .relu()
               .causal_conv1d(48, 5)
               .batch_norm()
               .relu()
               .dropout(0.3)
               .mean_over_time()
               .linear(9),
           numbers({2, 9, 12}));
  dsl::Builder digits = dsl::image(1, 8, 8);
  const auto convolution = [&](std::int64_t n) { digits.conv2d(n, 3, {.padding = {1}}).batch_norm().relu(); };
  convolution(16), convolution(32), digits.max_pool2d(2), convolution(32);
  list.add("digits", digits.flatten().dropout(0.3).linear(10), numbers({2, 1, 8, 8}));
  dsl::Builder overdrive = dsl::sequence(1).causal_conv1d(12, 3).tanh();
  for (const std::int64_t dilation : {2, 4, 8, 16, 32})
    overdrive.residual([&](dsl::Builder& b) { b.causal_conv1d(12, 3, {.dilation = dilation}).tanh().linear(12); });
  list.add("overdrive", overdrive.linear(1), numbers({2, 150, 1}));
}

void add_long_sequences(List& list) {
  const auto with_head = [](dsl::Builder body) { return body.layer_norm().last_step().linear(10); };
  const Tensor x = numbers({2, 64, 1});
  list.add("pixel_by_pixel, minGRU",
           with_head(dsl::sequence(1).linear(32).repeat(
               3, [](dsl::Builder& r) { r.residual([](dsl::Builder& b) { b.layer_norm().min_gru(32); }); })),
           x, false);
  list.add("pixel_by_pixel, Mamba",
           with_head(dsl::sequence(1).linear(18).repeat(
               2, [](dsl::Builder& r) { r.residual([](dsl::Builder& b) { b.layer_norm().mamba({.state = 8}); }); })),
           x, false);
  list.add("pixel_by_pixel, GRU", with_head(dsl::sequence(1).gru(45)), x);
}

void add_transformers(List& list) {
  const auto block = [](std::int64_t width, std::int64_t longest) {
    nn::TransformerLayerOptions o{.dim_feedforward = width, .dropout = 0.1, .activation = "gelu"};
    o.norm_first = o.causal = true, o.capacity = longest;
    return o;
  };
  dsl::Builder names = dsl::tokens(28).embedding(48).positions(17);
  names.repeat(2, [&](dsl::Builder& b) { b.transformer(4, block(128, 17)); }).layer_norm().linear(28);
  list.add("names", names, tokens(28), false);
  dsl::Builder story = dsl::tokens(120).embedding(64).positions(48);
  story.repeat(2, [&](dsl::Builder& b) { b.transformer(4, block(256, 48)); }).layer_norm().linear(120);
  list.add("story", story, tokens(120), false);
}

void add_cells(List& list) {
  const Tensor x = numbers({2, 10, 8});
  const auto with_head = [](dsl::Builder chain) { return chain.last_step().linear(8); };
  list.add("custom_cell, plain GRU", with_head(dsl::sequence(8).recurrent<cells::PlainGru>(32)), x);
  list.add("custom_cell, peephole LSTM", with_head(dsl::sequence(8).recurrent<cells::PeepholeLstm>(32)), x);
  list.add("custom_cell, minimal gated unit", with_head(dsl::sequence(8).recurrent<cells::MinimalGated>(32)), x);
  list.add("custom_cell, layer-norm GRU", with_head(dsl::sequence(8).recurrent<nn::LayerNormGruCell>(32)), x);
}

void add_modules(List& list) {
  for (const std::int64_t rate : {16000, 8000}) {
    const auto vad = std::make_shared<Vad>(VadOptions{.rate = rate}, nn::Init{.seed = 3});
    vad->eval();
    list.all.push_back({"silero_vad, " + std::to_string(rate / 1000) + " kHz",
                        [vad](const Tensors& in) { return Tensors{(*vad)(in[0])}; },
                        {numbers({2, 3, rate * 32 / 1000})}});
  }
  const auto translator = std::make_shared<Translator>();
  list.all.push_back({"dates",
                      [translator](const Tensors& in) { return (*translator)(in[0], in[1], in[2]); },
                      {tokens(40, {2, 12}), Tensor::from<std::int64_t>({12, 7}, {2}), tokens(40, {2, 10})}});
  const auto p = std::make_shared<Pronouncer>();
  list.all.push_back({"g2p, encoder",
                      [p](const Tensors& in) { return Tensors{p->encoder.run(p->letters(in[0])).state}; },
                      {tokens(29)}});
  list.all.push_back({"g2p, a step of the decoder",
                      [p](const Tensors& in) {
                        const Tensor h = p->decoder(p->phonemes(in[0]), in[1]);
                        return Tensors{h, p->head(h)};
                      },
                      {tokens(74, {2}), numbers({2, 256})}});
}

}  // namespace

Tensors ExampleNet::with_batch(std::int64_t batch) const {
  Tensors in;
  for (const Tensor& x : inputs) in.push_back(index_select(x, 0, remainder(arange(batch), x.size(0))));
  return in;
}

std::vector<ExampleNet> example_nets() {
  List list;
  add_chains(list);
  add_long_sequences(list);
  add_transformers(list);
  add_cells(list);
  add_modules(list);
  return list.all;
}

std::string written(const ExampleNet& net) {
  std::vector<Spec> specs;
  onnx::ExportOptions options;
  for (const Tensor& x : net.inputs) {
    options.dynamic.push_back({.input = specs.size(), .name = "batch"});
    specs.push_back(x.spec());
  }
  return onnx::to_onnx(net.f, specs, options);
}

}  // namespace onnx_test
