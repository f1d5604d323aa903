/// The chunks of memory that tapes are recorded in, reused by each thread.
#include "ferrite/autograd/detail/arena.h"

#include <new>

namespace ferrite::detail {
namespace {

constexpr std::size_t kChunk = 1 << 16;
constexpr std::size_t kMostSpare = 256;

/// Outlives `spare`: tapes that wait for the end of their thread may be ended after it.
thread_local constinit bool spare_ended = false;

struct Spare {
  std::vector<std::byte*> chunks;
  ~Spare() {
    for (std::byte* c : chunks) ::operator delete(c);
    spare_ended = true;
  }
};
thread_local Spare spare;

}  // namespace

void* Arena::refill(std::size_t bytes) {
  if (bytes > kChunk / 4) {
    large_.push_back(static_cast<std::byte*>(::operator new(bytes)));
    return large_.back();
  }
  if (spare_ended || spare.chunks.empty()) {
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
    if (!spare_ended && spare.chunks.size() < kMostSpare) {
      spare.chunks.push_back(c);
    } else {
      ::operator delete(c);
    }
  }
}

}  // namespace ferrite::detail
