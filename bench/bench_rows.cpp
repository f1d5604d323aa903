// Functions along rows: softmax, norms, statistics, pooling, running sums, sorting; and the least that the machine
// needs for them. Answers the questions of compare/rows.py: bench_rows reads lines "job rows n seconds" and prints
// microseconds. A job is a function, with the suffix `_grad` for the function with its gradient, or one of the limits.
#include <Eigen/Core>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/pooling.h"
#include "ferrite/tensor/sorting.h"
#include "timing.h"

using namespace ferrite;

namespace {

using Function = std::function<Tensor(const Tensor&)>;
using Call = std::function<void()>;

const double kInfinity = std::numeric_limits<double>::infinity();

Tensor norm_of(const Tensor& x, double p) { return norm(x, {.p = p, .axes = {-1}}); }

/// Functions of x [rows, n].
const std::map<std::string, Function> kOfRows = {
    {"softmax", [](const Tensor& x) { return softmax(x, -1); }},
    {"log_softmax", [](const Tensor& x) { return log_softmax(x, -1); }},
    {"logsumexp", [](const Tensor& x) { return logsumexp(x, {-1}); }},
    {"layer_norm", [](const Tensor& x) { return layer_norm(x, 1); }},
    {"sum", [](const Tensor& x) { return sum(x, {-1}); }},
    {"var", [](const Tensor& x) { return var(x, {-1}); }},
    {"var_columns", [](const Tensor& x) { return var(x, {0}); }},
    {"stddev", [](const Tensor& x) { return stddev(x, {-1}); }},
    {"norm_1", [](const Tensor& x) { return norm_of(x, 1); }},
    {"norm_2", [](const Tensor& x) { return norm_of(x, 2); }},
    {"norm_inf", [](const Tensor& x) { return norm_of(x, kInfinity); }},
    {"norm_3", [](const Tensor& x) { return norm_of(x, 3); }},
    {"cumsum", [](const Tensor& x) { return cumsum(x, -1); }},
    {"cumsum_columns", [](const Tensor& x) { return cumsum(x, 0); }},
    {"cumprod", [](const Tensor& x) { return cumprod(x, -1); }},
    {"cummax", [](const Tensor& x) { return cummax(x, -1).values; }},
    {"logcumsumexp", [](const Tensor& x) { return logcumsumexp(x, -1); }},
    {"sort", [](const Tensor& x) { return sort(x).values; }},
    {"argsort", [](const Tensor& x) { return argsort(x); }},
    {"topk_4", [](const Tensor& x) { return topk(x, 4).values; }},
    {"kthvalue", [](const Tensor& x) { return kthvalue(x, x.shape()[1] / 2).values; }},
};
/// Functions of x [rows / 8, 8, n], and of planes [rows / 8, 8, n, n].
const std::map<std::string, Function> kOfLines = {
    {"max_pool1d_2", [](const Tensor& x) { return max_pool1d(x, {2}); }},
    {"avg_pool1d_2", [](const Tensor& x) { return avg_pool1d(x, {2}); }},
};
const std::map<std::string, Function> kOfPlanes = {
    {"max_pool2d_2",
     [](const Tensor& x) {
       return max_pool2d(x, {2, 2});
     }},
    {"max_pool2d_3",
     [](const Tensor& x) {
       return max_pool2d(x, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}});
     }},
    {"avg_pool2d_2",
     [](const Tensor& x) {
       return avg_pool2d(x, {2, 2});
     }},
    {"avg_pool2d_3",
     [](const Tensor& x) {
       return avg_pool2d(x, {3, 3}, {.stride = {1, 1}, .padding = {1, 1}});
     }},
};

Call own(const Function& f, const Tensor& x, bool with_gradient) {
  if (!with_gradient) return [=] { bench::keep(f(x)); };
  const Tensor cotangent = uniform(f(x).shape(), {1, 2, 1}, -1, 1);
  return [=] {
    Tape tape;
    const Tensor watched = tape.watch(x);
    bench::keep(tape.grad(f(watched), {watched}, {}, cotangent));
  };
}

