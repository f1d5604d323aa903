#pragma once
/// The .npy format: header and elements.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/detail/file_dtype.h"

namespace ferrite::io::detail {

/// NumPy refuses longer headers too.
inline constexpr std::uint64_t kMostNpyHeader = 10'000;
/// What has the whole header of any sound file: magic, version, length, header.
inline constexpr std::uint64_t kMostNpyFront = 12 + kMostNpyHeader;

/// The header of an .npy file, read and checked.
struct NpyHeader {
  std::string dtype;              ///< as the file spells it, "<f4"
  std::optional<FileDtype> type;  ///< nothing for strings, objects and other types that have no name of ours
  ByteOrder order = ByteOrder::little;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;  ///< of complex numbers with an axis of real and imaginary parts at its end
  bool complex = false;
  std::uint64_t data_begin = 0;  ///< counted from the front of the file
};

/// Reads the header at the front of a file of `file_bytes`. `front` has at least the first kMostNpyFront bytes, or all
/// of them. Throws IoError; where the type has a name, the rest of the file has the size that type and shape need.
NpyHeader read_npy_header(std::span<const std::byte> front, std::uint64_t file_bytes, std::string_view where);

/// Throws IoError for types that are not supported and for more than 8 dimensions.
void check_supported(const NpyHeader& header, std::string_view where);

/// The tensor behind a header. Throws IoError for types that are not supported, for more than 8 dimensions and for a
/// bool that is neither 0 nor 1.
Tensor read_npy_data(const NpyHeader& header, std::span<const std::byte> data, std::string_view where,
                     Elements elements);

/// NumPy's word for elements of a type, without the byte order: "f4". Nothing where it has none.
std::optional<std::string_view> npy_name(FileDtype type);

/// Magic, version, length and header, as numpy.save writes them. Throws IoError for a dtype that NumPy does not have.
std::string npy_front(const Tensor& tensor, std::string_view where);

/// The tensor in C order. Throws IoError for one that is undefined or being traced.
Tensor npy_data(const Tensor& tensor, std::string_view where);

/// The bytes of a tensor in C order.
std::span<const std::byte> npy_bytes(const Tensor& dense);

}  // namespace ferrite::io::detail
