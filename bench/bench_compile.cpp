// Training steps compiled beside eager and beside the same written by hand for this machine, in one run; and how long
// planning takes.
#include <cstdio>

#include "ferrite/compile/compile.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/ops.h"
#include "jobs.h"
#include "timing.h"

using namespace ferrite;

namespace {

/// One row: the jobs in turn; of the last, `compiled`, over the others.
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
  const FlushDenormals guard;  // states of a net that has learned its batch die away
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
  planning();
}
