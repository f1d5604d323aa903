#include "ferrite/tensor/storage.h"

#include <bit>
#include <cstdlib>
#include <new>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/inline_vector.h"

namespace ferrite {
namespace detail {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPooling = false;  // let the sanitizer see every use after free
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kPooling = false;
#else
constexpr bool kPooling = true;
#endif
#else
constexpr bool kPooling = true;
#endif

/// Bins are four steps to each power of two of the block's size in lines of 64 bytes.
constexpr std::size_t kBins = 96;
constexpr std::size_t kMostCached = std::size_t{512} << 20;
constexpr std::size_t kMostViews = 4096;

std::size_t bin_of(std::size_t lines) {
  if (lines < 4) return lines;
  const auto top = static_cast<std::size_t>(std::bit_width(lines)) - 1;  // 2^top <= lines
  const std::size_t quarter = (lines - 1) >> (top - 2);                  // 3 for a power of two, else 4..7
  return 4 * (top - 1) + (quarter - 3);
}
/// Most lines that fall into a bin: the size that its blocks are made with.
std::size_t lines_of(std::size_t bin) {
  if (bin < 4) return bin;
  return (bin % 4 + 4) << (bin / 4 - 1);
}

/// What a thread keeps for reuse. Trivial, so that reaching it costs no check: `Ending` empties it.
struct Pool {
  Storage* blocks[kBins];
  TensorImpl* views;
  std::size_t cached;
  std::size_t cached_views;
  PoolCounts counts;
  bool ended;  ///< the thread is ending: tensors with static lifetime are freed directly

  void clear() noexcept;
};
thread_local constinit Pool pool{};

TensorImpl*& next_view(TensorImpl* impl) { return *reinterpret_cast<TensorImpl**>(impl); }

void Pool::clear() noexcept {
  for (Storage*& head : blocks) {
    while (head) {
      Storage* next = head->next_free;
      std::free(head);
      head = next;
    }
  }
  while (views) {
    TensorImpl* next = next_view(views);
    std::free(views);
    views = next;
  }
  cached = 0;
  cached_views = 0;
}

/// Empties the pool when its thread ends.
struct Ending {
  bool armed = false;
  ~Ending() {
    pool.clear();
    pool.ended = true;
  }
};
thread_local Ending ending;

void* system_block(std::size_t bytes) {
  ending.armed = true;  // from the first block on, this thread has something to give back
  void* p = std::aligned_alloc(64, bytes);
  if (!p) throw std::bad_alloc();
  return p;
}

constexpr std::size_t kViewBytes = (sizeof(TensorImpl) + 63) / 64 * 64;

TensorImpl* take_view() {
  if (kPooling && !pool.ended) {
    ++pool.counts.requests;
    if (TensorImpl* impl = pool.views) {
      pool.views = next_view(impl);
      --pool.cached_views;
      return ::new (static_cast<void*>(impl)) TensorImpl;
    }
    ++pool.counts.misses;
  }
  return ::new (system_block(kViewBytes)) TensorImpl;
}

void give_view(TensorImpl* impl) noexcept {
  if (kPooling && !pool.ended && pool.cached_views < kMostViews) {
    next_view(impl) = pool.views;
    pool.views = impl;
    ++pool.cached_views;
    return;
  }
  std::free(impl);
}

bool is_contiguous(const Shape& shape, const Shape& strides) {
  std::int64_t n = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != n) return shape.numel() == 0;
    n *= shape[i];
  }
  return true;
}

}  // namespace

