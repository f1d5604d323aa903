/// Runs plans of convolutions, their adjoints and the gradients of weights: images and groups of channels, and their
/// division among threads.
#include "ferrite/tensor/ops/detail/convolution.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/reserve.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {

FERRITE_FLOAT_TABLES(ConvolutionKernels, convolution_kernels, convolution_in_use)

namespace {

/// Returns the kernels of the instruction set in use.
template <class T>
const ConvolutionKernels<T>& convolution_kernels_for() {
  return convolution_in_use.of<T>();
}

/// The plan of operands that are read in place.
const ImagePlan as_it_stands;

/// Number of elements that kernels may read past the last one that counts.
template <class T>
constexpr std::int64_t kBeyond = 64 / static_cast<std::int64_t>(sizeof(T));

/// The numbers of images, groups and channels of one application.
struct Extents {
  std::int64_t N, groups, inner, outer;  ///< channels of the large and of the small side, in one group
};
Extents extents_of(const Tensor& large, const Tensor& small, std::int64_t groups) {
  return {large.shape()[0], groups, large.shape()[1] / groups, small.shape()[1] / groups};
}

/// Returns the same windows along one axis, if each is one element and all of them are consecutive.
WindowGeometry flattened(const WindowGeometry& g) {
  WindowGeometry line;
  for (const WindowAxis& a : g.axis) {
    if (a.kernel != 1 || a.stride != 1 || a.before != 0 || a.large != a.small) return g;
    line.axis[2].large *= a.large;
  }
  line.axis[2].small = line.axis[2].large;
  return line;
}

/// Returns whether groups have one channel on both sides.
bool is_depthwise(const Extents& e) { return e.inner == 1 && e.outer == 1; }

/// Returns the operand `x` of one channel in the form that a pass through planes reads.
template <class T>
PlaneSource<T> source_of(const PlanePass& plane, const T* x) {
  return {x + plane.start, plane.stride, plane.row, plane.first, plane.last, plane.width, plane.columns};
}

/// Calls f(share) for `shares` shares, on all threads where there is enough work.
template <class F>
void share(std::int64_t shares, std::int64_t multiply_adds, const F& f) {
  if (shares > 1 && thread_count() > 1 && multiply_adds >= kWorthSharing) return parallel_for(shares, f);
  for (std::int64_t i = 0; i < shares; ++i) f(i);
}
/// Returns the number of parts, at most `most`, into which each of `shares` is cut so that every thread finds several.
std::int64_t parts_of(std::int64_t shares, std::int64_t most, std::int64_t multiply_adds) {
  if (thread_count() == 1 || multiply_adds < kWorthSharing || shares == 0) return 1;
  return std::clamp<std::int64_t>((2 * thread_count() + shares - 1) / shares, 1, std::max<std::int64_t>(1, most));
}

/// Operands of some channels as images of a plan: in place, or copied to this thread's memory. The zeros of a plan are
/// cleared once for all operands that use the same slot in turn.
template <class T>
class Images {
 public:
  /// Takes at most `most` slots, as many as leave room in the first cache. Reading at another alignment what has just
  /// been stored delays the read, so small images are placed together before any of them is read.
  Images(const ImagePlan& plan, std::int64_t channels, std::int64_t elements, std::int64_t most)
      : plan_(plan), channels_(channels), elements_(elements) {
    if (plan.phases.empty()) return;
    constexpr auto kNear = 24 * 1024 / static_cast<std::int64_t>(sizeof(T));
    const std::int64_t size = channels * plan.channel;
    slots_ = std::clamp<std::int64_t>(kNear / std::max<std::int64_t>(size, 1), 1, std::max<std::int64_t>(most, 1));
    memory_ = kernel_memory().panels.get<T>(static_cast<std::size_t>(slots_ * size + kBeyond<T>));
    std::fill_n(memory_, slots_ * size, T(0));
  }

