/// Arithmetic: sums, products, powers, extremes, signs; and the code of cheap operations as links of a chain.
#include <cmath>
#include <limits>

#include "ferrite/tensor/kernel/chain.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/cheap.h"

namespace ferrite {

// ---- operations -------------------------------------------------------------------------------------------

namespace detail {
namespace {

struct Div : functors::Div {
  static constexpr auto name = "div", onnx = "Div", stablehlo = "divide";
  static constexpr auto summary = "a / b";
  static constexpr Reads reads = reads_all;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad / v.b; }, [&] { return -v.grad * v.out / v.b; });
  }
};

/// Returns the part of the gradient for one operand: all of it where it is chosen, half of it at a tie.
Tensor share(const Tensor& grad, const Operand& chosen_more, const Operand& chosen_less) {
  const Tensor less_share = cast(lt(chosen_less, chosen_more), grad.dtype());
  const Tensor equal_share = cast(eq(chosen_less, chosen_more), grad.dtype());
  return grad * (less_share + 0.5 * equal_share);
}

struct Maximum : functors::Maximum {
  static constexpr auto name = "maximum", onnx = "Max", stablehlo = "maximum";
  static constexpr auto summary = "max(a, b); NaN if either is; ties share the gradient evenly";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return share(v.grad, v.a, v.b); }, [&] { return share(v.grad, v.b, v.a); });
  }
};

struct Minimum : functors::Minimum {
  static constexpr auto name = "minimum", onnx = "Min", stablehlo = "minimum";
  static constexpr auto summary = "min(a, b); NaN if either is; ties share the gradient evenly";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return share(v.grad, v.b, v.a); }, [&] { return share(v.grad, v.a, v.b); });
  }
};

struct Abs : functors::Abs {
  static constexpr auto name = "abs", onnx = "Abs", stablehlo = "abs";
  static constexpr auto summary = "|x|; gradient 0 at 0";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * sign(v.a.tensor()); });
  }
};

struct Sign : functors::Sign {
  static constexpr auto name = "sign", onnx = "Sign", stablehlo = "sign";
  static constexpr auto summary = "-1, 0 or 1; NaN stays; gradient 0";
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return zeros_like(v.grad); });
  }
};

/// a^b. Where a = 0, the base's gradient is 0 for b = 0, and the exponent's for b >= 0, as in PyTorch.
struct Pow : functors::Pow {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr auto name = "pow", onnx = "Pow", stablehlo = "power";
  static constexpr auto summary = "a^b";
  static constexpr Reads reads = reads_all;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return base_gradient(v); }, [&] { return exponent_gradient(v); });
  }

 private:
  /// Returns b a^(b - 1). Where that is 0 times infinity or NaN, for b = 0 at a = 0 or NaN, both are replaced, so that
  /// higher gradients stay finite, too.
  static Tensor base_gradient(const PointwiseVjp& v) {
    if (v.b.is_literal()) {
      const double exponent = v.b.scalar().real();
      if (exponent == 0) return zeros_like(v.grad);
      return v.grad * (exponent * pow(v.a, exponent - 1));
    }
    const Tensor flat = eq(v.b, 0.0) && !ne(v.a, 0.0);
    return where(flat, 0.0, v.grad * (v.b * pow(where(flat, 1.0, v.a), v.b - 1.0)));
  }
  /// Returns a^b ln a.
  static Tensor exponent_gradient(const PointwiseVjp& v) {
    if (v.a.is_literal()) {
      const double base = v.a.scalar().real();
      if (base == 0) return v.grad * where(ge(v.b, 0.0), 0.0, full({}, -kInfinity, v.grad.dtype()));
      return v.grad * (v.out * std::log(base));
    }
    const Tensor flat = eq(v.a, 0.0) && ge(v.b, 0.0);
    return where(flat, 0.0, v.grad * (v.out * log(where(flat, 1.0, v.a))));
  }
};

