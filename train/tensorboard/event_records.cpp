/// Appends records to a file, each by one call of the system.
#include "ferrite/train/tensorboard/event_records.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "ferrite/tensor/error.h"

namespace ferrite::train::detail {
namespace {

/// The CRC of every byte.
using CrcTable = std::array<std::uint32_t, 256>;
constexpr CrcTable crc_table(std::uint32_t polynomial) {
  CrcTable table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ polynomial : crc >> 1;
    table[i] = crc;
  }
  return table;
}
constexpr CrcTable kCastagnoli = crc_table(0x82f63b78U), kPng = crc_table(0xedb88320U);

std::uint32_t crc_of(std::string_view bytes, const CrcTable& table) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ crc >> 8;
  return ~crc;
}

void append_number(std::string& out, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i));
}

std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8U; }

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view what, int error) {
  throw IoError(path.string() + ": " + std::string(what) + ": " + std::generic_category().message(error));
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) { return crc_of(bytes, kCastagnoli); }
std::uint32_t crc32(std::string_view bytes) { return crc_of(bytes, kPng); }

std::string framed(std::string_view content) {
  std::string record;
  record.reserve(content.size() + 16);
  append_number(record, content.size(), 8);
  append_number(record, masked(crc32c(record)), 4);
  record += content;
  append_number(record, masked(crc32c(content)), 4);
  return record;
}

RecordFile::RecordFile(std::filesystem::path path) : path_(std::move(path)) {
  do {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) refuse(path_, "cannot create the file", errno);
}

RecordFile::~RecordFile() { ::close(fd_); }

void RecordFile::append(std::string_view content) {
  const std::string record = framed(content);
  for (std::string_view rest = record; !rest.empty();) {
    const ssize_t put = ::write(fd_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int error = errno;
      // Half a record would hide all that follow it.
      const bool restored = ::ftruncate(fd_, size_) == 0;
      refuse(path_, restored ? "cannot write the file" : "cannot write the file, which now ends in half a record",
             error);
    }
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  size_ += static_cast<std::int64_t>(record.size());
}

}  // namespace ferrite::train::detail
