/// Comparisons, logic, `where` and `cast`; bits of integers.
#include <cstdint>
#include <type_traits>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {

// ---- comparisons, logic, choice, other dtypes -------------------------------------------------------------

namespace detail {
namespace {

struct Equal : functors::Equal {
  static constexpr auto name = "equal", onnx = "Equal", stablehlo = "compare";
  static constexpr auto summary = "a = b, as bool; false with NaN";
};

struct Less : functors::Less {
  static constexpr auto name = "less", onnx = "Less", stablehlo = "compare";
  static constexpr auto summary = "a < b, as bool; false with NaN";
};

struct LessEqual : functors::LessEqual {
  static constexpr auto name = "less_equal", onnx = "LessOrEqual", stablehlo = "compare";
  static constexpr auto summary = "a <= b, as bool; false with NaN";
};

struct LogicalAnd : functors::LogicalAnd {
  static constexpr auto name = "logical_and", onnx = "And", stablehlo = "and";
  static constexpr auto summary = "a and b";
};

struct LogicalOr : functors::LogicalOr {
  static constexpr auto name = "logical_or", onnx = "Or", stablehlo = "or";
  static constexpr auto summary = "a or b";
};

struct LogicalNot : functors::LogicalNot {
  static constexpr auto name = "logical_not", onnx = "Not", stablehlo = "not";
  static constexpr auto summary = "not a";
};

/// Returns the common dtype of two operands of which either may be a literal: that of the tensors, else f32 or i64.
Dtype dtype_of_branches(const Primitive& op, Inputs in, const Attrs& attrs) {
  if (in.size() > 1) return in[1].dtype();
  for (const std::size_t branch : {1U, 2U})
    if (const Scalar* s = literal_of(attrs, branch); s && s->is_floating()) return Dtype::f32;
  (void)op;
  return Dtype::i64;
}

/// condition ? a : b, where the condition is bool and the branches share a dtype.
struct Where : functors::Where {
  static constexpr auto name = "where", onnx = "Where", stablehlo = "select";
  static constexpr auto summary = "a where the condition holds, else b; the branch not taken gets gradient 0";
  static constexpr Reads reads{1, 0};

  static Spec infer(const Primitive& op, Inputs in, const Attrs& attrs) {
    if (in.size() == 0 || literal_of(attrs, 0))
      throw_dtype(name, "the condition must be a tensor of bool, got a literal");
    if (in[0].dtype() != Dtype::boolean) throw_dtype(name, "the condition must be bool, got " + in[0].spec().str());
    Spec s{in[0].shape(), dtype_of_branches(op, in, attrs)};
    for (std::size_t i = 1; i < in.size(); ++i) {
      if (in[i].dtype() != s.dtype)
        throw_dtype(name, "dtypes differ: " + in[1].spec().str() + " and " + in[i].spec().str() + "; cast one of them");
      s.shape = broadcast(s.shape, in[i].shape(), name);
    }
    for (const std::size_t branch : {1U, 2U})
      if (const Scalar* literal = literal_of(attrs, branch)) check_literal(name, *literal, s.dtype);
    return s;
  }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([] { return Tensor(); }, [&] { return where(v.a.tensor(), v.grad, 0); },
                    [&] { return where(v.a.tensor(), 0, v.grad); });
  }
};

/// Converts between any two dtypes; floats to integers truncate toward zero, anything to bool is "not zero".
struct Cast {
  using Attributes = CastAttrs;
  static constexpr auto name = "cast", onnx = "Cast", stablehlo = "convert";
  static constexpr auto summary = "the values in another dtype, rounded to nearest even; differentiable between floats";
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const Attributes& attrs) { return {{in[0].shape(), attrs.dtype}}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor x(in[0]);
    const void* from = x->raw();
    const std::ptrdiff_t run = 1;
    element_block(x->dtype(), attrs)(&from, &run, Writer::raw(out[0]), x->numel());
  }
  static Block element_block(Dtype operand, const Attributes& attrs) {
    return conversions_in_use.get().between[position_of(operand)].to[position_of(attrs.dtype)];
  }
  static Tensors vjp(const Vjp& v, const Attributes&) {
    const Dtype from = v.in_spec(0).dtype;
    if (!has_gradient(from)) return {Tensor()};
    return {cast(v.grad(), gradient_dtype(from))};
  }
  static Tensors jvp(const Jvp& j, const Attributes& attrs) {
    if (!has_gradient(attrs.dtype)) return {Tensor()};
    return {cast(j.tangent(0), gradient_dtype(attrs.dtype))};
  }
};

}  // namespace

