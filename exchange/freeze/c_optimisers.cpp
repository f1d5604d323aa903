/// Writes what begins an update by an optimiser.
#include "ferrite/exchange/freeze/c_calls.h"

namespace ferrite::exchange::detail {
namespace {

/// t + 1, or t + u, and 1 - beta^t by the C library's pow, as the library computes them. Equal counts share a power.
constexpr const char* kAdamBegin =
    R"(static void $name(const int64_t *t, const int64_t *u, int64_t *next, double *first, double *second, ptrdiff_t n,
  double beta1, double beta2) {
  for (ptrdiff_t i = 0; i < n; ++i) {
    next[i] = t[i] + (u ? u[i] : 1);
    if (i > 0 && next[i] == next[i - 1]) {
      first[i] = first[i - 1], second[i] = second[i - 1];
    } else {
#if defined(__GNUC__)
      first[i] = 1 - __builtin_pow(beta1, (double)next[i]), second[i] = 1 - __builtin_pow(beta2, (double)next[i]);
#else
      first[i] = 1 - pow(beta1, (double)next[i]), second[i] = 1 - pow(beta2, (double)next[i]);
#endif
    }
  }
}
)";

void write_adam_begin(const CCall& c) {
  const auto beta = [&](std::size_t i) { return c_number(std::get<double>(*c.node().attrs.at(i))); };
  const std::string u = c.step.in.size() > 1 ? c.dense(c.in(1)) : "0";
  c.to.line(c.body.module().define("adam_begin", kAdamBegin) + "(" + c.dense(c.in(0)) + ", " + u + ", " +
            c.at(c.out(0)) + ", " + c.at(c.out(1)) + ", " + c.at(c.out(2)) + ", " + text(c.out().spec.shape.numel()) +
            ", " + beta(0) + ", " + beta(1) + ");");
}

constexpr CWriter kWriters[] = {{"adam_begin", write_adam_begin}};

}  // namespace

std::span<const CWriter> optimiser_writers() { return kWriters; }

}  // namespace ferrite::exchange::detail
