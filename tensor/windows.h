#pragma once
/// Windows on tensors: padding with a tensor's own elements, patches as an axis and their sums, channels and pixels.
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// The padding around a tensor: zeros, its elements mirrored at the first and the last one, which are not repeated
/// (c b | a b c | b a), the first and the last one repeated (a a | a b c | c c), or its other end (b c | a b c | a b).
enum class PaddingMode : std::uint8_t { zeros, reflect, replicate, circular };

/// Adds before[i] and after[i] elements around axis i, by torch.nn.functional.pad's modes. Any dtype but storage types.
/// Throws ShapeError unless `before` and `after` have x's rank, ValueError for negative amounts, and ShapeError for
/// more than the mode allows: reflect below the extent, circular up to it, replicate any number on an axis that is not
/// empty.
Tensor pad(const Tensor& x, const Shape& before, const Shape& after, PaddingMode mode);

/// Returns windows of `size` elements along an axis, `step` apart, as a view: torch.Tensor.unfold. The axis gets
/// (n - size) / step + 1 of them; their elements are a new last axis. Throws ShapeError where the axis has fewer
/// elements, ValueError for a size or step below 1.
Tensor unfold(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step);

/// Options of `unfold` and `fold`: where the patches lie. Shapes hold one number for each spatial axis, or one for all;
/// an empty shape is the default.
struct UnfoldOptions {
  Shape stride{};    ///< default 1 on every axis
  Shape padding{};   ///< default 0 on every axis: zeros around x
  Shape dilation{};  ///< default 1 on every axis
};
/// Returns patches as columns, torch.nn.functional.unfold: x [N, C, ...] with one, two or three spatial axes ->
/// [N, C K, L], the K elements of the kernel, row-major, at L positions, row-major, as those of a convolution. `kernel`
/// has one number for each spatial axis. Floats. Throws ShapeError for other ranks and where no window fits, ValueError
/// for numbers that are too small, DtypeError for other dtypes.
Tensor unfold(const Tensor& x, const Shape& kernel, const UnfoldOptions& options = {});
/// Returns an image to which columns x [N, C K, L] are added at the places that `unfold` takes them from: the adjoint
/// of `unfold`, torch.nn.functional.fold -> [N, C, size...]. Throws ShapeError for columns that do not fit `size` and
/// the kernel.
Tensor fold(const Tensor& x, const Shape& size, const Shape& kernel, const UnfoldOptions& options = {});

/// Rearranges channels as blocks of pixels, torch.nn.functional.pixel_shuffle: x [..., C r^2, H, W] ->
/// [..., C, H r, W r], of any dtype. Throws ShapeError for a rank below 3, ValueError for a factor below 1 or one whose
/// square does not divide the channels.
Tensor pixel_shuffle(const Tensor& x, std::int64_t factor);
/// Undoes pixel_shuffle: x [..., C, H r, W r] -> [..., C r^2, H, W]. Throws ValueError for a factor that does not
/// divide H and W.
Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor);
/// Reorders channels: channel g K + k of `groups` groups of K becomes channel k groups + g, x [N, C, ...]. Throws
/// ShapeError for a rank below 3, ValueError for groups that do not divide C.
Tensor channel_shuffle(const Tensor& x, std::int64_t groups);

/// The rule by which `interpolate` computes values between elements: the element below (nearest), the nearest one
/// (nearest_exact), lines or cubics (a = -0.75) along each axis, or means of adaptive windows (area).
enum class Interpolation : std::uint8_t { nearest, nearest_exact, linear, cubic, area };
/// Options of `interpolate`: either a size or scale factors, not both, and the rule.
struct InterpolateOptions {
  Shape size{};                        ///< extents of the spatial axes: one number for all or one for each
  std::vector<double> scale_factor{};  ///< factors of the extents, products rounded down: one for all or one for each
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;           ///< linear and cubic: whether the first and last elements stay in place
  bool recompute_scale_factor = false;  ///< whether places follow from the rounded extents, not from scale_factor
};
/// Resizes the spatial axes of x [N, C, ...], one, two or three of them (cubic: two), as
/// torch.nn.functional.interpolate: linear is its linear, bilinear and trilinear, cubic its bicubic. Floats. Axis by
/// axis, the last one first. Throws ShapeError for other ranks, empty axes and numbers of the wrong count, ValueError
/// unless size or scale_factor is given, for numbers that are not positive, and for align_corners with a mode that does
/// not support it.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

}  // namespace ferrite