  /// Calls f(i, image) for the operands i in [first, last), whose first element is `from(i)`.
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
    std::int64_t phase = 0;
    for (const ImageAxes& axes : plan_.phases)
      convolution_kernels_for<T>().place(channels_, from, elements_, axes, image + plan_.volume * phase++,
                                         plan_.channel);
    return image;
  }

  const ImagePlan& plan_;
  std::int64_t channels_, elements_, slots_ = 1;
  T* memory_ = nullptr;
};

// ---- convolutions and their adjoints ----------------------------------------------------------------------

/// A pass with its factors: weights [rows, terms] for each group.
template <class T>
struct WeightedPass {
  const ConvolutionPass* pass;
  const PassTerms* terms;
  const T* weights;
};

/// Returns the length from which on a line is cheaper to read in place than from an image.
template <class T>
std::int64_t shortest_line() {
  return 4 * convolution_kernels_for<T>().lanes;
}

/// The operands of products with lanes along the channels of the results instead of their positions.
template <class T>
struct ChannelLanes {
  std::int64_t columns = 0;           ///< channels of a group in whole packets; 0: lanes along positions
  const ChannelPlan* plan = nullptr;  ///< the places that they read
  std::int64_t terms = 0;
  const T* weights = nullptr;  ///< for each group the weights of ChannelProduct
  const T* bias = nullptr;     ///< [groups, columns], or null
};

/// Weights in the form of ChannelProduct: `groups` times `blocks` matrices [channels, terms / blocks], consecutive, in
/// blocks of one packet of channels with all terms of a group.
template <class T>
struct ChannelWeights {
  const Tensor& w;
  std::int64_t groups, channels, terms, blocks;

  static std::int64_t lanes() { return convolution_kernels_for<T>().lanes; }
  std::int64_t columns() const { return (channels + lanes() - 1) / lanes() * lanes(); }
  std::int64_t elements() const { return groups * terms * columns(); }

  /// Returns the copy on w's storage, made when these elements are used for the second time; null before.
  const T* kept() const {
    if (w.impl()->storage->rewritten) return nullptr;
    PackKey key = pack_key(w, -static_cast<std::int32_t>(groups));  // no pack of gates has such a number
    key.rows = channels, key.columns = terms, key.row_step = blocks, key.column_step = 0;
    if (const void* found = find_pack(w, key)) return static_cast<const T*>(found);
    if (count_use(w) == 0) return nullptr;
    return pack_of<T>(w, key, elements(), [&](T* to) { write(to); });
  }
  void write(T* to) const {
    const std::int64_t block = terms / blocks;
    const T* from = w.data<T>();
    for (std::int64_t group = 0; group < groups; ++group, to += terms * columns())
      for (std::int64_t i = 0; i < blocks; ++i, from += channels * block)
        pack_transposed(from, block, block, channels, to + i * block * lanes(), terms);
  }
};

/// Returns lanes along channels, if a plan has all taps in one pass and if they do less work: with them lanes are
/// wasted in the last packet of channels, with lanes along positions in the packets between the rows of small images;
/// and weights that are used for the first time are first reordered, in `kernel_memory().tiles`.
template <class T>
ChannelLanes<T> channel_lanes(TermPlan& made, const ChannelWeights<T>& w, const T* bias, std::int64_t N,
                              std::int64_t positions) {
  if (made.plan.passes.size() != 1 || w.terms * positions == 0) return {};
  const ConvolutionPass& pass = made.plan.passes[0];
  if (pass.step != 1 || static_cast<std::int64_t>(pass.taps.size()) != made.key.geometry.taps()) return {};
  const std::int64_t columns = w.columns(), here = 16 * N * positions * columns;
  const std::int64_t there = 15 * N * static_cast<std::int64_t>(pass.packets.size()) * w.lanes() * w.channels;
  if (here >= there) return {};
  const T* weights = w.kept();
  if (!weights && here + 256 * columns >= there) return {};
  const std::int64_t own = weights ? 0 : w.elements();
  T* const memory = kernel_memory().tiles.get<T>(static_cast<std::size_t>(own + w.groups * columns));
  if (!weights) w.write(memory);
  ChannelLanes<T> c{columns, &made.channels(), w.terms, weights ? weights : memory, nullptr};
  if (!bias) return c;
  T* padded = memory + own;
  c.bias = padded;
  for (std::int64_t group = 0; group < w.groups; ++group, bias += w.channels, padded += columns)
    std::fill(std::copy_n(bias, w.channels, padded), padded + columns, T(0));
  return c;
}

