#pragma once
/// Pictures: PNG files, read and written. The component `png` of the package, built where libpng is found.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/tensor/tensor.h"

/// PNG (w3.org/TR/png-3) by libpng. Link with Ferrite::png: find_package(Ferrite COMPONENTS png), or FERRITE_WITH_PNG
/// in a build of the sources.
namespace ferrite::io {

/// Values C * H * W that a picture may have, unless a caller says more.
inline constexpr std::int64_t kMostPngValues = std::int64_t{1} << 28;

/// Reads a file that is already in memory: f32 [C, H, W] in 0..1, C = 1 (grey), 2 (grey, opacity), 3 (red, green, blue)
/// or 4 (and opacity).
///
/// Samples of 1, 2, 4, 8 and 16 bits are divided by the largest one; palettes become colours, transparent colours
/// opacity, and interlaced pictures are put together. Nothing is corrected for gamma or colour profiles, and other
/// chunks are skipped, as torchvision does.
///
/// Throws IoError, its message beginning with `where`, for what is no PNG, is cut short or damaged (libpng says how),
/// for a pixel whose colour the palette does not have, and for more than `most_values` values: that is decided before
/// memory is taken. Memory: the values, at 4 bytes, and the samples of the file.
Tensor parse_png(std::span<const std::byte> bytes, std::string_view where = "png",
                 std::int64_t most_values = kMostPngValues);

/// Reads a file whole. Throws IoError as above, and for what is missing, not readable or no regular file.
Tensor read_png(const std::filesystem::path& path, std::int64_t most_values = kMostPngValues);

/// The bits of a sample that are written.
enum class PngDepth : std::uint8_t { bits8 = 8, bits16 = 16 };

/// The bytes of a file for f32 [C, H, W] with C in 1..4, or [H, W] for grey. Values are clipped to 0..1, and x becomes
/// round((2^bits - 1) x), so that what was read from so many bits is written as the same samples.
///
/// Throws ShapeError for other shapes, extents of 0 and more than kMostPngValues values, DtypeError for other dtypes,
/// ValueError for NaN.
std::vector<std::byte> serialize_png(const Tensor& pixels, PngDepth depth = PngDepth::bits8);

/// Writes that file so that an old one is replaced as a whole or not at all (AtomicFile). Throws as above, and IoError.
void write_png(const std::filesystem::path& path, const Tensor& pixels, PngDepth depth = PngDepth::bits8);

}  // namespace ferrite::io
