/// Runs plans of convolutions: images and groups of channels, their shares for threads, and the memory of each.
#include "ferrite/tensor/ops/detail/convolution_run.h"

#include <algorithm>

#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/levels.h"
#include "ferrite/tensor/kernel/matrix.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/threads.h"
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

template <class T>
const ConvolutionKernelsOf<T>& kernels_for() {
  return convolution_in_use.get().floats<T>();
}

/// Elements that kernels may read past the end of what counts.
template <class T>
constexpr std::int64_t kBeyond = 64 / static_cast<std::int64_t>(sizeof(T));

/// Channels, groups and rows of weights of one application.
struct Extents {
  std::int64_t N, groups, inner, outer;  ///< channels of the large and of the small side, in one group
};
Extents extents_of(const Tensor& large, const Tensor& small, std::int64_t groups) {
  return {large.shape()[0], groups, large.shape()[1] / groups, small.shape()[1] / groups};
}

/// f(share) for so many shares, on all threads where there is work for them.
template <class F>
void share(std::int64_t shares, std::int64_t multiply_adds, const F& f) {
  if (shares > 1 && thread_count() > 1 && multiply_adds >= kWorthSharing) return parallel_for(shares, f);
  for (std::int64_t i = 0; i < shares; ++i) f(i);
}
/// Parts into which each of `shares` is cut, at most `most`, so that every thread finds several.
std::int64_t parts_of(std::int64_t shares, std::int64_t most, std::int64_t multiply_adds) {
  if (thread_count() == 1 || multiply_adds < kWorthSharing || shares == 0) return 1;
  return std::clamp<std::int64_t>((2 * thread_count() + shares - 1) / shares, 1, std::max<std::int64_t>(1, most));
}

/// Operands of so many channels as images of a plan: where they stand, or placed in this thread's memory. What a plan
/// leaves zero is cleared once for all operands that take the same slot in turn.
template <class T>
class Images {
 public:
  /// At most `most` slots, as many as leave room in the first cache: what is stored shortly before it is read at
  /// another alignment delays the read, so small images are placed together before any of them is read.
  Images(const ImagePlan& plan, std::int64_t channels, std::int64_t elements, std::int64_t most)
      : plan_(plan), channels_(channels), elements_(elements) {
    if (plan.phases.empty()) return;
    constexpr auto kNear = 24 * 1024 / static_cast<std::int64_t>(sizeof(T));
    const std::int64_t size = channels * plan.channel;
    slots_ = std::clamp<std::int64_t>(kNear / std::max<std::int64_t>(size, 1), 1, std::max<std::int64_t>(most, 1));
    memory_ = kernel_memory().panels.get<T>(static_cast<std::size_t>(slots_ * size + kBeyond<T>));
    std::fill_n(memory_, slots_ * size, T(0));
  }

  /// f(i, image) for the operands i in [first, last), of which `from(i)` tells the first element.
  template <class From, class F>
  void each(std::int64_t first, std::int64_t last, const From& from, const F& f) const {
    const T* placed[kMostSlots];
    for (; first < last; first += slots_) {
      const std::int64_t n = std::min(slots_, last - first);
      for (std::int64_t i = 0; i < n; ++i) placed[i] = place(i, from(first + i));
      for (std::int64_t i = 0; i < n; ++i) f(first + i, placed[i]);
    }
  }

  static constexpr std::int64_t kMostSlots = 16;

 private:
  const T* place(std::int64_t slot, const T* from) const {
    if (plan_.phases.empty()) return from;
    T* const image = memory_ + slot * channels_ * plan_.channel;
    for (std::int64_t c = 0; c < channels_; ++c) {
      T* to = image + c * plan_.channel;
      for (const ImageAxes& axes : plan_.phases) {
        kernels_for<T>().place(from + c * elements_, axes, to);
        to += plan_.volume;
      }
    }
    return image;
  }

  const ImagePlan& plan_;
  std::int64_t channels_, elements_, slots_ = 1;
  T* memory_ = nullptr;
};

