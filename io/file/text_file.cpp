/// Files of text: whole reads and atomic writes.
#include "ferrite/io/text_file.h"

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/file/input_file.h"

namespace ferrite::io {

std::string read_text(const std::filesystem::path& path) {
  const detail::WholeFile file = detail::read_whole(path);
  const std::span<const std::byte> bytes = file.bytes.span();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  write_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace ferrite::io
