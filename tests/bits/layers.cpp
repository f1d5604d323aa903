// Layers of every kind, and operations and layers whose operands fill many packets and leave some lanes over.
#include <tuple>

#include "bits/results.h"
#include "dsl/layer_catalogue.h"
#include "ferrite/ferrite.h"
#include "onnx/layers_with_inputs.h"
#include "support/derivative.h"

namespace bits {
namespace {

using namespace ferrite;
using Function = std::function<Tensors(const Tensors&)>;

Tensor data(const Shape& shape, std::uint64_t stream = 1, double low = -1, double high = 1) {
  return uniform(shape, {21, stream, 0}, low, high);
}

/// Returns results and gradients with respect to operands and parameters.
Tensors with_gradients(const Function& f, const Tensors& in, const std::vector<Parameter>& parameters = {}) {
  Tensors all = f(in);
  for (const Tensor& g : support::derivative(f, in, parameters, 1)) all.push_back(g);
  return all;
}

Result function(const std::string& name, const Tensors& in, const Function& f) {
  return {"large/" + name, [=] { return with_gradients(f, in); }};
}
Result of_one(const std::string& name, const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  return function(name, {x}, [f](const Tensors& in) { return Tensors{f(in[0])}; });
}
/// Convolutions of planes with few and many channels, depthwise ones with strides, of narrow and of wide rows.
std::vector<Result> convolutions() {
  std::vector<Result> all;
  for (const std::int64_t width : {3, 7, 13, 37})
    for (const auto& [channels, out, groups, kernel, stride] : {std::tuple{3, 1, 1, 3, 1},
                                                                {2, 3, 1, 3, 1},
                                                                {2, 5, 1, 2, 1},
                                                                {4, 7, 1, 3, 2},
                                                                {3, 9, 1, 3, 1},
                                                                {3, 20, 1, 3, 1},
                                                                {5, 5, 5, 3, 1},
                                                                {5, 5, 5, 3, 2},
                                                                {4, 4, 4, 5, 1},
                                                                {6, 6, 6, 4, 1},
                                                                {6, 12, 3, 3, 1}}) {
      const std::int64_t C = channels, O = out, K = kernel;
      const ConvolutionOptions options{.stride = {stride}, .padding = {2}, .groups = groups};
      std::string name = "convolution/" + std::to_string(width);
      for (const int n : {channels, out, groups, kernel, stride}) name += "_" + std::to_string(n);
      all.push_back(function(name, {data({3, C, 21, width}, 5), data({O, C / groups, K, K}, 6)},
                             [options](const Tensors& in) { return Tensors{conv2d(in[0], in[1], {}, options)}; }));
    }
  return all;
}
Result net(const std::string& name, const dsl::Builder& words, const Tensor& x) {
  return {"large/" + name, [=] {
            dsl::Network made = words.build(3);
            return with_gradients([&](const Tensors& in) { return Tensors{made(in[0])}; }, {x}, made.parameters());
          }};
}

}  // namespace

std::vector<Result> large_results() {
  const Tensor rows = data({9, 1037}), sequence = data({5, 23, 19});
  using dsl::Builder;
  const auto steps = [](auto word) {
    Builder b = dsl::sequence(19);
    word(b);
    return b;
  };
  std::vector<Result> results = {
      function("matmul", {data({37, 531}, 2), data({531, 70}, 3)},
               [](const Tensors& x) { return Tensors{matmul(x[0], x[1])}; }),
      function("matmul_one_row", {data({1, 531}, 2), data({531, 70}, 3)},
               [](const Tensors& x) { return Tensors{matmul(x[0], x[1])}; }),
      function("matmul_batch", {data({3, 9, 40}, 2), data({3, 40, 21}, 3)},
               [](const Tensors& x) { return Tensors{matmul(x[0], x[1])}; }),
      of_one("sum", rows, [](const Tensor& x) { return sum(x); }),
      of_one("sum_rows", rows, [](const Tensor& x) { return sum(x, {1}); }),
      of_one("sum_columns", rows, [](const Tensor& x) { return sum(x, {0}); }),
      of_one("mean", rows, [](const Tensor& x) { return mean(x); }),
      of_one("prod", data({9, 1037}, 4, 0.9, 1.1), [](const Tensor& x) { return prod(x, {1}); }),
      of_one("amax", rows, [](const Tensor& x) { return amax(x, {1}); }),
      of_one("logsumexp", rows, [](const Tensor& x) { return logsumexp(x, {1}); }),
      of_one("softmax", rows, [](const Tensor& x) { return softmax(x, 1); }),
      of_one("log_softmax", rows, [](const Tensor& x) { return log_softmax(x, 1); }),
      of_one("cumsum", rows, [](const Tensor& x) { return cumsum(x, 1); }),
      of_one("fusible", rows,
             [](const Tensor& x) {
               const Tensor gate = sigmoid(x), wave = tanh(x * 2 + 1), below = 1 + x * x;
               return wave * gate - exp(-x) / below;
             }),
      of_one("storage", rows * 70000,
             [](const Tensor& x) {
               return cast(cast(x, Dtype::bf16), Dtype::f32) + cast(cast(x, Dtype::f16), Dtype::f32);
             }),
      net("gru", steps([](Builder& b) { b.gru(41, {.layers = 2, .bidirectional = true}); }), sequence),
      net("lstm", steps([](Builder& b) { b.lstm(41, {.proj_size = 17}); }), sequence),
      net("rnn", steps([](Builder& b) { b.rnn(300); }), sequence),
      net("mamba", steps([](Builder& b) { b.mamba({.state = 5}); }), sequence),
      net("min_gru", steps([](Builder& b) { b.min_gru(37); }), sequence),
      net("s5", steps([](Builder& b) { b.s5(8); }), sequence),
      net("mlstm", steps([](Builder& b) { b.linear(24).mlstm({.num_heads = 2, .round_up_to = 8}); }), sequence),
      net("slstm", steps([](Builder& b) { b.linear(24).slstm({.num_heads = 2}); }), sequence),
      net("causal_conv1d", steps([](Builder& b) { b.causal_conv1d(33, 3, {.dilation = 2}); }), sequence),
      net("norms", steps([](Builder& b) { b.layer_norm().rms_norm().linear(40).batch_norm(); }), sequence),
      net("transformer", steps([](Builder& b) { b.linear(40).transformer(4, {.dim_feedforward = 70}); }), sequence),
      net("stft", dsl::sequence(1).stft(64, {.hop_length = 16, .center = false}), data({2, 400, 1}))};
  for (const Result& r : convolutions()) results.push_back(r);
  return results;
}

std::vector<Result> layer_results() {
  std::vector<Result> all;
  for (const onnx_test::LayerWithInput& l : onnx_test::layers_with_inputs())
    all.push_back({"layer/" + l.name, [l] {
                     const auto f = [&](const Tensors& in) { return Tensors{l(in[0])}; };
                     return with_gradients(f, {l.x}, l.layer->parameters());
                   }});
  for (const auto& [word, nets] : layer_catalogue::catalogue(Dtype::f32)) {
    if (word == "activation" || word == "add") continue;  // words of their own, and layers of the tests
    all.push_back({"word/" + word, [nets = nets] {
                     Tensors results;
                     for (const layer_catalogue::Words& words : nets) {
                       dsl::Network made = words().build(3);
                       made.eval();
                       const Tensor x = layer_catalogue::input(made, 2, Dtype::f32);
                       const auto f = [&](const Tensors& in) { return Tensors{made(in[0])}; };
                       for (const Tensor& y : with_gradients(f, {x}, made.parameters())) results.push_back(y);
                     }
                     return results;
                   }});
  }
  return all;
}

}  // namespace bits
