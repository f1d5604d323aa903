#pragma once
/// Reading and writing PNG files. They are the component `png` of the package, built where libpng is found.
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

/// Default limit on the number of values, C * H * W, of a picture.
inline constexpr std::int64_t kMostPngValues = std::int64_t{1} << 28;

/// Reads a PNG file that is already in memory: f32 [C, H, W] in 0..1, C = 1 (grey), 2 (grey, opacity), 3 (red, green,
/// blue) or 4 (red, green, blue, opacity).
///
/// Samples of 1, 2, 4, 8 and 16 bits are divided by the largest value of that width; palettes become colours,
/// transparent colours opacity, and interlaced pictures are assembled. Gamma and colour profiles are ignored, and other
/// chunks are skipped, as in torchvision.
///
/// Throws IoError, its message beginning with `where`, for bytes that are not a PNG, cut short or damaged (libpng says
/// how), for a pixel whose colour the palette does not have, and for more than `most_values` values, before memory for
/// them is allocated. Memory: 4 bytes for each value, and the samples of the file.
Tensor parse_png(std::span<const std::byte> bytes, std::string_view where = "png",
                 std::int64_t most_values = kMostPngValues);

/// Reads a whole PNG file. Throws IoError as parse_png, and for a file that is missing, unreadable or not regular.
Tensor read_png(const std::filesystem::path& path, std::int64_t most_values = kMostPngValues);

/// Number of bits of each sample that is written.
enum class PngDepth : std::uint8_t { bits8 = 8, bits16 = 16 };

/// Returns the bytes of a PNG file for f32 [C, H, W] with C in 1..4, or [H, W] for grey. Values are clipped to 0..1,
/// and x becomes round((2^bits - 1) x), so that a picture read from samples of that many bits is written as the same
/// samples.
///
/// Throws ShapeError for other shapes, extents of 0 and more than kMostPngValues values, DtypeError for other dtypes,
/// ValueError for NaN.
std::vector<std::byte> serialize_png(const Tensor& pixels, PngDepth depth = PngDepth::bits8);

/// Writes a PNG file; an old one is replaced as a whole or not at all (AtomicFile). Throws as serialize_png, and
/// IoError where the file cannot be written.
void write_png(const std::filesystem::path& path, const Tensor& pixels, PngDepth depth = PngDepth::bits8);

}  // namespace ferrite::io
