#pragma once
/// The record of an operation: everything that the library knows about it.
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/block.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// The operands of one application, borrowed: the tensors must outlive it, and no reference counts are touched.
class Inputs {
 public:
  constexpr Inputs() = default;
  constexpr Inputs(const Tensor* const* first, std::size_t n) : first_(first), size_(n) {}
  template <std::size_t N>
  constexpr Inputs(const Tensor* const (&operands)[N]) : first_(operands), size_(N) {}

  constexpr std::size_t size() const { return size_; }
  constexpr const Tensor& operator[](std::size_t i) const { return *first_[i]; }

  class Iterator {
   public:
    constexpr explicit Iterator(const Tensor* const* at) : at_(at) {}
    constexpr const Tensor& operator*() const { return **at_; }
    constexpr Iterator& operator++() {
      ++at_;
      return *this;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    const Tensor* const* at_;
  };
  constexpr Iterator begin() const { return Iterator(first_); }
  constexpr Iterator end() const { return Iterator(first_ + size_); }

 private:
  const Tensor* const* first_ = nullptr;
  std::size_t size_ = 0;
};

/// A list of tensors as operands. Borrowed too: the list must outlive it.
class OperandList {
 public:
  template <class List>
  explicit OperandList(const List& tensors) {
    for (const Tensor& t : tensors) pointers_.push_back(&t);
  }
  operator Inputs() const { return {pointers_.data(), pointers_.size()}; }
  operator std::span<const Tensor* const>() const { return {pointers_.data(), pointers_.size()}; }

 private:
  InlineVector<const Tensor*, 16> pointers_;
};

// The parts of a record of an operation: nothing that a program names.
namespace detail {

/// The values that a vector-Jacobian product reads, one bit for each input and output; the tape drops the rest.
struct Reads {
  std::uint8_t in = 0;
  std::uint8_t out = 0;
};
inline constexpr Reads reads_nothing{0, 0};
inline constexpr Reads reads_inputs{0xff, 0};
inline constexpr Reads reads_outputs{0, 0xff};
inline constexpr Reads reads_all{0xff, 0xff};

}  // namespace detail

/// One application of an operation as its derivatives see it. Shapes and dtypes of all operands and results are known;
/// values only where the operation's `reads` names them.
class Applied {
 public:
  Applied(const Attrs& a, std::span<const Tensor> in, std::span<const Spec* const> in_specs,
          std::span<const Tensor> out, std::span<const Spec* const> out_specs)
      : attrs(a), in_(in), in_specs_(in_specs), out_(out), out_specs_(out_specs) {}

  const Attrs& attrs;

  std::size_t inputs() const { return in_specs_.size(); }
  std::size_t outputs() const { return out_specs_.size(); }
  /// Returns the value of an operand, undefined unless the operation's `reads` names it; `out` does so for a result.
  const Tensor& in(std::size_t i) const { return in_.empty() ? undefined() : in_[i]; }
  const Spec& in_spec(std::size_t i) const { return *in_specs_[i]; }
  const Tensor& out(std::size_t i = 0) const { return out_.empty() ? undefined() : out_[i]; }
  const Spec& out_spec(std::size_t i = 0) const { return *out_specs_[i]; }

 private:
  /// Returns an undefined tensor, the placeholder of a value that the operation does not read.
  static const Tensor& undefined();

  std::span<const Tensor> in_;
  std::span<const Spec* const> in_specs_;
  std::span<const Tensor> out_;
  std::span<const Spec* const> out_specs_;
};

/// One application as its vector-Jacobian product sees it: the gradients that reached its results, and which of its
/// operands need one.
class Vjp : public Applied {
 public:
  Vjp(const Applied& application, std::span<const Tensor> grads, std::uint64_t wanted)
      : Applied(application), grads_(grads), wanted_(wanted) {}

  /// Returns the cotangent of an output, of its shape and gradient_dtype. Undefined where no gradient reached that
  /// output (only possible for operations with several outputs).
  const Tensor& grad(std::size_t i = 0) const { return grads_[i]; }
  /// Returns the cotangent of an output, or zeros of its gradient_dtype where no gradient reached it.
  Tensor grad_or_zeros(std::size_t i) const;
  /// Returns whether the gradient of this input is needed.
  bool wants(std::size_t i) const { return i >= 64 || (wanted_ >> i & 1) != 0; }

 private:
  std::span<const Tensor> grads_;
  std::uint64_t wanted_;
};

/// One application as its Jacobian-vector product sees it: with the tangents of its operands.
class Jvp : public Applied {
 public:
  Jvp(const Applied& application, std::span<const Tensor> tangents) : Applied(application), tangents_(tangents) {}

