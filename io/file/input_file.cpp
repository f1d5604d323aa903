/// Reads regular files from front to back, whole into heap memory, or mapped.
#include "ferrite/io/file/input_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <new>
#include <string>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/tensor/system/files.h"

namespace ferrite::io::detail {

using ferrite::detail::FileKind;
using ferrite::detail::FileStatus;
using ferrite::detail::OpenFor;
using ferrite::detail::page_bytes;
using ferrite::detail::system_calls;
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

namespace {

/// Largest number of bytes that one call reads: Linux stops at 2^31 - 4096, macOS refuses more than 2^31 - 1.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

std::string_view name_of(FileKind kind) {
  switch (kind) {
    case FileKind::folder: return "a folder";
    case FileKind::fifo: return "a FIFO";
    case FileKind::device: return "a device";
    case FileKind::socket: return "a socket";
    default: return "something else";
  }
}

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : where_(shown(path)) {
  if (path.empty()) refuse("load", "the path is empty: ''");
  if (path.native().find('\0') != std::string::npos) refuse(where_, "the path holds a NUL");
  do {
    fd_ = system_calls().open(path, OpenFor::reading);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) refuse_errno(where_, "cannot open the file", errno);
  try {
    size_ = present_size();
  } catch (...) {
    system_calls().close(fd_);
    throw;
  }
}

InputFile::~InputFile() { system_calls().close(fd_); }

std::uint64_t InputFile::present_size() const {
  FileStatus about;
  if (system_calls().status(fd_, about) != 0) refuse_errno(where_, "cannot examine the file", errno);
  if (about.kind != FileKind::regular) refuse(where_, "not a regular file: it is " + std::string(name_of(about.kind)));
  return about.size;
}

std::size_t InputFile::read_some(std::span<std::byte> out) {
  std::ptrdiff_t got = 0;
  do {
    got = system_calls().read(fd_, out.data(), std::min(out.size(), kMostAtOnce));
  } while (got < 0 && errno == EINTR);
  if (got < 0) refuse_errno(where_, "cannot read the file", errno);
  return static_cast<std::size_t>(got);
}

void InputFile::read(std::span<std::byte> out) {
  while (!out.empty()) {
    const std::size_t got = read_some(out);
    if (got == 0) refuse(where_, "the file ended while it was being read: " + counted(out.size(), "byte") + " missing");
    out = out.subspan(got);
  }
}

void InputFile::expect_end() {
  std::array<std::byte, 1> more{};
  if (read_some(more) != 0) refuse(where_, "the file grew while it was being read: it had " + counted(size_, "byte"));
}

void InputFile::expect_size() const {
  const std::uint64_t now = present_size();
  if (now != size_)
    refuse(where_, "the file changed while it was being opened: it had " + counted(size_, "byte") + ", now " +
                       std::to_string(now));
}

WholeFile read_whole(const std::filesystem::path& path) {
  InputFile file(path);
  WholeFile whole{file.where(), Block(file.size(), file.where())};
  file.read(whole.bytes.span());
  file.expect_end();
  return whole;
}

Mapping::Mapping(const InputFile& file) {
  const std::size_t page = page_bytes();
  if (file.size() > std::numeric_limits<std::size_t>::max() - page)
    refuse(file.where(), "too large for this machine: " + counted(file.size(), "byte"));
  file.expect_size();
  const auto bytes = static_cast<std::size_t>(file.size());
  void* const at = system_calls().map(bytes, file.descriptor());
  if (!at) refuse_errno(file.where(), "cannot map the file", errno);
  readable_ = {static_cast<const std::byte*>(at), (bytes + page - 1) / page * page};
}

Mapping::~Mapping() { system_calls().unmap(const_cast<std::byte*>(readable_.data()), readable_.size()); }

}  // namespace ferrite::io::detail
