#pragma once
/// Tensors: immutable handles to strided views of shared storage.
#include <concepts>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/scalar.h"
#include "ferrite/tensor/shape.h"
#include "ferrite/tensor/storage.h"

namespace ferrite {

namespace detail {
struct Writer;
}  // namespace detail

/// An immutable handle to a strided window on shared storage. Copies and views share elements; no operation changes
/// them. A default-constructed tensor is undefined. May be abstract (shape and dtype, no elements) while a function is
/// being traced.
class Tensor {
 public:
  Tensor() noexcept = default;
  Tensor(const Tensor& o) noexcept : impl_(o.impl_), tape_(o.tape_), slot_(o.slot_) {
    if (impl_) detail::retain(impl_);
  }
  Tensor(Tensor&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)), tape_(o.tape_), slot_(o.slot_) {}
  Tensor& operator=(const Tensor& o) noexcept {
    Tensor copy(o);
    swap(copy);
    return *this;
  }
  Tensor& operator=(Tensor&& o) noexcept {
    Tensor moved(std::move(o));
    swap(moved);
    return *this;
  }
  ~Tensor() {
    if (impl_) detail::release(impl_);
  }
  void swap(Tensor& o) noexcept {
    std::swap(impl_, o.impl_);
    std::swap(tape_, o.tape_);
    std::swap(slot_, o.slot_);
  }