  /// Returns the derivative of an operand along the direction, of its shape and gradient_dtype. Undefined: zeros.
  const Tensor& tangent(std::size_t i) const { return tangents_[i]; }
  /// Returns the derivative of an operand along the direction, or zeros of its gradient_dtype where it is undefined.
  Tensor tangent_or_zeros(std::size_t i) const;

 private:
  std::span<const Tensor> tangents_;
};

/// The operands in which an operation is linear: its derivative along a direction is then the operation itself.
enum class Linearity : std::uint8_t {
  none,
  together,  ///< in all its float operands at once: f(a x, a y) = a f(x, y)
  in_each,   ///< in each operand while the others are fixed: f(a x, y) = a f(x, y)
};

/// The effect of an operation on a time axis: how one step of its result is made from steps of its operands
/// (compile/stream_program.h). Pointwise operations need no rule.
enum class TimeRule : std::uint8_t {
  unknown,  ///< may read any step
  keeps,    ///< every axis stays where it is and what it was
  reshapes,
  permutes,
  expands,
  reduces,     ///< over the axes of ReductionAttrs
  along_axis,  ///< reads along one axis, AxisAttrs; steps along other axes do not mix
  stacks,
  concatenates,
  chooses,     ///< entries along an axis, by indices
  multiplies,  ///< matrix products
  pads,
  slices,
  convolves,
  convolves_transposed,
  pools_sums,
  pools_maxima,
  pools_places,
  transforms_reals,    ///< along the last axis
  transforms_complex,  ///< along the second-to-last axis, whose elements are pairs
  normalizes,          ///< over the last axes
  linear_recurrence,   ///< h[t] = a[t] h[t-1] + b[t]
  minimal_recurrence,  ///< of a minimal layer, from gates and h0
  recurrence,          ///< the sequence operation of a recurrent layer
  scan,
};

namespace detail {

/// A window that a view operation takes on its input: strides and offset, in elements.
struct Layout {
  Shape strides;
  std::int64_t offset = 0;
};

}  // namespace detail

/// The cost of one application of an operation, computed from shapes, not measured.
struct Cost {
  std::int64_t multiply_adds = 0;  ///< multiply-adds of products; elementwise work counts only as its bytes
  std::int64_t bytes = 0;          ///< bytes of operands and results; 0 for a view

  Cost& operator+=(const Cost& o) {
    multiply_adds += o.multiply_adds;
    bytes += o.bytes;
    return *this;
  }
};

/// The effects of running an operation besides computing its results; none for nearly all. A compiler may drop an
/// application whose results are not read, share one result among equal applications, compute it once for all runs or
/// for all steps of a loop, and recompute it for a gradient, as far as its effects allow. Effects keep their order.
struct Effects {
  bool throws = false;        ///< refuses some values of its operands: runs even if its results are not read
  bool draws = false;         ///< results are random numbers: a function of key and counter, so equal ones are merged
  bool communicates = false;  ///< other processes take part: runs in its place and as often as the program says
  bool allocates = false;     ///< its kernel allocates memory, which may fail

