#pragma once
/// Blocks of memory as pools and reserves hold them.
#include <atomic>
#include <bit>
#include <cstdlib>
#include <utility>
#include <vector>

#include "ferrite/tensor/reserve.h"
#include "ferrite/tensor/storage.h"

namespace ferrite::detail {

/// Bins are four steps to each power of two of the block's size in lines of 64 bytes.
constexpr std::size_t kBins = 96;

inline std::size_t bin_of(std::size_t lines) {
  if (lines < 4) return lines;
  const auto power = static_cast<std::size_t>(std::bit_width(lines)) - 1;  // 2^power <= lines
  const std::size_t quarter = (lines - 1) >> (power - 2);                  // 3 for a power of two, else 4..7
  return 4 * (power - 1) + (quarter - 3);
}
/// Most lines that fall into a bin: the size that its blocks are made with.
inline std::size_t lines_of(std::size_t bin) {
  if (bin < 4) return bin;
  return (bin % 4 + 4) << (bin / 4 - 1);
}

inline std::size_t block_bytes(const Storage* s) { return Storage::kDataAt + s->capacity; }

struct PoolOwner {
  std::atomic<Storage*> returned{nullptr};  ///< a list; `closed` while no thread has this pool
  std::atomic<std::size_t> returned_bytes{0};
  PoolOwner* next_idle = nullptr;
};

/// Of a TensorImpl that stands in a block of its own, and the next one of a list of such blocks that are free.
constexpr std::size_t kViewBytes = (sizeof(TensorImpl) + 63) / 64 * 64;
inline TensorImpl*& next_view(TensorImpl* impl) { return *reinterpret_cast<TensorImpl**>(impl); }

/// Free blocks of memory by bin, and free views, as lists through the blocks themselves.
struct FreeBlocks {
  Storage* blocks[kBins];
  TensorImpl* views;

  /// Null where there is none.
  Storage* pop(std::size_t bin) noexcept {
    Storage* const s = blocks[bin];
    if (!s) return nullptr;
    blocks[bin] = s->packs.load(std::memory_order_relaxed);
    s->packs.store(nullptr, std::memory_order_relaxed);
    s->refs.store(1, std::memory_order_relaxed);
    return s;
  }
  void push(Storage* s) noexcept { s->packs.store(std::exchange(blocks[s->bin], s), std::memory_order_relaxed); }
  TensorImpl* pop_view() noexcept { return views ? std::exchange(views, next_view(views)) : nullptr; }
  void push_view(TensorImpl* impl) noexcept { next_view(impl) = std::exchange(views, impl); }
  void free_all() noexcept {
    for (std::size_t bin = 0; bin < kBins; ++bin)
      while (Storage* const s = pop(bin)) std::free(s);
    while (TensorImpl* const view = pop_view()) std::free(view);
  }
};

/// Throws MemoryError.
void* system_block(std::size_t bytes);
/// A block from the system. Throws MemoryError.
Storage* new_block(std::size_t bytes, PoolOwner* owner, void (*release)(Storage*) noexcept, std::size_t bin);
/// The reserve that is open on this thread; null: none.
Reserve*& open_reserve();
/// Counts a block that came from the system (PoolCounts).
void count_miss();

/// What is free of a reserve. It owns its blocks as a pool does.
struct Reserve::Held : PoolOwner {
  FreeBlocks free{};
  std::size_t views_out = 0;
  std::atomic<std::size_t> out{0};  ///< blocks in use
  std::vector<std::pair<const void*, std::shared_ptr<void>>> kept;

  Storage* take(std::size_t bin) {
    Storage* s = free.pop(bin);
    if (!s) {
      count_miss();
      s = new_block(64 * lines_of(bin), this, give, bin);
    }
    out.fetch_add(1, std::memory_order_relaxed);
    return s;
  }
  static void give(Storage* s) noexcept {
    auto* const held = static_cast<Held*>(s->owner);
    held->out.fetch_sub(1, std::memory_order_relaxed);
    if (open_reserve() && open_reserve()->holds(held)) return held->free.push(s);
    std::free(s);  // it has outlived its run, maybe on another thread
  }
  void* take_view() {
    ++views_out;
    if (void* const view = free.pop_view()) return view;
    count_miss();
    return system_block(kViewBytes);
  }
};

}  // namespace ferrite::detail
