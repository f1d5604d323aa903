/// Opens PyTorch files of either form.
#include "ferrite/io/torch.h"

#include <algorithm>
#include <array>
#include <limits>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/torch/container.h"
#include "ferrite/io/torch/strided_decode.h"
#include "ferrite/tensor/log.h"

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
      all.emplace_back(index().text(entry->key), index().text(entry->value));  // the last of a name counts
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

/// Bytes at the front of a file that tell its form.
constexpr std::size_t kFront = 32;

/// Refuses what is neither form.
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
  check_front(front, where);  // before memory is taken for the rest: the file may be anything
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

}  // namespace ferrite::io