  /// Returns whether the operation must run even if its results are not read.
  constexpr bool must_run() const { return throws || communicates; }
  /// Returns whether a run may end here with an error: variables that must not change then are written afterwards.
  constexpr bool may_fail() const { return throws || communicates || allocates; }
  constexpr Effects& operator|=(const Effects& o) {
    throws |= o.throws;
    draws |= o.draws;
    communicates |= o.communicates;
    allocates |= o.allocates;
    return *this;
  }
  constexpr bool operator==(const Effects&) const = default;
};

/// What computes an operation: its own kernel, a kernel of one element, or other operations.
enum class OperationKind : std::uint8_t {
  structured,  ///< its own kernel or view
  pointwise,   ///< a kernel of one element
  composite,   ///< other operations: its `reference` is its only definition
};

/// One operation, as every part of the library sees it: the eager engine, the tape, the tracer, the fuser and the
/// exporters. Built from a struct of a few lines by `pointwise<Op>` or `structured<Op>` (`tensor/define.h`); never
/// written by hand.
struct Primitive {
  std::string_view name;
  std::string_view summary;  ///< one line for the reference pages: formula, ties, conventions
  OperationKind kind = OperationKind::structured;
  int arity = -1;  ///< number of operands, literals included; -1: any number
  /// Returns the types of the results, and is the only place that rejects shapes. Storage types have been refused
  /// before.
  Specs (*infer)(const Primitive&, Inputs, const Attrs&) = nullptr;
  /// Fills the outputs, which are allocated, contiguous and not zeroed. Null for pointwise operations, which have
  /// `blocks`, for operations whose results are always views, and for composites, which have a `reference`.
  void (*eval)(Inputs, std::span<Tensor> out, const Attrs&) = nullptr;
  /// Sets the window that output i takes on input 0; returns false where none exists and `eval` must copy.
  bool (*view)(const Tensor& in, const Spec& out, const Attrs&, std::size_t i, detail::Layout&) = nullptr;
  /// The kernels of a pointwise operation that has its own. Null: `blocks` has those of the instruction set in use.
  const detail::Blocks* own_blocks = nullptr;
  const detail::TableInUse<detail::Blocks>* blocks = nullptr;
  /// Returns the kernel for operands of a dtype, for structured operations that act on one element at a time, so that
  /// they can run together with pointwise ones.
  detail::Block (*element_block)(Dtype operand, const Attrs&) = nullptr;
  /// Returns the kernel of a reduction for rows of a dtype, so that it can run together with the operations around it;
  /// null for dtypes whose result has another dtype.
  detail::RowReduction (*row_reduction)(Dtype) = nullptr;
  /// For each output, the input whose buffer `eval` may write it into, where that input is not read afterwards. Empty:
  /// none.
  std::span<const std::uint8_t> in_place{};
  Tensors (*vjp)(const Vjp&) = nullptr;  ///< null: not differentiable
  /// Returns the derivatives of the results along tangents of the operands; an undefined tangent is zeros. Null:
  /// derived from the linearity, for a pointwise operation from its `vjp`, whose Jacobian is diagonal; else from the
  /// transpose of its `vjp`.
  Tensors (*jvp)(const Jvp&) = nullptr;
  Linearity linearity = Linearity::none;
  TimeRule time = TimeRule::unknown;
  detail::Reads reads{};
  std::string_view onnx{};
  std::string_view stablehlo{};
  /// Returns the same results composed of other operations, where such a composition exists: an exporter's fallback,
  /// whose bits tests compare. For a composite it is the only definition: recorders see these operations, unless one
  /// asks for the composite as a whole.
  Tensors (*reference)(Inputs, const Attrs&) = nullptr;
  /// Returns the results of a composite where nothing records, by its own kernel where it has one.
  Tensors (*unrecorded)(Inputs, const Attrs&) = nullptr;
  /// Returns the effects of an application to operands of these types: whether it throws, draws, communicates or
  /// allocates. Null: none. Effects of the body, `attrs.body`, are not included.
  Effects (*effects)(std::span<const Spec> in, const Attrs&) = nullptr;
  /// Returns the multiply-adds of an application to operands of these types. Null: none.
  std::int64_t (*multiply_adds)(std::span<const Spec> in, std::span<const Spec> out, const Attrs&) = nullptr;
  /// Whether the gradient is an operation without a `vjp`, which is differentiated as its `reference`; set in both
  /// records. The reference of the operation may leave out last results that only the gradient reads.
  bool second_order_by_reference = false;
  /// Whether operands and results may be of storage types, bf16, f16 and i8. Where this is false, `types` refuses them;
  /// a composite leaves that to its parts.
  bool takes_storage_types = false;
  /// The table of the names and types of the constants of an application (members of its Attrs), in the order used in
  /// texts.
  const AttrFields* attributes = &attr_fields<NoAttrs>;

  bool is_pointwise() const { return kind == OperationKind::pointwise; }
  bool is_composite() const { return kind == OperationKind::composite; }
  /// Returns whether results always share the elements of operand 0, so that nothing is computed.
  bool is_view() const { return view != nullptr && eval == nullptr; }
  bool differentiable() const { return vjp != nullptr; }
  /// Returns the kernel of a pointwise operation for operands of a dtype; null where it does not take that dtype.
  detail::Block block(Dtype operands) const;

  /// Returns the types of the results, by `infer`. Throws as that does, and DtypeError for operands and results of
  /// storage types, unless the operation takes them.
  Specs types(Inputs in, const Attrs& attrs) const;

  /// Applies the operation and returns its results: checks the types, computes (unless a tracer only records), and
  /// notifies the recorders.
  Tensors apply(Inputs in, const Attrs& attrs = {}) const;
};

/// Returns the cost of an application to operands of these types.
Cost cost_of(const Primitive& op, std::span<const Spec> in, std::span<const Spec> out, const Attrs& attrs);

namespace detail {

/// Joins several lists of operations into one.
inline std::vector<const Primitive*> joined(std::initializer_list<std::span<const Primitive* const>> lists) {
  std::vector<const Primitive*> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace detail

/// Returns every operation on tensors that runs as one, in the order of the families; nn::operations() are those of
/// layers.
std::span<const Primitive* const> primitives();
/// Returns the public functions of tensors that are composed of operations, such as softmax and layer_norm;
/// nn::composites() are those of layers.
std::span<const Primitive* const> composites();
/// Returns the one of `primitives()` with this name, or null.
const Primitive* find_primitive(std::string_view name);

}  // namespace ferrite
