// Attention, and scans over many single numbers: answers lines "job A B C seconds" with microseconds, as
// bench/compare/attention.py asks for them. `dense`, `causal` and their `_grad`: A heads, B queries and keys of C
// numbers. `scalars`: the gradient through 100 compiled steps of A carries, each a single number.
#include <ferrite/ferrite.h>

#include <functional>
#include <iostream>
#include <memory>
#include <string>

#include "scalar_scan.h"
#include "timing.h"

using namespace ferrite;

namespace {

using Call = std::function<void()>;

Call attention(const std::string& job, const Shape& shape) {
  const auto drawn = [&](std::uint64_t seed) { return uniform(shape, {.seed = seed}, -1, 1); };
  const Tensor q = drawn(1), k = drawn(2), v = drawn(3), dy = drawn(4);
  const AttentionOptions options{.causal = job.starts_with("causal")};
  if (!job.ends_with("_grad")) return [=] { bench::keep(scaled_dot_product_attention(q, k, v, options)); };
  return [=] {
    Tape tape;
    const Tensor tq = tape.watch(q), tk = tape.watch(k), tv = tape.watch(v);
    bench::keep(tape.grad(scaled_dot_product_attention(tq, tk, tv, options), {tq, tk, tv}, {}, dy));
  };
}

Call scalars(std::size_t carries) {
  const Tensor x = full({}, 0.1);
  const auto gradient = bench::scalar_gradient(carries, full({100}, 0.3));
  return [=] { bench::keep(gradient(x)); };
}

}  // namespace

int main() {
  const FlushDenormals guard;
  std::cout << "Ferrite" << std::endl;
  std::string job, kept;
  std::int64_t heads = 0, steps = 0, width = 0;
  double seconds = 0;
  Call call;
  while (std::cin >> job >> heads >> steps >> width >> seconds) {
    const std::string key =
        job + " " + std::to_string(heads) + " " + std::to_string(steps) + " " + std::to_string(width);
    if (key != kept)
      call = job == "scalars" ? scalars(static_cast<std::size_t>(heads)) : attention(job, {heads, steps, width});
    kept = key;
    std::cout << 1e6 * bench::interleaved_for({call}, seconds)[0] << std::endl;
  }
}
