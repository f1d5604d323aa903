// Chains of elementwise operations: a compiled function compared with the eager one, with one loop over the library's
// own functions and with an expression that Eigen fuses at compile time (its functions differ: less exact, faster), all
// in one run. Ratios above 1 are in favour of the compiled function.
#include <Eigen/Core>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string_view>

#include "ferrite/compile/compile.h"
#include "ferrite/tensor/kernel/packet_exp.h"
#include "ferrite/tensor/kernel/packet_trigonometry.h"
#include "ferrite/tensor/ops.h"
#include "timing.h"

using namespace ferrite;

namespace {

using Map = Eigen::Map<const Eigen::ArrayXf>;
using Out = Eigen::Map<Eigen::ArrayXf>;

Map view(const Tensor& t) { return {t.data<float>(), t.numel()}; }

/// One loop over whole packets of four operands, as one would write it with the library's own functions.
template <class F>
void loop(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, float* out, F f) {
  using P = detail::FERRITE_LEVEL::Packet<float>;
  for (std::int64_t i = 0; i < a.numel(); i += P::width)
    f(P::load(a.data<float>() + i), P::load(b.data<float>() + i), P::load(c.data<float>() + i),
      P::load(d.data<float>() + i))
        .store(out + i);
}

/// Returns relu(exp2(a) - sin(b)) + c / d.
Tensor mixed(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
  return relu(exp2(a) - sin(b)) + c / d;
}
void mixed_eigen(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, float* out) {
  Out(out, a.numel()) = ((view(a) * 0.693147180559945F).exp() - view(b).sin()).cwiseMax(0.0F) + view(c) / view(d);
}
void mixed_loop(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, float* out) {
  loop(a, b, c, d, out, [](auto x, auto y, auto z, auto w) { return max(exp2(x) - sin(y), 0.0F) + z / w; });
}

/// Returns gelu of a in its tanh form.
Tensor gelu_of(const Tensor& a, const Tensor&, const Tensor&, const Tensor&) { return gelu(a, GeluForm::tanh); }
void gelu_eigen(const Tensor& a, const Tensor&, const Tensor&, const Tensor&, float* out) {
  const Map x = view(a);
  Out(out, a.numel()) = 0.5F * x * (1.0F + (0.79788456F * (x + 0.044715F * x * x * x)).tanh());
}
void gelu_loop(const Tensor& a, const Tensor&, const Tensor&, const Tensor&, float* out) {
  loop(a, a, a, a, out, [](auto x, auto, auto, auto) {
    return decltype(x)(0.5F) * x *
           (decltype(x)(1.0F) + tanh(decltype(x)(0.79788456F) * (x + decltype(x)(0.044715F) * (x * x * x))));
  });
}

/// Returns relu(a b + c) - d / 2.
Tensor cheap(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) { return relu(a * b + c) - d * 0.5; }
void cheap_eigen(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, float* out) {
  Out(out, a.numel()) = (view(a) * view(b) + view(c)).cwiseMax(0.0F) - view(d) * 0.5F;
}
void cheap_loop(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, float* out) {
  loop(a, b, c, d, out, [](auto x, auto y, auto z, auto w) { return max(x * y + z, 0.0F) - w * decltype(w)(0.5F); });
}

using Chain = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&);
using Expression = void (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&, float*);

void measure(const char* name, Chain chain, Expression own, Expression expression, std::int64_t n) {
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
      [&] {
        own(a, b, c, d, out.data());
        bench::keep(out);
      },
  });
  std::printf("%-8s %9lld %11.1f %11.2f %11.2f %11.2f %11.2f\n", name, static_cast<long long>(n),
              t[0] * 1e12 / static_cast<double>(n), t[4] / t[0], t[3] / t[0], t[2] / t[0], t[1] / t[0]);
}

// ---- rotary position embedding -----------------------------------------------------------------------------

