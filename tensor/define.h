#pragma once
/// Defines operations of the library and of programs: a struct with a name, rule, kernel and gradient becomes the one
/// record that the whole library reads. The concepts say what a struct must contain. docs/own-operations.md has an
/// example of each kind.
#include <concepts>
#include <type_traits>

#include "ferrite/tensor/define_pointwise.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/oracle.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {

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
/// The struct of constants that an operation names as its `Attributes`; NoAttrs if it names none.
template <class Op>
using AttributesOf = typename AttributesOfOp<Op>::Type;

/// An operation that is not pointwise: a shape rule, a kernel or a view, and a gradient where there is one. Its
/// functions take the constants as the operation's struct.
template <class Op>
concept StructuredOp = AttrStruct<AttributesOf<Op>> && requires(Inputs in, const AttributesOf<Op>& a) {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::summary } -> std::convertible_to<std::string_view>;
  { Op::infer(in, a) } -> std::same_as<Specs>;
  { Op::onnx } -> std::convertible_to<std::string_view>;
  { Op::stablehlo } -> std::convertible_to<std::string_view>;
} &&(
    requires(Inputs in, std::span<Tensor> out, const AttributesOf<Op>& a) { Op::eval(in, out, a); } ||
    requires(const Tensor& x, const Spec& s, const AttributesOf<Op>& a, Layout& l) {
      Op::view(x, s, a, std::size_t{}, l);
    } ||
    requires(const Tensor& x, const Spec& s, Layout& l) {
      Op::view(x, s, l);  // one window, which its shape alone decides
    });

/// The functions of an operation in the form that its record holds: with the constants as `Attrs`.
template <class Op>
struct Recorded {
  using A = AttributesOf<Op>;
  static A of(const Attrs& attrs) { return attrs.as<A>(Op::name); }

