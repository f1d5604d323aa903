// A step of a stream: layers whose step is written by hand compared with the program of their step in operations, in
// one run. The last column is a step of 64 in one call. A step by hand is kept where it takes less than 1 / 1.1 of the
// program's time (docs/benchmarks.md). Then small nets sample by sample and in blocks of 64, compared with the same
// written by hand.
#include <cmath>
#include <cstdio>
#include <memory>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/denormals.h"
#include "limit/limit.h"
#include "timing.h"

using namespace ferrite;

namespace {

/// A layer without a step written by hand, so that its step runs in operations.
class InOperations final : public nn::Layer {
 public:
  explicit InOperations(std::unique_ptr<nn::Layer> layer) : layer_(std::move(layer)) { adopt("", *layer_); }
  std::string kind() const override { return layer_->kind(); }
  Tensor forward(const Tensor& x, const nn::Context& context) const override { return (*layer_)(x, context); }
  bool causal() const override { return true; }
  nn::StepInput step_input() const override { return layer_->step_input(); }
  std::vector<nn::StepState> states(const nn::StepRows& in) const override { return layer_->states(in); }
  nn::StepResult step(const Tensor& x, const Tensors& states) const override { return layer_->advance(x, states); }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<InOperations>(layer_->clone()); }

 private:
  std::unique_ptr<nn::Layer> layer_;
};

/// Returns a function that makes n steps in a call; the stream starts over before it has made more than `most` steps.
/// 0: never.
std::function<void()> steps(const nn::Layer& layer, std::int64_t batch, std::int64_t features, std::int64_t most,
                            std::int64_t n = 1) {
  const auto stream = std::make_shared<nn::Stream>(layer.stream(batch));
  const auto x = std::make_shared<std::vector<float>>(static_cast<std::size_t>(n * batch * features), 0.25F);
  const std::int64_t width = layer(zeros({batch, 1, features})).numel();
  const auto y = std::make_shared<std::vector<float>>(static_cast<std::size_t>(n * width));
  const auto made = std::make_shared<std::int64_t>(0);
  const auto begin = [=] {
    if (most == 0 || (*made += n) <= most) return;
    stream->reset();
    *made = n;
  };
  if (n == 1) return [=] { begin(), stream->step(std::span<const float>(*x), std::span<float>(*y)); };
  return [=] { begin(), stream->steps(n, std::span<const float>(*x), std::span<float>(*y)); };
}

void row(const char* name, std::int64_t size, std::int64_t batch, const dsl::Builder& words, std::int64_t most = 0) {
  const dsl::Network net = words.build(1);
  net.eval();
  const InOperations whole(net.clone());
  constexpr std::int64_t kBlock = 64;
  const std::vector<double> t = bench::interleaved(
      {steps(net, batch, size, most), steps(whole, batch, size, most), steps(net, batch, size, most, kBlock)});
  std::printf("%-24s %5lld %5lld %9.3f %9.3f %7.2f %9.3f\n", name, static_cast<long long>(size),
              static_cast<long long>(batch), t[0] * 1e6, t[1] * 1e6, t[1] / t[0], t[2] * 1e6 / kBlock);
  std::fflush(stdout);
}

/// Times x [1] -> layer -> linear(1) and the limit in turn, and compares their outputs.
void samples(const char* name, std::int64_t H, std::int64_t gates, const dsl::Network& net) {
  const auto values = [&](std::size_t k) {
    return contiguous(net.named_parameters()[k].variable.peek()).to_vector<float>();
  };
  const std::vector<float> w_ih = values(0), w_hh = values(1), b_ih = values(2), b_hh = values(3), w_out = values(4),
                           b_out = values(5);
  const auto by_hand = limit::sample_by_sample(
      H, gates, {w_ih.data(), w_hh.data(), b_ih.data(), b_hh.data(), w_out.data(), b_out.data()});
  if (!by_hand) return;
  constexpr std::size_t kBlock = 64;
  std::vector<float> x(kBlock), ours(kBlock), limits(kBlock);
  for (std::size_t i = 0; i < kBlock; ++i) x[i] = std::sin(0.1F * static_cast<float>(i));
  nn::Stream stream = net.stream();
  stream.steps(kBlock, std::span<const float>(x), std::span<float>(ours));
  by_hand->run(x.data(), limits.data(), kBlock);
  float most = 0;
  for (std::size_t i = 0; i < kBlock; ++i) most = std::max(most, std::abs(ours[i] - limits[i]));
  const std::vector<double> t =
      bench::interleaved({[&] { stream.steps(kBlock, std::span<const float>(x), std::span<float>(ours)); },
                          [&] { by_hand->run(x.data(), limits.data(), kBlock); }});
  std::printf("%-24s %5lld %9.1f %9.1f %7.2f %9.0e\n", name, static_cast<long long>(H), t[0] * 1e9 / kBlock,
              t[1] * 1e9 / kBlock, t[0] / t[1], static_cast<double>(most));
}

}  // namespace

int main() {
  const FlushDenormals guard;
  std::printf("%-24s %5s %9s %9s %7s %9s\n", "ns a sample", "H", "stream", "limit", "ratio", "differ");
  for (const std::int64_t H : {8, 12, 16, 20, 24, 32, 40}) {
    samples("gru, linear(1)", H, 3, dsl::sequence(1).gru(H).linear(1).build(1));
    samples("lstm, linear(1)", H, 4, dsl::sequence(1).lstm(H).linear(1).build(1));
  }
  std::printf("\n");
  std::printf("%-24s %5s %5s %9s %9s %7s %9s\n", "us a step", "H", "B", "stream", "program", "ratio", "of 64");
  for (const std::int64_t H : {4, 16, 64, 256})
    for (const std::int64_t batch : {1, 8}) {
      const auto words = [&] { return dsl::sequence(H); };
      row("linear", H, batch, words().linear(H));
      row("relu", H, batch, words().relu());
      row("gru", H, batch, words().gru(H));
      row("lstm", H, batch, words().lstm(H));
      row("rnn", H, batch, words().rnn(H));
      const nn::MultiheadAttentionOptions causal{.causal = true, .capacity = 256};
      row("attention", H, batch, words().attention(2, causal), causal.capacity);
      row("layer_norm", H, batch, words().layer_norm());
      row("custom: layer_norm_gru", H, batch, words().recurrent<nn::LayerNormGruCell>(H));
      row("gru, linear", H, batch, words().gru(H).linear(H));
      row("a network", H, batch,
          words().linear(H).relu().residual([&](dsl::Builder& b) { b.gru(H); }).layer_norm().linear(H).tanh());
    }
}
