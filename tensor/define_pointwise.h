#pragma once
/// Defines pointwise operations from structs: see tensor/define.h.
#include <concepts>
#include <type_traits>
#include <utility>

#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/operand.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// The values that the gradient of a pointwise operation may read: the gradient and the value of its result (`grad`,
/// `out`) and its operands (`a`, `b`, `c`), each a tensor or a literal number. The value of a result or tensor operand
/// that the operation's `reads` does not name is an undefined tensor.
class PointwiseVjp {
 public:
  explicit PointwiseVjp(const Vjp& v)
      : grad(v.grad()), out(v.out()), a(operand(v, 0)), b(operand(v, 1)), c(operand(v, 2)), vjp_(v) {}

  const Tensor& grad;
  const Tensor& out;
  const Operand a, b, c;

  /// Returns a gradient for each operand that is a tensor, undefined unless it is wanted. Takes one function for each
  /// operand, literals included, and calls only those that are needed.
  template <class... F>
  Tensors wanted(F&&... f) const {
    Tensors g;
    std::size_t at = 0;
    std::size_t input = 0;
    const auto form = [&](auto& make) {
      const bool literal = is_literal(vjp_, at++);
      if (literal) return;
      g.push_back(vjp_.wants(input) ? make() : Tensor());
      ++input;
    };
    (form(f), ...);
    return g;
  }

 private:
  static bool is_literal(const Vjp& v, std::size_t at) { return literal_of(v.attrs, at) != nullptr; }
  static Operand operand(const Vjp& v, std::size_t at) {
    std::size_t input = 0;
    for (std::size_t i = 0; i < at; ++i)
      if (!is_literal(v, i)) ++input;
    if (const Scalar* literal = literal_of(v.attrs, at)) return Operand(*literal);
    return input < v.inputs() ? Operand(v.in(input)) : Operand();
  }

  const Vjp& vjp_;
};

/// An operation that acts element by element: a struct with a name, a summary, an arity, the dtypes that it takes
/// (`types`), and its names in ONNX and StableHLO, empty where it has none. Other members are optional; without kernels
/// in the library's tables it also needs `of` (`OfNumbers`).
template <class Op>
concept PointwiseOp = requires {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::summary } -> std::convertible_to<std::string_view>;
  { Op::arity } -> std::convertible_to<std::size_t>;
  { Op::types } -> std::convertible_to<Types>;
  { Op::onnx } -> std::convertible_to<std::string_view>;
  { Op::stablehlo } -> std::convertible_to<std::string_view>;
};

template <class Op>
inline constexpr bool kToBool = requires {
  requires Op::to_bool;
};

/// Applies `of`, a function of numbers, to n elements in a loop that compilers can vectorise.
template <class Op, class T, class R>
void scalar_block(const void* const* in, const std::ptrdiff_t* step, void* out, std::int64_t n) {
  R* to = static_cast<R*>(out);
  const auto each = [&]<std::size_t... I>(std::index_sequence<I...>) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = Op::of(static_cast<const T*>(in[I])[i * step[I]]...);
  };
  each(std::make_index_sequence<Op::arity>{});
}

/// An operation that has a function of numbers, `of`, which compilers can vectorise.
template <class Op>
concept OfNumbers = requires(double x) {
  Op::of(x);
}
|| requires(double x) { Op::of(x, x); }
|| requires(double x) { Op::of(x, x, x); };
template <class Op, class T>
constexpr Block block_of_numbers() {
  if constexpr (accepts(Op::types, dtype_of<T>)) {
    return scalar_block<Op, T, std::conditional_t<kToBool<Op>, bool, T>>;
  } else {
    return nullptr;
  }
}

/// Says where the kernels of a pointwise operation are: here its own, computed from numbers. The kernels of the
/// library's operations are in tables of the instruction sets (tensor/ops/define.h).
template <class Op>
struct KernelsOf {
  static_assert(OfNumbers<Op>, "a pointwise operation needs a function of numbers, `of`");
  static constexpr Blocks blocks{{block_of_numbers<Op, float>(), block_of_numbers<Op, double>(),
                                  block_of_numbers<Op, std::int32_t>(), block_of_numbers<Op, std::int64_t>(),
                                  block_of_numbers<Op, bool>()}};
  static constexpr const Blocks* own = &blocks;
  static constexpr const TableInUse<Blocks>* in_use = nullptr;
};

