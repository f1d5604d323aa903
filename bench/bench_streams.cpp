// A step of a stream: layers whose step is written by hand beside the program of their step in operations, in one run.
// The last column is a step of 64 in one call. A step by hand stays where it takes less than 1 / 1.1 of the program's
// time (docs/benchmarks.md).
#include <cstdio>
#include <memory>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/denormals.h"
#include "timing.h"

using namespace ferrite;

namespace {

/// A layer without a step by hand.
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

/// So many steps in a call.
std::function<void()> steps(const nn::Layer& layer, std::int64_t batch, std::int64_t features, std::int64_t n = 1) {
  const auto stream = std::make_shared<nn::Stream>(layer.stream(batch));
  const auto x = std::make_shared<std::vector<float>>(static_cast<std::size_t>(n * batch * features), 0.25F);
  const std::int64_t width = layer(zeros({batch, 1, features})).numel();
  const auto y = std::make_shared<std::vector<float>>(static_cast<std::size_t>(n * width));
  if (n == 1) return [=] { stream->step(std::span<const float>(*x), std::span<float>(*y)); };
  return [=] { stream->steps(n, std::span<const float>(*x), std::span<float>(*y)); };
}

void row(const char* name, std::int64_t size, std::int64_t batch, const dsl::Builder& words) {
  const dsl::Network net = words.build(1);
  net.eval();
  const InOperations whole(net.clone());
  constexpr std::int64_t kBlock = 64;
  const std::vector<double> t =
      bench::interleaved({steps(net, batch, size), steps(whole, batch, size), steps(net, batch, size, kBlock)});
  std::printf("%-24s %5lld %5lld %9.3f %9.3f %7.2f %9.3f\n", name, static_cast<long long>(size),
              static_cast<long long>(batch), t[0] * 1e6, t[1] * 1e6, t[1] / t[0], t[2] * 1e6 / kBlock);
  std::fflush(stdout);
}

}  // namespace

int main() {
  const FlushDenormals guard;
  std::printf("%-24s %5s %5s %9s %9s %7s %9s\n", "us a step", "H", "B", "stream", "program", "ratio", "of 64");
  for (const std::int64_t H : {4, 16, 64, 256})
    for (const std::int64_t batch : {1, 8}) {
      const auto words = [&] { return dsl::sequence(H); };
      row("linear", H, batch, words().linear(H));
      row("relu", H, batch, words().relu());
      row("gru", H, batch, words().gru(H));
      row("lstm", H, batch, words().lstm(H));
      row("rnn", H, batch, words().rnn(H));
      row("layer_norm", H, batch, words().layer_norm());
      row("custom: layer_norm_gru", H, batch, words().recurrent<nn::LayerNormGruCell>(H));
      row("gru, linear", H, batch, words().gru(H).linear(H));
      row("a network", H, batch,
          words().linear(H).relu().residual([&](dsl::Builder& b) { b.gru(H); }).layer_norm().linear(H).tanh());
    }
}