/// Rotates the pairs (i, i + half) of each row by the row's angles, in a plain loop.
void rotate_loop(const Tensor& x, const Tensor& c, const Tensor& s, float* out) {
  const std::int64_t half = c.shape()[1];
  const std::int64_t rows = x.numel() / (2 * half);
  const float* from = x.data<float>();
  for (std::int64_t r = 0; r < rows; ++r, from += 2 * half, out += 2 * half) {
    const std::int64_t t = r % c.shape()[0];
    const float* cosine = c.data<float>() + t * half;
    const float* sine = s.data<float>() + t * half;
    for (std::int64_t i = 0; i < half; ++i) {
      out[i] = from[i] * cosine[i] - from[half + i] * sine[i];
      out[half + i] = from[half + i] * cosine[i] + from[i] * sine[i];
    }
  }
}

void measure_rotary(std::int64_t batch, std::int64_t length, std::int64_t half) {
  const Tensor x = uniform({batch, length, 2 * half}, {2, 1, 1}, -1, 1);
  const Tensor angle = uniform({length, half}, {2, 2, 1}, 0, 6);
  const Tensor c = cos(angle);
  const Tensor s = sin(angle);
  const auto rotated = [&](const Tensor& y) {
    const Tensor a = slice(y, -1, 0, half);
    const Tensor b = slice(y, -1, half);
    return concat({a * c - b * s, b * c + a * s}, -1);
  };
  const auto fused = compile(rotated);
  std::vector<float> out(static_cast<std::size_t>(x.numel()));
  const std::vector<double> t = bench::interleaved({
      [&] { bench::keep(fused(x)); },
      [&] {
        rotate_loop(x, c, s, out.data());
        bench::keep(out);
      },
  });
  std::printf("%5lld %6lld %5lld %14.1f %12.2f\n", static_cast<long long>(batch), static_cast<long long>(length),
              static_cast<long long>(2 * half), t[0] * 1e12 / static_cast<double>(x.numel()), t[1] / t[0]);
}

// ---- products and sums with what surrounds them ------------------------------------------------------------

void print_ratios(const char* name, const Shape& shape, const std::function<Tensor(const Tensor&)>& f,
                  const Tensor& x) {
  const auto fused = compile(f);
  const auto unfused = compile(f, {.fuse = false});
  const std::vector<double> t = bench::interleaved(
      {[&] { bench::keep(fused(x)); }, [&] { bench::keep(unfused(x)); }, [&] { bench::keep(f(x)); }});
  std::printf("%-10s %-18s %12.1f %12.2f %12.2f\n", name, shape.str().c_str(), t[0] * 1e6, t[1] / t[0], t[2] / t[0]);
}

void measure_joined() {
  std::printf("%-10s %-18s %12s %12s %12s\n", "chain", "shape", "us", "plain/fused", "eager/fused");
  for (const Shape& s : {Shape{8, 32, 96}, Shape{128, 784, 128}, Shape{4096, 64, 256}, Shape{4096, 512, 512}}) {
    const Tensor w = uniform({s[1], s[2]}, {3, 1, 1}, -1, 1);
    const Tensor b = uniform({s[2]}, {3, 2, 1}, -1, 1);
    const Tensor x = uniform({s[0], s[1]}, {3, 3, 1}, -1, 1);
    print_ratios(
        "product", s, [&](const Tensor& y) { return relu(matmul(y, w) + b); }, x);
  }
  for (const Shape& s : {Shape{8, 96}, Shape{128, 128}, Shape{4096, 256}, Shape{100, 20000}}) {
    const Tensor target = uniform(s, {3, 4, 1}, -1, 1);
    const Tensor x = uniform(s, {3, 5, 1}, -1, 1);
    print_ratios(
        "columns", s, [&](const Tensor& y) { return sum(y * target, {0}); }, x);
    print_ratios(
        "error", s, [&](const Tensor& y) { return mean(square(y - target)); }, x);
  }
}

// ---- what the guard refuses --------------------------------------------------------------------------------

int pick(std::mt19937_64& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
}

Tensor viewed(std::mt19937_64& random, const Tensor& x) {
  const int axis = pick(random, 0, x.rank() - 1);
  const std::int64_t n = x.shape()[axis];
  switch (pick(random, 0, 5)) {
    case 0: return transpose(x, axis, pick(random, 0, x.rank() - 1));
    case 1: return flip(x, {axis});
    case 2: return slice(x, axis, n / 4, n - n / 8);
    case 3: return reshape(x, {-1});
    case 4: {
      Shape before = Shape::filled(x.rank(), 0);
      before[axis] = n * pick(random, 1, 3);
      return x.numel() > 200000 ? x : pad(x, before, Shape::filled(x.rank(), 1), 0.5);
    }
    default: {
      Shape s = x.shape();
      s.insert(axis, pick(random, 2, 8));
      return x.rank() > 3 || x.numel() > 200000 ? x : expand(unsqueeze(x, axis), s);
    }
  }
}

