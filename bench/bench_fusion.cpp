// Chains of elementwise operations: a compiled function beside the eager one and beside an expression that Eigen fuses
// at compile time, all in one run. Ratios above 1 are in favour of the compiled function.
#include <Eigen/Core>
#include <cstdio>

#include "ferrite/compile/compile.h"
#include "ferrite/tensor/ops.h"
#include "timing.h"

using namespace ferrite;

namespace {

using Map = Eigen::Map<const Eigen::ArrayXf>;
using Out = Eigen::Map<Eigen::ArrayXf>;

Map view(const Tensor& t) { return {t.data<float>(), t.numel()}; }

/// relu(exp2(a) - sin(b)) + c / d.
Tensor mixed(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
  return relu(exp2(a) - sin(b)) + c / d;
}
void mixed_eigen(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, float* out) {
  Out(out, a.numel()) = ((view(a) * 0.693147180559945F).exp() - view(b).sin()).cwiseMax(0.0F) + view(c) / view(d);
}

/// gelu in its tanh form, of a alone.
Tensor gelu_of(const Tensor& a, const Tensor&, const Tensor&, const Tensor&) { return gelu(a, GeluForm::tanh); }
void gelu_eigen(const Tensor& a, const Tensor&, const Tensor&, const Tensor&, float* out) {
  const Map x = view(a);
  Out(out, a.numel()) = 0.5F * x * (1.0F + (0.79788456F * (x + 0.044715F * x * x * x)).tanh());
}

/// relu(a b + c) - d / 2.
Tensor cheap(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) { return relu(a * b + c) - d * 0.5; }
void cheap_eigen(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, float* out) {
  Out(out, a.numel()) = (view(a) * view(b) + view(c)).cwiseMax(0.0F) - view(d) * 0.5F;
}

using Chain = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
using Expression = void (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&, float*);

void measure(const char* name, Chain chain, Expression expression, std::int64_t n) {
  const Tensor a = uniform({n}, {1, 1, 1}, -1, 1);
  const Tensor b = uniform({n}, {1, 2, 1}, -3, 3);
  const Tensor c = uniform({n}, {1, 3, 1}, -1, 1);
  const Tensor d = uniform({n}, {1, 4, 1}, 0.5, 2.5);
  const auto fused = compile(chain);
  const auto unfused = compile(chain, {.fuse = false});
  std::vector<float> out(static_cast<std::size_t>(n) + 64);
  const std::vector<double> t = bench::interleaved({
      [&] { bench::keep(fused(a, b, c, d)); },
      [&] { bench::keep(unfused(a, b, c, d)); },
      [&] { bench::keep(chain(a, b, c, d)); },
      [&] {
        expression(a, b, c, d, out.data());
        bench::keep(out);
      },
  });
  std::printf("%-8s %9lld %11.1f %11.2f %11.2f %11.2f\n", name, static_cast<long long>(n),
              t[0] * 1e12 / static_cast<double>(n), t[3] / t[0], t[2] / t[0], t[1] / t[0]);
}

}  // namespace

int main() {
  std::printf("%-8s %9s %11s %11s %11s %11s\n", "chain", "n", "ns per 1000", "Eigen/fused", "eager/fused",
              "plain/fused");
  for (const std::int64_t n : {64, 1000, 10000, 100000, 1000000, 10000000}) {
    measure("mixed", mixed, mixed_eigen, n);
    measure("gelu", gelu_of, gelu_eigen, n);
    measure("cheap", cheap, cheap_eigen, n);
  }
}
