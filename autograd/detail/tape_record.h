#pragma once
/// The record of a tape: entries in an arena, the watched variables, and the backward walk.
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

/// Memory handed out in order and released all at once. The thread keeps the chunks for the next arena. The arena does
/// not destroy the objects in it: their owner does.
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
  /// Makes n value-initialised objects.
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
  PooledVector<std::byte*> chunks_;  ///< chunks of kChunk bytes
  PooledVector<std::byte*> large_;   ///< single requests of more than kChunk / 4 bytes
};

/// One application on a tape: the slots of its operands and results, their specs, and the values that the gradient
/// reads. Lives in the tape's arena.
struct Entry {
  const Primitive* op = nullptr;  ///< null: an alias of the only operand (a tensor watched again)
  const Attrs* attrs = nullptr;
  Entry* before = nullptr;
  std::uint32_t first_out = 0;
  bool freed = false;
  Scope scope;                        ///< scope of the layer that applied it; known only while a program is traced
  std::span<std::uint32_t> in_slots;  ///< slots of the operands; 0: a constant
  std::span<const Spec*> in_specs;
  std::span<const Spec*> out_specs;
  std::span<Tensor> in;  ///< undefined where not read; empty if none is
  std::span<Tensor> out;

  Applied applied() const { return {attrs ? *attrs : none_, in, in_specs, out, out_specs}; }

 private:
  static const Attrs none_;  ///< all zeros, so usable before it is constructed
};

/// Returns the gradients of an application's operands: by the operation's rule, or as those of its composition.
Tensors gradient_of(const Primitive& op, const Vjp& v);

/// Recognises the value of a parameter without holding it, so that an optimiser may update it in place after the tape.
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
  Tensor held_;  ///< a value not at the start of its block, where another one could replace it undetected
};

/// The slots of the parameters read under a tape, by identity of the variable.
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
  PooledVector<std::uint32_t> table_;  ///< open addressing, index + 1; empty while there are few leaves
};

/// The record that a Tape shares with the tapes inside it.
class TapeRecord final : public Recorder, public std::enable_shared_from_this<TapeRecord> {
 public:
  TapeRecord();
  ~TapeRecord() override;

  /// Listens to this thread until `stop`.
  void start();
  /// Stops recording. On the thread of `start` it also stops listening; on another one the record still has to `leave`.
  void stop();
  bool on_its_thread() const { return thread_ == std::this_thread::get_id(); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  /// Hands a record that ends on another thread to the thread of `start`, which removes it.
  static void leave(std::shared_ptr<TapeRecord> record);
  void record(const Primitive& op, const Attrs& attrs, Inputs in, std::span<Tensor> out) override;
  void read(const Variable& variable, Tensor& value) override;
  bool write(const Variable&, const Tensor&) override { return false; }
  bool differentiates() const override { return true; }
  bool holds(const Tensor& x) const override { return slot_of(x) != 0; }

  Tensor watch(const Tensor& x);
  std::uint32_t slot_of(const Tensor& x) const { return x.tape_id() == id_ ? x.tape_slot() : 0; }
  /// Returns the slot of a parameter, 0 if it was not read.
  std::uint32_t slot_of(const Variable& variable);
  std::size_t size() const { return size_; }

  /// Returns the cotangents of the given slots, undefined where none arrived.
  Tensors walk(std::span<const GradOf> of, std::span<const std::uint32_t> wrt, bool retain);
  /// Returns the derivatives of tensors along tangents of the given slots, undefined where none arrived.
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
  const Spec* recent_[4] = {};  ///< the last specs kept: neighbours on a tape mostly share theirs
  unsigned recent_at_ = 0;
  std::thread::id thread_;
  std::shared_ptr<Departed> departed_;  ///< the list of departed recorders of `thread_`
  std::atomic<bool> stopped_ = false;
  std::optional<Recording> recording_;
};

}  // namespace ferrite::detail