/// Batcher's odd-even merge sort of n = 2^k entries of 64 bits in as many columns as a packet has lanes: the
/// comparisons alone, on transposed rows.
template <class Compare>
void network(std::int64_t n, Compare&& compare) {
  for (std::int64_t p = 1; p < n; p *= 2)
    for (std::int64_t k = p; k >= 1; k /= 2)
      for (std::int64_t j = k % p; j + k < n; j += 2 * k)
        for (std::int64_t i = 0; i < k && i + j + k < n; ++i)
          if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) compare(i + j, i + j + k);
}

/// Returns a job that a machine needs at least: `limit_copy` reads rows n floats and writes as many, `limit_read` reads
/// them, `limit_exp` applies the library's exponential to them, `limit_comparisons` does a sorting network's
/// comparisons.
Call limit(const std::string& name, std::int64_t rows, std::int64_t n) {
  const Tensor x = uniform({rows, n}, {1, 1, 1}, -1, 1);
  const std::int64_t size = rows * n;
  if (name == "limit_exp") return [=] { bench::keep(exp(x)); };
  if (name == "limit_copy") {
    const auto to = std::make_shared<std::vector<float>>(static_cast<std::size_t>(size));
    return [=] {
      Eigen::Map<Eigen::ArrayXf>(to->data(), size) = Eigen::Map<const Eigen::ArrayXf>(x.data<float>(), size);
      bench::keep(*to);
    };
  }
  if (name == "limit_read")
    return [=] { bench::keep(Eigen::Map<const Eigen::ArrayXf>(x.data<float>(), size).maxCoeff()); };
  if (name == "limit_comparisons") {
    constexpr std::int64_t kColumns = 8;
    using Lanes [[gnu::vector_size(8 * kColumns)]] = std::int64_t;
    const auto pairs = std::make_shared<std::vector<std::pair<std::int64_t, std::int64_t>>>();
    network(n, [&](std::int64_t a, std::int64_t b) { pairs->emplace_back(a, b); });
    const auto v = std::make_shared<std::vector<Lanes>>(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) (*v)[static_cast<std::size_t>(i)] = Lanes{} + (i * 7919 % 1009);
    return [=] {
      Lanes* const at = v->data();
      for (std::int64_t r = 0; r < rows; r += kColumns)
        for (const auto& [a, b] : *pairs) {
          const Lanes low = at[a] < at[b] ? at[a] : at[b];
          at[b] = at[a] < at[b] ? at[b] : at[a];
          at[a] = low;
        }
      bench::keep(*v);
    };
  }
  return {};
}

Call job(std::string name, std::int64_t rows, std::int64_t n) {
  if (name.starts_with("limit_")) return limit(name, rows, n);
  const bool with_gradient = name.ends_with("_grad");
  if (with_gradient) name.resize(name.size() - 5);
  const auto of = [&](const std::map<std::string, Function>& list, const Shape& shape) -> Call {
    const auto found = list.find(name);
    // Elements are not near 0, so that a product of many stays a normal number.
    return found == list.end() ? Call{} : own(found->second, uniform(shape, {1, 1, 1}, 0.9, 1.1), with_gradient);
  };
  if (Call call = of(kOfRows, {rows, n})) return call;
  if (Call call = of(kOfLines, {rows / 8, 8, n})) return call;
  return of(kOfPlanes, {rows / 8, 8, n, n});
}

}  // namespace

int main() {
  const FlushDenormals guard;
  std::cout << "Ferrite" << std::endl;
  std::string name;
  std::int64_t rows = 0, n = 0;
  double seconds = 0;
  while (std::cin >> name >> rows >> n >> seconds) {
    const Call call = job(name, rows, n);
    if (!call) {
      std::cout << "none" << std::endl;
      continue;
    }
    std::cout << 1e6 * bench::interleaved_for({call}, seconds)[0] << std::endl;
  }
}
