/// Tensors on memory that belongs to someone else: used in place where kernels can read it, otherwise copied.
#include <cstring>
#include <new>
#include <utility>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite {
namespace detail {
namespace {

/// The header of such elements, its first TensorImpl where other storages have theirs, and what holds the elements.
struct Foreign : Storage {
  alignas(64) std::byte impl[Storage::kDataAt - Storage::kImplAt];
  std::shared_ptr<const void> keeper;
};
static_assert(sizeof(Storage) == Storage::kImplAt);

/// The keeper goes last: it may run anything, tensors that it holds among it.
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

/// Throws unless all elements are there, each one a value of its dtype.
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

/// Whether kernels can read the elements as they stand.
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
