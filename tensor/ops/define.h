#pragma once
/// How an operation is written: a struct with its name, rule, kernel and gradient, turned into the one record that
/// the whole library reads. The concepts say what a struct must contain; without its oracle and its domain or
/// samples an operation does not compile, so none can be registered untested.
#include <concepts>
#include <type_traits>
#include <utility>

#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/detail/pointwise.h"
#include "ferrite/tensor/kernel/block.h"
#include "ferrite/tensor/operand.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/oracle.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {

// ---- pointwise -----------------------------------------------------------------------------------------

/// What the gradient of a pointwise operation reads. An operand is a tensor or a literal.
class PointwiseVjp {
 public:
  explicit PointwiseVjp(const Vjp& v)
      : grad(v.grad()), out(v.out()), a(operand(v, 0)), b(operand(v, 1)), c(operand(v, 2)), vjp_(v) {}

  const Tensor& grad;
  const Tensor& out;
  const Operand a, b, c;

  /// The gradients that are wanted: one function for each operand, called only where needed.
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

/// A pointwise operation.
template <class Op>
concept PointwiseOp = requires {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::summary } -> std::convertible_to<std::string_view>;
  { Op::arity } -> std::convertible_to<std::size_t>;
  { Op::types } -> std::convertible_to<Types>;
  { Op::domain } -> std::convertible_to<Range>;
  { Op::onnx } -> std::convertible_to<std::string_view>;
  { Op::stablehlo } -> std::convertible_to<std::string_view>;
  &Op::scalar;
};

template <class Op>
inline constexpr bool kToBool = requires {
  requires Op::to_bool;
};

template <class Op, class T>
constexpr Block block_of() {
  if constexpr (requires { Op::template block<T>; }) {
    return Op::template block<T>;
  } else if constexpr (!accepts(Op::types, dtype_of<T>)) {
    return nullptr;
  } else if constexpr (kToBool<Op>) {
    return lane_block<Op, T, bool>;
  } else if constexpr (std::is_floating_point_v<T>) {
    return packet_block<Op, T>;
  } else {
    return lane_block<Op, T, T>;
  }
}

template <class Op, std::size_t... I>
double call_scalar(const double* operands, std::index_sequence<I...>) {
  return Op::scalar(operands[I]...);
}
template <class Op>
double scalar_of(const double* operands) {
  return call_scalar<Op>(operands, std::make_index_sequence<Op::arity>{});
}

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
constexpr std::span<const double> kinks_of() {
  if constexpr (requires { Op::kinks; }) {
    return Op::kinks;
  } else {
    return {};
  }
}

template <class Op>
Tensors pointwise_reference(Inputs in, const Attrs&) {
  return Op::reference(in);
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

template <PointwiseOp Op>
inline constexpr Primitive pointwise = {
    .name = Op::name,
    .summary = Op::summary,
    .arity = static_cast<int>(Op::arity),
    .infer = pointwise_infer<Op>,
    .eval = nullptr,
    .view = nullptr,
    .block = {block_of<Op, float>(), block_of<Op, double>(), block_of<Op, std::int32_t>(), block_of<Op, std::int64_t>(),
              block_of<Op, bool>()},
    .element_block = nullptr,
    .row_reduction = nullptr,
    .in_place = {},
    .vjp = pointwise_vjp_of<Op>(),
    .reads = reads_of<Op>(),
    .onnx = Op::onnx,
    .stablehlo = Op::stablehlo,
    .domain = Op::domain,
    .kinks = kinks_of<Op>(),
    .scalar = scalar_of<Op>,
    .oracle = nullptr,
    .samples = nullptr,
    .reference = pointwise_reference_of<Op>(),
    .effects = nullptr,
    .multiply_adds = nullptr,
    .second_order_by_reference = false,
    .attributes = &attr_fields<Literals>};

// ---- structured ----------------------------------------------------------------------------------------

template <class Op>
struct AttributesOfOp {
  using Type = NoAttrs;
};
template <class Op>
requires requires { typename Op::Attributes; }
struct AttributesOfOp<Op> {
  using Type = typename Op::Attributes;
};
/// The struct of constants that an operation names as its `Attributes`; without one it has none.
template <class Op>
using AttributesOf = typename AttributesOfOp<Op>::Type;

/// Any other operation: a shape rule, a kernel or a view, an oracle of plain loops, samples, and a gradient where
/// there is one. Its functions take the constants as its own struct.
template <class Op>
concept StructuredOp = AttrStruct<AttributesOf<Op>> &&
    requires(Inputs in, const AttributesOf<Op>& a, std::span<const Dense> dense, std::span<Dense> result) {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::summary } -> std::convertible_to<std::string_view>;
  { Op::infer(in, a) } -> std::same_as<Specs>;
  { Op::onnx } -> std::convertible_to<std::string_view>;
  { Op::stablehlo } -> std::convertible_to<std::string_view>;
  Op::oracle(dense, result, a);
  { Op::samples() } -> std::same_as<std::vector<Sample>>;
} &&(
    requires(Inputs in, std::span<Tensor> out, const AttributesOf<Op>& a) { Op::eval(in, out, a); } ||
    requires(const Tensor& x, const Spec& s, const AttributesOf<Op>& a, Layout& l) {
      Op::view(x, s, a, std::size_t{}, l);
    });

/// The functions of an operation as its record has them: the constants as all operations carry them.
template <class Op>
struct Recorded {
  using A = AttributesOf<Op>;
  static A of(const Attrs& attrs) { return attrs.as<A>(Op::name); }

