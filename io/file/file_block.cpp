/// Memory from the heap that is not cleared.
#include "ferrite/io/file/file_block.h"

#include <limits>
#include <new>
#include <string>

#include "ferrite/io/detail/io_text.h"

namespace ferrite::io::detail {

Block::Block(std::uint64_t size, std::string_view where) {
  if (size > std::numeric_limits<std::size_t>::max())
    refuse(where, "too large for this machine: " + std::to_string(size) + " bytes");
  size_ = static_cast<std::size_t>(size);
  try {
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(size_);
  } catch (const std::bad_alloc&) {
    refuse(where, "not enough memory to read the file: " + counted(size_, "byte"));
  }
}

}  // namespace ferrite::io::detail
