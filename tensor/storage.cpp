/// Storage of tensors: the pools of freed blocks of each thread, the reserves of programs, and memory with a foreign
/// owner.
#include "ferrite/tensor/storage.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/reserve.h"
#include "ferrite/tensor/storage_limit.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/system/per_thread.h"
#include "ferrite/tensor/system/system.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite {

// ---- blocks of memory as pools and reserves hold them -----------------------------------------------------

namespace detail {

/// Number of bins: four for each power of two of the block's size, in lines of 64 bytes.
constexpr std::size_t kBins = 96;

inline std::size_t bin_of(std::size_t lines) {
  if (lines < 4) return lines;
  const auto power = static_cast<std::size_t>(std::bit_width(lines)) - 1;  // 2^power <= lines
  const std::size_t quarter = (lines - 1) >> (power - 2);                  // 3 for a power of two, else 4..7
  return 4 * (power - 1) + (quarter - 3);
}
/// Returns the most lines that fall into a bin: the size with which its blocks are made.
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

/// Size of a block for a TensorImpl alone. A free one holds a pointer to the next free one.
constexpr std::size_t kViewBytes = (sizeof(TensorImpl) + 63) / 64 * 64;
inline TensorImpl*& next_view(TensorImpl* impl) { return *reinterpret_cast<TensorImpl**>(impl); }

/// Free blocks of memory by bin, and free views, as lists linked through the blocks themselves.
struct FreeBlocks {
  Storage* blocks[kBins];
  TensorImpl* views;

  /// Takes a block of a bin; null where there is none.
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
      while (Storage* const s = pop(bin)) free_lines(s);
    while (TensorImpl* const view = pop_view()) free_lines(view);
  }
};

/// Takes memory from the system. Throws MemoryError.
void* system_block(std::size_t bytes);
/// Makes a block of memory from the system. Throws MemoryError.
Storage* new_block(std::size_t bytes, PoolOwner* owner, void (*release)(Storage*) noexcept, std::size_t bin);
/// Returns the reserve that is open on this thread; null: none.
Reserve*& open_reserve();
/// Counts a block that came from the system (PoolCounts).
void count_miss();

/// The free memory of a reserve. It owns its blocks as a pool does.
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
    free_lines(s);  // it has outlived its run, maybe on another thread
  }
  void* take_view() {
    ++views_out;
    if (void* const view = free.pop_view()) return view;
    count_miss();
    return system_block(kViewBytes);
  }
};

namespace {

/// Takes a block for a tensor. Throws MemoryError with its shape and size.
Storage* block_for(const Shape& shape, Dtype dtype, std::size_t bytes) {
  try {
    return take_block(bytes);
  } catch (const MemoryError&) {
    throw MemoryError("tensor: no memory for " + Spec{shape, dtype}.str() + ": " + std::to_string(bytes) +
                      " bytes; make it smaller, or split the batch");
  }
}

// ---- pools ------------------------------------------------------------------------------------------------

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

constexpr std::size_t kMostViews = 4096;
/// Most bytes that other threads may return to a pool before it takes them.
constexpr std::size_t kMostReturned = std::size_t{64} << 20;

std::atomic<std::size_t> most_cached{std::size_t{256} << 20};

}  // namespace

constinit PoolOwner nobody{};

namespace {

constinit Storage closed{};

/// Pools whose threads have ended. Their blocks may live on, so owners are never destroyed: the next thread takes one
/// over.
class IdleOwners {
 public:
  static IdleOwners& get() {
    static auto* const all = new IdleOwners;  // outlives every thread and every tensor with static lifetime
    return *all;
  }
  PoolOwner* take() {
    PoolOwner* owner = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (first_) owner = std::exchange(first_, first_->next_idle);
    }
    if (!owner) return new PoolOwner;
    owner->returned.store(nullptr, std::memory_order_relaxed);
    return owner;
  }
  void give(PoolOwner* owner) noexcept {
    const std::lock_guard lock(mutex_);
    owner->next_idle = std::exchange(first_, owner);
  }

 private:
  std::mutex mutex_;
  PoolOwner* first_ = nullptr;
};

void free_block(Storage* s) noexcept { free_lines(s); }

