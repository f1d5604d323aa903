/// Copies strided elements of a file into a row-major tensor.
#include "ferrite/io/torch/strided_decode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace ferrite::io::detail {
namespace {

/// Walks over strided elements in row-major order and copies them, packed, piece by piece.
class Gatherer {
 public:
  Gatherer(const Shape& shape, const Shape& strides, std::span<const std::byte> bytes, std::size_t width)
      : shape_(shape), strides_(strides), bytes_(bytes), width_(width) {}

  /// The next elements, as many as there is room for.
  void fill(std::span<std::byte> out) {
    for (std::size_t done = 0; done < out.size();) {
      const int inner = shape_.rank() - 1;
      const std::int64_t left = inner < 0 ? 1 : shape_[inner] - at_[static_cast<unsigned>(inner)];
      const auto n = std::min<std::size_t>(static_cast<std::size_t>(left), (out.size() - done) / width_);
      copy(out.data() + done, n, inner < 0 ? 1 : strides_[inner]);
      done += n * width_;
      advance(static_cast<std::int64_t>(n));
    }
  }

 private:
  void copy(std::byte* out, std::size_t n, std::int64_t stride) const {
    switch (width_) {
      case 1: return copy_as<std::uint8_t>(out, n, stride);
      case 2: return copy_as<std::uint16_t>(out, n, stride);
      case 4: return copy_as<std::uint32_t>(out, n, stride);
      default: return copy_as<std::uint64_t>(out, n, stride);
    }
  }

  template <class T>
  void copy_as(std::byte* out, std::size_t n, std::int64_t stride) const {
    const std::byte* in = bytes_.data() + offset_ * static_cast<std::int64_t>(sizeof(T));
    for (std::size_t i = 0; i < n; ++i)
      std::memcpy(out + i * sizeof(T), in + i * static_cast<std::size_t>(stride) * sizeof(T), sizeof(T));
  }

  /// Moves on along the innermost axis and carries into the others.
  void advance(std::int64_t n) {
    for (int axis = shape_.rank() - 1; axis >= 0; --axis) {
      std::int64_t& at = at_[static_cast<unsigned>(axis)];
      at += n;
      offset_ += n * strides_[axis];
      if (at < shape_[axis]) return;
      offset_ -= at * strides_[axis];
      at = 0;
      n = 1;
    }
  }

  Shape shape_;
  Shape strides_;
  std::span<const std::byte> bytes_;
  std::size_t width_;
  std::array<std::int64_t, Shape::kMaxRank> at_{};
  std::int64_t offset_ = 0;  // of the next element
};

bool is_row_major(const Shape& shape, const Shape& strides) {
  const Shape wanted = shape.strides();
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] != 1 && strides[i] != wanted[i]) return false;
  return true;
}

Tensor gathered(FileDtype type, const Shape& shape, const Shape& strides, std::span<const std::byte> bytes,
                std::string_view where, Elements elements, ByteOrder order) {
  constexpr std::size_t kPiece = std::size_t{1} << 15;
  const std::size_t width = bits_of(type) / 8;
  const Dtype dtype = *dtype_in_memory(type, elements);
  const auto out_width = static_cast<std::size_t>(size_of(dtype));
  const auto total = static_cast<std::size_t>(shape.numel());
  Tensor result = Tensor::empty({shape, dtype});
  Gatherer gatherer(shape, strides, bytes, width);
  std::vector<std::byte> piece(std::min(kPiece, total * width));
  for (std::size_t done = 0; done < total;) {
    const std::size_t n = std::min(piece.size() / width, total - done);
    const std::span<std::byte> packed(piece.data(), n * width);
    gatherer.fill(packed);
    const Tensor part = decode(type, {static_cast<std::int64_t>(n)}, packed, where, elements, order);
    std::memcpy(ferrite::detail::Writer::raw(result) + done * out_width, part.raw(), n * out_width);
    done += n;
  }
  return result;
}

}  // namespace

Tensor decode_strided(FileDtype type, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                      std::span<const std::byte> bytes, std::string_view where, Elements elements, ByteOrder order) {
  const Shape whole(shape);
  if (whole.numel() == 0) return decode(type, whole, {}, where, elements);
  Shape dense;  // axes of stride 0 are read once
  bool repeats = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool repeated = strides[i] == 0 && shape[i] > 1;
    dense.push_back(repeated ? 1 : shape[i]);
    repeats = repeats || repeated;
  }
  const Shape steps(strides);
  const std::size_t size = static_cast<std::size_t>(dense.numel()) * (bits_of(type) / 8);
  const Tensor values = is_row_major(dense, steps) ? decode(type, dense, bytes.first(size), where, elements, order)
                                                   : gathered(type, dense, steps, bytes, where, elements, order);
  if (!repeats) return values;
  Shape out = dense.strides();
  for (int i = 0; i < whole.rank(); ++i)
    if (dense[i] != whole[i]) out[i] = 0;
  return values.view(whole, out, 0);
}

}  // namespace ferrite::io::detail
