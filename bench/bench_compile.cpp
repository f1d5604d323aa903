// Training steps and inference, compiled beside eager, in one run; and how long planning takes.
#include <cstdio>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/gru.h"
#include "ferrite/nn/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "timing.h"

using namespace ferrite;

namespace {

Tensor sample(const Shape& shape, std::uint64_t stream) { return uniform(shape, {7, stream, 0}, -1, 1); }
Tensor labels(std::int64_t n) { return cast(uniform({n}, {7, 99, 0}, 0, 10), Dtype::i64); }

struct Mlp : nn::Module {
  Mlp() {
    adopt("first", first);
    adopt("second", second);
  }
  Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
  nn::Linear first{784, 128, {.seed = 1, .prefix = "first"}};
  nn::Linear second{128, 10, {.seed = 1, .prefix = "second"}};
};

/// 12 features, a GRU, its last step, 10 classes.
struct Recurrent : nn::Module {
  Recurrent(std::int64_t hidden, nn::Form form)
      : gru(12, hidden, options(form), {.seed = 1, .prefix = "gru"}), head(hidden, 10, {.seed = 1, .prefix = "head"}) {
    adopt("gru", gru);
    adopt("head", head);
  }
  static nn::GruOptions options(nn::Form form) {
    nn::GruOptions o;
    o.form = form;
    return o;
  }
  Tensor operator()(const Tensor& x) const { return head(select(gru(x), 1, -1)); }
  nn::Gru gru;
  nn::Linear head;
};

template <class Net>
struct Training {
  template <class... A>
  explicit Training(A... a) : net(a...), adam(net.parameters()) {}
  Tensor operator()(const Tensor& x, const Tensor& y) {
    Tape tape;
    const Tensor loss = nn::cross_entropy(net(x), y);
    adam.step(tape.grad(loss, net.parameters()));
    return loss;
  }
  Net net;
  nn::Adam adam;
};

void row(const char* name, std::int64_t batch, const std::vector<double>& t) {
  std::printf("%-34s %5lld %12.1f %12.1f %12.2f\n", name, static_cast<long long>(batch), t[0] * 1e6, t[1] * 1e6,
              t[0] / t[1]);
}

template <class Eager, class Planned>
std::vector<double> steps(Eager& eager, Planned& planned, const Tensor& x, const Tensor& y) {
  const auto step = compile([&](const Tensor& a, const Tensor& b) { return planned(a, b); });
  bench::keep(step(x, y));
  return bench::interleaved({[&] { bench::keep(eager(x, y)); }, [&] { bench::keep(step(x, y)); }});
}

void planning() {
  const std::vector<Spec> specs = {{{16, 16}, Dtype::f32}};
  const auto f = [](const Tensors& in) {
    Tensor x = in[0];
    for (int i = 0; i < 625; ++i) {
      const Tensor g = matmul(x, x) * 0.01;
      x = tanh(slice(concat({g, sigmoid(x)}, 0), 0, 0, 16) + relu(transpose(x)));
    }
    return Tensors{x};
  };
  const Graph g = trace(f, specs);
  const std::vector<double> t =
      bench::interleaved({[&] { bench::keep(trace(f, specs)); }, [&] { bench::keep(Plan(g)); }}, 7, 1e-1);
  std::printf("tracing %zu nodes: %.1f ms, planning them: %.1f ms\n", g.nodes.size(), t[0] * 1e3, t[1] * 1e3);
}

}  // namespace

int main() {
  std::printf("%-34s %5s %12s %12s %12s\n", "microseconds a training step", "B", "eager", "compiled", "ratio");
  for (const std::int64_t batch : {1, 32, 128}) {
    Training<Mlp> eager;
    Training<Mlp> planned;
    row("MLP 784-128-10, Adam", batch, steps(eager, planned, sample({batch, 784}, 1), labels(batch)));
  }
  for (const std::int64_t batch : {1, 32})
    for (const std::int64_t hidden : {32, 64}) {
      Training<Recurrent> eager(hidden, nn::Form::unrolled);
      Training<Recurrent> planned(hidden, nn::Form::unrolled);
      const std::string name = "GRU " + std::to_string(hidden) + " unrolled, T = 50, Adam";
      row(name.c_str(), batch, steps(eager, planned, sample({batch, 50, 12}, 1), labels(batch)));
      Training<Recurrent> fused(hidden, nn::Form::fused);
      Training<Recurrent> unrolled(hidden, nn::Form::unrolled);
      row("  beside the fused form", batch, steps(fused, unrolled, sample({batch, 50, 12}, 1), labels(batch)));
    }
  planning();
}