  static Specs infer(const Primitive&, Inputs in, const Attrs& attrs) { return Op::infer(in, of(attrs)); }
  static void eval(Inputs in, std::span<Tensor> out, const Attrs& attrs) { Op::eval(in, out, of(attrs)); }
  static bool view(const Tensor& x, const Spec& out, const Attrs& attrs, std::size_t i, Layout& layout) {
    if constexpr (requires { Op::view(x, out, layout); }) {
      return Op::view(x, out, layout);
    } else {
      return Op::view(x, out, of(attrs), i, layout);
    }
  }
  static Block element_block(Dtype operand, const Attrs& attrs) { return Op::element_block(operand, of(attrs)); }
  static Tensors vjp(const Vjp& v) { return Op::vjp(v, of(v.attrs)); }
  static Tensors jvp(const Jvp& j) { return Op::jvp(j, of(j.attrs)); }
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
constexpr auto jvp_of() -> Tensors (*)(const Jvp&) {
  if constexpr (requires { &Op::jvp; }) {
    return &Recorded<Op>::jvp;
  } else {
    return nullptr;
  }
}
template <class Op>
constexpr Linearity linearity_of() {
  if constexpr (requires { Op::linearity; }) {
    return Op::linearity;
  } else {
    return Linearity::none;
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
/// Returns the effects that the operation declares. An operation that declares none and has a kernel may allocate: the
/// kernel may copy operands whose layout it cannot read directly.
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
constexpr bool takes_storage_types_of() {
  if constexpr (requires { Op::takes_storage_types; }) {
    return Op::takes_storage_types;
  } else {
    return false;
  }
}

template <class Op>
constexpr TimeRule time_of() {
  if constexpr (requires { Op::time; }) {
    return Op::time;
  } else {
    return TimeRule::unknown;
  }
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
                                         .jvp = jvp_of<Op>(),
                                         .linearity = linearity_of<Op>(),
                                         .time = time_of<Op>(),
                                         .reads = reads_of<Op>(),
                                         .onnx = Op::onnx,
                                         .stablehlo = Op::stablehlo,
                                         .reference = reference_of<Op>(),
                                         .effects = effects_of<Op>,
                                         .multiply_adds = multiply_adds_of<Op>(),
                                         .second_order_by_reference = second_order_by_reference_of<Op>(),
                                         .takes_storage_types = takes_storage_types_of<Op>(),
                                         .attributes = &attr_fields<AttributesOf<Op>>};

// ---- composites ----------------------------------------------------------------------------------------

/// A function that is composed of operations, `parts`, which provide its gradient, its kernels and its exports. Its
/// record has facts only. It may also have
/// - its own kernel, `at_once`, used where nothing records or watches the parts: it returns the same bits, or an
///   undefined tensor for operands that it does not take;
/// - its own gradient, `vjp` with `reads`, which differs from that of the parts in the last bits. Then every recorder
///   sees it as one application, and plans take it apart; `vjp` is made of operations and composites.
template <class Op>
concept CompositeOp = AttrStruct<AttributesOf<Op>> && requires(Inputs in, const AttributesOf<Op>& a) {
  { Op::name } -> std::convertible_to<std::string_view>;
  { Op::summary } -> std::convertible_to<std::string_view>;
  requires std::same_as<decltype(Op::parts(in, a)), Tensor> || std::same_as<decltype(Op::parts(in, a)), Tensors>;
  { Op::onnx } -> std::convertible_to<std::string_view>;
};

template <class Op>
Tensors composite_reference(Inputs in, const Attrs& attrs) {
  Tensors out;
  if constexpr (std::same_as<decltype(Op::parts(in, attrs.as<AttributesOf<Op>>())), Tensor>) {
    out.push_back(Op::parts(in, attrs.as<AttributesOf<Op>>(Op::name)));
  } else {
    out = Op::parts(in, attrs.as<AttributesOf<Op>>(Op::name));
  }
  return out;
}

/// Returns the result of a composite where nothing records it.
template <CompositeOp Op>
auto unrecorded(Inputs in, const AttributesOf<Op>& attrs) {
  if constexpr (requires { Op::at_once(in, attrs); }) {
    if (!profiling())
      if (Tensor y = Op::at_once(in, attrs); y.defined()) return y;
  }
  return Op::parts(in, attrs);
}
template <CompositeOp Op>
Tensors unrecorded_all(Inputs in, const Attrs& attrs) {
  const auto& a = attrs.as<AttributesOf<Op>>(Op::name);
  if constexpr (std::same_as<decltype(Op::parts(in, a)), Tensor>) {
    return {unrecorded<Op>(in, a)};
  } else {
    return unrecorded<Op>(in, a);
  }
}

/// Returns the effects of a composite. What its parts do is not known from outside, so it must run in any case, unless
/// it has its own gradient and is therefore a pure function.
template <class Op>
Effects composite_effects(std::span<const Spec>, const Attrs&) {
  return {.throws = vjp_of<Op>() == nullptr, .allocates = true};
}
template <class Op>
constexpr Reads composite_reads() {
  if constexpr (requires { Op::reads; }) {
    return Op::reads;
  } else {
    return {};
  }
}

template <CompositeOp Op>
inline constexpr Primitive composite = {.name = Op::name,
                                        .summary = Op::summary,
                                        .kind = OperationKind::composite,
                                        .infer = infer_composite,
                                        .vjp = vjp_of<Op>(),
                                        .time = time_of<Op>(),
                                        .reads = composite_reads<Op>(),
                                        .onnx = Op::onnx,
                                        .reference = composite_reference<Op>,
                                        .unrecorded = unrecorded_all<Op>,
                                        .effects = composite_effects<Op>,
                                        .takes_storage_types = true,  // its parts decide
                                        .attributes = &attr_fields<AttributesOf<Op>>};

/// Returns the result, or results, of a composite: those of its parts, or of one application where it is recorded as
/// one.
template <CompositeOp Op>
auto composed(Inputs in, const AttributesOf<Op>& attrs = {}) {
  const Frame& f = frame();
  if (f.recorders.empty()) return unrecorded<Op>(in, attrs);
  if (is_recorded_whole(f, composite<Op>)) {
    Tensors out = record_composite(composite<Op>, in, attrs);
    if constexpr (std::same_as<decltype(Op::parts(in, attrs)), Tensor>) {
      return std::move(out[0]);
    } else {
      return out;
    }
  }
  return Op::parts(in, attrs);
}

}  // namespace ferrite::detail

/// The names that programs use to write their own operations.
namespace ferrite::define {

using detail::call;
using detail::composed;
using detail::composite;
using detail::Dense;
using detail::dense;
using detail::for_each_index;
using detail::Layout;
using detail::pointwise;
using detail::pointwise_call;
using detail::PointwiseVjp;
using detail::Range;
using detail::Reads;
using detail::reads_all;
using detail::reads_inputs;
using detail::reads_nothing;
using detail::reads_outputs;
using detail::Sample;
using detail::structured;
using detail::Types;
using detail::Writer;

}  // namespace ferrite::define