/// Returns a random stack of views of x with pointwise operations between them.
Tensor stack_of_views(std::uint64_t seed, const Tensor& x) {
  std::mt19937_64 random(seed);
  Tensor y = x;
  for (int i = pick(random, 3, 10); i > 0; --i) {
    switch (pick(random, 0, 6)) {
      case 0: y = exp(minimum(y, 2.0)); break;
      case 1: y = tanh(y); break;
      case 2: y = y * 0.5 + 1; break;
      default: y = viewed(random, y);
    }
  }
  return relu(y);
}

/// Measures stacks of which the guard keeps a part out of the kernel: as planned, and all in one kernel nevertheless.
void measure_refused(std::uint64_t stacks, const Shape& shape) {
  int refused = 0;
  int right = 0;
  double sum_of_logs = 0;
  double least = 1e30;
  std::uint64_t worst = 0;
  for (std::uint64_t seed = 1; seed <= stacks; ++seed) {
    const Tensor x = uniform(shape, {seed, 1, 1}, -1, 1);
    const auto f = [seed](const Tensor& in) { return stack_of_views(seed, in); };
    const auto planned = compile(f);
    const auto forced = compile(f, {.guard = false});
    bench::keep(planned(x));
    bench::keep(forced(x));
    if (planned.report().steps.size() == forced.report().steps.size()) continue;
    const std::vector<double> t =
        bench::interleaved({[&] { bench::keep(planned(x)); }, [&] { bench::keep(forced(x)); }}, 5, 1e-3);
    const double ratio = t[1] / t[0];
    ++refused;
    right += ratio > 0.95;
    sum_of_logs += std::log(ratio);
    if (ratio < least) worst = seed;
    least = std::min(least, ratio);
  }
  std::printf(
      "%s: %d of %llu stacks are refused; forced/planned: mean %.2f, least %.2f (stack %llu); planned not slower in "
      "%d\n",
      shape.str().c_str(), refused, static_cast<unsigned long long>(stacks),
      std::exp(sum_of_logs / std::max(refused, 1)), least, static_cast<unsigned long long>(worst), right);
}

void measure_chains() {
  std::printf("%-8s %9s %11s %11s %11s %11s %11s\n", "chain", "n", "ns per 1000", "loop/fused", "Eigen/fused",
              "eager/fused", "plain/fused");
  for (const std::int64_t n : {64, 1000, 10000, 100000, 1000000, 10000000}) {
    measure("mixed", mixed, mixed_loop, mixed_eigen, n);
    measure("gelu", gelu_of, gelu_loop, gelu_eigen, n);
    measure("cheap", cheap, cheap_loop, cheap_eigen, n);
  }
}

void measure_rotaries() {
  std::printf("%5s %6s %5s %14s %12s\n", "batch", "length", "width", "ns per 1000", "loop/fused");
  for (const std::int64_t half : {16, 32, 64}) {
    measure_rotary(2, 10, half);
    measure_rotary(4, 128, half);
    measure_rotary(16, 512, half);
  }
}

}  // namespace

/// Measures everything, or only the part named "chains", "rotary", "joined" or "refused"; "refused" takes the number of
/// stacks as the next argument.
int main(int argc, char** argv) {
  const std::string_view part = argc > 1 ? argv[1] : "";
  if (part.empty() || part == "chains") measure_chains();
  if (part.empty() || part == "rotary") measure_rotaries();
  if (part.empty() || part == "joined") measure_joined();
  if (!part.empty() && part != "refused") return 0;
  const std::uint64_t stacks = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 300;
  for (const Shape& shape : {Shape{4, 5, 6}, Shape{10, 8, 9}, Shape{24, 16, 20}}) measure_refused(stacks, shape);
}