  /// Makes a tensor from a copy of row-major values. T is the C++ type of a dtype (tensor/dtype.h): float, bfloat16,
  /// bool. One extent of the shape may be -1: it follows from the number of values. Throws ShapeError when the number
  /// of values is not that of the shape.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape);
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape);
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape) {
    return from(std::span<const T>(values.begin(), values.size()), shape);
  }
  /// Makes a tensor of rank 1 from a copy of all values.
  template <class T>
  static Tensor from(std::span<const T> values) {
    return from(values, {static_cast<std::int64_t>(values.size())});
  }
  template <class T>
  static Tensor from(const std::vector<T>& values) {
    return from(values, {static_cast<std::int64_t>(values.size())});
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values) {
    return from(values, {static_cast<std::int64_t>(values.size())});
  }
  /// Makes a tensor of a shape, whose elements, row-major and uninitialised, `fill(std::span<T>)` writes before any
  /// other code can see them.
  template <class T, class F>
  static Tensor build(const Shape& shape, F&& fill) {
    Tensor t = empty({shape, dtype_of<T>});
    std::forward<F>(fill)(std::span<T>(t.mutable_data<T>(), static_cast<std::size_t>(shape.numel())));
    return t;
  }

  /// Makes a tensor on row-major elements that have another owner and are frozen: weights that an application holds, a
  /// mapped file. The first element is at readable.data(); all of `readable` may be read, and must not be written,
  /// until `keeper` is released (null: until the program ends). No operation, optimiser or plan writes to it either:
  /// code that changes such a value makes its own elements.
  ///
  /// The elements are used without a copy where kernels can read them in place: the address of the first is a multiple
  /// of the size of an element, and `readable` reaches beyond the elements, to the next multiple of 64 bytes from the
  /// first and 64 bytes more. Otherwise they are copied; `t.raw() == readable.data()` says which. `keeper` is released
  /// when the last tensor on the elements goes, views included, by the thread that lets go of it (its deleter must not
  /// throw); after a copy, before this returns.
  ///
  /// Throws ValueError when `readable` is shorter than the elements or a bool is neither 0 nor 1, ShapeError for a
  /// shape that is too large.
  static Tensor frozen(std::span<const std::byte> readable, const Spec& spec, std::shared_ptr<const void> keeper);

  /// Returns whether the handle refers to a tensor: false for a default-constructed one. There is no conversion to
  /// bool: a comparison of tensors is a tensor, which `if` must not mistake for an answer; `item<bool>()` is one.
  bool defined() const noexcept { return impl_ != nullptr; }

  const Shape& shape() const& { return checked()->shape; }
  Shape shape() const&& { return checked()->shape; }
  /// Returns the strides in elements; 0 along a broadcast axis, negative along a flipped one.
  const Shape& strides() const& { return checked()->strides; }
  Shape strides() const&& { return checked()->strides; }
  Dtype dtype() const { return checked()->dtype; }
  Spec spec() const { return {shape(), dtype()}; }
  int rank() const { return shape().rank(); }
  std::int64_t numel() const { return shape().numel(); }
  /// Returns the extent of an axis; negative axes count from the end. Throws ShapeError.
  std::int64_t size(int axis) const { return shape()[axis_of(axis, rank(), "size")]; }
  /// Returns whether the elements are row-major without gaps in memory.
  bool contiguous() const { return checked()->contiguous; }
  /// Returns whether the tensor has a shape and a dtype but no elements: a value of a function that is being traced.
  bool is_abstract() const { return checked()->storage == nullptr; }

  /// Returns the elements in row-major order, without a copy. Throws DtypeError for another type, TraceError for an
  /// abstract tensor and ShapeError when the tensor is not contiguous (call `contiguous(t)` first). Valid as long as a
  /// handle to the tensor lives, so a temporary has none: name it, or use `to_vector()`.
  template <class T>
  std::span<const T> values() const&;
  template <class T>
  std::span<const T> values() const&& = delete;
  /// Returns a row-major copy of the elements, whatever the strides.
  template <class T>
  std::vector<T> to_vector() const;
  /// Returns the only element. Throws ShapeError unless there is exactly one, DtypeError unless T is its type (it is
  /// not converted), TraceError for an abstract tensor.
  template <class T = float>
  T item() const;

  /// Returns the i-th element of the first axis, without that axis, as a view; a negative i counts from the end, and
  /// x[i][j] indexes further. Differentiable, like every operation. `at` (tensor/index.h) takes ranges and several
  /// axes. Throws ShapeError for a tensor of rank 0 and for an i outside the axis.
  template <std::integral I>
  requires(!std::same_as<I, bool>) Tensor operator[](I i) const { return element(static_cast<std::int64_t>(i)); }

  /// Returns the values as text, like NumPy's: nested brackets, aligned columns, long axes shortened.
  std::string str() const;

  /// Returns the identity of the value that the handle refers to: equal for copies of a handle, different for views.
  const void* identity() const noexcept { return impl_; }

  // ---- for operations, recorders and kernels -----------------------------------------------------------

  /// Returns a tensor of uninitialised elements. Throws ShapeError, MemoryError (tensor/error.h).
  static Tensor empty(const Spec& spec) { return Tensor(detail::new_tensor(spec.shape, spec.dtype)); }
  static Tensor abstract(const Spec& spec) { return Tensor(detail::new_abstract(spec.shape, spec.dtype)); }
  /// Returns another window on the same storage; strides and offset are in elements, the offset from this tensor's
  /// first element.
  Tensor view(const Shape& shape, const Shape& strides, std::int64_t offset) const {
    return Tensor(detail::new_view(checked(), shape, strides, offset));
  }
  /// Returns the address of the first element; neither T nor whether the tensor is defined is checked.
  template <class T>
  const T* data() const& {
    return reinterpret_cast<const T*>(impl_->first);
  }
  template <class T>
  const T* data() const&& = delete;
  const std::byte* raw() const& { return impl_->first; }
  const std::byte* raw() const&& = delete;
  detail::TensorImpl* impl() const noexcept { return impl_; }
  /// Returns a handle to the same elements without a place on a tape.
  Tensor unmarked() const {
    Tensor t(*this);
    t.mark(0, 0);
    return t;
  }
  /// Returns the place of this handle on a tape: the tape's id, and the number of the value there; 0 for none.
  std::uint64_t tape_id() const noexcept { return tape_; }
  std::uint32_t tape_slot() const noexcept { return slot_; }
  /// Sets the place of this handle on a tape, without effect on its copies.
  void mark(std::uint64_t tape, std::uint32_t slot) noexcept {
    tape_ = tape;
    slot_ = slot;
  }

 private:
  friend struct detail::Writer;
  explicit Tensor(detail::TensorImpl* impl) noexcept : impl_(impl) {}
  detail::TensorImpl* checked() const {
    if (!impl_) [[unlikely]]
      throw_undefined();
    return impl_;
  }
  Tensor element(std::int64_t i) const;
  [[noreturn]] static void throw_undefined();
  void check_readable(Dtype wanted, bool want_contiguous, const char* where) const;
  template <class T>
  T* mutable_data() {
    return reinterpret_cast<T*>(impl_->first);
  }

  detail::TensorImpl* impl_ = nullptr;
  std::uint64_t tape_ = 0;
  std::uint32_t slot_ = 0;
};

namespace detail {

/// Gives kernels write access to fresh elements; no other code may write into a tensor. Each access begins a new
/// content, which drops the packs of the old one.
struct Writer {
  static std::byte* raw(Tensor& t) {
    begin(t);
    return t.impl_->first;
  }
  template <class T>
  static T* data(Tensor& t) {
    begin(t);
    return t.mutable_data<T>();
  }

 private:
  static void begin(Tensor& t) {
    t.impl_->storage->begin_content();
    if (t.impl_->storage->uses.load(std::memory_order_relaxed)) [[unlikely]]
      drop_packs(t.impl_->storage);
  }
};

}  // namespace detail

/// A list of tensors, up to 8 of them without an allocation.
using Tensors = InlineVector<Tensor, 8>;
using Specs = InlineVector<Spec, 8>;

std::ostream& operator<<(std::ostream& out, const Tensor& t);

// ---- templates -----------------------------------------------------------------------------------------

template <class T>
std::span<const T> Tensor::values() const& {
  check_readable(dtype_of<T>, true, "values");
  return {data<T>(), static_cast<std::size_t>(numel())};
}

}  // namespace ferrite