namespace ops {

constinit const Primitive* const cast = &structured<Cast>;
constinit const Primitive* const where = &pointwise<Where>;

}  // namespace ops

Family logic_family() {
  static constexpr const Primitive* list[] = {&pointwise<Equal>,      &pointwise<Less>,      &pointwise<LessEqual>,
                                              &pointwise<LogicalAnd>, &pointwise<LogicalOr>, &pointwise<LogicalNot>,
                                              &pointwise<Where>,      &structured<Cast>};
  return list;
}

}  // namespace detail

Tensor eq(const Operand& a, const Operand& b) { return detail::pointwise_call<detail::Equal>(a, b); }
Tensor ne(const Operand& a, const Operand& b) { return !eq(a, b); }
Tensor lt(const Operand& a, const Operand& b) { return detail::pointwise_call<detail::Less>(a, b); }
Tensor le(const Operand& a, const Operand& b) { return detail::pointwise_call<detail::LessEqual>(a, b); }
Tensor gt(const Operand& a, const Operand& b) { return lt(b, a); }
Tensor ge(const Operand& a, const Operand& b) { return le(b, a); }
Tensor operator&&(const Tensor& a, const Tensor& b) { return detail::pointwise_call<detail::LogicalAnd>(a, b); }
Tensor operator||(const Tensor& a, const Tensor& b) { return detail::pointwise_call<detail::LogicalOr>(a, b); }
Tensor operator!(const Tensor& a) { return detail::pointwise_call<detail::LogicalNot>(a); }
Tensor where(const Tensor& condition, const Operand& a, const Operand& b) {
  const Operand c(condition);
  return detail::call_pointwise(detail::pointwise<detail::Where>, {&c, &a, &b});
}
Tensor cast(const Tensor& x, Dtype dtype) {
  if (x.dtype() == dtype) return x;
  return detail::call(detail::structured<detail::Cast>, {{&x}}, detail::CastAttrs{dtype});
}

// ---- bits of integers -------------------------------------------------------------------------------------

namespace detail {
namespace {

/// Common part of operations on bits: kernels for integers, and for bool where they declare it.
struct Bits {
  static constexpr bool of_integers_only = true;
  static constexpr bool shifts = false;
  static constexpr Types types = Types::any;
};

template <class Op, class T>
constexpr Block block_of_bits() {
  constexpr bool taken = std::is_integral_v<T> && !(Op::shifts && std::is_same_v<T, bool>);
  if constexpr (taken) {
    return scalar_block<Op, T, T>;
  } else {
    return nullptr;
  }
}

}  // namespace

template <class Op>
requires(Op::of_integers_only) struct KernelsOf<Op> {
  static constexpr Blocks blocks{{nullptr, nullptr, block_of_bits<Op, std::int32_t>(),
                                  block_of_bits<Op, std::int64_t>(), block_of_bits<Op, bool>()}};
  static constexpr const Blocks* own = &blocks;
  static constexpr const TableInUse<Blocks>* in_use = nullptr;
};

namespace {

/// Returns the common type of the operands, which must be integers.
template <class Op>
Spec infer_bits(const Primitive& op, Inputs in, const Attrs& attrs) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Dtype t = in[i].dtype();
    if (is_integer(t) || (t == Dtype::boolean && !Op::shifts)) continue;
    throw_dtype(Op::name,
                std::string(name_of(t)) + " is not supported; it takes integers" + (Op::shifts ? "" : " and bool"));
  }
  Spec s;
  infer_pointwise(op, Types::any, in, attrs, s);
  return s;
}

