/// Operations on the bits of integers.
#include <cstdint>
#include <type_traits>

#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite::detail {
namespace {

/// What operations on bits share: kernels for integers, and for bool where they say so.
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

/// Common types of the operands, which are integers.
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
  static constexpr bool shifts = true;  // of bool it is logical_not
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

}  // namespace ferrite::detail

namespace ferrite {

using namespace detail;

Tensor bitwise_and(const Operand& a, const Operand& b) { return pointwise_call<BitwiseAnd>(a, b); }
Tensor bitwise_or(const Operand& a, const Operand& b) { return pointwise_call<BitwiseOr>(a, b); }
Tensor bitwise_xor(const Operand& a, const Operand& b) { return pointwise_call<BitwiseXor>(a, b); }
Tensor bitwise_not(const Tensor& x) { return x.dtype() == Dtype::boolean ? !x : pointwise_call<BitwiseNot>(x); }
Tensor bitwise_left_shift(const Operand& a, const Operand& b) { return pointwise_call<LeftShift>(a, b); }
Tensor bitwise_right_shift(const Operand& a, const Operand& b) { return pointwise_call<RightShift>(a, b); }

}  // namespace ferrite
