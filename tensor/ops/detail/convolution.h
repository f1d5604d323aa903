#pragma once
/// Convolutions: their operations, the geometry of windows, plans, and the functions that run plans.
#include <memory>
#include <vector>

#include "ferrite/tensor/kernel/convolution.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/shape.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::detail {

// ---- the three operations, each of which is a gradient of the others --------------------------------------

/// Convolves x with w: x [N, C, large...], w [O, C / groups, kernel...], bias [O] or none -> [N, O, size...].
Tensor convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvolutionAttrs& attrs);
/// Returns the adjoint of convolution: y [N, O, small...], w [O, C / groups, kernel...], bias [C] or none ->
/// [N, C, size...].
Tensor convolution_transposed(const Tensor& y, const Tensor& w, const Tensor& bias, const ConvolutionAttrs& attrs);
/// Returns the gradient of the weights: x [N, C, large...], y [N, O, small...] -> [O, C / groups, size...].
Tensor convolution_weights(const Tensor& x, const Tensor& y, const ConvolutionAttrs& attrs);

// ---- plans: where products read and write -----------------------------------------------------------------
// Plans hold images of the operand, offsets of the taps in them, and packets of positions.

/// One axis of a convolution: position i of the small side meets position i * stride + tap * dilation - before of the
/// large side; positions that this side does not have count as zeros.
struct WindowAxis {
  std::int64_t large = 1, small = 1, kernel = 1, stride = 1, before = 0, dilation = 1;
  bool operator==(const WindowAxis&) const = default;
};
/// The three axes of a convolution: depth, height and width. Missing axes have extent 1.
struct WindowGeometry {
  WindowAxis axis[3];

  bool operator==(const WindowGeometry&) const = default;
  std::int64_t taps() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
  std::int64_t large() const { return axis[0].large * axis[1].large * axis[2].large; }
  std::int64_t small() const { return axis[0].small * axis[1].small * axis[2].small; }
};

/// The images of one channel, one for each phase of the strides, stored consecutively; or the operand itself, in place.
struct ImagePlan {
  std::vector<ImageAxes> phases;  ///< empty: the operand is read in place
  std::int64_t volume = 0;        ///< elements of a phase
  std::int64_t plane = 0, row = 0;
  std::int64_t channel = 0;  ///< distance from channel to channel
};

/// A set of results that read the same taps.
struct ConvolutionPass {
  std::vector<std::int64_t> taps;     ///< numbers of the taps, ascending
  std::vector<std::int64_t> indices;  ///< of the taps among `whole`, which are all that a position may meet here
  std::int64_t whole = 0;
  std::vector<std::int64_t> offsets;  ///< offset of each tap in a channel's images
  std::vector<PacketPlace> packets;
  std::vector<PacketSegment> segments;
  std::int64_t step = 1;  ///< distance from lane to lane of the results
};

struct ConvolutionPlan {
  ImagePlan image;
  std::vector<ConvolutionPass> passes;
  /// Passes with the same results, split by rows that meet the same rows of taps, where the others read padding; or
  /// empty.
  std::vector<ConvolutionPass> parts;
};

/// All terms of a pass: their offsets, and the ends of their blocks, as in WindowProduct.
struct PassTerms {
  std::vector<std::int64_t> offsets, ends;
};

/// Plans a convolution from the large side to the small one: one pass. `lanes` is the number of lanes of a packet.
ConvolutionPlan plan_convolution(const WindowGeometry& g, std::int64_t lanes);
/// Plans the adjoint, from the small side to the large one: one pass for each phase of the strides.
ConvolutionPlan plan_transposed(const WindowGeometry& g, std::int64_t lanes);

/// The properties that determine a plan.
struct PlanKey {
  WindowGeometry geometry;
  std::int64_t lanes = 1;
  std::int64_t channels = 1;  ///< channels of a group, on the side that is read
  bool transposed = false;
  bool operator==(const PlanKey&) const = default;
};

