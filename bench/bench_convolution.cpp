// Convolutions for bench/compare/convolutions.py. Answers lines "pass x channels kernel stride before after dilation
// groups seconds", as in "forward 8x3x32x32 16 3x3 1 1 1 1 1 0.02", with microseconds; pass is forward, input or
// weights (the gradients of these), or peak: then with GFLOP/s.
#include <charconv>
#include <iostream>
#include <string>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/detail/convolution.h"
#include "machine.h"
#include "timing.h"

namespace {

using ferrite::Shape;
using ferrite::Tensor;
using ferrite::detail::ConvolutionAttrs;

/// "8x3x32x32".
Shape shape_of(const std::string& text) {
  Shape s;
  std::int64_t n = 0;
  for (const char* at = text.data(); at < text.data() + text.size(); ++at) {
    at = std::from_chars(at, text.data() + text.size(), n).ptr;
    s.push_back(n);
  }
  return s;
}

struct Job {
  std::string pass;
  Shape x, kernel;
  std::int64_t channels = 0, stride = 0, before = 0, after = 0, dilation = 0, groups = 0;
};

std::istream& operator>>(std::istream& from, Job& j) {
  std::string x, kernel;
  from >> j.pass >> x >> j.channels >> kernel >> j.stride >> j.before >> j.after >> j.dilation >> j.groups;
  j.x = shape_of(x);
  j.kernel = shape_of(kernel);
  return from;
}

std::function<void()> call_of(const Job& j) {
  const int axes = j.kernel.rank();
  Shape out{j.x[0], j.channels}, weight{j.channels, j.x[1] / j.groups}, size, space;
  for (int i = 0; i < axes; ++i) {
    size.push_back((j.x[i + 2] + j.before + j.after - j.dilation * (j.kernel[i] - 1) - 1) / j.stride + 1);
    out.push_back(size[i]);
    weight.push_back(j.kernel[i]);
    space.push_back(j.x[i + 2]);
  }
  const auto each = [&](std::int64_t n) { return Shape::filled(axes, n); };
  const ConvolutionAttrs attrs{each(j.stride), each(j.before), each(j.dilation),
                               j.pass == "forward" ? size
                               : j.pass == "input" ? space
                                                   : j.kernel,
                               j.groups};
  const Tensor x = ferrite::uniform(j.x, {1, 1, 1}, -1, 1), w = ferrite::uniform(weight, {1, 2, 1}, -1, 1),
               y = ferrite::uniform(out, {1, 3, 1}, -1, 1);
  if (j.pass == "forward") return [=] { bench::keep(convolution(x, w, {}, attrs)); };
  if (j.pass == "input") return [=] { bench::keep(convolution_transposed(y, w, {}, attrs)); };
  return [=] { bench::keep(convolution_weights(x, y, attrs)); };
}

}  // namespace

int main() {
  std::cout << "ours" << std::endl;
  Job job;
  double seconds = 0;
  while (std::cin >> job >> seconds) {
    if (job.pass == "peak") {
      std::cout << bench::peak_flops() * 1e-9 << std::endl;
    } else {
      std::cout << 1e6 * bench::interleaved_for({call_of(job)}, seconds)[0] << std::endl;
    }
  }
}
