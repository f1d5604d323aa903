#include "ferrite/autograd/detail/arena.h"

#include <new>

namespace ferrite::detail {
namespace {

constexpr std::size_t kChunk = 1 << 16;
constexpr std::size_t kMostSpare = 256;

struct Spare {
  std::vector<std::byte*> chunks;
  ~Spare() {
    for (std::byte* c : chunks) ::operator delete(c);
  }
};
thread_local Spare spare;

}  // namespace

void* Arena::refill(std::size_t bytes) {
  if (bytes > kChunk / 4) {
    large_.push_back(static_cast<std::byte*>(::operator new(bytes)));
    return large_.back();
  }
  if (spare.chunks.empty()) {
    chunks_.push_back(static_cast<std::byte*>(::operator new(kChunk)));
  } else {
    chunks_.push_back(spare.chunks.back());
    spare.chunks.pop_back();
  }
  at_ = chunks_.back() + bytes;
  left_ = kChunk - bytes;
  return chunks_.back();
}

Arena::~Arena() {
  for (std::byte* p : large_) ::operator delete(p);
  for (std::byte* c : chunks_) {
    if (spare.chunks.size() < kMostSpare) {
      spare.chunks.push_back(c);
    } else {
      ::operator delete(c);
    }
  }
}

}  // namespace ferrite::detail