/// Returns a block to the pool of another thread, which takes it the next time it misses one. Where that thread has
/// ended, or does not take its blocks, the block goes back to the system.
void return_block(Storage* s) noexcept {
  PoolOwner& owner = *s->owner;
  const std::size_t bytes = block_bytes(s);
  Storage* head = owner.returned.load(std::memory_order_relaxed);
  if (head == &closed) return free_lines(s);
  if (owner.returned_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kMostReturned) {
    do {
      if (head == &closed) break;
      s->packs.store(head, std::memory_order_relaxed);
      if (owner.returned.compare_exchange_weak(head, s, std::memory_order_release, std::memory_order_relaxed)) return;
    } while (true);
  }
  owner.returned_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  free_lines(s);
}

/// The memory that a thread holds for reuse. Trivial, so that accessing it costs no check: `Ending` empties it.
struct Pool {
  FreeBlocks free;
  std::size_t cached;
  std::size_t cached_views;
  std::size_t emptied;  ///< the next bin from which blocks are freed
  PoolCounts counts;
  PoolOwner* owner;  ///< null before the first block and after the thread's end
  Reserve* reserve;  ///< used first while it is open
  bool ended;        ///< the thread is ending: new blocks have no pool

  Storage* take(std::size_t bin) noexcept {
    Storage* const s = free.pop(bin);
    if (s) cached -= block_bytes(s);
    return s;
  }
  void give(Storage* s) noexcept {
    const std::size_t most = most_cached.load(std::memory_order_relaxed);
    if (cached + block_bytes(s) > most && !make_room(block_bytes(s), most)) return free_lines(s);
    free.push(s);
    cached += block_bytes(s);
  }
  /// Frees held blocks, bin by bin, until `bytes` more fit within the limit: a block given back now replaces older
  /// ones. Returns false where `bytes` alone exceed the limit.
  [[gnu::noinline]] bool make_room(std::size_t bytes, std::size_t most) noexcept {
    if (bytes > most) return false;
    while (cached + bytes > most) {
      if (Storage* const s = take(emptied)) {
        free_lines(s);
      } else {
        emptied = (emptied + 1) % kBins;
      }
    }
    return true;
  }
  /// Takes over the blocks that other threads have returned, then takes one of a bin; null where there is none.
  Storage* take_returned(std::size_t bin) noexcept {
    if (!owner || !owner->returned.load(std::memory_order_relaxed)) return nullptr;
    take_over(nullptr);
    return take(bin);
  }
  void begin();
  void end() noexcept;
  void clear() noexcept;

 private:
  /// Takes the list of returned blocks and leaves `rest` in its place.
  void take_over(Storage* rest) noexcept {
    Storage* s = owner->returned.exchange(rest, std::memory_order_acquire);
    std::size_t bytes = 0;
    while (s) {
      Storage* next = s->packs.load(std::memory_order_relaxed);
      bytes += block_bytes(s);
      give(s);
      s = next;
    }
    owner->returned_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  }
};
FERRITE_PER_THREAD constinit PerThread<Pool> pool;

void Pool::clear() noexcept {
  if (owner) take_over(nullptr);
  free.free_all();
  cached = 0;
  cached_views = 0;
}

void Pool::end() noexcept {
  ended = true;
  if (owner) take_over(&closed);
  PoolOwner* const last = std::exchange(owner, nullptr);
  clear();
  if (last) IdleOwners::get().give(last);
}

/// Empties the pool when its thread ends.
struct Ending {
  bool armed = false;
  ~Ending() { pool().end(); }
};

void Pool::begin() {
  owner = IdleOwners::get().take();
  object_of_thread<Ending>().armed = true;  // this thread must return memory from its first block on
}

}  // namespace

void* system_block(std::size_t bytes) {
  void* p = allocate_lines(bytes);
  if (!p) {  // nothing of this size is held for reuse
    pool().clear();
    p = allocate_lines(bytes);
  }
  if (!p) throw MemoryError("memory: the system gives no block of " + std::to_string(bytes) + " bytes");
  return p;
}

Storage* new_block(std::size_t bytes, PoolOwner* owner, void (*release)(Storage*) noexcept, std::size_t bin) {
  auto* s = ::new (system_block(bytes)) Storage;
  s->content.store(blocks_made.fetch_add(1, std::memory_order_relaxed) << 32, std::memory_order_relaxed);
  s->owner = owner;
  s->release = release;
  s->elements = reinterpret_cast<std::byte*>(s) + Storage::kDataAt;
  s->capacity = bytes - Storage::kDataAt;
  s->bin = static_cast<std::uint8_t>(bin);
  return s;
}

Reserve*& open_reserve() { return pool().reserve; }
void count_miss() { ++pool().counts.misses; }

