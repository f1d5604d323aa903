/// Arrays in .npy form: elements to and from bytes.
#include "ferrite/io/numpy/npy.h"

#include <algorithm>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kAlignment = 64;  // of the elements
constexpr std::size_t kGrowth = 21;     // NumPy leaves room for a first extent of so many digits
constexpr std::size_t kPrefix = 10;     // magic, version, a length of two bytes

/// "<f4"; a byte has no order.
std::string descr_of(Dtype dtype, std::string_view where) {
  const std::optional<std::string_view> name = npy_name(written_as(dtype));
  if (!name)
    refuse(where, "NumPy has no dtype for " + std::string(ferrite::name_of(dtype)) +
                      "; cast the tensor to f32, or write safetensors or .pt");
  return (size_of(dtype) == 1 ? "|" : "<") + std::string(*name);
}

/// "()", "(3,)", "(2, 3)".
std::string tuple_of(const Shape& shape) {
  std::string out = "(";
  for (const std::int64_t extent : shape) {
    if (out.size() > 1) out += ' ';
    out += std::to_string(extent) + ',';
  }
  if (shape.rank() > 1) out.pop_back();
  return out + ")";
}

/// The axes from the last to the first.
Shape reversed_axes(std::size_t rank) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = rank; i > 0; --i) axes.push_back(static_cast<std::int64_t>(i) - 1);
  return Shape(axes);
}

}  // namespace

void check_supported(const NpyHeader& header, std::string_view where) {
  if (!header.type || !dtype_in_memory(*header.type, Elements::for_computing))
    refuse(where, "unsupported dtype: " + quote(header.dtype) +
                      "; supported are f4, f8, f2, c8, c16, i8, i4, i2, i1, u8, u4, u2, u1 and b1");
  if (header.shape.size() > Shape::kMaxRank)
    refuse(where, "too many dimensions: " + std::to_string(header.shape.size()) + ", at most " +
                      std::to_string(Shape::kMaxRank) + " are supported");
}

Tensor read_npy_data(const NpyHeader& header, std::span<const std::byte> data, std::string_view where,
                     Elements elements) {
  check_supported(header, where);
  if (!header.fortran_order) return decode(*header.type, Shape(header.shape), data, where, elements, header.order);
  const std::ptrdiff_t parts = header.complex ? 1 : 0;  // which stay the last axis
  std::vector<std::int64_t> reversed(header.shape.rbegin() + parts, header.shape.rend());
  Shape axes = reversed_axes(reversed.size());
  if (header.complex) reversed.push_back(2), axes.push_back(axes.rank());
  return permute(decode(*header.type, Shape(reversed), data, where, elements, header.order), axes);
}

std::string npy_front(const Tensor& tensor, std::string_view where) {
  std::string header = "{'descr': '" + descr_of(tensor.dtype(), where) +
                       "', 'fortran_order': False, 'shape': " + tuple_of(tensor.shape()) + ", }";
  if (tensor.rank() > 0) header.append(kGrowth - std::to_string(tensor.shape()[0]).size(), ' ');
  header.append(kAlignment - (kPrefix + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::string front("\x93NUMPY\x01\x00", 8);
  front += static_cast<char>(header.size() & 0xff);
  front += static_cast<char>(header.size() >> 8);
  return front + header;
}

Tensor npy_data(const Tensor& tensor, std::string_view where) {
  if (!tensor.defined() || tensor.is_abstract())
    refuse(where, "the tensor has no values: it is undefined or being traced");
  return contiguous(tensor.unmarked());
}

std::span<const std::byte> npy_bytes(const Tensor& dense) {
  const auto size = static_cast<std::size_t>(dense.numel()) * static_cast<std::size_t>(size_of(dense.dtype()));
  return size > 0 ? std::span(dense.raw(), size) : std::span<const std::byte>();
}

}  // namespace ferrite::io::detail