/// All passes of all groups of all images: `from` and `to` hold a number of channels in a group, and of elements in
/// each.
template <class T>
struct Products {
  const ConvolutionPlan& plan;
  std::span<const WeightedPass<T>> passes;
  std::int64_t N, groups;
  const T* from;
  std::int64_t from_channels, from_elements;
  const T* bias;
  T* to;
  std::int64_t to_channels, to_elements;
  PlanePass plane;
  const T* plane_weights;  ///< [groups, taps]
  LinePass line;
  std::int64_t height, width;  ///< extents of the results
  ChannelLanes<T> channels;

  void run(std::int64_t multiply_adds) const {
    const std::int64_t most = channels.columns != 0 ? packets_of_channels() : to_channels / 8;
    const std::int64_t parts = plane.taps != 0 ? 1 : parts_of(N * groups, most, multiply_adds);
    const std::int64_t all = N * groups * parts;
    const bool alone = thread_count() == 1 || multiply_adds < kWorthSharing;
    const std::int64_t shares = alone ? 1 : std::min<std::int64_t>(all, 4 * thread_count());
    share(shares, multiply_adds, [&](std::int64_t i) {
      if (plane.taps != 0) return planes(all * i / shares, all * (i + 1) / shares);
      const Images<T> images(image(), from_channels, from_elements, parts == 1 ? Images<T>::kMostSlots : 1);
      images.each(
          all * i / shares, all * (i + 1) / shares,
          [&](std::int64_t at) { return from + at / parts * from_channels * from_elements; },
          [&](std::int64_t at, const T* image) { part(at / parts, at % parts, parts, image); });
    });
  }

 private:
  const ImagePlan& image() const {
    if (line.taps != 0) return as_it_stands;
    return channels.columns != 0 ? channels.plan->image : plan.image;
  }

  /// Computes the rows of one part of one image and group.
  void part(std::int64_t image_and_group, std::int64_t part, std::int64_t parts, const T* image) const {
    const std::int64_t group = image_and_group % groups;
    if (line.taps != 0) return whole_line(image_and_group, group, image);
    if (channels.columns != 0) return by_channels(image_and_group, part, parts, image);
    const std::int64_t first = to_channels * part / parts, last = to_channels * (part + 1) / parts;
    for (const WeightedPass<T>& w : passes) {
      const auto terms = std::ssize(w.terms->offsets);
      convolution_kernels_for<T>().forward({.rows = last - first,
                                            .blocks = std::ssize(w.terms->ends),
                                            .ends = w.terms->ends.data(),
                                            .weights = w.weights + (group * to_channels + first) * terms,
                                            .weights_row = terms,
                                            .image = image,
                                            .offsets = w.terms->offsets.data(),
                                            .packets = w.pass->packets.data(),
                                            .count = static_cast<std::int64_t>(w.pass->packets.size()),
                                            .segments = w.pass->segments.data(),
                                            .bias = bias ? bias + group * to_channels + first : nullptr,
                                            .out = to + (image_and_group * to_channels + first) * to_elements,
                                            .out_row = to_elements,
                                            .out_step = w.pass->step});
    }
  }

  std::int64_t packets_of_channels() const { return channels.columns / convolution_kernels_for<T>().lanes; }