namespace {

// Kept separate from the code of every call.
[[gnu::noinline]] TensorImpl* reserved_view() { return ::new (pool().reserve->held().take_view()) TensorImpl; }
[[gnu::noinline]] Storage* reserved_block(std::size_t bin) { return pool().reserve->held().take(bin); }
[[gnu::noinline]] bool reserve_keeps(TensorImpl* view) noexcept {
  if (pool().reserve->empty() || pool().reserve->held().views_out == 0) return false;
  --pool().reserve->held().views_out;
  pool().reserve->held().free.push_view(view);
  return true;
}

TensorImpl* take_view() {
  if (kPooling) {
    ++pool().counts.requests;
    if (pool().reserve) [[unlikely]]
      return reserved_view();
    if (TensorImpl* const impl = pool().free.pop_view()) {
      --pool().cached_views;
      return ::new (static_cast<void*>(impl)) TensorImpl;
    }
    ++pool().counts.misses;
  }
  return ::new (system_block(kViewBytes)) TensorImpl;
}

/// Gives back a view. It stays in the pool of the thread where it ends: views are small, and few of them are held.
void give_view(TensorImpl* impl) noexcept {
  if (kPooling && pool().reserve && reserve_keeps(impl)) [[unlikely]]
    return;
  if (kPooling && pool().owner && pool().cached_views < kMostViews) {
    pool().free.push_view(impl);
    ++pool().cached_views;
    return;
  }
  free_lines(impl);
}

/// Returns a block that this thread does not hold: one from other threads, or from the system.
[[gnu::noinline]] Storage* missing_block(std::size_t lines, std::size_t bin) {
  if (kPooling && bin < kBins) {
    if (Storage* s = pool().take_returned(bin)) return s;
    ++pool().counts.misses;
    if (!pool().owner && !pool().ended) pool().begin();
  }
  const bool pooled = kPooling && bin < kBins && !pool().ended;
  const std::size_t bytes = 64 * (pooled ? lines_of(bin) : lines);
  return pooled ? new_block(bytes, pool().owner, return_block, bin) : new_block(bytes, &nobody, free_block, 0);
}

}  // namespace

Storage* take_block(std::size_t data_bytes) {
  const std::size_t lines = (Storage::kDataAt + data_bytes + 63) / 64 + 1;
  const std::size_t bin = bin_of(lines);
  if (kPooling && bin < kBins) {
    ++pool().counts.requests;
    if (pool().reserve) [[unlikely]]
      return reserved_block(bin);
    if (Storage* s = pool().take(bin)) return s;
  }
  return missing_block(lines, bin);
}

