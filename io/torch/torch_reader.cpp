/// Opens PyTorch files of either form, reads strided elements as row-major tensors, and translates the names of
/// normalised weights in older checkpoints.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/io/detail/file_dtype.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/torch.h"
#include "ferrite/io/torch/torch_index.h"
#include "ferrite/tensor/log.h"

// ---- strided elements ----------------------------------------------------------------------------------

namespace ferrite::io::detail {
namespace {

/// Walks over strided elements in row-major order and copies them, packed, piece by piece.
class Gatherer {
 public:
  Gatherer(const Shape& shape, const Shape& strides, std::span<const std::byte> bytes, std::size_t width)
      : shape_(shape), strides_(strides), bytes_(bytes), width_(width) {}

  /// Fills `out` with the next elements.
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

  /// Advances by n elements along the innermost axis and carries into the others.
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
  std::int64_t offset_ = 0;  // offset of the next element
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

/// Returns a tensor made from strided elements; `bytes` begins at the first one and holds all of them. Strides are in
/// elements and not negative. The result is row-major, except that axes of stride 0 keep it. The type must be supported
/// and the rank at most 8. Takes 64 KiB in addition to the result. Throws IoError as `decode`.
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

}  // namespace

}  // namespace ferrite::io::detail

// ---- files ---------------------------------------------------------------------------------------------

namespace ferrite::io {
namespace {

using detail::Block;
using detail::TorchContents;
using detail::TorchDtype;
using detail::TorchTensor;

class TorchSource final : public TensorSource {
 public:
  TorchSource(std::string where, TorchContents contents, std::span<const std::byte> bytes, Block owned)
      : where_(std::move(where)), contents_(std::move(contents)), bytes_(bytes), owned_(std::move(owned)) {}

  std::size_t size() const override { return index().tensors.size(); }
  std::string_view name(std::size_t i) const override { return index().name(i); }
  std::optional<std::size_t> find(std::string_view name) const override { return index().find(name); }

  TensorInfo info(std::size_t i) const override {
    const TorchTensor& tensor = index().tensors[i];
    const TorchDtype& dtype = detail::torch_dtype(tensor.dtype);
    const std::span<const std::int64_t> shape = index().shape(tensor);
    std::uint64_t bytes = dtype.bytes;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
    return {.dtype = std::string(dtype.name),
            .loads_as = dtype.type ? detail::dtype_in_memory(*dtype.type, Elements::for_computing) : std::nullopt,
            .stored_as = dtype.type ? detail::dtype_in_memory(*dtype.type, Elements::as_stored) : std::nullopt,
            .shape = {shape.begin(), shape.end()},
            .bytes = bytes};
  }

  Tensor tensor(std::size_t i, Elements elements) const override {
    const TorchTensor& tensor = index().tensors[i];
    const std::string place = where_ + ": " + detail::quote(index().name(i));
    const TorchDtype& dtype = detail::torch_dtype(tensor.dtype);
    if (!dtype.type || !detail::dtype_in_memory(*dtype.type, elements)) refuse_dtype(dtype, place);
    if (tensor.rank > Shape::kMaxRank)
      detail::refuse(place, "too many dimensions: " + std::to_string(tensor.rank) + ", at most " +
                                std::to_string(Shape::kMaxRank) + " are supported");
    detail::ZipData inflated;
    std::span<const std::byte> storage;
    if (tensor.packed) {
      inflated = contents_.archive->read(contents_.archive->entries()[tensor.record], tensor.storage_bytes + 16);
      storage = inflated.bytes();
    } else {
      storage = bytes_.subspan(static_cast<std::size_t>(tensor.record), static_cast<std::size_t>(tensor.storage_bytes));
    }
    return detail::decode_strided(*dtype.type, index().shape(tensor), index().strides(tensor),
                                  storage.subspan(static_cast<std::size_t>(tensor.begin)), place, elements,
                                  contents_.order);
  }

  std::vector<std::pair<std::string_view, std::string_view>> metadata() const override {
    std::vector<std::pair<std::string_view, std::string_view>> all;
    for (auto entry = index().metadata.rbegin(); entry != index().metadata.rend(); ++entry)
      all.emplace_back(index().text(entry->key), index().text(entry->value));  // the last value of a name counts
    return all;
  }

 private:
  const detail::TorchIndex& index() const { return contents_.index; }

  [[noreturn]] static void refuse_dtype(const TorchDtype& dtype, const std::string& place) {
    detail::refuse(place, "unsupported dtype: " + std::string(dtype.name) +
                              "; supported are float32, float64, float16, bfloat16, int64, int32, int16, int8, uint64, "
                              "uint32, uint16, uint8, bool, complex64 and complex128");
  }

