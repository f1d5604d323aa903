/// Gradients of the weights of convolutions: lanes along their rows, or along positions where rows are few.
#include "ferrite/tensor/ops/detail/convolution_images.h"
#include "ferrite/tensor/ops/detail/convolution_run.h"

namespace ferrite::detail {
namespace {

/// The gradient of the weights of some channels of a group.
template <class T>
class WeightGradient {
 public:
  WeightGradient(const Tensor& x, const Tensor& y, Tensor& w, const WindowGeometry& g, std::int64_t groups)
      : g_(g),
        e_(extents_of(x, y, groups)),
        plan_(plan_convolution(g, convolution_kernels_for<T>().lanes)),
        x_(x.data<T>()),
        y_(y.data<T>()),
        w_(Writer::data<T>(w)),
        multiply_adds_(y.numel() * e_.inner * g.taps()),
        by_positions_(2 * e_.outer < convolution_kernels_for<T>().lanes) {
    const std::int64_t lanes = convolution_kernels_for<T>().lanes;
    const std::int64_t packets = (g.axis[2].small + lanes - 1) / lanes;
    if (by_positions_ && is_depthwise(e_) && g.axis[1].small * packets <= kBlockK && packets <= kMostPlanePackets)
      plane_ = plane_of(g, false);
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
    if (by_positions_ && is_depthwise(e_)) {
      const std::int64_t parts = parts_of(1, e_.groups, multiply_adds_);
      return share(parts, multiply_adds_,
                   [&](std::int64_t i) { depthwise(e_.groups * i / parts, e_.groups * (i + 1) / parts); });
    }
    const std::int64_t parts = parts_of(e_.groups, e_.inner, multiply_adds_);
    share(e_.groups * parts, multiply_adds_, [&](std::int64_t i) {
      const std::int64_t part = i % parts;
      channels(i / parts, e_.inner * part / parts, e_.inner * (part + 1) / parts);
    });
  }

 private:
  /// Groups of one channel on both sides, image after image as they lie in memory.
  void depthwise(std::int64_t first, std::int64_t last) const {
    const std::int64_t taps = g_.taps();
    std::fill(w_ + first * taps, w_ + last * taps, T(0));
    if (plane_.taps != 0) return planes(first, last);
    const Images<T> images(plan_.image, 1, g_.large(), Images<T>::kMostSlots);
    for (std::int64_t n = 0; n < e_.N; ++n)
      images.each(
          first, last, [&](std::int64_t group) { return x_ + (n * e_.groups + group) * g_.large(); },
          [&](std::int64_t group, const T* image) {
            dots(image, plan_.passes[0].offsets, y_ + (n * e_.groups + group) * g_.small(), w_ + group * taps);
          });
  }

  void planes(std::int64_t first, std::int64_t last) const {
    for (std::int64_t n = 0; n < e_.N; ++n)
      convolution_kernels_for<T>().plane_dots(plane_.taps,
                                              {.planes = last - first,
                                               .source = source_of(plane_, x_ + (n * e_.groups + first) * g_.large()),
                                               .x_step = g_.large(),
                                               .height = g_.axis[1].small,
                                               .width = g_.axis[2].small,
                                               .g = y_ + (n * e_.groups + first) * g_.small(),
                                               .g_step = g_.small(),
                                               .totals = w_ + first * g_.taps()});
  }

  /// One image, lanes along positions.
  void dots(const T* image, const std::vector<std::int64_t>& offsets, const T* y, T* totals) const {
    const auto terms = static_cast<std::int64_t>(offsets.size());
    convolution_kernels_for<T>().dots({.terms = terms,
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
  }

  void channels(std::int64_t group, std::int64_t first, std::int64_t last) const {
    const std::int64_t taps = g_.taps(), terms = (last - first) * taps;
    const std::vector<std::int64_t> offsets = term_offsets(plan_.passes[0], last - first, plan_.image.channel);
    const std::int64_t lanes = convolution_kernels_for<T>().lanes;
    const std::int64_t columns = by_positions_ ? e_.outer : (e_.outer + lanes - 1) / lanes * lanes;
    T* const totals = kernel_memory().tiles.get<T>(static_cast<std::size_t>(terms * columns));
    std::fill_n(totals, terms * columns, T(0));
    const Images<T> images(plan_.image, last - first, g_.large(), std::min(e_.N, Images<T>::kMostSlots));
    const auto from = [&](std::int64_t n) { return x_ + ((n * e_.groups + group) * e_.inner + first) * g_.large(); };
    images.each(0, e_.N, from, [&](std::int64_t n, const T* image) {
      const T* const y = y_ + (n * e_.groups + group) * e_.outer * g_.small();
      if (by_positions_) {
        dots(image, offsets, y, totals);
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
      convolution_kernels_for<T>().transpose(y + p, g_.small(), e_.outer, n, block, columns);
      convolution_kernels_for<T>().weights({.terms = static_cast<std::int64_t>(offsets.size()),
                                            .offsets = offsets.data(),
                                            .image = image,
                                            .positions = n,
                                            .places = places_.data() + p,
                                            .width = g_.axis[2].small,
                                            .begun = p % g_.axis[2].small,
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

void run_weight_gradient(const Tensor& x, const Tensor& y, Tensor& w, const WindowGeometry& g, std::int64_t groups) {
  if (w.numel() == 0) return;
  if (w.dtype() == Dtype::f32) return WeightGradient<float>(x, y, w, g, groups).run();
  WeightGradient<double>(x, y, w, g, groups).run();
}

}  // namespace ferrite::detail