/// A pass with what it multiplies by: weights [rows, terms] for each group.
template <class T>
struct WeightedPass {
  const ConvolutionPass* pass;
  std::vector<std::int64_t> offsets;
  const T* weights;
};

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
  std::int64_t height, width;  ///< of the results

  void run(std::int64_t multiply_adds) const {
    const std::int64_t parts = parts_of(N * groups, to_channels / 8, multiply_adds);
    const std::int64_t all = N * groups * parts;
    const bool alone = thread_count() == 1 || multiply_adds < kWorthSharing;
    const std::int64_t shares = alone ? 1 : std::min<std::int64_t>(all, 4 * thread_count());
    share(shares, multiply_adds, [&](std::int64_t i) {
      const Images<T> images(plan.image, from_channels, from_elements, parts == 1 ? Images<T>::kMostSlots : 1);
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
    if (plane.taps != 0) return whole_plane(image_and_group, group, image);
    const std::int64_t first = to_channels * part / parts, last = to_channels * (part + 1) / parts;
    for (const WeightedPass<T>& w : passes) {
      const auto terms = static_cast<std::int64_t>(w.offsets.size());
      kernels_for<T>().forward({.rows = last - first,
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

  /// Rows of results in the order in which the rows of taps meet the rows of the image.
  void whole_plane(std::int64_t at, std::int64_t group, const T* image) const {
    const std::int64_t start = plane.image_row > 0 ? 0 : height - 1, step = plane.image_row > 0 ? 1 : -1;
    kernels_for<T>().plane(plane.taps, {.weights = passes[0].weights + group * plane.taps * plane.taps,
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
  const ConvolutionPlan plan = plan_convolution(g, kernels_for<T>().lanes);
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
                       .plane = e.inner == 1 && e.outer == 1 ? plane_of(g, plan) : PlanePass{},
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
  const ConvolutionPlan plan = plan_transposed(g, kernels_for<T>().lanes);
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
                       .plane = e.inner == 1 && e.outer == 1 ? plane_of(g, plan) : PlanePass{},
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

/// The gradient of the weights of some channels of a group.
template <class T>
class WeightGradient {
 public:
  WeightGradient(const Tensor& x, const Tensor& y, Tensor& w, const WindowGeometry& g, std::int64_t groups)
      : g_(g),
        e_(extents_of(x, y, groups)),
        plan_(plan_convolution(g, kernels_for<T>().lanes)),
        x_(x.data<T>()),
        y_(y.data<T>()),
        w_(Writer::data<T>(w)),
        multiply_adds_(y.numel() * e_.inner * g.taps()),
        by_positions_(2 * e_.outer < kernels_for<T>().lanes) {
    const std::int64_t lanes = kernels_for<T>().lanes;
    if (by_positions_ && e_.inner == 1 && e_.outer == 1 &&
        g.axis[1].small * ((g.axis[2].small + lanes - 1) / lanes) <= kBlockK)
      plane_ = plane_of(g, plan_);
    if (plane_.taps != 0) return;
    if (by_positions_) {
      const std::int64_t rows = g.axis[0].small * g.axis[1].small;
      for (std::int64_t r = 0; r < rows; ++r)
        rows_.push_back(
            {r / g.axis[1].small * plan_.image.plane + r % g.axis[1].small * plan_.image.row, r * g.axis[2].small});
    } else {
      places_ = position_places(g, plan_.image);
    }
  }

  void run() {
    if (plane_.taps != 0) {
      const std::int64_t parts = parts_of(1, e_.groups, multiply_adds_);
      return share(parts, multiply_adds_,
                   [&](std::int64_t i) { planes(e_.groups * i / parts, e_.groups * (i + 1) / parts); });
    }
    const std::int64_t parts = parts_of(e_.groups, e_.inner, multiply_adds_);
    share(e_.groups * parts, multiply_adds_, [&](std::int64_t i) {
      const std::int64_t part = i % parts;
      channels(i / parts, e_.inner * part / parts, e_.inner * (part + 1) / parts);
    });
  }

 private:
  /// Groups of one channel on both sides, image after image as they lie in memory.
  void planes(std::int64_t first, std::int64_t last) const {
    const std::int64_t taps = plane_.taps * plane_.taps;
    std::fill(w_ + first * taps, w_ + last * taps, T(0));
    const Images<T> images(plan_.image, 1, g_.large(), Images<T>::kMostSlots);
    for (std::int64_t n = 0; n < e_.N; ++n)
      images.each(
          first, last, [&](std::int64_t group) { return x_ + (n * e_.groups + group) * g_.large(); },
          [&](std::int64_t group, const T* image) {
            kernels_for<T>().plane_dots(plane_.taps, {.image = image,
                                                      .image_row = plane_.image_row,
                                                      .columns = plane_.columns,
                                                      .height = g_.axis[1].small,
                                                      .width = g_.axis[2].small,
                                                      .g = y_ + (n * e_.groups + group) * g_.small(),
                                                      .totals = w_ + group * taps});
          });
  }

  void channels(std::int64_t group, std::int64_t first, std::int64_t last) const {
    const std::int64_t taps = g_.taps(), terms = (last - first) * taps;
    const std::vector<std::int64_t> offsets = term_offsets(plan_.passes[0], last - first, plan_.image.channel);
    const std::int64_t lanes = kernels_for<T>().lanes;
    const std::int64_t columns = by_positions_ ? e_.outer : (e_.outer + lanes - 1) / lanes * lanes;
    T* const totals = kernel_memory().tiles.get<T>(static_cast<std::size_t>(terms * columns));
    std::fill_n(totals, terms * columns, T(0));
    const Images<T> images(plan_.image, last - first, g_.large(), std::min(e_.N, Images<T>::kMostSlots));
    const auto from = [&](std::int64_t n) { return x_ + ((n * e_.groups + group) * e_.inner + first) * g_.large(); };
    images.each(0, e_.N, from, [&](std::int64_t n, const T* image) {
      const T* const y = y_ + (n * e_.groups + group) * e_.outer * g_.small();
      if (by_positions_) {
        kernels_for<T>().dots({.terms = terms,
                               .offsets = offsets.data(),
                               .image = image,
                               .length = g_.axis[2].small,
                               .count = static_cast<std::int64_t>(rows_.size()),
                               .position_rows = rows_.data(),
                               .rows = e_.outer,
                               .g = y,
                               .g_row = g_.small(),
                               .totals = totals,
                               .totals_row = terms});
      } else {
        blocks(image, y, offsets, columns, totals);
      }
    });
    for (std::int64_t o = 0; o < e_.outer; ++o) {
      T* const to = w_ + ((group * e_.outer + o) * e_.inner + first) * taps;
      for (std::int64_t k = 0; k < terms; ++k) to[k] = by_positions_ ? totals[o * terms + k] : totals[k * columns + o];
    }
  }

  /// One image: blocks of 256 positions.
  void blocks(const T* image, const T* y, const std::vector<std::int64_t>& offsets, std::int64_t columns,
              T* totals) const {
    T* const block = kernel_memory().rows.get<T>(static_cast<std::size_t>(kBlockK * columns));
    for (std::int64_t p = 0; p < g_.small(); p += kBlockK) {
      const std::int64_t n = std::min(kBlockK, g_.small() - p);
      kernels_for<T>().transpose(y + p, g_.small(), e_.outer, n, block, columns);
      kernels_for<T>().weights({.terms = static_cast<std::int64_t>(offsets.size()),
                                .offsets = offsets.data(),
                                .image = image,
                                .positions = n,
                                .places = places_.data() + p,
                                .g = block,
                                .columns = columns,
                                .totals = totals});
    }
  }

  const WindowGeometry& g_;
  const Extents e_;
  const ConvolutionPlan plan_;
  const T* x_;
  const T* y_;
  T* w_;
  std::int64_t multiply_adds_;
  bool by_positions_;  ///< few rows of weights: lanes along positions
  PlanePass plane_;    ///< among these
  std::vector<PositionRow> rows_;
  std::vector<std::int64_t> places_;
};

}  // namespace

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

void run_weight_gradient(const Tensor& x, const Tensor& y, Tensor& w, const WindowGeometry& g, std::int64_t groups) {
  if (w.numel() == 0) return;
  if (w.dtype() == Dtype::f32) return WeightGradient<float>(x, y, w, g, groups).run();
  WeightGradient<double>(x, y, w, g, groups).run();
}

}  // namespace ferrite::detail