struct BitwiseAnd : Bits {
  static constexpr auto name = "bitwise_and", onnx = "BitwiseAnd", stablehlo = "and", summary = "bits that both have";
  static constexpr std::size_t arity = 2;
  static Spec infer(const Primitive& op, Inputs in, const Attrs& attrs) {
    return infer_bits<BitwiseAnd>(op, in, attrs);
  }
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct BitwiseOr : Bits {
  static constexpr auto name = "bitwise_or", onnx = "BitwiseOr", stablehlo = "or", summary = "bits that either has";
  static constexpr std::size_t arity = 2;
  static Spec infer(const Primitive& op, Inputs in, const Attrs& attrs) { return infer_bits<BitwiseOr>(op, in, attrs); }
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct BitwiseXor : Bits {
  static constexpr auto name = "bitwise_xor", onnx = "BitwiseXor", stablehlo = "xor", summary = "bits that one has";
  static constexpr std::size_t arity = 2;
  static Spec infer(const Primitive& op, Inputs in, const Attrs& attrs) {
    return infer_bits<BitwiseXor>(op, in, attrs);
  }
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct BitwiseNot : Bits {
  static constexpr bool shifts = true;  // for bool it is logical_not
  static constexpr auto name = "bitwise_not", onnx = "BitwiseNot", stablehlo = "not", summary = "every bit turned over";
  static constexpr std::size_t arity = 1;
  static Spec infer(const Primitive& op, Inputs in, const Attrs& attrs) {
    return infer_bits<BitwiseNot>(op, in, attrs);
  }
  template <class T>
  static T of(T a) {
    return static_cast<T>(~a);
  }
};

template <class T>
bool within_bits(T places) {
  return places >= 0 && places < static_cast<T>(8 * sizeof(T));
}

struct LeftShift : Bits {
  static constexpr bool shifts = true;
  static constexpr auto name = "bitwise_left_shift", onnx = "", stablehlo = "shift_left";
  static constexpr auto summary = "a 2^b, bits that do not fit lost; 0 for b negative or beyond the bits";
  static constexpr std::size_t arity = 2;
  static Spec infer(const Primitive& op, Inputs in, const Attrs& attrs) { return infer_bits<LeftShift>(op, in, attrs); }
  template <class T>
  static T of(T a, T b) {
    return within_bits(b) ? static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << b) : T(0);
  }
};

struct RightShift : Bits {
  static constexpr bool shifts = true;
  static constexpr auto name = "bitwise_right_shift", onnx = "", stablehlo = "shift_right_arithmetic";
  static constexpr auto summary = "a / 2^b rounded down; for b negative or beyond the bits 0, or -1 for a < 0";
  static constexpr std::size_t arity = 2;
  static Spec infer(const Primitive& op, Inputs in, const Attrs& attrs) {
    return infer_bits<RightShift>(op, in, attrs);
  }
  template <class T>
  static T of(T a, T b) {
    if (!within_bits(b)) return a < 0 ? T(-1) : T(0);
    return static_cast<T>(a >> b);
  }
};

}  // namespace

Family bits_family() {
  static constexpr const Primitive* list[] = {&pointwise<BitwiseAnd>, &pointwise<BitwiseOr>, &pointwise<BitwiseXor>,
                                              &pointwise<BitwiseNot>, &pointwise<LeftShift>, &pointwise<RightShift>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor bitwise_and(const Operand& a, const Operand& b) { return pointwise_call<BitwiseAnd>(a, b); }
Tensor bitwise_or(const Operand& a, const Operand& b) { return pointwise_call<BitwiseOr>(a, b); }
Tensor bitwise_xor(const Operand& a, const Operand& b) { return pointwise_call<BitwiseXor>(a, b); }
Tensor bitwise_not(const Tensor& x) { return x.dtype() == Dtype::boolean ? !x : pointwise_call<BitwiseNot>(x); }
Tensor bitwise_left_shift(const Operand& a, const Operand& b) { return pointwise_call<LeftShift>(a, b); }
Tensor bitwise_right_shift(const Operand& a, const Operand& b) { return pointwise_call<RightShift>(a, b); }

}  // namespace ferrite