  std::string where_;
  TorchContents contents_;
  std::span<const std::byte> bytes_;
  Block owned_;
};

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += text.empty() ? "" : " ";
    text += digits[std::to_integer<unsigned>(b) >> 4];
    text += digits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

/// Number of bytes at the front of a file that identify its form.
constexpr std::size_t kFront = 32;

/// Throws IoError for a file that has neither form.
void check_front(std::span<const std::byte> front, std::string_view where) {
  if (front.empty()) detail::refuse(where, "not a file of torch.save: it is empty");
  if (detail::looks_like_zip(front) || detail::looks_like_legacy(front)) return;
  detail::refuse(where, "not a file of torch.save: neither a zip archive nor PyTorch's older form; it begins with " +
                            hex(front.first(std::min<std::size_t>(front.size(), 8))));
}

TorchContents contents_of(std::span<const std::byte> bytes, std::string_view key, std::string_view where,
                          const ReadOptions& options) {
  check_front(bytes.first(std::min(bytes.size(), kFront)), where);
  if (detail::looks_like_zip(bytes)) return detail::read_torch_zip(bytes, key, where, options);
  return detail::read_torch_legacy(bytes, key, where);
}

TensorFile file_of(std::span<const std::byte> bytes, std::string_view key, const std::string& where, Block owned,
                   const ReadOptions& options) {
  TorchContents contents = contents_of(bytes, key, where, options);
  return {where, std::make_shared<TorchSource>(where, std::move(contents), bytes, std::move(owned))};
}

}  // namespace

TensorFile parse_torch(std::span<const std::byte> bytes, std::string_view key, std::string_view where,
                       const ReadOptions& options) {
  return file_of(bytes, key, std::string(where), Block(), options);
}

TensorFile parse_torch(std::vector<std::byte>&& bytes, std::string_view key, std::string_view where,
                       const ReadOptions& options) {
  return parse_torch(std::span<const std::byte>(bytes), key, where, options).keeping(std::move(bytes));
}

TensorFile read_torch(const std::filesystem::path& path, std::string_view key, const ReadOptions& options) {
  detail::InputFile file(path);
  const std::string& where = file.where();
  if (file.size() > std::numeric_limits<std::size_t>::max())
    detail::refuse(where, "too large for this machine: " + std::to_string(file.size()) + " bytes");
  std::array<std::byte, kFront> first{};
  const auto front = std::span(first).first(static_cast<std::size_t>(std::min<std::uint64_t>(kFront, file.size())));
  file.read(front);
  check_front(front, where);  // before memory is allocated for the rest: the file may be anything
  Block block(file.size(), where);
  std::ranges::copy(front, block.span().begin());
  file.read(block.span().subspan(front.size()));
  file.expect_end();
  const std::span<const std::byte> bytes = block.span();
  TensorFile contents = file_of(bytes, key, where, std::move(block), options);
  ferrite::detail::log_debug(where + ": read " + detail::counted(contents.size(), "tensor") + ", " +
                             detail::counted(bytes.size(), "byte"));
  return contents;
}

// ---- names of normed weights ---------------------------------------------------------------------------

namespace {

/// Returns the part of a name before an ending: "encoder.weight" for "encoder.weight_g" and "_g".
std::optional<std::string_view> before(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return {};
  return name.substr(0, name.size() - ending.size());
}

/// Returns the name of a part of a parametrized weight: "encoder.parametrizations.weight.original" for "encoder.weight"
/// and "original".
std::string parametrized(std::string_view parameter, std::string_view part) {
  const std::size_t dot = parameter.rfind('.'), leaf = dot == std::string_view::npos ? 0 : dot + 1;
  return std::string(parameter.substr(0, leaf)) + "parametrizations." + std::string(parameter.substr(leaf)) + "." +
         std::string(part);
}

}  // namespace

TensorFile with_parametrization_names(const TensorFile& file) {
  const auto has = [&](std::string_view parameter, std::string_view ending) {
    return file.contains(std::string(parameter) + std::string(ending));
  };
  return file.renamed([&](std::string_view name) -> std::string {
    if (const auto p = before(name, "_g"); p && has(*p, "_v")) return parametrized(*p, "original0");
    if (const auto p = before(name, "_orig"); p && has(*p, "_u")) return parametrized(*p, "original");
    if (const auto p = before(name, "_u"); p && has(*p, "_orig")) return parametrized(*p, "0._u");
    if (const auto p = before(name, "_v")) {
      if (has(*p, "_g")) return parametrized(*p, "original1");
      if (has(*p, "_orig")) return parametrized(*p, "0._v");
    }
    return std::string(name);
  });
}

}  // namespace ferrite::io