Storage* take_block(std::size_t data_bytes) {
  const std::size_t lines = (Storage::kDataAt + data_bytes + 63) / 64 + 1;
  const std::size_t bin = bin_of(lines);
  if (kPooling && !pool.ended && bin < kBins) {
    ++pool.counts.requests;
    if (Storage* s = pool.blocks[bin]) {
      pool.blocks[bin] = s->next_free;
      pool.cached -= s->block_bytes;
      s->refs.store(1, std::memory_order_relaxed);
      return s;
    }
    ++pool.counts.misses;
  }
  const std::size_t bytes = 64 * (kPooling && bin < kBins ? lines_of(bin) : lines);
  static std::atomic<std::uint64_t> blocks{0};  // another block at the same address counts its contents from elsewhere
  auto* s = ::new (system_block(bytes)) Storage;
  s->content.store(blocks.fetch_add(1, std::memory_order_relaxed) << 32, std::memory_order_relaxed);
  s->bin = static_cast<std::uint32_t>(bin);
  s->block_bytes = bytes;
  s->capacity = bytes - Storage::kDataAt;
  return s;
}

void give_block(Storage* s) noexcept {
  if (kPooling && !pool.ended && s->bin < kBins && pool.cached + s->block_bytes <= kMostCached) {
    s->next_free = pool.blocks[s->bin];
    pool.blocks[s->bin] = s;
    pool.cached += s->block_bytes;
    return;
  }
  std::free(s);
}

void* take_pooled(std::size_t bytes) { return take_block(bytes)->data(); }

void give_pooled(void* p) noexcept {
  give_block(reinterpret_cast<Storage*>(static_cast<std::byte*>(p) - Storage::kDataAt));
}

void drop_packs(Storage* s) noexcept {
  s->uses.store(0, std::memory_order_relaxed);
  for (Storage* pack = s->packs.exchange(nullptr, std::memory_order_acquire); pack;) {
    Storage* next = pack->packs.load(std::memory_order_relaxed);
    pack->packs.store(nullptr, std::memory_order_relaxed);
    give_block(pack);
    pack = next;
  }
}

namespace {

void end_content(Storage* s) noexcept {
  if (s->uses.load(std::memory_order_relaxed)) drop_packs(s);
  s->rewritten = false;
  give_block(s);
}

void release_storage(Storage* s) noexcept {
  if (s->refs.load(std::memory_order_acquire) == 1 || s->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
    end_content(s);
}

}  // namespace

TensorImpl* new_tensor(const Shape& shape, Dtype dtype) {
  const std::int64_t n = shape.numel();
  constexpr std::int64_t kMostElements = std::int64_t{1} << 44;
  if (n > kMostElements) [[unlikely]]
    throw ShapeError("tensor: too large: " + Spec{shape, dtype}.str());
  Storage* s = take_block(static_cast<std::size_t>(n * size_of(dtype)));
  s->begin_content();
  auto* impl = ::new (static_cast<void*>(s->first_impl())) TensorImpl;
  impl->dtype = dtype;
  impl->storage = s;
  impl->shape = shape;
  shape.write_strides(impl->strides);
  return impl;
}

TensorImpl* new_view(TensorImpl* base, const Shape& shape, const Shape& strides, std::int64_t offset) {
  TensorImpl* impl = take_view();
  impl->dtype = base->dtype;
  impl->storage = base->storage;
  if (base->storage) base->storage->refs.fetch_add(1, std::memory_order_relaxed);
  impl->offset = base->offset + offset;
  impl->shape = shape;
  impl->strides = strides;
  impl->contiguous = is_contiguous(shape, strides);
  return impl;
}

TensorImpl* new_abstract(const Shape& shape, Dtype dtype) {
  (void)shape.numel();
  TensorImpl* impl = take_view();
  impl->dtype = dtype;
  impl->shape = shape;
  impl->strides = shape.strides();
  return impl;
}

void destroy(TensorImpl* impl) noexcept {
  Storage* s = impl->storage;
  if (!s || impl != s->first_impl()) give_view(impl);
  if (s) release_storage(s);
}

}  // namespace detail

std::size_t cached_memory() { return detail::pool.cached; }
void release_cached_memory() { detail::pool.clear(); }
PoolCounts pool_counts() { return detail::pool.counts; }

}  // namespace ferrite