  static Specs infer(const Primitive&, Inputs in, const Attrs& attrs) { return Op::infer(in, of(attrs)); }
  static void eval(Inputs in, std::span<Tensor> out, const Attrs& attrs) { Op::eval(in, out, of(attrs)); }
  static bool view(const Tensor& x, const Spec& out, const Attrs& attrs, std::size_t i, Layout& layout) {
    return Op::view(x, out, of(attrs), i, layout);
  }
  static Block element_block(Dtype operand, const Attrs& attrs) { return Op::element_block(operand, of(attrs)); }
  static Tensors vjp(const Vjp& v) { return Op::vjp(v, of(v.attrs)); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attrs& attrs) {
    Op::oracle(in, out, of(attrs));
  }
  static Tensors reference(Inputs in, const Attrs& attrs) { return Op::reference(in, of(attrs)); }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec> out, const Attrs& attrs) {
    return Op::multiply_adds(in, out, of(attrs));
  }
};

template <class Op>
constexpr auto eval_of() -> void (*)(Inputs, std::span<Tensor>, const Attrs&) {
  if constexpr (requires { &Op::eval; }) {
    return &Recorded<Op>::eval;
  } else {
    return nullptr;
  }
}
template <class Op>
constexpr auto row_reduction_of() -> RowReduction (*)(Dtype) {
  if constexpr (requires(Dtype t) { Op::row_reduction(t); }) {
    return &Op::row_reduction;
  } else {
    return nullptr;
  }
}
template <class Op>
constexpr std::span<const std::uint8_t> in_place_of() {
  if constexpr (requires { Op::in_place; }) {
    return Op::in_place;
  } else {
    return {};
  }
}
template <class Op>
constexpr auto element_block_of() -> Block (*)(Dtype, const Attrs&) {
  if constexpr (requires { &Op::element_block; }) {
    return &Recorded<Op>::element_block;
  } else {
    return nullptr;
  }
}
template <class Op>
constexpr auto view_of() -> bool (*)(const Tensor&, const Spec&, const Attrs&, std::size_t, Layout&) {
  if constexpr (requires { &Op::view; }) {
    return &Recorded<Op>::view;
  } else {
    return nullptr;
  }
}
template <class Op>
constexpr auto vjp_of() -> Tensors (*)(const Vjp&) {
  if constexpr (requires { &Op::vjp; }) {
    return &Recorded<Op>::vjp;
  } else {
    return nullptr;
  }
}
template <class Op>
constexpr auto reference_of() -> Tensors (*)(Inputs, const Attrs&) {
  if constexpr (requires { &Op::reference; }) {
    return &Recorded<Op>::reference;
  } else {
    return nullptr;
  }
}
/// Of an operation that says nothing: its kernel may copy operands that lie otherwise than it reads them.
template <class Op>
Effects effects_of(std::span<const Spec> in, const Attrs& attrs) {
  if constexpr (requires { Op::effects(in, Recorded<Op>::of(attrs)); }) {
    return Op::effects(in, Recorded<Op>::of(attrs));
  } else if constexpr (requires { Effects(Op::effects); }) {
    return Op::effects;
  } else {
    return {.allocates = eval_of<Op>() != nullptr};
  }
}
template <class Op>
constexpr auto multiply_adds_of() -> std::int64_t (*)(std::span<const Spec>, std::span<const Spec>, const Attrs&) {
  if constexpr (requires { &Op::multiply_adds; }) {
    return &Recorded<Op>::multiply_adds;
  } else {
    return nullptr;
  }
}
template <class Op>
constexpr bool second_order_by_reference_of() {
  return requires { Op::second_order_by_reference; };
}
template <class Op>
std::span<const Sample> samples_of() {
  static const std::vector<Sample> samples = Op::samples();
  return samples;
}

template <StructuredOp Op>
inline constexpr Primitive structured = {.name = Op::name,
                                         .summary = Op::summary,
                                         .arity = -1,
                                         .infer = Recorded<Op>::infer,
                                         .eval = eval_of<Op>(),
                                         .view = view_of<Op>(),
                                         .element_block = element_block_of<Op>(),
                                         .row_reduction = row_reduction_of<Op>(),
                                         .in_place = in_place_of<Op>(),
                                         .vjp = vjp_of<Op>(),
                                         .reads = reads_of<Op>(),
                                         .onnx = Op::onnx,
                                         .stablehlo = Op::stablehlo,
                                         .oracle = Recorded<Op>::oracle,
                                         .samples = samples_of<Op>,
                                         .reference = reference_of<Op>(),
                                         .effects = effects_of<Op>,
                                         .multiply_adds = multiply_adds_of<Op>(),
                                         .second_order_by_reference = second_order_by_reference_of<Op>(),
                                         .attributes = &attr_fields<AttributesOf<Op>>};

// ---- calling -------------------------------------------------------------------------------------------

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

/// x Phi(x), the primitive behind `gelu`.
Tensor gelu_exact(const Tensor& x);

/// A family of operations, collected by the registry.
using Family = std::span<const Primitive* const>;
Family arithmetic_family();
Family functions_family();
Family logic_family();
Family reduction_family();
Family prod_others_family();
Family product_family();
Family view_family();
Family window_family();
Family assembly_family();
Family indexing_family();
Family check_family();
Family creation_family();
Family random_family();
Family recurrent_family();
Family recurrent_grad_family();
Family training_family();

}  // namespace ferrite::detail