struct Clamp : functors::Clamp {
  static constexpr auto name = "clamp", onnx = "Clip", stablehlo = "clamp";
  static constexpr auto summary = "min(max(x, low), high); gradient 1 inside and at the bounds, else 0";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    const auto inside = [&] { return v.grad * cast(ge(v.a, v.b) && le(v.a, v.c), v.grad.dtype()); };
    const auto below = [&] { return v.grad * cast(lt(v.a, v.b) && le(v.b, v.c), v.grad.dtype()); };
    const auto above = [&] { return v.grad * cast(gt(v.a, v.c) || gt(v.b, v.c), v.grad.dtype()); };
    return v.wanted(inside, below, above);
  }
};

}  // namespace

namespace ops {

constinit const Primitive* const add = &pointwise<Add>;
constinit const Primitive* const sub = &pointwise<Sub>;
constinit const Primitive* const mul = &pointwise<Mul>;
constinit const Primitive* const div = &pointwise<Div>;
constinit const Primitive* const neg = &pointwise<Neg>;

}  // namespace ops

Family arithmetic_family() {
  static constexpr const Primitive* list[] = {&pointwise<Add>,  &pointwise<Sub>,     &pointwise<Mul>,
                                              &pointwise<Div>,  &pointwise<Neg>,     &pointwise<Pow>,
                                              &pointwise<Abs>,  &pointwise<Maximum>, &pointwise<Minimum>,
                                              &pointwise<Sign>, &pointwise<Square>,  &pointwise<Clamp>};
  return list;
}

}  // namespace detail

Tensor add(const Operand& a, const Operand& b) { return detail::pointwise_call<detail::Add>(a, b); }
Tensor sub(const Operand& a, const Operand& b) { return detail::pointwise_call<detail::Sub>(a, b); }
Tensor mul(const Operand& a, const Operand& b) { return detail::pointwise_call<detail::Mul>(a, b); }
Tensor div(const Operand& a, const Operand& b) { return detail::pointwise_call<detail::Div>(a, b); }
Tensor pow(const Operand& a, const Operand& b) { return detail::pointwise_call<detail::Pow>(a, b); }
Tensor maximum(const Operand& a, const Operand& b) { return detail::pointwise_call<detail::Maximum>(a, b); }
Tensor minimum(const Operand& a, const Operand& b) { return detail::pointwise_call<detail::Minimum>(a, b); }
Tensor neg(const Tensor& x) { return detail::pointwise_call<detail::Neg>(x); }
Tensor abs(const Tensor& x) { return detail::pointwise_call<detail::Abs>(x); }
Tensor sign(const Tensor& x) { return detail::pointwise_call<detail::Sign>(x); }
Tensor square(const Tensor& x) { return detail::pointwise_call<detail::Square>(x); }
Tensor clamp(const Tensor& x, Scalar low, Scalar high) {
  const Operand a(x), b(low), c(high);
  return detail::call_pointwise(detail::pointwise<detail::Clamp>, {&a, &b, &c});
}

// ---- chains -----------------------------------------------------------------------------------------------

namespace detail {
namespace {

/// Returns the position of an operation in the tables of ChainKernels, or the number of operations if it is not there.
template <class... Op>
std::size_t place_of(const Primitive& op) {
  std::size_t at = 0;
  (void)((&op == &pointwise<Op> || (++at, false)) || ...);
  return at;
}

}  // namespace

const LinkKernel* link_from(bool repeated) { return chains_in_use.get().from[repeated]; }
const LinkKernel* link_through(const Primitive& op, std::size_t at, bool repeated) {
  const std::size_t place = place_of<Add, Sub, Mul, Neg, Square, Relu>(op);
  return place < ChainKernels::kCheap ? chains_in_use.get().through[place][at][repeated] : nullptr;
}
const LinkKernel* link_through_product(const Primitive& op, std::size_t at, bool repeated, bool repeated2) {
  const std::size_t place = place_of<Add, Sub, Mul>(op);
  return place < ChainKernels::kProducts ? chains_in_use.get().product[place][at][repeated][repeated2] : nullptr;
}
const LinkKernel* link_to(bool in_memory) { return chains_in_use.get().to[in_memory]; }
void end_streaming() {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#endif
}

void run_chain(const Link* links, const ChainRows& rows) { chains_in_use.get().run(links, rows); }

}  // namespace detail
}  // namespace ferrite
