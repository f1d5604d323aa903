#pragma once
/// Types shared by the kernels of convolutions and their callers: images, the packets of results that read them, and
/// the table of an instruction set.
#include <cstdint>

#include "ferrite/tensor/kernel/kernels.h"

namespace ferrite::detail {

/// An axis of an image: element q is element q * stride + shift of the operand, or zero where there is none.
struct ImageAxis {
  std::int64_t extent = 1;  ///< elements of the operand
  std::int64_t count = 1;   ///< elements of the image
  std::int64_t stride = 1;
  std::int64_t shift = 0;
};
/// An image of one channel: depth, height, width; operand and image are row-major.
struct ImageAxes {
  ImageAxis axis[3];
};

/// A part of a packet of results: lanes [begin, end) are stored at `to`, one step apart.
struct PacketSegment {
  std::int64_t to;
  std::int32_t begin, end;
};
/// One packet of results: the position of its first lane in the image, and its segments [first, last).
struct PacketPlace {
  std::int64_t from;
  std::int32_t first, last;
};

/// A product with the elements of an image: out [rows, positions] = weights [rows, terms] . image at (offset of a term
/// + position of a packet), plus the bias of the row where there is one. Every element is one ascending chain of
/// multiply-adds in blocks of 256 terms (docs/numerics.md, rule 2); terms that read padding count even where they are
/// left out: block b has the terms from ends[b - 1] to ends[b]. The image is read up to a packet past the last element
/// that counts.
template <class T>
struct WindowProduct {
  std::int64_t rows, blocks;
  const std::int64_t* ends;
  const T* weights;
  std::int64_t weights_row;
  const T* image;
  const std::int64_t* offsets;
  const PacketPlace* packets;
  std::int64_t count;
  const PacketSegment* segments;
  const T* bias;
  T* out;
  std::int64_t out_row, out_step;
};

/// A term that is met: its offset in the image, and the start of its weights in a packet of columns.
struct MetTerm {
  std::int64_t offset, weights;
};
/// A product with the elements of an image, with lanes along the channels of the results, for positions that meet the
/// same terms; terms that read padding are not met: out [., columns], rows `results` = image at (offset of a term +
/// place of a position) times weights [terms, columns], plus the bias [columns] where there is one. Block b of 256
/// terms has the met terms from ends[b - 1] to ends[b]. Columns are whole packets, and the weights blocks of one packet
/// of columns with all terms each; there is at least one term.
template <class T>
struct ChannelProduct {
  std::int64_t terms;
  const std::int64_t* ends;  ///< by block
  const MetTerm* met;
  const T* image;
  std::int64_t positions;
  const std::int64_t* places;
  const std::int64_t* results;
  const T* weights;
  std::int64_t columns;
  const T* bias;
  T* out;
};

/// The positions of an image at which a tap reads existing elements of the operand: intervals along depth, height,
/// width.
struct TapSpan {
  std::int64_t first[3], last[3];
};
/// A part of the gradient of weights: totals [channels * taps, columns] += image at (offset of a term + place of a
/// position) times g [positions, columns]: one ascending chain over at most 256 positions, those of
/// [begin, begin + positions) of a grid [., height, width] at which the tap of a term reads something. Columns are
/// whole packets; the places of a row of the grid are consecutive.
template <class T>
struct WeightProduct {
  std::int64_t channels, taps;
  const std::int64_t* offsets;
  const TapSpan* spans;  ///< [taps]
  const T* image;
  std::int64_t begin, positions;
  std::int64_t height, width;
  const std::int64_t* places;
  const T* g;
  std::int64_t columns;
  T* totals;
};

/// A row of positions: its start in the image and in g.
struct PositionRow {
  std::int64_t image, g;
};
/// A part of the gradient of weights, with lanes along the rows of positions: lanes [rows, terms, kReductionLanes] +=
/// sums over all positions of g's row times the image at the offset of a term. Each lane adds at most 256 products in
/// one chain. Image and g are read up to a packet past the last element that counts.
template <class T>
struct WeightDots {
  std::int64_t terms;
  const std::int64_t* offsets;
  const T* image;
  std::int64_t length;  ///< elements of a row of positions
  std::int64_t count;   ///< number of rows of positions
  const PositionRow* position_rows;
  std::int64_t rows;
  const T* g;
  std::int64_t g_row;
  T* lanes;
};

/// The plane that the taps of a depthwise convolution read. Row j of the results meets the rows j * stride, j * stride
/// + 1, ... of the source with the rows of taps in ascending order; the source has the rows [first, last), `row` apart,
/// which may be negative, and zeros in all others. Tap c of a row reads column columns[c] for the first column of the
/// results, and `stride` columns further for each next one. The stride is 1, or 2 with neighbouring taps.
template <class T>
struct PlaneSource {
  const T* x;  ///< start of row `first`
  std::int64_t stride;
  std::int64_t row, first, last, width;
  const std::int64_t* columns;
};
/// Planes of a depthwise convolution with K rows and columns of taps: out [height, width] each, rows `out_row` apart,
/// which may be negative. The source is that of the first plane. Nothing beyond the sources is read.
template <class T>
struct PlaneProduct {
  std::int64_t planes;
  const T* weights;  ///< [planes, K, K]
  PlaneSource<T> source;
  std::int64_t x_step;  ///< distance from plane to plane of the source
  std::int64_t height, width;
  const T* bias;  ///< [planes], or null
  T* out;
  std::int64_t out_step, out_row;
};
/// The gradient of the weights of planes: totals [planes, K, K] = the sums over images of g [height, width] times the
/// elements that the taps read. The kReductionLanes lanes run along rows of g, and each sums an image in one chain of
/// at most 256 products; then the lanes are summed in ascending order, as by WeightDots and sums of its lanes. A row
/// has at most kMostPlanePackets times as many elements as there are lanes. The source is that of the first plane.
template <class T>
struct PlaneDots {
  std::int64_t images, planes;
  PlaneSource<T> source;
  std::int64_t x_image, x_step;  ///< distances from image to image of the source, and from plane to plane
  std::int64_t height, width;
  const T* g;
  std::int64_t g_image, g_step;
  T* totals;
};
inline constexpr std::int64_t kMostPlanePackets = 16;
/// Planes of the adjoint of a depthwise convolution with stride 2 and K rows and columns of taps: out [height, width]
/// each, of which row 2 i + r - rows_before meets row i of y [y_height, y_width] under row r of taps, and similarly for
/// columns. Nothing beyond y is read.
template <class T>
struct PlaneSpread {
  std::int64_t planes;
  const T* weights;  ///< [planes, K, K]
  const T* y;
  std::int64_t y_step, y_height, y_width;
  std::int64_t rows_before, columns_before;
  std::int64_t height, width;
  const T* bias;  ///< [planes], or null
  T* out;
  std::int64_t out_step;
};
/// A line of a depthwise convolution: out [count], of which element t is the sum over the taps of weights[k] times
/// x[t + offsets[k]], in ascending order, with zeros where x [length] has no element; plus the bias.
template <class T>
struct LineProduct {
  std::int64_t taps;
  const T* weights;
  const std::int64_t* offsets;
  const T* x;
  std::int64_t length, count;
  const T* bias;  ///< one number, or null
  T* out;
};
/// The most taps that the kernel of lines takes.
inline constexpr std::int64_t kMostLineTaps = 8;

/// Returns whether the kernels of planes take this kernel: 3 x 3 or 5 x 5.
constexpr bool is_plane_kernel(std::int64_t rows, std::int64_t columns) {
  return rows == columns && (rows == 3 || rows == 5);
}

/// The kernels of convolutions that a level (level.h) has for a dtype.
template <class T>
struct ConvolutionKernels {
  std::int64_t lanes;  ///< lanes of a packet
  /// Writes the elements of channels, `step` apart, to their images, `to_step` apart; the rest of the images stays as
  /// it is. A channel is read up to a packet past its end.
  void (*place)(std::int64_t channels, const T* from, std::int64_t step, const ImageAxes& axes, T* to,
                std::int64_t to_step);
  void (*forward)(const WindowProduct<T>& p);
  void (*channels)(const ChannelProduct<T>& p);
  /// Transposes g [rows, .], `row` apart: its columns [0, count) become to [count, rows], `to_row` apart, with zeros in
  /// [rows, columns).
  void (*transpose)(const T* g, std::int64_t row, std::int64_t rows, std::int64_t count, T* to, std::int64_t to_row,
                    std::int64_t columns);
  void (*weights)(const WeightProduct<T>& p);
  void (*dots)(const WeightDots<T>& p);
  /// Sums the kReductionLanes lanes of each sum: to[i] = those of sum i, in ascending order.
  void (*sum_lanes)(const T* sums, std::int64_t count, T* to);
  void (*line)(const LineProduct<T>& p);
  /// Computes planes with `taps` rows and columns of taps, a size that `is_plane_kernel` accepts.
  void (*planes)(std::int64_t taps, const PlaneProduct<T>& p);
  void (*spread)(std::int64_t taps, const PlaneSpread<T>& p);
  void (*plane_dots)(std::int64_t taps, const PlaneDots<T>& p);
};
}  // namespace ferrite::detail
