#pragma once
/// The constants of operations that more than one file of the library reads or writes: passes, plans and exporters. The
/// constants of any other operation are defined next to that operation.
#include "ferrite/tensor/attrs.h"

namespace ferrite::detail {

/// Operands of a pointwise operation that are literals instead of tensors.
struct Literals {
  std::optional<Scalar> a{}, b{}, c{};
  static constexpr auto fields = attr_list(attr("a", &Literals::a), attr("b", &Literals::b), attr("c", &Literals::c));

  static constexpr std::size_t kMost = 3;
  std::optional<Scalar>& operator[](std::size_t operand) { return operand == 0 ? a : operand == 1 ? b : c; }
};
/// Returns the literal given for this operand of a pointwise operation; null where the operand is a tensor.
inline const Scalar* literal_of(const Attrs& attrs, std::size_t operand) {
  const AttrValue* v = attrs.at(operand);
  return v ? std::get_if<Scalar>(v) : nullptr;
}

/// Constants of `reshape` and `expand`: the shape of the result.
struct ShapeAttrs {
  Shape shape{};
  static constexpr auto fields = attr_list(attr("shape", &ShapeAttrs::shape));
};

/// Constants of `permute`: axis i of the result is axis order[i] of the operand.
struct PermuteAttrs {
  Shape order{};
  static constexpr auto fields = attr_list(attr("order", &PermuteAttrs::order));
};

/// Constants of `concat`, `stack` and `unbind`. The constants of all operations along one axis begin with these.
struct AxisAttrs {
  int axis = 0;
  static constexpr auto fields = attr_list(attr("axis", &AxisAttrs::axis));
};

/// Constants of `slice`. Bounds are resolved: begin is the first element taken, count the number of elements; step may
/// be negative.
struct SliceAttrs {
  int axis = 0;
  std::int64_t begin = 0, count = 0, step = 1;
  static constexpr auto fields = attr_list(attr("axis", &SliceAttrs::axis), attr("begin", &SliceAttrs::begin),
                                           attr("count", &SliceAttrs::count), attr("step", &SliceAttrs::step));
};

/// Constants of `select`: the index taken along an axis.
struct SelectAttrs {
  int axis = 0;
  std::int64_t index = 0;
  static constexpr auto fields = attr_list(attr("axis", &SelectAttrs::axis), attr("index", &SelectAttrs::index));
};

/// Constants of `pad`: the numbers of elements of a value around each axis; negative amounts crop.
struct PadAttrs {
  Shape before{}, after{};
  Scalar value{};
  static constexpr auto fields =
      attr_list(attr("before", &PadAttrs::before), attr("after", &PadAttrs::after), attr("value", &PadAttrs::value));
};

/// Constants of `full`: shape, value and dtype of the result.
struct FullAttrs {
  Shape shape{};
  Scalar value{};
  Dtype dtype = Dtype::f32;
  static constexpr auto fields =
      attr_list(attr("shape", &FullAttrs::shape), attr("value", &FullAttrs::value), attr("dtype", &FullAttrs::dtype));
};

/// Constants of `arange`: element i is begin + i step, for i below count.
struct ArangeAttrs {
  Scalar begin{}, step{};
  std::int64_t count = 0;
  Dtype dtype = Dtype::i64;
  static constexpr auto fields = attr_list(attr("begin", &ArangeAttrs::begin), attr("step", &ArangeAttrs::step),
                                           attr("count", &ArangeAttrs::count), attr("dtype", &ArangeAttrs::dtype));
};

/// Constants of `cast`: the dtype of the result.
struct CastAttrs {
  Dtype dtype = Dtype::f32;
  static constexpr auto fields = attr_list(attr("dtype", &CastAttrs::dtype));
};

/// Constants of `sum`, `prod`, `amax` and `amin`. Axes are resolved and ascend.
struct ReductionAttrs {
  Shape axes{};
  bool keepdim = false;
  static constexpr auto fields =
      attr_list(attr("axes", &ReductionAttrs::axes), attr("keepdim", &ReductionAttrs::keepdim));
};

/// Constants of `argmax` and `argmin`.
struct ArgAttrs {
  int axis = 0;
  bool keepdim = false;
  static constexpr auto fields = attr_list(attr("axis", &ArgAttrs::axis), attr("keepdim", &ArgAttrs::keepdim));
};

/// Constants of operations that read and write at positions along an axis, given by a tensor of integers.
struct IndexAttrs {
  int axis = 0;
  std::optional<Label> who{};   ///< the name for errors, under which negative positions are refused too
  std::optional<bool> known{};  ///< the index was found in range when it was first read: for gradients
  static constexpr auto fields =
      attr_list(attr("axis", &IndexAttrs::axis), attr("who", &IndexAttrs::who), attr("known", &IndexAttrs::known));
};

/// Constants of `attention`: the factor of the scores, and whether queries see only keys up to their own.
struct AttentionAttrs {
  double scale = 1;
  bool causal = false;
  bool grouped = false;
  static constexpr auto fields =
      attr_list(attr("scale", &AttentionAttrs::scale), attr("causal", &AttentionAttrs::causal),
                attr("grouped", &AttentionAttrs::grouped));
};

/// Constants of functions that run along an axis, forwards or backwards.
struct RunningAttrs {
  int axis = 0;
  bool reverse = false;
  static constexpr auto fields = attr_list(attr("axis", &RunningAttrs::axis), attr("reverse", &RunningAttrs::reverse));
};

}  // namespace ferrite::detail
