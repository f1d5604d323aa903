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

/// Most elements that a tensor may hold in memory: larger ones are refused before memory is requested. On a 32-bit
/// machine their bytes must be a std::size_t.
inline constexpr std::int64_t kMostStored = std::int64_t{1} << (sizeof(std::size_t) == 8 ? 44 : 27);

/// The object that a Tensor handle points to: a strided window on a Storage. Immutable once its tensor is handed out.
struct TensorImpl {
  std::atomic<std::uint32_t> refs{1};
  Dtype dtype = Dtype::f32;
  bool contiguous = true;      ///< row-major without gaps
  Storage* storage = nullptr;  ///< null: an abstract tensor, known only by shape and dtype
  std::byte* first = nullptr;  ///< the first element; null where the tensor is abstract
  Shape shape;
  Shape strides;
};

/// The pool of one thread, as known to the blocks it made: they return there, whichever thread frees them.
struct PoolOwner;
/// The owner of blocks that belong to no pool.
extern PoolOwner nobody;
/// Number of blocks taken from the system so far. Each block numbers its contents from the number of blocks before it
/// times 2^32, so that another block at the same address uses other numbers.
inline std::atomic<std::uint64_t> blocks_made{0};

/// A reference-counted buffer, aligned to 64 bytes, padded to whole lines of 64 and one line more, so that whole
/// packets may be read and written at any row of it. One block of memory from the pool of a thread holds this header,
/// the first TensorImpl and the elements. Elements with a foreign owner have a different kind of header (new_foreign),
/// with another `release`: they are aligned to their size, as those of any view are, and only read.
struct alignas(64) Storage {
  std::atomic<std::uint32_t> refs{1};            ///< number of TensorImpls that use it
  std::atomic<std::uint32_t> uses{0};            ///< number of uses as the constant side of a product
  PoolOwner* owner = nullptr;                    ///< owner of the block, whose pool takes it back on its own thread
  void (*release)(Storage*) noexcept = nullptr;  ///< returns the block on every other thread
  std::byte* elements = nullptr;
  std::size_t capacity = 0;               ///< bytes that may be read from the first element on
  std::atomic<Storage*> packs{nullptr};   ///< copies in other orders, a list (kernel/pack.h); free blocks: the next one
  std::atomic<std::uint64_t> content{0};  ///< number of the content: no other content at this address has it
  std::uint8_t bin = 0;                   ///< bin in the pool
  bool rewritten = false;                 ///< elements change while tensors use it, so nothing is packed
  bool writable = true;                   ///< false: no operation may take the buffer for its result

  void begin_content() { content.store(content.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  static constexpr std::size_t kImplAt = 64;
  static constexpr std::size_t kDataAt = 256;
  std::byte* data() { return elements; }
  TensorImpl* first_impl() { return reinterpret_cast<TensorImpl*>(reinterpret_cast<std::byte*>(this) + kImplAt); }
};
static_assert(sizeof(Storage) <= Storage::kImplAt);
static_assert(Storage::kImplAt + sizeof(TensorImpl) <= Storage::kDataAt);

/// Returns a fresh contiguous tensor with uninitialised elements; one reference. Throws ShapeError, MemoryError.
TensorImpl* new_tensor(const Shape& shape, Dtype dtype);
/// Returns a window on the storage of `base` (abstract where base is), starting `offset` elements after base's first;
/// one reference.
TensorImpl* new_view(TensorImpl* base, const Shape& shape, const Shape& strides, std::int64_t offset);
/// Returns how many bytes kernels may read from the first element on, for elements of `bytes` bytes: whole lines of 64
/// and one line more.
inline constexpr std::size_t readable_for(std::size_t bytes) { return (bytes + 63) / 64 * 64 + 64; }
/// Returns a contiguous tensor on elements with a foreign owner, which `keeper` holds; one reference. They must be
/// aligned to their size, and readable_for(their bytes) must be readable. Throws MemoryError.
TensorImpl* new_foreign(const Spec& spec, std::span<const std::byte> readable, std::shared_ptr<const void> keeper);
/// Returns a tensor without values; one reference.
TensorImpl* new_abstract(const Shape& shape, Dtype dtype);
/// Drops the packs of a storage whose elements are about to change. No thread may be reading it.
void drop_packs(Storage* s) noexcept;
/// Takes a block for `bytes` of elements that belongs to no tensor; `give_block` returns it.
Storage* take_block(std::size_t bytes);
void give_block(Storage* s) noexcept;
/// Destroys a TensorImpl whose count has reached zero.
void destroy(TensorImpl* impl) noexcept;

inline void retain(TensorImpl* impl) noexcept { impl->refs.fetch_add(1, std::memory_order_relaxed); }
/// Releases one reference. Releasing a unique handle is a load, not an atomic decrement.
inline void release(TensorImpl* impl) noexcept {
  if (impl->refs.load(std::memory_order_acquire) == 1 || impl->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
    destroy(impl);
}

}  // namespace ferrite::detail

namespace ferrite {

/// Returns the bytes of freed tensors that this thread holds for reuse, including those that other threads freed: a
/// tensor's memory returns to the thread that made it.
std::size_t cached_memory();
/// Returns all memory of freed tensors that this thread holds for reuse to the system.
void trim();
/// Sets the most memory of freed tensors that each thread holds for reuse, in bytes; 256 MiB at first. Where the
/// calling thread holds more, all of it returns to the system at once; other threads heed the limit when they free. A
/// program runs fastest where everything that it frees and allocates again fits.
void set_cache_limit(std::size_t bytes);
std::size_t cache_limit();
/// Counts of the memory pool of one thread: blocks requested, and those of them that had to come from the system.
struct PoolCounts {
  std::uint64_t requests = 0;
  std::uint64_t misses = 0;
};
/// Returns the counts of this thread since it began.
PoolCounts pool_counts();

}  // namespace ferrite
