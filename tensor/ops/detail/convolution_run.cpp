/// Runs plans of convolutions and their adjoints: images and groups of channels, and their shares for threads.
#include "ferrite/tensor/ops/detail/convolution_run.h"

#include "ferrite/tensor/kernel/levels.h"
#include "ferrite/tensor/ops/detail/convolution_images.h"
#include "ferrite_levels.h"

namespace ferrite::detail {

#define FERRITE_DECLARE(level)                         \
  namespace level {                                    \
  extern const ConvolutionKernels convolution_kernels; \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {

#define FERRITE_TABLE(level) &level::convolution_kernels,
constexpr const ConvolutionKernels* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
constinit const TableInUse<ConvolutionKernels> convolution_in_use(kTables);

/// A pass with what it multiplies by: weights [rows, terms] for each group.
template <class T>
struct WeightedPass {
  const ConvolutionPass* pass;
  std::vector<std::int64_t> offsets;
  const T* weights;
};

const ImagePlan as_it_stands;
/// Elements from which on a line is cheaper where it stands than placed in an image.
template <class T>
std::int64_t shortest_line() {
  return 4 * convolution_kernels_for<T>().lanes;
}

/// All passes of all groups of all images: `from` and `to` hold so many channels in a group, of so many elements.
template <class T>
struct Products {
  const ConvolutionPlan& plan;
  std::vector<WeightedPass<T>> passes;
  std::int64_t N, groups;
  const T* from;
  std::int64_t from_channels, from_elements;
  const T* bias;
  T* to;
  std::int64_t to_channels, to_elements;
  PlanePass plane;
  LinePass line;
  std::int64_t height, width;  ///< of the results

  void run(std::int64_t multiply_adds) const {
    const std::int64_t parts = parts_of(N * groups, to_channels / 8, multiply_adds);
    const std::int64_t all = N * groups * parts;
    const bool alone = thread_count() == 1 || multiply_adds < kWorthSharing;
    const std::int64_t shares = alone ? 1 : std::min<std::int64_t>(all, 4 * thread_count());
    share(shares, multiply_adds, [&](std::int64_t i) {
      const Images<T> images(line.taps != 0 ? as_it_stands : plan.image, from_channels, from_elements,
                             parts == 1 ? Images<T>::kMostSlots : 1);
      images.each(
          all * i / shares, all * (i + 1) / shares,
          [&](std::int64_t at) { return from + at / parts * from_channels * from_elements; },
          [&](std::int64_t at, const T* image) { part(at / parts, at % parts, parts, image); });
    });
  }

 private:
  /// Rows of one part of one image and group.
  void part(std::int64_t image_and_group, std::int64_t part, std::int64_t parts, const T* image) const {
    const std::int64_t group = image_and_group % groups;
    if (line.taps != 0) return whole_line(image_and_group, group, image);
    if (plane.taps != 0) return whole_plane(image_and_group, group, image);
    const std::int64_t first = to_channels * part / parts, last = to_channels * (part + 1) / parts;
    for (const WeightedPass<T>& w : passes) {
      const auto terms = static_cast<std::int64_t>(w.offsets.size());
      convolution_kernels_for<T>().forward({.rows = last - first,
                                            .terms = terms,
                                            .weights = w.weights + (group * to_channels + first) * terms,
                                            .weights_row = terms,
                                            .image = image,
                                            .offsets = w.offsets.data(),
                                            .packets = w.pass->packets.data(),
                                            .count = static_cast<std::int64_t>(w.pass->packets.size()),
                                            .segments = w.pass->segments.data(),
                                            .bias = bias ? bias + group * to_channels + first : nullptr,
                                            .out = to + (image_and_group * to_channels + first) * to_elements,
                                            .out_row = to_elements,
                                            .out_step = w.pass->step});
    }
  }

  void whole_line(std::int64_t at, std::int64_t group, const T* x) const {
    convolution_kernels_for<T>().line({.taps = line.taps,
                                       .weights = passes[0].weights + group * line.taps,
                                       .offsets = line.offsets,
                                       .x = x,
                                       .length = from_elements,
                                       .count = to_elements,
                                       .bias = bias ? bias + group : nullptr,
                                       .out = to + at * to_elements});
  }

  /// Rows of results in the order in which the rows of taps meet the rows of the image.
  void whole_plane(std::int64_t at, std::int64_t group, const T* image) const {
    const std::int64_t start = plane.image_row > 0 ? 0 : height - 1, step = plane.image_row > 0 ? 1 : -1;
    convolution_kernels_for<T>().plane(plane.taps, {.weights = passes[0].weights + group * plane.taps * plane.taps,
                                                    .image = image + plane.first + start * step * plane.image_row,
                                                    .image_row = plane.image_row,
                                                    .columns = plane.columns,
                                                    .height = height,
                                                    .width = width,
                                                    .bias = bias ? bias + group : nullptr,
                                                    .out = to + at * to_elements + start * width,
                                                    .out_row = step * width});
  }
};

template <class T>
void convolve(const Tensor& x, const Tensor& w, const Tensor* bias, Tensor& y, const WindowGeometry& g,
              std::int64_t groups) {
  const Extents e = extents_of(x, y, groups);
  const ConvolutionPlan plan = plan_convolution(g, convolution_kernels_for<T>().lanes);
  const ConvolutionPass& pass = plan.passes[0];
  Products<T> products{.plan = plan,
                       .passes = {},
                       .N = e.N,
                       .groups = groups,
                       .from = x.data<T>(),
                       .from_channels = e.inner,
                       .from_elements = g.large(),
                       .bias = bias ? bias->data<T>() : nullptr,
                       .to = Writer::data<T>(y),
                       .to_channels = e.outer,
                       .to_elements = g.small(),
                       .plane = is_depthwise(e) ? plane_of(g, plan) : PlanePass{},
                       .line = is_depthwise(e) ? line_of(g, false, shortest_line<T>()) : LinePass{},
                       .height = g.axis[1].small,
                       .width = g.axis[2].small};
  products.passes.push_back({&pass, term_offsets(pass, e.inner, plan.image.channel), w.data<T>()});
  products.run(y.numel() * e.inner * g.taps());
}

/// The weights w [groups outer, inner, all taps] of a pass from the small side: [groups inner, outer, taps].
template <class T>
void weights_of_pass(const T* w, const Extents& e, std::int64_t all, const std::vector<std::int64_t>& taps, T* to) {
  for (std::int64_t group = 0; group < e.groups; ++group)
    for (std::int64_t i = 0; i < e.inner; ++i)
      for (std::int64_t o = 0; o < e.outer; ++o) {
        const T* const from = w + ((group * e.outer + o) * e.inner + i) * all;
        for (const std::int64_t tap : taps) *to++ = from[tap];
      }
}

template <class T>
void convolve_transposed(const Tensor& y, const Tensor& w, const Tensor* bias, Tensor& x, const WindowGeometry& g,
                         std::int64_t groups) {
  const Extents e = extents_of(x, y, groups);
  const ConvolutionPlan plan = plan_transposed(g, convolution_kernels_for<T>().lanes);
  Products<T> products{.plan = plan,
                       .passes = {},
                       .N = e.N,
                       .groups = groups,
                       .from = y.data<T>(),
                       .from_channels = e.outer,
                       .from_elements = g.small(),
                       .bias = bias ? bias->data<T>() : nullptr,
                       .to = Writer::data<T>(x),
                       .to_channels = e.inner,
                       .to_elements = g.large(),
                       .plane = is_depthwise(e) ? plane_of(g, plan) : PlanePass{},
                       .line = is_depthwise(e) ? line_of(g, true, shortest_line<T>()) : LinePass{},
                       .height = g.axis[1].large,
                       .width = g.axis[2].large};
  // In memory that the shares do not ask for.
  T* to = kernel_memory().tiles.get<T>(static_cast<std::size_t>(w.numel()));
  for (const ConvolutionPass& pass : plan.passes) {
    products.passes.push_back({&pass, term_offsets(pass, e.outer, plan.image.channel), to});
    weights_of_pass(w.data<T>(), e, g.taps(), pass.taps, to);
    to += groups * e.inner * e.outer * static_cast<std::int64_t>(pass.taps.size());
  }
  products.run(y.numel() * e.inner * g.taps());
}

}  // namespace

template <>
const ConvolutionKernelsOf<float>& convolution_kernels_for() {
  return convolution_in_use.get().f32;
}
template <>
const ConvolutionKernelsOf<double>& convolution_kernels_for() {
  return convolution_in_use.get().f64;
}

void run_convolution(const Tensor& x, const Tensor& w, const Tensor* bias, Tensor& y, const WindowGeometry& g,
                     std::int64_t groups) {
  if (y.numel() == 0) return;
  if (y.dtype() == Dtype::f32) return convolve<float>(x, w, bias, y, g, groups);
  convolve<double>(x, w, bias, y, g, groups);
}

void run_transposed(const Tensor& y, const Tensor& w, const Tensor* bias, Tensor& x, const WindowGeometry& g,
                    std::int64_t groups) {
  if (x.numel() == 0) return;
  if (x.dtype() == Dtype::f32) return convolve_transposed<float>(y, w, bias, x, g, groups);
  convolve_transposed<double>(y, w, bias, x, g, groups);
}

}  // namespace ferrite::detail
