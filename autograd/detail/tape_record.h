#pragma once
/// What a tape records: entries in an arena, the variables it watches, and the backward walk over them.
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/departed.h"
#include "ferrite/tensor/inline_vector.h"

namespace ferrite::detail {

/// Memory handed out in order and given back all at once. Chunks are kept by the thread for the next arena.
/// Objects in it are not destroyed: their owner does that.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* take(std::size_t bytes) {
    const std::size_t rounded = (bytes + 15) / 16 * 16;
    if (rounded > left_) return refill(rounded);
    std::byte* p = at_;
    at_ += rounded;
    left_ -= rounded;
    return p;
  }
  /// n value-initialised objects.
  template <class T>
  std::span<T> make(std::size_t n) {
    static_assert(alignof(T) <= 16);
    T* p = static_cast<T*>(take(n * sizeof(T)));
    std::uninitialized_value_construct_n(p, n);
    return {p, n};
  }

 private:
  void* refill(std::size_t bytes);

  std::byte* at_ = nullptr;
  std::size_t left_ = 0;
  PooledVector<std::byte*> chunks_;  ///< of kChunk bytes
  PooledVector<std::byte*> large_;   ///< single requests above that
};

/// One application as the tape keeps it: numbers of its operands and results, their specs, and the values that the
/// gradient reads. Lives in the tape's arena.
struct Entry {
  const Primitive* op = nullptr;  ///< null: an alias of its one operand (a tensor watched again)
  const Attrs* attrs = nullptr;
  Entry* before = nullptr;
  std::uint32_t first_out = 0;
  bool freed = false;
  Scope scope;                        ///< of the layer that applied it; known only while a program is traced
  std::span<std::uint32_t> in_slots;  ///< 0: a constant
  std::span<const Spec*> in_specs;
  std::span<const Spec*> out_specs;
  std::span<Tensor> in;  ///< undefined where not read; empty where none is
  std::span<Tensor> out;

  Applied applied() const { return {attrs ? *attrs : none_, in, in_specs, out, out_specs}; }

 private:
  static const Attrs none_;  ///< all zeros, so also before it is constructed
};

/// The gradients of the operands of an application: by the operation's rule, or as those of its composition.
Tensors gradient_of(const Primitive& op, const Vjp& v);

/// Which value a parameter had, told without holding it: an optimiser may update in place what a tape is done with.
class Seen {
 public:
  explicit Seen(const Tensor& t) : impl_(t.impl()), content_(content_of(t)) {
    if (t.is_abstract() || t.impl() != t.impl()->storage->first_impl()) held_ = t.unmarked();
  }
  bool is(const Tensor& t) const { return impl_ == t.impl() && content_ == content_of(t); }

 private:
  static std::uint64_t content_of(const Tensor& t) {
    return t.is_abstract() ? 0 : t.impl()->storage->content.load(std::memory_order_relaxed);
  }

  const TensorImpl* impl_;
  std::uint64_t content_;
  Tensor held_;  ///< a value that does not stand at the beginning of its block: another may come to stand there unseen
};

/// Where the parameters read under a tape stand on it, by identity of the variable.
class Leaves {
 public:
  struct Leaf {
    const void* variable;
    std::uint32_t slot;
    Seen value;
  };
  Leaf* find(const void* variable);
  void add(Leaf leaf);

 private:
  void rebuild();
  std::size_t place(const void* variable) const;

  PooledVector<Leaf> list_;
  PooledVector<std::uint32_t> table_;  ///< open addressing, index + 1; built beyond a few leaves
};

/// The record that a Tape and the tapes inside it share.
class TapeRecord final : public Recorder, public std::enable_shared_from_this<TapeRecord> {
 public:
  TapeRecord();
  ~TapeRecord() override;

  /// Listens to this thread until `stop`.
  void start();
  /// On the thread that it began on: no longer listens. On another one: hears nothing more, and still has to `leave`.
  void stop();
  bool on_its_thread() const { return thread_ == std::this_thread::get_id(); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// Has a record that ends on another thread taken down by its own.
  static void leave(std::shared_ptr<TapeRecord> record);
  void record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) override;
  void read(const Variable& variable, Tensor& value) override;
  bool write(const Variable&, const Tensor&) override { return false; }
  bool differentiates() const override { return true; }
  bool holds(const Tensor& x) const override { return slot_of(x) != 0; }

  Tensor watch(const Tensor& x);
  std::uint32_t slot_of(const Tensor& x) const { return x.tape_id() == id_ ? x.tape_slot() : 0; }
  /// The slot of a parameter, 0 if it was not read.
  std::uint32_t slot_of(const Variable& variable);
  std::size_t size() const { return size_; }

  /// Cotangents of the given slots (undefined where nothing arrived).
  Tensors walk(std::span<const GradOf> of, std::span<const std::uint32_t> wrt, bool retain);
  /// Derivatives of tensors along tangents of the given slots (undefined where nothing arrived).
  Tensors push(std::span<const Tensor> of, std::span<const std::uint32_t> wrt, std::span<const Tensor> tangents);

 private:
  friend class Walker;
  Entry* new_entry();
  std::span<const Spec*> keep_specs(std::size_t n, auto spec_at);
  const Spec* keep_spec(const Spec& spec);
  std::uint32_t new_slots(std::size_t n);

  std::uint64_t id_;
  std::uint32_t next_slot_ = 1;
  std::size_t size_ = 0;
  Entry* last_ = nullptr;
  Arena arena_;
  Leaves leaves_;
  const Spec* recent_[4] = {};  ///< specs kept last: neighbours on a tape mostly share them
  unsigned recent_at_ = 0;
  std::thread::id thread_;
  std::shared_ptr<Departed> departed_;  ///< of that thread
  std::atomic<bool> stopped_ = false;
  std::optional<Recording> recording_;
};

}  // namespace ferrite::detail