void give_block(Storage* s) noexcept {
  if (s->owner != pool().owner) return s->release(s);
  pool().give(s);
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

FERRITE_PER_THREAD constinit PerThread<std::int64_t> most_stored(kMostStored);

TensorImpl* new_tensor(const Shape& shape, Dtype dtype) {
  const std::int64_t n = shape.numel();
  if (n > most_stored()) [[unlikely]]
    throw ShapeError("tensor: too large: " + Spec{shape, dtype}.str());
  Storage* s = block_for(shape, dtype, static_cast<std::size_t>(n * size_of(dtype)));
  s->begin_content();
  auto* impl = ::new (static_cast<void*>(s->first_impl())) TensorImpl;
  impl->dtype = dtype;
  impl->storage = s;
  impl->first = s->elements;
  impl->shape = shape;
  shape.write_strides(impl->strides);
  return impl;
}

TensorImpl* new_view(TensorImpl* base, const Shape& shape, const Shape& strides, std::int64_t offset) {
  TensorImpl* impl = take_view();
  impl->dtype = base->dtype;
  impl->storage = base->storage;
  if (base->storage) base->storage->refs.fetch_add(1, std::memory_order_relaxed);
  if (base->first) impl->first = base->first + offset * size_of(base->dtype);
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

std::size_t cached_memory() {
  const detail::Pool& p = detail::pool();
  const std::size_t returned = p.owner ? p.owner->returned_bytes.load(std::memory_order_relaxed) : 0;
  return p.cached + p.cached_views * detail::kViewBytes + returned;
}
void trim() {
  detail::pool().clear();
  detail::trim_free_memory();  // the C library holds freed memory, too
}
void set_cache_limit(std::size_t bytes) {
  detail::most_cached.store(bytes, std::memory_order_relaxed);
  if (cached_memory() > bytes) detail::pool().clear();
}
std::size_t cache_limit() { return detail::most_cached.load(std::memory_order_relaxed); }
PoolCounts pool_counts() { return detail::pool().counts; }

// ---- reserves: the memory of the calls of a program, kept for its next run --------------------------------

namespace detail {

Reserve::~Reserve() {
  if (!held_) return;
  held_->free.free_all();
  held_->kept.clear();
  if (held_->out.load() == 0) delete held_;  // otherwise a tensor still lives whose block returns there
}

Reserve::Open::Open(Reserve& reserve) : before_(std::exchange(open_reserve(), &reserve)) {}
Reserve::Open::~Open() { open_reserve() = before_; }

Reserve::Held& Reserve::held() {
  if (!held_) held_ = new Held;
  return *held_;
}

void* Reserve::kept(const void* key, std::shared_ptr<void> (*make)()) {
  if (!open_reserve()) return nullptr;
  auto& all = open_reserve()->held().kept;
  const auto at = std::find_if(all.begin(), all.end(), [key](const auto& k) { return k.first == key; });
  return at == all.end() ? all.emplace_back(key, make()).second.get() : at->second.get();
}

// ---- memory with a foreign owner: used in place where kernels can read it, otherwise copied ----------------

namespace {

/// The header of foreign elements: its first TensorImpl is where other storages have theirs; `keeper` holds the
/// elements.
struct Foreign : Storage {
  alignas(64) std::byte impl[Storage::kDataAt - Storage::kImplAt];
  std::shared_ptr<const void> keeper;
};
static_assert(sizeof(Storage) == Storage::kImplAt);

/// Frees the header of foreign elements. The keeper goes last: it may run anything, including code that frees tensors.
void free_foreign(Storage* s) noexcept {
  auto* const foreign = static_cast<Foreign*>(s);
  const std::shared_ptr<const void> keeper = std::move(foreign->keeper);
  delete foreign;
}

}  // namespace

TensorImpl* new_foreign(const Spec& spec, std::span<const std::byte> readable, std::shared_ptr<const void> keeper) {
  auto* const foreign = new Foreign;
  foreign->keeper = std::move(keeper);
  Storage& s = *foreign;
  s.content.store(blocks_made.fetch_add(1, std::memory_order_relaxed) << 32, std::memory_order_relaxed);
  s.owner = &nobody;
  s.release = free_foreign;
  s.elements = const_cast<std::byte*>(readable.data());
  s.capacity = readable.size();
  s.writable = false;
  s.begin_content();
  auto* const impl = ::new (static_cast<void*>(s.first_impl())) TensorImpl;
  impl->dtype = spec.dtype;
  impl->storage = &s;
  impl->first = s.elements;
  impl->shape = spec.shape;
  spec.shape.write_strides(impl->strides);
  return impl;
}

namespace {

/// Returns the bytes of the elements. Throws unless all are there and each one is a value of its dtype.
std::size_t checked_bytes(std::span<const std::byte> readable, const Spec& spec) {
  const std::int64_t n = spec.shape.numel();
  if (n > kMostStored) throw ShapeError("frozen: too large: " + spec.str());
  const auto bytes = static_cast<std::size_t>(n * size_of(spec.dtype));
  if (readable.size() < bytes)
    throw ValueError("frozen: the memory is shorter than the elements: " + std::to_string(readable.size()) +
                     " bytes for " + spec.str() + ", which has " + std::to_string(bytes));
  for (std::size_t i = 0; i < bytes && spec.dtype == Dtype::boolean; ++i)
    if (const auto value = std::to_integer<unsigned>(readable[i]); value > 1)
      throw ValueError("frozen: a bool is neither 0 nor 1: " + std::to_string(value) + " at element " +
                       std::to_string(i));
  return bytes;
}

/// Returns whether kernels can read the elements in place.
bool readable_in_place(std::span<const std::byte> readable, std::size_t bytes, Dtype dtype) {
  const auto address = reinterpret_cast<std::uintptr_t>(readable.data());
  return bytes > 0 && address % static_cast<std::uintptr_t>(size_of(dtype)) == 0 &&
         readable.size() >= readable_for(bytes);
}

}  // namespace

}  // namespace detail

Tensor Tensor::frozen(std::span<const std::byte> readable, const Spec& spec, std::shared_ptr<const void> keeper) {
  const std::size_t bytes = detail::checked_bytes(readable, spec);
  if (detail::readable_in_place(readable, bytes, spec.dtype))
    return Tensor(detail::new_foreign(spec, readable, std::move(keeper)));
  Tensor copy = empty(spec);
  if (bytes > 0) std::memcpy(copy.impl_->first, readable.data(), bytes);
  return copy;
}

}  // namespace ferrite
