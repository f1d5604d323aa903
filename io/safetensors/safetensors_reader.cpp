/// Tensors of safetensors files, read or mapped.
#include "ferrite/io/safetensors.h"

#include <array>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/file_block.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/file/mapping.h"
#include "ferrite/io/safetensors/safetensors_index.h"
#include "ferrite/tensor/log.h"

namespace ferrite::io {
namespace {

using detail::Block;
using detail::Mapping;
using detail::SafetensorsIndex;
using detail::TensorEntry;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Whether elements of a file are those of a tensor, byte for byte. A BOOL may be neither 0 nor 1.
bool holds_as_in_memory(detail::FileDtype type, Elements elements) {
  return type != detail::FileDtype::boolean && detail::written_as(*detail::dtype_in_memory(type, elements)) == type;
}

class SafetensorsSource final : public TensorSource {
 public:
  SafetensorsSource(std::string where, SafetensorsIndex index, std::span<const std::byte> data)
      : where_(std::move(where)), index_(std::move(index)), data_(data) {}
  SafetensorsSource(std::string where, SafetensorsIndex index, Block data)
      : where_(std::move(where)), index_(std::move(index)), owned_(std::move(data)), data_(owned_->span()) {}
  /// The data follow `data_at` bytes of the mapped file.
  SafetensorsSource(std::string where, SafetensorsIndex index, std::shared_ptr<const Mapping> file,
                    std::uint64_t data_at)
      : where_(std::move(where)),
        index_(std::move(index)),
        mapped_(std::move(file)),
        data_(mapped_->readable().subspan(static_cast<std::size_t>(data_at))) {}

  std::size_t size() const override { return index_.tensors.size(); }
  std::string_view name(std::size_t i) const override { return index_.name(index_.tensors[i]); }
  std::optional<std::size_t> find(std::string_view name) const override { return index_.find(name); }

  TensorInfo info(std::size_t i) const override {
    const TensorEntry& entry = index_.tensors[i];
    const std::span<const std::int64_t> shape = index_.shape(entry);
    return {.dtype = std::string(detail::name_of(entry.dtype)),
            .loads_as = detail::dtype_in_memory(entry.dtype, Elements::for_computing),
            .stored_as = detail::dtype_in_memory(entry.dtype, Elements::as_stored),
            .shape = {shape.begin(), shape.end()},
            .bytes = entry.end - entry.begin};
  }

  Tensor tensor(std::size_t i, Elements elements) const override {
    const TensorEntry& entry = index_.tensors[i];
    const std::string place = where_ + ": " + detail::quote(index_.name(entry));
    if (!detail::dtype_in_memory(entry.dtype, elements))
      detail::refuse(place, "unsupported dtype: " + std::string(detail::name_of(entry.dtype)) +
                                "; supported are F32, F64, F16, BF16, I64, I32, I16, I8, U8 and BOOL");
    if (entry.rank > Shape::kMaxRank)
      detail::refuse(place, "too many dimensions: " + std::to_string(entry.rank) + ", at most " +
                                std::to_string(Shape::kMaxRank) + " are supported");
    const std::span<const std::byte> from = data_.subspan(static_cast<std::size_t>(entry.begin));
    const Shape shape(index_.shape(entry));
    if (mapped_ && holds_as_in_memory(entry.dtype, elements))
      return Tensor::frozen(from, {shape, *detail::dtype_in_memory(entry.dtype, elements)}, mapped_);
    return detail::decode(entry.dtype, shape, from.first(static_cast<std::size_t>(entry.end - entry.begin)), place,
                          elements);
  }

  std::vector<std::pair<std::string_view, std::string_view>> metadata() const override {
    std::vector<std::pair<std::string_view, std::string_view>> all;
    for (const detail::MetadataEntry& entry : index_.metadata)
      all.emplace_back(index_.text(entry.key), index_.text(entry.value));
    return all;
  }

 private:
  std::string where_;
  SafetensorsIndex index_;
  std::optional<Block> owned_;
  std::shared_ptr<const Mapping> mapped_;
  std::span<const std::byte> data_;  ///< of the tensors; of a mapped file, what may be read behind them, too
};

}  // namespace

TensorFile parse_safetensors(std::span<const std::byte> bytes, std::string_view where) {
  const auto length = static_cast<std::size_t>(detail::header_length(bytes, bytes.size(), where));
  const std::span<const std::byte> header = bytes.subspan(detail::kPrefixBytes, length);
  const std::span<const std::byte> data = bytes.subspan(detail::kPrefixBytes + length);
  SafetensorsIndex index = detail::read_index(as_text(header), data.size(), where);
  return {std::string(where), std::make_shared<SafetensorsSource>(std::string(where), std::move(index), data)};
}

TensorFile parse_safetensors(std::vector<std::byte>&& bytes, std::string_view where) {
  return parse_safetensors(std::span<const std::byte>(bytes), where).keeping(std::move(bytes));
}

TensorFile read_safetensors(const std::filesystem::path& path, const ReadOptions& options) {
  detail::InputFile file(path);
  const std::string& where = file.where();
  std::array<std::byte, detail::kPrefixBytes> first{};
  if (file.size() >= first.size()) file.read(first);
  const std::uint64_t length = detail::header_length(first, file.size(), where);
  const std::uint64_t data_bytes = file.size() - first.size() - length;
  // The header is judged before memory is taken for the rest: the file may be anything.
  SafetensorsIndex index = [&] {
    Block header(length, where);
    file.read(header.span());
    return detail::read_index(as_text(header.span()), data_bytes, where);
  }();
  if (options.map) {
    auto mapped = std::make_shared<const Mapping>(file);
    ferrite::detail::log_debug(where + ": mapped " + detail::counted(index.tensors.size(), "tensor") + ", " +
                               detail::counted(data_bytes, "byte"));
    return {where,
            std::make_shared<SafetensorsSource>(where, std::move(index), std::move(mapped), first.size() + length)};
  }
  Block data(data_bytes, where);
  file.read(data.span());
  file.expect_end();
  ferrite::detail::log_debug(where + ": read " + detail::counted(index.tensors.size(), "tensor") + ", " +
                             detail::counted(data.span().size(), "byte"));
  return {where, std::make_shared<SafetensorsSource>(where, std::move(index), std::move(data))};
}

}  // namespace ferrite::io
