#pragma once
/// Inflates the deflated members of zip archives.
#include <cstddef>
#include <span>
#include <string_view>

namespace ferrite::io::detail {

/// How the inflation of a stream ended.
struct Inflated {
  enum class End {
    finished,   ///< the stream is over
    full,       ///< the memory is full, and the stream has more
    cut_short,  ///< the bytes are over, and the stream is not
    damaged
  };
  End end = End::finished;
  std::size_t written = 0;       ///< bytes of the contents
  std::size_t read = 0;          ///< bytes of the stream; those of `finished` alone
  std::string_view damage = {};  ///< what is wrong with a damaged stream
};

/// Inflates a raw deflate stream (RFC 1951) into `out` until either ends. Takes no memory but some of the stack, and
/// never fails otherwise: it reads and writes nothing outside of both, whatever the bytes are.
Inflated inflate(std::span<const std::byte> packed, std::span<std::byte> out);

}  // namespace ferrite::io::detail
