#pragma once
/// Storage of tensors: reference-counted buffers from the pools of threads.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ferrite/tensor/shape.h"

namespace ferrite::detail {

struct Storage;

/// Elements that a tensor may hold in memory: more are refused before memory is asked for.
inline constexpr std::int64_t kMostStored = std::int64_t{1} << 44;

/// What a Tensor handle points to: a strided window on a Storage. Immutable once its tensor is handed out.
struct TensorImpl {
  std::atomic<std::uint32_t> refs{1};
  Dtype dtype = Dtype::f32;
  bool contiguous = true;      ///< row-major without gaps
  Storage* storage = nullptr;  ///< null: an abstract tensor, known by shape and dtype alone
  std::byte* first = nullptr;  ///< its first element; null where it is abstract
  Shape shape;
  Shape strides;
};

/// The pool of one thread, as the blocks that it made know it: they return there, whichever thread frees them.
struct PoolOwner;
/// Of blocks that belong to no pool.
extern PoolOwner nobody;
/// Blocks taken from the system so far: each counts its contents from the number of blocks before it, times 2^32, so
/// that another block at the same address counts them from elsewhere.
inline std::atomic<std::uint64_t> blocks_made{0};

/// A reference-counted buffer, aligned to 64 bytes, padded to whole lines of 64 and one line more, so that whole
/// packets may be read and written at any row of it. One block of memory from the pool of a thread holds this header,
/// the first TensorImpl and the elements; elements that belong to somebody else have a header of their own kind
/// (new_foreign), with another `release`: they are aligned to their size, as those of any view are, and only read.
struct alignas(64) Storage {
  std::atomic<std::uint32_t> refs{1};            ///< number of TensorImpls on it
  std::atomic<std::uint32_t> uses{0};            ///< as the constant side of a product
  PoolOwner* owner = nullptr;                    ///< of the block; on this owner's thread its pool takes it back itself
  void (*release)(Storage*) noexcept = nullptr;  ///< takes the block back on every other thread
  std::byte* elements = nullptr;
  std::size_t capacity = 0;               ///< bytes that may be read from the first element on
  std::atomic<Storage*> packs{nullptr};   ///< copies in other orders, a list (kernel/pack.h); of a free block: the next
  std::atomic<std::uint64_t> content{0};  ///< what stands here: no other content at this address has this number
  std::uint8_t bin = 0;                   ///< of the pool
  bool rewritten = false;                 ///< elements change while tensors stand on it: nothing is packed
  bool writable = true;                   ///< false: no operation may take the buffer for its result

  void begin_content() { content.store(content.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  static constexpr std::size_t kImplAt = 64;
  static constexpr std::size_t kDataAt = 256;
  std::byte* data() { return elements; }
  TensorImpl* first_impl() { return reinterpret_cast<TensorImpl*>(reinterpret_cast<std::byte*>(this) + kImplAt); }
};
static_assert(sizeof(Storage) <= Storage::kImplAt);
static_assert(Storage::kImplAt + sizeof(TensorImpl) <= Storage::kDataAt);

/// A fresh contiguous tensor with uninitialised elements; one reference. Throws ShapeError, MemoryError.
TensorImpl* new_tensor(const Shape& shape, Dtype dtype);
/// A window on the storage of `base` (or an abstract one where base is abstract), from an element of it on, counted
/// from the first; one reference.
TensorImpl* new_view(TensorImpl* base, const Shape& shape, const Shape& strides, std::int64_t offset);
/// Bytes that kernels may read from the first of `bytes` of elements on: whole lines of 64 and one line more.
inline constexpr std::size_t readable_for(std::size_t bytes) { return (bytes + 63) / 64 * 64 + 64; }
/// A contiguous tensor on elements that belong to somebody else, which `keeper` holds; one reference. They are aligned
/// to their size, and readable_for(their bytes) may be read. Throws MemoryError.
TensorImpl* new_foreign(const Spec& spec, std::span<const std::byte> readable, std::shared_ptr<const void> keeper);
/// A tensor without values; one reference.
TensorImpl* new_abstract(const Shape& shape, Dtype dtype);
/// Forgets the packs of a storage whose elements are about to change. Nobody may be reading it.
void drop_packs(Storage* s) noexcept;
/// A block for `bytes` of elements that stands on no tensor, and its end.
Storage* take_block(std::size_t bytes);
void give_block(Storage* s) noexcept;
/// Ends a TensorImpl whose count has reached zero.
void destroy(TensorImpl* impl) noexcept;

inline void retain(TensorImpl* impl) noexcept { impl->refs.fetch_add(1, std::memory_order_relaxed); }
/// Gives back one reference. Releasing a unique handle is a load, not an atomic decrement.
inline void release(TensorImpl* impl) noexcept {
  if (impl->refs.load(std::memory_order_acquire) == 1 || impl->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
    destroy(impl);
}

}  // namespace ferrite::detail

namespace ferrite {

/// Bytes of freed tensors that this thread holds for reuse, those included that other threads freed for it: a tensor's
/// memory returns to the thread that made it.
std::size_t cached_memory();
/// Gives all of it back to the system.
void trim();
/// The most that a thread holds for reuse, in bytes; what exceeds it goes back to the system at once. For all threads,
/// from now on; 256 MiB at first. A program runs fastest where all that it frees and takes again fits in.
void set_cache_limit(std::size_t bytes);
std::size_t cache_limit();
/// Counts of the pool on this thread: blocks asked for, and those that had to come from the system.
struct PoolCounts {
  std::uint64_t requests = 0;
  std::uint64_t misses = 0;
};
PoolCounts pool_counts();

}  // namespace ferrite
