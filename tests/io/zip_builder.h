#pragma once
/// Zip archives made by hand, any field of which can be wrong.
#include <zlib.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace zip_test {

template <class T>
std::string little(T number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i) & 0xff);
  return bytes;
}

inline std::uint32_t crc_of(const std::string& text) {
  return static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

/// Returns a raw deflate stream.
inline std::string deflated(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflate");
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// The fields that both headers of a member have.
struct Header {
  std::string name{};
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint32_t packed = 0;
  std::uint32_t size = 0;
  std::string extra{};

  std::string fields() const {
    return little(flags) + little(method) + little(std::uint32_t{0x00210000}) + little(crc) + little(packed) +
           little(size) + little(static_cast<std::uint16_t>(name.size())) +
           little(static_cast<std::uint16_t>(extra.size()));
  }
};

struct Member {
  Header local{};
  Header central{};
  std::string payload{};
  std::string behind{};               ///< bytes after the payload
  std::string comment{};              ///< comment in the central directory
  std::uint16_t volume = 0;           ///< volume in the central directory
  std::optional<std::uint32_t> at{};  ///< place of the local header according to the central directory
};

inline Member stored(const std::string& name, const std::string& contents) {
  const Header header{.name = name,
                      .crc = crc_of(contents),
                      .packed = static_cast<std::uint32_t>(contents.size()),
                      .size = static_cast<std::uint32_t>(contents.size())};
  return {.local = header, .central = header, .payload = contents};
}

inline Member packed(const std::string& name, const std::string& contents) {
  Member member = stored(name, contents);
  member.payload = deflated(contents);
  for (Header* header : {&member.local, &member.central}) {
    header->method = 8;
    header->packed = static_cast<std::uint32_t>(member.payload.size());
  }
  return member;
}

/// Returns an extra field.
inline std::string extra(std::uint16_t id, const std::string& data) {
  return little(id) + little(static_cast<std::uint16_t>(data.size())) + data;
}

/// The parts of an archive around its members.
struct Around {
  std::string before{};                  ///< bytes at the front; offsets count from the front of all
  std::string between{};                 ///< bytes after the central directory
  std::string comment{};                 ///< comment after the end record
  std::string behind{};                  ///< bytes after everything
  std::optional<std::uint16_t> here{};   ///< number of members in this volume
  std::optional<std::uint16_t> total{};  ///< number of members
  std::optional<std::uint32_t> size{};   ///< size of the central directory
  std::optional<std::uint32_t> begin{};  ///< begin of the central directory
  std::uint16_t volume = 0;
};

inline std::string archive_of(const std::vector<Member>& members, const Around& around = {}) {
  std::string out = around.before;
  std::string directory;
  for (const Member& m : members) {
    const auto at = m.at.value_or(static_cast<std::uint32_t>(out.size()));
    out +=
        "PK\3\4" + little(std::uint16_t{20}) + m.local.fields() + m.local.name + m.local.extra + m.payload + m.behind;
    directory += "PK\1\2" + little(std::uint32_t{0x00140014}) + m.central.fields() +
                 little(static_cast<std::uint16_t>(m.comment.size())) + little(m.volume) + std::string(6, '\0') +
                 little(at) + m.central.name + m.central.extra + m.comment;
  }
  const auto begin = static_cast<std::uint32_t>(out.size());
  const auto count = static_cast<std::uint16_t>(members.size());
  return out + directory + around.between + "PK\5\6" + little(around.volume) + little(std::uint16_t{0}) +
         little(around.here.value_or(around.total.value_or(count))) + little(around.total.value_or(count)) +
         little(around.size.value_or(static_cast<std::uint32_t>(directory.size()))) +
         little(around.begin.value_or(begin)) + little(static_cast<std::uint16_t>(around.comment.size())) +
         around.comment + around.behind;
}

/// Returns the zip64 end record and its locator.
inline std::string end64(std::uint64_t members, std::uint64_t size, std::uint64_t begin, std::uint64_t at,
                         std::uint64_t length = 44) {
  return "PK\6\6" + little(length) + little(std::uint32_t{0x002d002d}) + std::string(8, '\0') + little(members) +
         little(members) + little(size) + little(begin) + "PK\6\7" + std::string(4, '\0') + little(at) +
         little(std::uint32_t{1});
}

}  // namespace zip_test
