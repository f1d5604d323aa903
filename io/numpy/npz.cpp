/// Archives of arrays, .npz: reading on demand and writing.
#include <string>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/file_block.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/numpy.h"
#include "ferrite/io/numpy/npy.h"
#include "ferrite/io/zip/zip.h"
#include "ferrite/tensor/log.h"

namespace ferrite::io {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr std::size_t kAlignment = 64;

using detail::Block;
using detail::NpyHeader;
using detail::ZipArchive;
using detail::ZipEntry;
using Bytes = std::span<const std::byte>;

/// The headers of all members, in the order of the archive.
std::vector<NpyHeader> read_headers(const ZipArchive& archive, std::string_view where) {
  std::vector<NpyHeader> headers;
  headers.reserve(archive.entries().size());
  for (const ZipEntry& entry : archive.entries()) {
    if (!entry.name.ends_with(kSuffix)) detail::refuse(where, "a member is no npy file: " + detail::quote(entry.name));
    const std::string place = std::string(where) + ": " + detail::quote(entry.name);
    headers.push_back(detail::read_npy_header(archive.front(entry, detail::kMostNpyFront).bytes(), entry.size, place));
  }
  return headers;
}

class NpzSource final : public TensorSource {
 public:
  NpzSource(Bytes bytes, std::string_view where, const ReadOptions& options)
      : where_(where), archive_(bytes, where, options.most_inflated), headers_(read_headers(archive_, where)) {}
  NpzSource(Block owned, std::string_view where, const ReadOptions& options)
      : where_(where),
        owned_(std::move(owned)),
        archive_(owned_.span(), where, options.most_inflated),
        headers_(read_headers(archive_, where)) {}

  std::size_t size() const override { return headers_.size(); }

  std::string_view name(std::size_t i) const override {
    const std::string_view member = archive_.entries()[i].name;
    return member.substr(0, member.size() - kSuffix.size());
  }

  std::optional<std::size_t> find(std::string_view name) const override {
    const ZipEntry* entry = archive_.find(std::string(name) + std::string(kSuffix));
    if (entry == nullptr) return std::nullopt;
    return static_cast<std::size_t>(entry - archive_.entries().data());
  }

  TensorInfo info(std::size_t i) const override {
    const NpyHeader& header = headers_[i];
    return {.dtype = header.dtype,
            .loads_as = header.type ? detail::dtype_in_memory(*header.type, Elements::for_computing) : std::nullopt,
            .stored_as = header.type ? detail::dtype_in_memory(*header.type, Elements::as_stored) : std::nullopt,
            .shape = header.shape,
            .bytes = archive_.entries()[i].size - header.data_begin};
  }

  Tensor tensor(std::size_t i, Elements elements) const override {
    const ZipEntry& entry = archive_.entries()[i];
    const std::string place = where_ + ": " + detail::quote(name(i));
    detail::check_supported(headers_[i], place);
    const detail::ZipData contents = archive_.read(entry, entry.size);
    return detail::read_npy_data(
        headers_[i], contents.bytes().subspan(static_cast<std::size_t>(headers_[i].data_begin)), place, elements);
  }

  std::vector<std::pair<std::string_view, std::string_view>> metadata() const override { return {}; }

 private:
  std::string where_;
  Block owned_;
  ZipArchive archive_;
  std::vector<NpyHeader> headers_;
};

std::vector<std::byte> archive_of(std::span<const NamedTensor> tensors, std::string_view where) {
  std::uint64_t total = 0;
  for (const NamedTensor& named : tensors)
    if (named.tensor.defined())
      total += static_cast<std::uint64_t>(named.tensor.numel() * size_of(named.tensor.dtype())) + kAlignment;
  detail::ZipWriter writer(kAlignment, where);
  writer.reserve(total, tensors.size());
  for (const NamedTensor& named : tensors) {
    const std::string place = std::string(where) + ": " + detail::quote(named.name);
    const Tensor dense = detail::npy_data(named.tensor, place);
    const std::string front = detail::npy_front(dense, place);
    writer.add(named.name + std::string(kSuffix), std::as_bytes(std::span(front)), detail::npy_bytes(dense));
  }
  return writer.finish();
}

}  // namespace

TensorFile parse_npz(std::span<const std::byte> bytes, std::string_view where, const ReadOptions& options) {
  return {std::string(where), std::make_shared<NpzSource>(bytes, where, options)};
}

TensorFile parse_npz(std::vector<std::byte>&& bytes, std::string_view where, const ReadOptions& options) {
  return parse_npz(std::span<const std::byte>(bytes), where, options).keeping(std::move(bytes));
}

TensorFile read_npz(const std::filesystem::path& path, const ReadOptions& options) {
  detail::WholeFile file = detail::read_whole(path);
  const std::size_t size = file.bytes.span().size();
  auto source = std::make_shared<NpzSource>(std::move(file.bytes), file.where, options);
  ferrite::detail::log_debug(file.where + ": read " + detail::counted(source->size(), "tensor") + ", " +
                             detail::counted(size, "byte"));
  return {std::move(file.where), std::move(source)};
}

std::vector<std::byte> serialize_npz(std::span<const NamedTensor> tensors) {
  return archive_of(tensors, "serialize_npz");
}

void write_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  write_atomically(path, archive_of(tensors, detail::shown(path)));
}

}  // namespace ferrite::io
