/// Writes PNG files (w3.org/TR/png-3) without a library: no filters, one chunk of data.
#include "ferrite/train/tensorboard/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "ferrite/tensor/ops.h"
#include "ferrite/train/tensorboard/deflate.h"
#include "ferrite/train/tensorboard/event_records.h"

namespace ferrite::train::detail {
namespace {

constexpr std::array<char, 5> kColourTypes = {0, 0, 4, 2, 6};  // by the number of channels

std::string big_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string chunk(std::string_view name, std::string_view content) {
  const std::string body = std::string(name) + std::string(content);
  return big_endian(content.size()) + body + big_endian(crc32(body));
}

char byte_of(float x) {
  if (std::isnan(x)) throw ValueError("image: a pixel is NaN");
  return static_cast<char>(static_cast<unsigned char>(std::lround(255 * std::clamp(x, 0.0F, 1.0F))));
}

/// The rows, each after the number of its filter, channels side by side.
std::string scanlines(std::span<const float> pixels, const Picture& p) {
  const auto plane = static_cast<std::size_t>(p.height * p.width), width = static_cast<std::size_t>(p.width);
  std::string lines;
  lines.reserve(plane * static_cast<std::size_t>(p.channels) + static_cast<std::size_t>(p.height));
  for (std::size_t i = 0; i < plane; ++i) {
    if (i % width == 0) lines += '\0';
    for (std::size_t c = 0; c < static_cast<std::size_t>(p.channels); ++c) lines += byte_of(pixels[c * plane + i]);
  }
  return lines;
}

}  // namespace

Picture encode_picture(const Tensor& pixels) {
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;
  if (pixels.dtype() != Dtype::f32) throw DtypeError("image: pixels must be f32, got " + pixels.spec().str());
  const int rank = pixels.rank();
  Picture p;
  if (rank == 2 || rank == 3) p = {pixels.size(-2), pixels.size(-1), rank == 3 ? pixels.size(0) : 1, {}};
  if (p.height < 1 || p.width < 1 || p.channels < 1 || p.channels > 4)
    throw ShapeError("image: pixels must be [H, W] or [C, H, W] with C in 1..4, got " + pixels.shape().str());
  if (pixels.numel() > kMostPixels) throw ShapeError("image: more than 2^28 values: " + pixels.shape().str());
  const Tensor dense = contiguous(pixels.unmarked());
  const std::string kind = {8, kColourTypes[static_cast<std::size_t>(p.channels)], 0, 0, 0};
  p.png = "\x89PNG\r\n\x1a\n" +
          chunk("IHDR", big_endian(static_cast<std::uint64_t>(p.width)) +
                            big_endian(static_cast<std::uint64_t>(p.height)) + kind) +
          chunk("IDAT", zlib_stream(scanlines(dense.values<float>(), p))) + chunk("IEND", {});
  return p;
}

}  // namespace ferrite::train::detail
