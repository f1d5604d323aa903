#pragma once
/// Memory from the heap that is not cleared, for the contents of files.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace ferrite::io::detail {

/// Bytes from the heap that are not cleared first.
class Block {
 public:
  Block() = default;
  /// Throws IoError, its message beginning with `where`, when there is not enough memory.
  Block(std::uint64_t size, std::string_view where);

  std::span<std::byte> span() { return {bytes_.get(), size_}; }
  std::span<const std::byte> span() const { return {bytes_.get(), size_}; }

 private:
  std::size_t size_ = 0;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace ferrite::io::detail