/// Positions of the results that meet the same terms, and these terms, as in ChannelProduct.
struct ChannelClass {
  std::vector<std::int64_t> places, results;
  std::vector<MetTerm> met;
  std::vector<std::int64_t> ends;
};
/// The operand of products with lanes along channels: one image, in which strides are steps from place to place.
struct ChannelPlan {
  ImagePlan image;
  std::vector<ChannelClass> classes;
};

/// A plan, with the terms that follow from it and from the number of channels.
struct TermPlan {
  PlanKey key;
  ConvolutionPlan plan;
  std::vector<PassTerms> terms;       ///< one entry for each pass
  std::vector<PassTerms> part_terms;  ///< one entry for each part

  explicit TermPlan(const PlanKey& k);
  /// Returns the plan for lanes along channels, for a plan with one pass that gives all results. Made on first use.
  const ChannelPlan& channels();
  /// Returns the places of all positions of the small side, for a plan from the large side. Made on first use.
  const std::vector<std::int64_t>& places();
  /// Returns the approximate size of the plan in bytes, including that of the channels.
  std::size_t bytes() const;

 private:
  std::int64_t positions() const { return key.transposed ? key.geometry.large() : key.geometry.small(); }

  std::unique_ptr<ChannelPlan> channels_;
  std::vector<std::int64_t> places_;
};

/// Returns the plan for the key: one that this thread has made before and kept, since steps of streams ask for the same
/// plan repeatedly, else a new one. Of the last kPlansKept plans, those of up to kLargestKept bytes are kept; a larger
/// one belongs to the caller, in `own`. Valid until this thread asks for another.
TermPlan& planned(const PlanKey& key, std::unique_ptr<TermPlan>& own);
inline constexpr std::size_t kPlansKept = 32, kLargestKept = std::size_t{128} << 10;

/// How one channel on both sides of a group is computed by planes, as PlaneSource describes.
struct PlanePass {
  std::int64_t taps = 0;  ///< number of rows and of columns of taps; 0: not applicable
  std::int64_t stride = 1, start = 0, row = 0, first = 0, last = 0, width = 0;
  std::int64_t columns[5] = {};
  bool spread = false;  ///< as PlaneSpread, which needs only `taps` and the members below
  std::int64_t rows_before = 0, columns_before = 0;
};
/// Returns the plane pass for results of the small side, or with `transposed` of the large one, whose rows then run
/// from the last to the first.
PlanePass plane_of(const WindowGeometry& g, bool transposed);

/// How a pass with one channel on both sides of a group is computed along lines.
struct LinePass {
  std::int64_t taps = 0;  ///< 0: not applicable
  std::int64_t offsets[kMostLineTaps] = {};
};
/// Returns the line pass for results of the small side, or with `transposed` of the large one, of at least `shortest`
/// elements.
LinePass line_of(const WindowGeometry& g, bool transposed, std::int64_t shortest);

/// Returns, for each tap, the positions of the small side at which it meets an existing position of the large side.
std::vector<TapSpan> tap_spans(const WindowGeometry& g);

// ---- running, on row-major tensors of floats --------------------------------------------------------------

/// Computes y [N, O, small] = w [O, I, taps] over x [N, groups I, large], plus bias [O] unless it is null.
void run_convolution(const Tensor& x, const Tensor& w, const Tensor* bias, Tensor& y, const WindowGeometry& g,
                     std::int64_t groups);
/// Computes x [N, groups I, large] from y [N, O, small], plus bias [groups I] unless it is null: the adjoint.
void run_transposed(const Tensor& y, const Tensor& w, const Tensor* bias, Tensor& x, const WindowGeometry& g,
                    std::int64_t groups);
/// Computes w [O, I, taps] as the sums over N and all positions of y times the elements of x that each tap reads.
void run_weight_gradient(const Tensor& x, const Tensor& y, Tensor& w, const WindowGeometry& g, std::int64_t groups);

}  // namespace ferrite::detail
