#pragma once
/// Compresses the pixels of pictures.
#include <string>
#include <string_view>

namespace ferrite::train::detail {

/// Returns `contents` as a zlib stream (RFC 1950) of one deflated block (RFC 1951) with the code that needs no table:
/// pixels that repeat themselves or the row above take about a hundredth, noise an eighth more than it is.
std::string zlib_stream(std::string_view contents);

}  // namespace ferrite::train::detail
