// Compiled training steps compared with eager ones and with the same written by hand for this machine, in one run; and
// the time that planning takes.
#include <cstdio>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/ops.h"
#include "jobs.h"
#include "timing.h"

using namespace ferrite;

namespace {

/// Times the jobs in turn and prints one row: the first and the last one, `compiled`, with their ratio; and, if there
/// is one between, its time and the ratio of `compiled` to it.
void row(const char* name, const bench::Cell& c, const std::vector<std::string>& jobs) {
  bench::check_limit("train", c);
  std::vector<std::function<void()>> functions;
  for (const std::string& job : jobs)
    if (auto f = bench::job(job, c)) functions.push_back(std::move(f));
  const std::vector<double> t = bench::interleaved(functions);
  const double compiled = t.back() * 1e6;
  std::printf("%-28s %5lld %11.1f %11.1f %8.2f", name, static_cast<long long>(c.B), t[0] * 1e6, compiled,
              t[0] * 1e6 / compiled);
  if (t.size() > 2) std::printf(" %11.1f %8.2f", t[1] * 1e6, compiled / (t[1] * 1e6));
  std::printf("\n");
  std::fflush(stdout);
}

/// Times a compiled training step of a small GRU -> linear(10), part by part: what each adds to the ones before.
void parts(std::int64_t hidden, std::int64_t steps) {
  const nn::Gru gru(hidden, hidden, {}, {.seed = 1});
  const nn::Linear head(hidden, 10, {.seed = 2});
  std::vector<Parameter> all = gru.parameters();
  for (const Parameter& p : head.parameters()) all.push_back(p);
  nn::Adam adam(all);
  const Tensor x = uniform({1, steps, hidden}, {1, 1, 1}, -1, 1), wanted = zeros({1}, Dtype::i64);
  const auto loss_of = [&](const Tensor& in, const Tensor& target) {
    return nn::cross_entropy(head.forward(select(gru.forward(in, {}), 1, steps - 1), {}), target);
  };
  const auto call = compile([](const Tensor& in, const Tensor&) { return in + 1.0; });
  const auto forward = compile([&](const Tensor& in, const Tensor&) { return gru.forward(in, {}); });
  const auto loss = compile(loss_of);
  const auto gradient = compile([&](const Tensor& in, const Tensor& target) {
    Tape tape;
    return tape.grad(loss_of(in, target), all);
  });
  const auto step = compile([&](const Tensor& in, const Tensor& target) {
    Tape tape;
    const Tensor l = loss_of(in, target);
    adam.step(tape.grad(l, all));
    return l;
  });
  const auto timed = [&](const auto& f) { return [&] { bench::keep(f(x, wanted)); }; };
  const std::vector<double> t = bench::interleaved({timed(call), timed(forward), timed(loss), timed(gradient),
                                                    timed(step), bench::job("limit_train", {"gru", hidden, steps, 1})},
                                                   15);
  std::printf("GRU %-4lld T = %-4lld %12.2f %8.2f %12.2f %10.2f %8.2f %8.2f %8.2f\n", static_cast<long long>(hidden),
              static_cast<long long>(steps), t[0] * 1e6, (t[1] - t[0]) * 1e6, (t[2] - t[1]) * 1e6, (t[3] - t[2]) * 1e6,
              (t[4] - t[3]) * 1e6, t[4] * 1e6, t[4] / t[5]);
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
  const FlushDenormals guard;  // states of a net that has learned its batch decay to denormals
  std::printf("%-28s %5s %11s %11s %8s %11s %8s\n", "us a training step", "B", "eager", "compiled", "ratio", "limit",
              "over it");
  for (const std::int64_t batch : {1, 32, 128})
    row("MLP 784-128-10", {"mlp", 128, 1, batch}, {"train", "limit_train", "compiled"});
  for (const std::int64_t batch : {1, 32})
    row("the demo's GRU 64, T = 16", {"vowels", 64, 16, batch}, {"train", "limit_train", "compiled"});
  std::printf("\n%-28s %5s %11s %11s %8s\n", "", "B", "fused form", "unrolled,", "ratio");
  std::printf("%-28s %5s %11s %11s\n", "", "", "eager", "compiled");
  for (const std::int64_t batch : {1, 32})
    for (const std::int64_t hidden : {32, 64}) {
      const std::string name = "GRU " + std::to_string(hidden) + ", T = 50";
      row(name.c_str(), {"vowels", hidden, 50, batch}, {"train", "unrolled_compiled"});
    }
  std::printf("\n%-18s %12s %8s %12s %10s %8s %8s %8s\n", "compiled, B = 1", "call alone", "forward", "head, loss",
              "gradients", "Adam", "all", "over it");
  for (const std::int64_t hidden : {16, 32, 128})
    for (const std::int64_t steps : {1, 10}) parts(hidden, steps);
  planning();
}
