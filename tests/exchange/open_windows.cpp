// Strided windows, interpolation to other extents and scatters, all with open extents that no stride has to divide.
#include "exchange/program_cases.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/pooling.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/windows.h"

namespace exchange_test {
namespace {

using namespace ferrite;
using Function = std::function<Tensors(const Tensors&)>;

Tensor elements(const Shape& shape, std::uint64_t seed) { return uniform(shape, {.seed = seed}, -1, 1, Dtype::f64); }

/// Adds images [2, 2, height, width], exported at 8 x 8 and run at three other extents.
void add_images(const std::string& name, const Function& f, std::vector<OpenCase>& list) {
  for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{5, 12}, {11, 7}, {4, 33}}) {
    const Tensors in{elements({2, 2, height, width}, 7)};
    const std::string at = ", " + std::to_string(height) + " x " + std::to_string(width);
    list.push_back({{name + at, {}, {}, in, f(in), 1e-10},
                    f,
                    {{{2, 2, 8, 8}, Dtype::f64}},
                    {{.axis = 2, .name = "height"}, {.axis = 3, .name = "width"}}});
  }
}

Function resized(Interpolation mode, double factor, bool align_corners) {
  return [=](const Tensors& in) -> Tensors {
    InterpolateOptions options{.scale_factor = {factor}, .mode = mode};
    options.align_corners = align_corners;
    return {interpolate(in[0], options)};
  };
}

/// Returns interpolation back to the extents before a pooling by 2, which rounds down.
Function pooled_and_back(Interpolation mode) {
  return [=](const Tensors& in) -> Tensors {
    const Shape& s = in[0].shape();
    return {interpolate(max_pool2d(in[0], {2}), {.size = {s[2], s[3]}, .mode = mode})};
  };
}

Function scattered(std::int64_t axis) {
  return [=](const Tensors& in) -> Tensors {
    return {scatter(in[0], axis, in[1], in[2]), scatter_add(in[0], axis, in[1], in[2])};
  };
}

}  // namespace

std::vector<OpenCase> open_window_cases() {
  const Tensor w = elements({3, 2, 3, 3}, 5), again = elements({2, 3, 2, 2}, 6);
  std::vector<OpenCase> list;
  const auto convolved = [&](const Shape& stride, const ConvolutionPadding& padding) -> Function {
    return [=](const Tensors& in) -> Tensors { return {conv2d(in[0], w, {}, {.stride = stride, .padding = padding})}; };
  };
  add_images("strided", convolved({2}, {1}), list);
  add_images("strided without padding", convolved({2, 1}, {0}), list);
  add_images("strided by three", convolved({3}, {1}), list);
  add_images(
      "strided twice",
      [=](const Tensors& in) -> Tensors {
        const Tensor y = conv2d(in[0], w, {}, {.stride = {2}, .padding = {1}});
        return {conv2d(y, again, {}, {.stride = {2}, .padding = {1}}), mean(y, {2, 3})};
      },
      list);
  add_images(
      "halved three times",
      [](const Tensors& in) -> Tensors {
        Tensor y = in[0];
        for (int k = 0; k < 3; ++k) y = max_pool2d(y, {3}, {.stride = {2}, .padding = {1}});
        return {y};
      },
      list);
  add_images(
      "max pooled",
      [](const Tensors& in) -> Tensors { return {max_pool2d(in[0], {3}, {.stride = {2}, .padding = {1}})}; }, list);
  add_images(
      "max pooled, rounded up",
      [](const Tensors& in) -> Tensors { return {max_pool2d(in[0], {2}, {.stride = {2}, .ceil_mode = true})}; }, list);
  add_images(
      "mean pooled", [](const Tensors& in) -> Tensors { return {avg_pool2d(in[0], {2})}; }, list);
  for (const auto& [mode, name] : {std::pair{Interpolation::nearest, "nearest"},
                                   {Interpolation::nearest_exact, "exact"},
                                   {Interpolation::linear, "linear"},
                                   {Interpolation::cubic, "cubic"}}) {
    for (const double factor : {2.0, 1.5, 0.5})
      add_images(std::string(name) + " by " + std::to_string(factor), resized(mode, factor, false), list);
    add_images(std::string(name) + " and back", pooled_and_back(mode), list);
  }
  add_images("linear, corners aligned", resized(Interpolation::linear, 2, true), list);
  add_images("cubic, corners aligned", resized(Interpolation::cubic, 1.5, true), list);
  for (const auto& [rows, sources] : {std::pair<std::int64_t, std::int64_t>{5, 2}, {2, 9}}) {
    const Tensor index = cast(uniform({sources, 3}, {.seed = 8}, 0, 1.999), Dtype::i64);
    const Tensors in{elements({rows, 3}, 7), index, elements({sources, 3}, 9)};
    list.push_back({{"scattered, " + std::to_string(sources), {}, {}, in, scattered(0)(in), 1e-10},
                    scattered(0),
                    {{{4, 3}, Dtype::f64}, {{2, 3}, Dtype::i64}, {{2, 3}, Dtype::f64}},
                    {{.input = 0, .axis = 0, .name = "rows"},
                     {.input = 1, .axis = 0, .name = "sources"},
                     {.input = 2, .axis = 0, .name = "sources"}}});
  }
  return list;
}

}  // namespace exchange_test
