#pragma once
/// Windows on tensors: padding with what a tensor holds, patches as an axis and their sums, channels and pixels.
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// What stands around a tensor: zeros, its elements mirrored at the first and the last one, which are not repeated
/// (c b | a b c | b a), the first and the last one again (a a | a b c | c c), or its other end (b c | a b c | a b).
enum class PaddingMode : std::uint8_t { zeros, reflect, replicate, circular };

/// Adds before[i] and after[i] elements around axis i, by torch.nn.functional.pad's modes. Any dtype but those that are
/// only stored. Throws ShapeError unless `before` and `after` have x's rank, ValueError for negative amounts, and
/// ShapeError for more than the mode has: reflect below the extent, circular up to it, replicate any of an axis that is
/// not empty.
Tensor pad(const Tensor& x, const Shape& before, const Shape& after, PaddingMode mode);

/// Windows of `size` elements along an axis, `step` apart, as a view: torch.Tensor.unfold. The axis gets
/// (n - size) / step + 1 of them; their elements are a new last axis. Throws ShapeError where the axis has fewer
/// elements, ValueError for a size or step below 1.
Tensor unfold(const Tensor& x, std::int64_t axis, std::int64_t size, std::int64_t step);

/// Shapes hold one number for each axis of space, or one for all; an empty one is the default.
struct UnfoldOptions {
  Shape stride{};    ///< 1
  Shape padding{};   ///< 0: zeros around
  Shape dilation{};  ///< 1
};
/// Patches as columns, torch.nn.functional.unfold: x [N, C, ...] with one, two or three axes of space -> [N, C K, L], K
/// elements of the kernel, row-major, in L positions, row-major, as those of a convolution. `kernel` has one number for
/// each axis of space. Floats. Throws ShapeError for other ranks and where no window fits, ValueError for numbers that
/// are too small, DtypeError for other dtypes.
Tensor unfold(const Tensor& x, const Shape& kernel, const UnfoldOptions& options = {});
/// The adjoint: columns [N, C K, L] added up where they come from, torch.nn.functional.fold -> [N, C, size...]. Throws
/// ShapeError for columns that do not fit `size` and the kernel.
Tensor fold(const Tensor& x, const Shape& size, const Shape& kernel, const UnfoldOptions& options = {});

/// Channels as blocks of pixels, torch.nn.functional.pixel_shuffle: x [..., C r^2, H, W] -> [..., C, H r, W r], of any
/// dtype. Throws ShapeError for a rank below 3, ValueError for a factor below 1 or one whose square does not divide the
/// channels.
Tensor pixel_shuffle(const Tensor& x, std::int64_t factor);
/// Its inverse: x [..., C, H r, W r] -> [..., C r^2, H, W]. Throws ValueError for a factor that does not divide H and
/// W.
Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor);
/// Channel g K + k of `groups` groups of K becomes channel k groups + g: x [N, C, ...]. Throws ShapeError for a rank
/// below 3, ValueError for groups that do not divide C.
Tensor channel_shuffle(const Tensor& x, std::int64_t groups);

/// How values between elements come about: of the element below, the nearest one, or by lines and cubics (a = -0.75)
/// along each axis; area: means of adaptive windows.
enum class Interpolation : std::uint8_t { nearest, nearest_exact, linear, cubic, area };
struct InterpolateOptions {
  Shape size{};                        ///< of the axes of space: one number for all or one for each; or
  std::vector<double> scale_factor{};  ///< extents times this, rounded down: one number for all or one for each
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;           ///< linear and cubic: whether the first and last elements stay in place
  bool recompute_scale_factor = false;  ///< whether places lie by the rounded extents rather than by scale_factor
};
/// x [N, C, ...] with one, two or three axes of space (cubic: two) at other extents, as
/// torch.nn.functional.interpolate: linear is its linear, bilinear and trilinear, cubic its bicubic. Floats. Axis by
/// axis, the last one first. Throws ShapeError for other ranks, empty axes and numbers of the wrong count, ValueError
/// unless size or scale_factor is given, for what is not positive, and for align_corners with a mode that has none.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

}  // namespace ferrite
