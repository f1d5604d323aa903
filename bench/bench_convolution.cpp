// Convolutions of small nets, one thread: forward, the gradient of the input and that of the weights, as shares of the
// machine's peak. bench/compare/torch_convolution.py times the same jobs with PyTorch.
#include <cstdio>
#include <string>

#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/detail/convolution_records.h"
#include "machine.h"
#include "timing.h"

namespace {

using ferrite::Shape;
using ferrite::Tensor;
using ferrite::detail::ConvolutionAttrs;

struct Job {
  const char* name;
  Shape x;                ///< [N, C, ...]
  std::int64_t channels;  ///< of the result
  Shape kernel, stride, before, after, dilation;
  std::int64_t groups = 1;
};

const Job kJobs[] = {
    {"3x3, 3 to 16, 32 x 32", {8, 3, 32, 32}, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"3x3, 16 to 16, 32 x 32", {8, 16, 32, 32}, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"3x3, 32 to 32, 16 x 16", {8, 32, 16, 16}, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"3x3, 64 to 64, 14 x 14", {8, 64, 14, 14}, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"3x3, 64 to 64, 7 x 7", {8, 64, 7, 7}, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"3x3 / 2, 32 to 64, 28 x 28", {8, 32, 28, 28}, 64, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
    {"1x1, 64 to 64, 28 x 28", {4, 64, 28, 28}, 64, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {"5x5, 1 to 6, 28 x 28", {32, 1, 28, 28}, 6, {5, 5}, {1, 1}, {2, 2}, {2, 2}, {1, 1}},
    {"causal 3 x 8, 16 to 16, 2048", {1, 16, 2048}, 16, {3}, {1}, {16}, {0}, {8}},
    {"causal 3, 32 to 32, 1024", {4, 32, 1024}, 32, {3}, {1}, {2}, {0}, {1}},
    {"9, 64 to 64, 256", {8, 64, 256}, 64, {9}, {1}, {4}, {4}, {1}},
    {"16 / 4, 1 to 32, 8192", {2, 1, 8192}, 32, {16}, {4}, {6}, {6}, {1}},
    {"depthwise 3x3, 64, 32 x 32", {8, 64, 32, 32}, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 64},
    {"depthwise 3x3, 128, 14 x 14", {8, 128, 14, 14}, 128, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 128},
    {"depthwise 3x3 / 2, 64, 28 x 28", {8, 64, 28, 28}, 64, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 64},
    {"depthwise causal 4, 64, 1024", {4, 64, 1024}, 64, {4}, {1}, {3}, {0}, {1}, 64},
};

/// Forward, gradient of the input, gradient of the weights.
using Times = std::vector<std::function<void()>>;

struct Operands {
  Tensor x, w, y;
  ConvolutionAttrs forward, back, weights;
  explicit Operands(const Job& j) {
    Shape size, out{j.x[0], j.channels}, kernel{j.channels, j.x[1] / j.groups}, space;
    for (int i = 0; i < j.kernel.rank(); ++i) {
      size.push_back((j.x[i + 2] + j.before[i] + j.after[i] - j.dilation[i] * (j.kernel[i] - 1) - 1) / j.stride[i] + 1);
      out.push_back(size[i]);
      kernel.push_back(j.kernel[i]);
      space.push_back(j.x[i + 2]);
    }
    x = ferrite::uniform(j.x, {1, 1, 1}, -1, 1);
    w = ferrite::uniform(kernel, {1, 2, 1}, -1, 1);
    y = ferrite::uniform(out, {1, 3, 1}, -1, 1);
    forward = {j.stride, j.before, j.dilation, size, j.groups};
    back = weights = forward;
    back.size = space;
    weights.size = j.kernel;
  }
};

void add_ours(const Operands& o, Times& runs) {
  runs.emplace_back([&o] { bench::keep(convolution(o.x, o.w, {}, o.forward)); });
  runs.emplace_back([&o] { bench::keep(convolution_transposed(o.y, o.w, {}, o.back)); });
  runs.emplace_back([&o] { bench::keep(convolution_weights(o.x, o.y, o.weights)); });
}

}  // namespace

/// Without an argument: all jobs. Else those whose name contains it.
int main(int argc, char** argv) {
  const double peak = bench::peak_flops();
  std::printf("kernels for %s, peak %.1f GFLOP/s; forward, input, weights: microseconds, share of the peak\n",
              std::string(ferrite::instruction_set()).c_str(), peak * 1e-9);
  for (const Job& j : kJobs) {
    if (argc > 1 && std::string(j.name).find(argv[1]) == std::string::npos) continue;
    const Operands o(j);
    Times runs;
    add_ours(o, runs);
    const std::vector<double> t = bench::interleaved(runs, 11, 1e-3);
    const double flops = 2.0 * static_cast<double>(o.y.numel() * o.w.numel() / o.w.shape()[0]);
    std::printf("%-31s", j.name);
    for (std::size_t i = 0; i < 3; ++i) {
      std::printf(" |%8.1f %4.0f%%", t[i] * 1e6, 100 * flops / t[i] / peak);
    }
    std::puts("");
    std::fflush(stdout);
  }
}
