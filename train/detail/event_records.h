#pragma once
/// The parts of TensorBoard's event files: records, histograms, pictures, and the zlib streams in these.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "ferrite/tensor/tensor.h"

// ---- records -------------------------------------------------------------------------------------------

namespace ferrite::train::detail {

/// Returns the CRC-32 with Castagnoli's polynomial (RFC 3720, appendix B.4); that of "123456789" is 0xe3069283.
std::uint32_t crc32c(std::string_view bytes);

/// Returns the CRC-32 with the polynomial of PNG files (w3.org/TR/png-3, annex D); that of "123456789" is 0xcbf43926.
std::uint32_t crc32(std::string_view bytes);

/// Returns content as a record: its length in 8 bytes, the checksum of the length, the content, its checksum. Checksums
/// are rotated by 15 bits and 0xa282ead8 is added, so that a checksum of bytes that contain checksums means something.
std::string framed(std::string_view content);

/// A new file that grows by whole records.
class RecordFile {
 public:
  /// Creates the file. Throws IoError when it cannot, or when the file exists.
  explicit RecordFile(std::filesystem::path path);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Appends content as one record. Throws IoError when it cannot; the file is then as long as before.
  void append(std::string_view content);

 private:
  std::filesystem::path path_;
  std::int64_t size_ = 0;
  int fd_ = -1;
};

// ---- histograms ----------------------------------------------------------------------------------------

/// Returns the message HistogramProto of all elements. Throws ValueError for no elements and for NaN and infinities.
std::string encode_histogram(const Tensor& values);

// ---- zlib streams --------------------------------------------------------------------------------------

/// Returns `contents` as a zlib stream (RFC 1950) of one deflated block (RFC 1951) with the fixed code. Pixels that
/// repeat themselves or the row above shrink to about a hundredth; noise grows by an eighth.
std::string zlib_stream(std::string_view contents);

// ---- pictures ------------------------------------------------------------------------------------------

struct Picture {
  std::int64_t height = 0, width = 0, channels = 0;
  std::string png;
};

/// Encodes f32 [H, W] or [C, H, W] in 0..1 as a PNG. Throws DtypeError for another dtype, ShapeError for another shape,
/// ValueError for NaN.
Picture encode_picture(const Tensor& pixels);

}  // namespace ferrite::train::detail
