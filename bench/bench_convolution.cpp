// Convolutions for bench/compare/convolutions.py. Answers lines "pass x channels kernel stride before after dilation
// groups seconds", such as "forward 8x3x32x32 16 3x3 1 1 1 1 1 0.02", with microseconds. The pass is forward, input or
// weights (the gradients of these), or peak, which is answered with GFLOP/s.
#include <iostream>
#include <string>

#include "convolution_job.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/detail/convolution.h"
#include "machine.h"
#include "timing.h"

namespace {

using bench::ConvolutionJob;
using ferrite::Shape;
using ferrite::Tensor;
using ferrite::detail::ConvolutionAttrs;

Shape shape_of(const std::vector<std::int64_t>& extents) {
  Shape s;
  for (const std::int64_t n : extents) s.push_back(n);
  return s;
}

std::function<void()> call_of(const ConvolutionJob& j) {
  const Shape from = shape_of(j.x), kernel = shape_of(j.kernel);
  const int axes = kernel.rank();
  Shape out{from[0], j.channels}, weight{j.channels, from[1] / j.groups}, size, space;
  for (int i = 0; i < axes; ++i) {
    size.push_back((from[i + 2] + j.before + j.after - j.dilation * (kernel[i] - 1) - 1) / j.stride + 1);
    out.push_back(size[i]);
    weight.push_back(kernel[i]);
    space.push_back(from[i + 2]);
  }
  const auto each = [&](std::int64_t n) { return Shape::filled(axes, n); };
  const ConvolutionAttrs attrs{each(j.stride), each(j.before), each(j.dilation),
                               j.pass == "forward" ? size
                               : j.pass == "input" ? space
                                                   : kernel,
                               j.groups};
  const Tensor x = ferrite::uniform(from, {1, 1, 1}, -1, 1), w = ferrite::uniform(weight, {1, 2, 1}, -1, 1),
               y = ferrite::uniform(out, {1, 3, 1}, -1, 1);
  if (j.pass == "forward") return [=] { bench::keep(convolution(x, w, {}, attrs)); };
  if (j.pass == "input") return [=] { bench::keep(convolution_transposed(y, w, {}, attrs)); };
  return [=] { bench::keep(convolution_weights(x, y, attrs)); };
}

}  // namespace

int main() {
  std::cout << "ours" << std::endl;
  ConvolutionJob job;
  double seconds = 0;
  while (std::cin >> job >> seconds) {
    if (job.pass == "peak") {
      std::cout << bench::peak_flops() * 1e-9 << std::endl;
    } else {
      std::cout << 1e6 * bench::interleaved_for({call_of(job)}, seconds)[0] << std::endl;
    }
  }
}