template <class Op>
Tensors pointwise_vjp(const Vjp& v) {
  return Op::vjp(PointwiseVjp(v));
}
template <class Op>
constexpr auto pointwise_vjp_of() -> Tensors (*)(const Vjp&) {
  if constexpr (requires(const PointwiseVjp& v) { Op::vjp(v); }) {
    return pointwise_vjp<Op>;
  } else {
    return nullptr;
  }
}
template <class Op>
constexpr Reads reads_of() {
  if constexpr (requires { Op::reads; }) {
    return Op::reads;
  } else {
    return reads_nothing;
  }
}
template <class Op>
constexpr bool second_order_by_reference_of() {
  return requires { Op::second_order_by_reference; };
}
/// Applies the composition of a pointwise operation. It takes tensors only: literals become tensors of one element.
template <class Op>
Tensors pointwise_reference(Inputs in, const Attrs& attrs) {
  if (in.size() == Op::arity) return Op::reference(in);
  return Op::reference(OperandList(with_literals(Op::arity, in, attrs)));
}
template <class Op>
constexpr auto pointwise_reference_of() -> Tensors (*)(Inputs, const Attrs&) {
  if constexpr (requires { &Op::reference; }) {
    return pointwise_reference<Op>;
  } else {
    return nullptr;
  }
}

template <class Op>
Specs pointwise_infer(const Primitive& op, Inputs in, const Attrs& attrs) {
  if constexpr (requires { Op::infer(op, in, attrs); }) {
    return {Op::infer(op, in, attrs)};
  } else {
    Specs s;
    infer_pointwise(op, Op::types, in, attrs, s.emplace_back());
    if constexpr (kToBool<Op>) s[0].dtype = Dtype::boolean;
    return s;
  }
}

/// Returns the arity of a pointwise operation, which must be pure: an operation that refuses values is `checked` or
/// structured.
template <class Op>
constexpr std::size_t arity_of() {
  static_assert(
      !requires { Op::effects; }, "a pointwise operation has no effects");
  return Op::arity;
}

template <PointwiseOp Op>
inline constexpr Primitive pointwise = {.name = Op::name,
                                        .summary = Op::summary,
                                        .kind = OperationKind::pointwise,
                                        .arity = static_cast<int>(arity_of<Op>()),
                                        .infer = pointwise_infer<Op>,
                                        .eval = nullptr,
                                        .view = nullptr,
                                        .own_blocks = KernelsOf<Op>::own,
                                        .blocks = KernelsOf<Op>::in_use,
                                        .element_block = nullptr,
                                        .row_reduction = nullptr,
                                        .in_place = {},
                                        .vjp = pointwise_vjp_of<Op>(),
                                        .reads = reads_of<Op>(),
                                        .onnx = Op::onnx,
                                        .stablehlo = Op::stablehlo,
                                        .reference = pointwise_reference_of<Op>(),
                                        .effects = nullptr,
                                        .multiply_adds = nullptr,
                                        .second_order_by_reference = second_order_by_reference_of<Op>(),
                                        .attributes = &attr_fields<Literals>};

/// Applies an operation with one result.
inline Tensor call(const Primitive& op, Inputs in, const Attrs& attrs = {}) { return op.apply(in, attrs)[0]; }

template <class Op>
Tensor pointwise_call(const Tensor& x) {
  return call(pointwise<Op>, {{&x}});
}
template <class Op>
Tensor pointwise_call(const Operand& a, const Operand& b) {
  if (!a.is_literal() && !b.is_literal()) return call(pointwise<Op>, {{&a.tensor(), &b.tensor()}});
  return call_pointwise(pointwise<Op>, {&a, &b});
}

}  // namespace ferrite::detail
