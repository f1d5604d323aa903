#pragma once
/// The constants of operations on windows that exporters also read.
#include "ferrite/tensor/attrs.h"

namespace ferrite::detail {

/// Constants of convolutions: position i of the small side meets position i * stride + tap * dilation - before of the
/// large side. `size` is the extents of the result on the spatial axes: of the small side for `convolution`, of the
/// large one for `convolution_transposed`, of the kernel for `convolution_weights`.
struct ConvolutionAttrs {
  Shape stride{}, before{}, dilation{}, size{};
  std::int64_t groups = 1;
  static constexpr auto fields =
      attr_list(attr("stride", &ConvolutionAttrs::stride), attr("before", &ConvolutionAttrs::before),
                attr("dilation", &ConvolutionAttrs::dilation), attr("size", &ConvolutionAttrs::size),
                attr("groups", &ConvolutionAttrs::groups));
};

/// Constants of pooling: windows over the spatial axes, `size` of them on each. Window i holds the elements i * stride
/// + tap * dilation - before that exist; adaptive ones hold [floor(i n / size), ceil((i + 1) n / size)) of n elements.
struct PoolAttrs {
  Shape kernel{}, stride{}, before{}, dilation{}, size{};
  bool adaptive = false;
  Shape space{};  ///< extents of the result of `pool_spread`
  static constexpr auto fields = attr_list(attr("kernel", &PoolAttrs::kernel), attr("stride", &PoolAttrs::stride),
                                           attr("before", &PoolAttrs::before), attr("dilation", &PoolAttrs::dilation),
                                           attr("size", &PoolAttrs::size), attr("adaptive", &PoolAttrs::adaptive),
                                           attr("space", &PoolAttrs::space));
};

/// Constants of `avg_pool` and `lp_pool`. A sum is divided by `divisor`; where that is 0, by the number of elements,
/// with `include_pad` including those up to `before` elements beyond either end.
struct AveragePoolAttrs {
  Shape kernel{}, stride{}, before{}, size{};
  bool adaptive = false, include_pad = true;
  std::int64_t divisor = 0;
  double norm = 1;
  static constexpr auto fields =
      attr_list(attr("kernel", &AveragePoolAttrs::kernel), attr("stride", &AveragePoolAttrs::stride),
                attr("before", &AveragePoolAttrs::before), attr("size", &AveragePoolAttrs::size),
                attr("adaptive", &AveragePoolAttrs::adaptive), attr("include_pad", &AveragePoolAttrs::include_pad),
                attr("divisor", &AveragePoolAttrs::divisor), attr("norm", &AveragePoolAttrs::norm));
};

/// Constants of `plane_scatter`: the extents of the planes. `known`: the indices come from the library and are inside.
/// `add`: elements at one index are added; else the last one stays.
struct PlaneAttrs {
  Shape size{};
  bool add = true, known = false;
  static constexpr auto fields =
      attr_list(attr("size", &PlaneAttrs::size), attr("add", &PlaneAttrs::add), attr("known", &PlaneAttrs::known));
};

/// Constants of `unfold_windows` and `fold_windows`: windows like those of `pool_sum`; `space` is the extents that they
/// cover.
struct UnfoldAttrs {
  Shape kernel{}, stride{}, before{}, dilation{}, size{}, space{};
  static constexpr auto fields = attr_list(
      attr("kernel", &UnfoldAttrs::kernel), attr("stride", &UnfoldAttrs::stride), attr("before", &UnfoldAttrs::before),
      attr("dilation", &UnfoldAttrs::dilation), attr("size", &UnfoldAttrs::size), attr("space", &UnfoldAttrs::space));
};

/// Constants of `unfold_axis`: windows of `window` elements, `step` apart.
struct UnfoldAxisAttrs {
  int axis = 0;
  std::int64_t window = 1, step = 1;
  static constexpr auto fields =
      attr_list(attr("axis", &UnfoldAxisAttrs::axis), attr("window", &UnfoldAxisAttrs::window),
                attr("step", &UnfoldAxisAttrs::step));
};

/// Constants of `resample` and its gradient: an axis of `from` elements is read at `to` places. Mode 0 nearest, 1
/// nearest-exact, 2 linear, 3 cubic; `scale`: places are 1 / scale apart; 0: from / to.
struct ResampleAttrs {
  int axis = 0;
  std::int64_t from = 1, to = 1;
  int mode = 0;
  bool align_corners = false;
  double scale = 0;
  static constexpr auto fields =
      attr_list(attr("axis", &ResampleAttrs::axis), attr("from", &ResampleAttrs::from), attr("to", &ResampleAttrs::to),
                attr("mode", &ResampleAttrs::mode), attr("align_corners", &ResampleAttrs::align_corners),
                attr("scale", &ResampleAttrs::scale));
};
/// The elements that one place of `resample` reads, each with its weight.
struct ResampleTaps {
  static constexpr int kMost = 4;
  int count = 1;
  std::int64_t at[kMost] = {};
  double weight[kMost] = {1};
};
ResampleTaps resample_taps(const ResampleAttrs& a, std::int64_t place);

}  // namespace ferrite::detail
