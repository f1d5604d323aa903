/// The functions that read and write .npy files.
#include "ferrite/io/numpy.h"

#include <algorithm>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/file_block.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/numpy/npy.h"
#include "ferrite/tensor/log.h"

namespace ferrite::io {

Tensor parse_npy(std::span<const std::byte> bytes, std::string_view where, Elements elements) {
  const detail::NpyHeader header = detail::read_npy_header(bytes, bytes.size(), where);
  return detail::read_npy_data(header, bytes.subspan(static_cast<std::size_t>(header.data_begin)), where, elements);
}

Tensor read_npy(const std::filesystem::path& path, Elements elements) {
  detail::InputFile file(path);
  const std::string& where = file.where();
  // The header is judged before memory is taken for the rest: the file may be anything.
  detail::Block front(std::min(file.size(), detail::kMostNpyFront), where);
  file.read(front.span());
  const detail::NpyHeader header = detail::read_npy_header(front.span(), file.size(), where);
  detail::Block data(file.size() - header.data_begin, where);
  const auto begun = front.span().subspan(static_cast<std::size_t>(header.data_begin));
  std::ranges::copy(begun, data.span().begin());
  file.read(data.span().subspan(begun.size()));
  file.expect_end();
  ferrite::detail::log_debug(where + ": read " + detail::counted(data.span().size(), "byte"));
  return detail::read_npy_data(header, data.span(), where, elements);
}

std::vector<std::byte> serialize_npy(const Tensor& tensor) {
  const Tensor dense = detail::npy_data(tensor, "serialize_npy");
  const std::string front = detail::npy_front(dense, "serialize_npy");
  const std::span<const std::byte> data = detail::npy_bytes(dense);
  std::vector<std::byte> bytes;
  bytes.reserve(front.size() + data.size());
  for (const auto part : {std::as_bytes(std::span(front)), data}) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const Tensor dense = detail::npy_data(tensor, detail::shown(path));
  const std::string front = detail::npy_front(dense, detail::shown(path));
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(front)));
  file.write(detail::npy_bytes(dense));
  file.commit();
}

}  // namespace ferrite::io
