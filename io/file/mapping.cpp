/// Files mapped into memory, page by page.
#include "ferrite/io/file/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/system_calls.h"

namespace ferrite::io::detail {

Mapping::Mapping(const InputFile& file) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (file.size() > std::numeric_limits<std::size_t>::max() - page)
    refuse(file.where(), "too large for this machine: " + counted(file.size(), "byte"));
  file.expect_size();
  const auto bytes = static_cast<std::size_t>(file.size());
  void* const at = system_calls().mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (at == MAP_FAILED) refuse_errno(file.where(), "cannot map the file", errno);
  readable_ = {static_cast<const std::byte*>(at), (bytes + page - 1) / page * page};
}

Mapping::~Mapping() { system_calls().munmap(const_cast<std::byte*>(readable_.data()), readable_.size()); }

}  // namespace ferrite::io::detail
