// Functions of elements and activations, f32, one thread: nanoseconds an element, forward and with the gradient, of
// rows that stay in the first-level cache, in the second-level cache and in memory. bench/compare/torch_pointwise.py
// times the same jobs with PyTorch, alternating with this program.
#include <cstdio>
#include <cstring>
#include <string>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/math.h"
#include "timing.h"

using namespace ferrite;

namespace {

struct Job {
  const char* name;
  double low, high;  ///< bounds of the operands
  std::function<Tensor(const Tensor& a, const Tensor& b)> of;
  bool differentiable = true;
};

template <class F>
Job one(const char* name, double low, double high, F f) {
  return {name, low, high, [f](const Tensor& a, const Tensor&) { return f(a); }};
}
template <class F>
Job test(const char* name, F f) {
  return {name, -4, 4, [f](const Tensor& a, const Tensor& b) { return f(a, b); }, false};
}
template <class F>
Job two(const char* name, double low, double high, F f) {
  return {name, low, high, [f](const Tensor& a, const Tensor& b) { return f(a, b); }};
}

using T = const Tensor&;

std::vector<Job> jobs() {
  return {
      one("relu", -4, 4, [](T x) { return relu(x); }),
      one("gelu", -4, 4, [](T x) { return gelu(x); }),
      one("gelu_tanh", -4, 4, [](T x) { return gelu(x, GeluForm::tanh); }),
      one("silu", -4, 4, [](T x) { return silu(x); }),
      one("sigmoid", -4, 4, [](T x) { return sigmoid(x); }),
      one("tanh", -4, 4, [](T x) { return tanh(x); }),
      one("softplus", -4, 4, [](T x) { return softplus(x); }),
      one("log_sigmoid", -4, 4, [](T x) { return log_sigmoid(x); }),
      one("softsign", -4, 4, [](T x) { return softsign(x); }),
      one("leaky_relu", -4, 4, [](T x) { return leaky_relu(x); }),
      one("elu", -4, 4, [](T x) { return elu(x); }),
      one("selu", -4, 4, [](T x) { return selu(x); }),
      one("celu", -4, 4, [](T x) { return celu(x, 0.5); }),
      one("hardtanh", -4, 4, [](T x) { return hardtanh(x); }),
      one("relu6", -4, 4, [](T x) { return relu6(x); }),
      one("hardsigmoid", -4, 4, [](T x) { return hardsigmoid(x); }),
      one("hardswish", -4, 4, [](T x) { return hardswish(x); }),
      one("mish", -4, 4, [](T x) { return mish(x); }),
      one("softshrink", -4, 4, [](T x) { return softshrink(x); }),
      one("hardshrink", -4, 4, [](T x) { return hardshrink(x); }),
      one("tanhshrink", -4, 4, [](T x) { return tanhshrink(x); }),
      one("threshold", -4, 4, [](T x) { return threshold(x, 0.5, -3); }),
      one("prelu", -4, 4, [](T x) { return prelu(x, full({1}, 0.25)); }),
      one("glu", -4, 4, [](T x) { return glu(x); }),
      one("exp", -4, 4, [](T x) { return exp(x); }),
      one("expm1", -4, 4, [](T x) { return expm1(x); }),
      one("log", 0.1, 4, [](T x) { return log(x); }),
      one("log1p", 0.1, 4, [](T x) { return log1p(x); }),
      one("log2", 0.1, 4, [](T x) { return log2(x); }),
      one("log10", 0.1, 4, [](T x) { return log10(x); }),
      one("sqrt", 0.1, 4, [](T x) { return sqrt(x); }),
      one("sin", -4, 4, [](T x) { return sin(x); }),
      one("cos", -4, 4, [](T x) { return cos(x); }),
      one("tan", -4, 4, [](T x) { return tan(x); }),
      one("asin", -0.99, 0.99, [](T x) { return asin(x); }),
      one("acos", -0.99, 0.99, [](T x) { return acos(x); }),
      one("atan", -4, 4, [](T x) { return atan(x); }),
      one("sinh", -4, 4, [](T x) { return sinh(x); }),
      one("cosh", -4, 4, [](T x) { return cosh(x); }),
      one("asinh", -4, 4, [](T x) { return asinh(x); }),
      one("acosh", 1.1, 4, [](T x) { return acosh(x); }),
      one("atanh", -0.99, 0.99, [](T x) { return atanh(x); }),
      one("sinc", -4, 4, [](T x) { return sinc(x); }),
      one("erf", -4, 4, [](T x) { return erf(x); }),
      one("erfc", -4, 4, [](T x) { return erfc(x); }),
      one("erfinv", -0.99, 0.99, [](T x) { return erfinv(x); }),
      one("lgamma", 0.1, 20, [](T x) { return lgamma(x); }),
      one("digamma", 0.1, 20, [](T x) { return digamma(x); }),
      one("logit", 0.01, 0.99, [](T x) { return logit(x); }),
      one("floor", -4, 4, [](T x) { return floor(x); }),
      one("round", -4, 4, [](T x) { return round(x); }),
      one("trunc", -4, 4, [](T x) { return trunc(x); }),
      one("frac", -4, 4, [](T x) { return frac(x); }),
      one("nan_to_num", -4, 4, [](T x) { return nan_to_num(x); }),
      two("atan2", 0.1, 4, [](T a, T b) { return atan2(a, b); }),
      two("hypot", 0.1, 4, [](T a, T b) { return hypot(a, b); }),
      two("pow", 0.1, 4, [](T a, T b) { return pow(a, b); }),
      two("fmod", 0.1, 4, [](T a, T b) { return fmod(a, b); }),
      two("remainder", 0.1, 4, [](T a, T b) { return remainder(a, b); }),
      two("floor_divide", 0.1, 4, [](T a, T b) { return floor_divide(a, b); }),
      two("logaddexp", -4, 4, [](T a, T b) { return logaddexp(a, b); }),
      two("xlogy", 0.1, 4, [](T a, T b) { return xlogy(a, b); }),
      two("lerp", -4, 4, [](T a, T b) { return lerp(a, b, 0.25); }),
      two("copysign", -4, 4, [](T a, T b) { return copysign(a, b); }),
      test("isnan", [](T a, T) { return isnan(a); }),
      test("isinf", [](T a, T) { return isinf(a); }),
      test("isfinite", [](T a, T) { return isfinite(a); }),
      test("isclose", [](T a, T b) { return isclose(a, b); }),
  };
}

/// Prints nanoseconds an element of a job on n elements: forward, with the gradient.
void measure(const Job& job, std::int64_t n) {
  const Tensor a = uniform({n}, {1, 1, 1}, job.low, job.high), b = uniform({n}, {1, 2, 1}, job.low, job.high);
  const Tensor back = uniform(job.of(a, b).shape(), {1, 3, 1});
  std::vector<std::function<void()>> runs = {[&] { bench::keep(job.of(a, b)); }};
  if (job.differentiable)
    runs.emplace_back([&] {
      Tape tape;
      const Tensor x = tape.watch(a), y = tape.watch(b);
      bench::keep(tape.grad(job.of(x, y), {x, y}, {}, back));
    });
  const std::vector<double> t = bench::interleaved(runs, n > 1000000 ? 5 : 11, 1e-3);
  std::printf("%-13s %9lld", job.name, static_cast<long long>(n));
  for (const double seconds : t) std::printf(" %9.4f", seconds / static_cast<double>(n) * 1e9);
  std::puts("");
  std::fflush(stdout);
}

/// Prints nanoseconds an element of copying n elements.
void measure_copy(std::int64_t n) {
  const Tensor x = uniform({n}, {1, 1, 1});
  std::vector<float> to(static_cast<std::size_t>(n));
  const auto copy = [&] {
    std::memcpy(to.data(), x.data<float>(), to.size() * sizeof(float));
    bench::keep(to[0]);
  };
  std::printf("%-13s %9lld %9.4f\n", "memcpy", static_cast<long long>(n),
              bench::interleaved({copy}, 11, 1e-3)[0] / static_cast<double>(n) * 1e9);
}

}  // namespace

/// Measures all jobs, or only those named as arguments.
int main(int argc, char** argv) {
  const auto chosen = [&](const std::string& name) {
    if (argc == 1) return true;
    for (int i = 1; i < argc; ++i)
      if (name == argv[i]) return true;
    return false;
  };
  std::printf("kernels for %s; ns an element: forward, forward and gradient\n", std::string(instruction_set()).c_str());
  for (const std::int64_t n : {1000, 100000, 10000000})
    if (chosen("memcpy")) measure_copy(n);
  for (const Job& job : jobs())
    for (const std::int64_t n : {1000, 100000, 10000000})
      if (chosen(job.name)) measure(job, n);
}