  void by_channels(std::int64_t image_and_group, std::int64_t part, std::int64_t parts, const T* image) const {
    const std::int64_t lanes = convolution_kernels_for<T>().lanes, group = image_and_group % groups;
    const std::int64_t first = packets_of_channels() * part / parts * lanes;
    const std::int64_t last = packets_of_channels() * (part + 1) / parts * lanes;
    T* const turned = kernel_memory().rows.get<T>(static_cast<std::size_t>(to_elements * (last - first)));
    const std::int64_t terms = channels.terms;
    for (const ChannelClass& of : channels.plan->classes)
      convolution_kernels_for<T>().channels(
          {.terms = terms,
           .ends = of.ends.data(),
           .met = of.met.data(),
           .image = image,
           .positions = std::ssize(of.places),
           .places = of.places.data(),
           .results = of.results.data(),
           .weights = channels.weights + (group * channels.columns + first) * terms,
           .columns = last - first,
           .bias = channels.bias ? channels.bias + group * channels.columns + first : nullptr,
           .out = turned});
    convolution_kernels_for<T>().transpose(turned, last - first, to_elements, std::min(to_channels, last) - first,
                                           to + (image_and_group * to_channels + first) * to_elements, to_elements,
                                           to_elements);
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

  /// Computes images and groups [at, end), as many at a time as share an image.
  void planes(std::int64_t at, std::int64_t end) const {
    const bool reversed = plane.row < 0;
    while (at < end) {
      const std::int64_t group = at % groups, n = std::min(end - at, groups - group);
      const T* const weights = plane_weights + group * plane.taps * plane.taps;
      if (plane.spread) {
        convolution_kernels_for<T>().spread(plane.taps, {.planes = n,
                                                         .weights = weights,
                                                         .y = from + at * from_elements,
                                                         .y_step = from_elements,
                                                         .y_height = from_elements / plane.width,
                                                         .y_width = plane.width,
                                                         .rows_before = plane.rows_before,
                                                         .columns_before = plane.columns_before,
                                                         .height = height,
                                                         .width = width,
                                                         .bias = bias ? bias + group : nullptr,
                                                         .out = to + at * to_elements,
                                                         .out_step = to_elements});
        at += n;
        continue;
      }
      convolution_kernels_for<T>().planes(plane.taps,
                                          {.planes = n,
                                           .weights = weights,
                                           .source = source_of(plane, from + at * from_elements),
                                           .x_step = from_elements,
                                           .height = height,
                                           .width = width,
                                           .bias = bias ? bias + group : nullptr,
                                           .out = to + at * to_elements + (reversed ? (height - 1) * width : 0),
                                           .out_step = to_elements,
                                           .out_row = reversed ? -width : width});
      at += n;
    }
  }
};

/// Returns whether the work that the parts of a plan save for N images exceeds the cost of copying weights for them and
/// of more tiles.
bool parts_pay(const ConvolutionPlan& plan, std::int64_t N, std::int64_t channels) {
  constexpr std::int64_t kTile = 24;  // cost of a row of an additional tile, in multiply-adds of packets
  std::int64_t left_out = 0, copied = 0;
  for (const ConvolutionPass& part : plan.parts) {
    const auto met = std::ssize(part.taps);
    if (met == part.whole) continue;
    left_out += N * (std::ssize(part.packets) * (part.whole - met) * channels - kTile);
    copied += met * channels;
  }
  return left_out > 2 * copied;
}

/// Copies the weights [rows, all taps] for a part [rows, its taps]; returns their end.
template <class T>
T* weights_of_part(const T* w, std::int64_t rows, const ConvolutionPass& part, T* to) {
  for (; rows > 0; --rows, w += part.whole)
    for (const std::int64_t k : part.indices) *to++ = w[k];
  return to;
}

template <class T>
void convolve(const Tensor& x, const Tensor& w, const Tensor* bias, Tensor& y, const WindowGeometry& g,
              std::int64_t groups) {
  const Extents e = extents_of(x, y, groups);
  std::unique_ptr<TermPlan> own;
  TermPlan& made = planned({g, convolution_kernels_for<T>().lanes, e.inner, false}, own);
  const ConvolutionPlan& plan = made.plan;
  const WeightedPass<T> pass{&plan.passes[0], &made.terms[0], w.data<T>()};
  Products<T> products{.plan = plan,
                       .passes = {&pass, 1},
                       .N = e.N,
                       .groups = groups,
                       .from = x.data<T>(),
                       .from_channels = e.inner,
                       .from_elements = g.large(),
                       .bias = bias ? bias->data<T>() : nullptr,
                       .to = Writer::data<T>(y),
                       .to_channels = e.outer,
                       .to_elements = g.small(),
                       .plane = is_depthwise(e) ? plane_of(g, false) : PlanePass{},
                       .plane_weights = w.data<T>(),
                       .line = is_depthwise(e) ? line_of(g, false, shortest_line<T>()) : LinePass{},
                       .height = g.axis[1].small,
                       .width = g.axis[2].small,
                       .channels = {}};
  products.channels =
      channel_lanes(made, ChannelWeights<T>{w, groups, e.outer, e.inner * g.taps(), 1}, products.bias, e.N, g.small());
  auto& passes = kept_for_calls<std::vector<WeightedPass<T>>>();  // reuses its memory
  passes.clear();
  if (products.channels.columns == 0 && parts_pay(plan, e.N, e.inner)) {
    T* to = kernel_memory().tiles.get<T>(static_cast<std::size_t>(w.numel() * std::ssize(plan.parts)));
    for (std::size_t i = 0; i < plan.parts.size(); ++i) {
      const ConvolutionPass& part = plan.parts[i];
      const bool all = std::ssize(part.taps) == part.whole;
      passes.push_back({&part, &made.part_terms[i], all ? w.data<T>() : to});
      if (!all) to = weights_of_part(w.data<T>(), groups * e.outer * e.inner, part, to);
    }
    products.passes = passes;
  }
  products.run(y.numel() * e.inner * g.taps());
}

/// Copies the weights w [groups outer, inner, all taps] for a pass from the small side: [groups inner, outer, taps].
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
  std::unique_ptr<TermPlan> own;
  TermPlan& made = planned({g, convolution_kernels_for<T>().lanes, e.outer, true}, own);
  const ConvolutionPlan& plan = made.plan;
  auto& passes = kept_for_calls<std::vector<WeightedPass<T>>>();  // reuses its memory
  passes.clear();
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
                       .plane = is_depthwise(e) ? plane_of(g, true) : PlanePass{},
                       .plane_weights = w.data<T>(),
                       .line = is_depthwise(e) ? line_of(g, true, shortest_line<T>()) : LinePass{},
                       .height = g.axis[1].large,
                       .width = g.axis[2].large,
                       .channels = {}};
  products.channels = channel_lanes(made, ChannelWeights<T>{w, groups, e.inner, e.outer * g.taps(), e.outer},
                                    products.bias, e.N, g.large());
  if (products.channels.columns == 0) {  // in memory that the shares do not use
    const bool in_parts = parts_pay(plan, e.N, e.outer);
    const std::vector<ConvolutionPass>& all = in_parts ? plan.parts : plan.passes;
    const std::vector<PassTerms>& terms = in_parts ? made.part_terms : made.terms;
    std::int64_t taps = 0;
    for (const ConvolutionPass& pass : all) taps += std::ssize(pass.taps);
    T* to = kernel_memory().tiles.get<T>(static_cast<std::size_t>(groups * e.inner * e.outer * taps));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const ConvolutionPass& pass = all[i];
      passes.push_back({&pass, &terms[i], to});
      weights_of_pass(w.data<T>(), e, g.taps(), pass.taps, to);
      to += groups * e.inner * e.outer * static_cast<std::int64_t>(pass.taps.size());
    }
  }
  products.passes = passes;
  products.run(y.numel() * e.inner * g.taps());
}

}  // namespace

