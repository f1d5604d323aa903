/// Packed copies of matrices, attached to the storage that they copy.
#include "ferrite/tensor/kernel/pack.h"

#include <new>

namespace ferrite::detail {
namespace {

constexpr std::size_t kElementsAt = 64;
static_assert(sizeof(PackKey) <= kElementsAt);

PackKey* key_of(Storage* pack) { return std::launder(reinterpret_cast<PackKey*>(pack->data())); }

}  // namespace

PackKey pack_key(const Tensor& w, std::int32_t gates) {
  const std::int64_t offset = (w.raw() - w.impl()->storage->data()) / size_of(w.dtype());
  return {w.dtype(), gates, offset, w.shape()[0], w.shape()[1], w.strides()[0], w.strides()[1]};
}

const void* find_pack(const Tensor& w, const PackKey& key) {
  for (Storage* p = w.impl()->storage->packs.load(std::memory_order_acquire); p;
       p = p->packs.load(std::memory_order_relaxed))
    if (*key_of(p) == key) return p->data() + kElementsAt;
  return nullptr;
}

NewPack::NewPack(const PackKey& key, std::int64_t elements)
    : block_(take_block(kElementsAt + static_cast<std::size_t>(elements * size_of(key.dtype)))) {
  ::new (static_cast<void*>(block_->data())) PackKey(key);
}

NewPack::~NewPack() {
  if (block_) give_block(block_);
}

void* NewPack::elements() const { return block_->data() + kElementsAt; }

const void* NewPack::publish(const Tensor& w) {
  Storage* const s = w.impl()->storage;
  const void* const found = elements();
  s->uses.fetch_add(1, std::memory_order_relaxed);
  Storage* head = s->packs.load(std::memory_order_relaxed);
  do block_->packs.store(head, std::memory_order_relaxed);
  while (!s->packs.compare_exchange_weak(head, block_, std::memory_order_release, std::memory_order_relaxed));
  block_ = nullptr;
  return found;
}

std::uint32_t count_use(const Tensor& w) {
  Storage* const s = w.impl()->storage;
  if (s->rewritten) return 0;
  return s->uses.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace ferrite::detail