void run_convolution(const Tensor& x, const Tensor& w, const Tensor* bias, Tensor& y, const WindowGeometry& g,
                     std::int64_t groups) {
  if (y.numel() == 0) return;
  if (y.dtype() == Dtype::f32) return convolve<float>(x, w, bias, y, flattened(g), groups);
  convolve<double>(x, w, bias, y, flattened(g), groups);
}

void run_transposed(const Tensor& y, const Tensor& w, const Tensor* bias, Tensor& x, const WindowGeometry& g,
                    std::int64_t groups) {
  if (x.numel() == 0) return;
  if (x.dtype() == Dtype::f32) return convolve_transposed<float>(y, w, bias, x, flattened(g), groups);
  convolve_transposed<double>(y, w, bias, x, flattened(g), groups);
}

// ---- gradients of weights: lanes along their rows, or along positions where rows are few ------------------

namespace {

/// Computes the gradient of the weights of some channels of a group.
template <class T>
class WeightGradient {
 public:
  WeightGradient(const Tensor& x, const Tensor& y, Tensor& w, const WindowGeometry& g, std::int64_t groups)
      : g_(g),
        e_(extents_of(x, y, groups)),
        made_(planned({g, convolution_kernels_for<T>().lanes, e_.inner, false}, own_)),
        plan_(made_.plan),
        x_(x.data<T>()),
        y_(y.data<T>()),
        w_(Writer::data<T>(w)),
        multiply_adds_(y.numel() * e_.inner * g.taps()),
        width_(convolution_kernels_for<T>().lanes),
        by_positions_(4 * e_.outer < kReductionLanes<T>) {
    const std::int64_t packets = (g.axis[2].small + kReductionLanes<T> - 1) / kReductionLanes<T>;
    if (by_positions_ && is_depthwise(e_) && g.axis[1].small * packets <= kBlockK && packets <= kMostPlanePackets)
      plane_ = plane_of(g, false);
    if (by_positions_) {
      const std::int64_t rows = g.axis[0].small * g.axis[1].small;
      for (std::int64_t r = 0; r < rows; ++r)
        rows_.push_back(
            {r / g.axis[1].small * plan_.image.plane + r % g.axis[1].small * plan_.image.row, r * g.axis[2].small});
    } else {
      places_ = made_.places();
      spans_ = tap_spans(g);
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
  /// Processes groups of one channel on both sides, image by image in the order of memory.
  void depthwise(std::int64_t first, std::int64_t last) const {
    const std::int64_t taps = g_.taps();
    if (plane_.taps != 0) return planes(first, last);
    T* const lanes = cleared((last - first) * taps * kReductionLanes<T>);
    const Images<T> images(plan_.image, 1, g_.large(), Images<T>::kMostSlots);
    for (std::int64_t n = 0; n < e_.N; ++n)
      images.each(
          first, last, [&](std::int64_t group) { return x_ + (n * e_.groups + group) * g_.large(); },
          [&](std::int64_t group, const T* image) {
            dots(image, taps, y_ + (n * e_.groups + group) * g_.small(),
                 lanes + (group - first) * taps * kReductionLanes<T>);
          });
    convolution_kernels_for<T>().sum_lanes(lanes, (last - first) * taps, w_ + first * taps);
  }

  /// Returns n zeros.
  T* cleared(std::int64_t n) const {
    T* const memory = kernel_memory().tiles.get<T>(static_cast<std::size_t>(n));
    std::fill_n(memory, n, T(0));
    return memory;
  }

  void planes(std::int64_t first, std::int64_t last) const {
    convolution_kernels_for<T>().plane_dots(plane_.taps, {.images = e_.N,
                                                          .planes = last - first,
                                                          .source = source_of(plane_, x_ + first * g_.large()),
                                                          .x_image = e_.groups * g_.large(),
                                                          .x_step = g_.large(),
                                                          .height = g_.axis[1].small,
                                                          .width = g_.axis[2].small,
                                                          .g = y_ + first * g_.small(),
                                                          .g_image = e_.groups * g_.small(),
                                                          .g_step = g_.small(),
                                                          .totals = w_ + first * g_.taps()});
  }

  /// Processes one image with lanes along positions.
  void dots(const T* image, std::int64_t terms, const T* y, T* lanes) const {
    convolution_kernels_for<T>().dots({.terms = terms,
                                       .offsets = made_.terms[0].offsets.data(),
                                       .image = image,
                                       .length = g_.axis[2].small,
                                       .count = static_cast<std::int64_t>(rows_.size()),
                                       .position_rows = rows_.data(),
                                       .rows = e_.outer,
                                       .g = y,
                                       .g_row = g_.small(),
                                       .lanes = lanes});
  }

  void channels(std::int64_t group, std::int64_t first, std::int64_t last) const {
    const std::int64_t taps = g_.taps(), terms = (last - first) * taps;
    const std::int64_t columns = (e_.outer + width_ - 1) / width_ * width_;
    const std::int64_t row = e_.inner * taps;
    T* const totals = cleared(by_positions_ ? e_.outer * terms * kReductionLanes<T> : columns * terms);
    T* const to = w_ + (group * e_.outer * e_.inner + first) * taps;
    const Images<T> images(plan_.image, last - first, g_.large(), std::min(e_.N, Images<T>::kMostSlots));
    const auto from = [&](std::int64_t n) { return x_ + ((n * e_.groups + group) * e_.inner + first) * g_.large(); };
    images.each(0, e_.N, from, [&](std::int64_t n, const T* image) {
      const T* const y = y_ + (n * e_.groups + group) * e_.outer * g_.small();
      if (by_positions_) {
        dots(image, terms, y, totals);
      } else {
        blocks(image, y, last - first, columns, totals);
      }
    });
    if (!by_positions_) return convolution_kernels_for<T>().transpose(totals, columns, terms, e_.outer, to, row, terms);
    for (std::int64_t o = 0; o < e_.outer; ++o)
      convolution_kernels_for<T>().sum_lanes(totals + o * terms * kReductionLanes<T>, terms, to + o * row);
  }

  /// Processes one image in blocks of 256 positions.
  void blocks(const T* image, const T* y, std::int64_t channels, std::int64_t columns, T* totals) const {
    T* const block = kernel_memory().rows.get<T>(static_cast<std::size_t>(kBlockK * columns));
    for (std::int64_t p = 0; p < g_.small(); p += kBlockK) {
      const std::int64_t n = std::min(kBlockK, g_.small() - p);
      convolution_kernels_for<T>().transpose(y + p, g_.small(), e_.outer, n, block, columns, columns);
      convolution_kernels_for<T>().weights({.channels = channels,
                                            .taps = g_.taps(),
                                            .offsets = made_.terms[0].offsets.data(),
                                            .spans = spans_.data(),
                                            .image = image,
                                            .begin = p,
                                            .positions = n,
                                            .height = g_.axis[1].small,
                                            .width = g_.axis[2].small,
                                            .places = places_.data() + p,
                                            .g = block,
                                            .columns = columns,
                                            .totals = totals});
    }
  }

  const WindowGeometry g_;
  const Extents e_;
  std::unique_ptr<TermPlan> own_;
  TermPlan& made_;
  const ConvolutionPlan& plan_;
  const T* x_;
  const T* y_;
  T* w_;
  std::int64_t multiply_adds_;
  std::int64_t width_;  ///< lanes of a packet
  bool by_positions_;   ///< few rows of weights, so lanes run along positions
  PlanePass plane_;     ///< set where lanes run along positions and planes apply
  std::vector<PositionRow> rows_;
  std::span<const std::int64_t> places_;
  std::vector<TapSpan> spans_;
};

}  // namespace

void run_weight_gradient(const Tensor& x, const Tensor& y, Tensor& w, const WindowGeometry& g, std::int64_t groups) {
  if (w.numel() == 0) return;
  if (w.dtype() == Dtype::f32) return WeightGradient<float>(x, y, w, flattened(g), groups).run();
  WeightGradient<double>(x, y, w, flattened(g), groups).run();
}

}  // namespace ferrite::detail
