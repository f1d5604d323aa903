/// The selective scan as one operation, and its gradient: both keep no more than their operands.
#include "ferrite/tensor/selective_scan.h"

#include <algorithm>
#include <optional>

#include "ferrite/tensor/ops/detail/selective_scan.h"

namespace ferrite {
namespace detail {
namespace {

/// Lengths are checked where their values are known.
Effects effects_with(std::span<const Spec> in) {
  const bool lengths = std::any_of(in.begin(), in.end(), [](const Spec& s) { return s.dtype == Dtype::i64; });
  return {.throws = lengths, .allocates = true};
}

/// One for each number of every state at every step.
std::int64_t products(std::span<const Spec> in, std::size_t begin, std::int64_t each) {
  return each * in[begin].shape.numel() * in[begin + 2].shape[-1];
}

struct SelectiveScanGrad {
  static constexpr auto name = "selective_scan_grad", onnx = "", stablehlo = "";
  static constexpr auto summary = "the gradients of all floats of selective_scan, from the cotangents of its results";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;

  static Specs infer(Inputs in, const NoAttrs&) {
    const ScanOperands o = ScanOperands::of(in, kScanCotangents);
    check_scan(name, in, o);
    const Spec y = in[kScanCotangents].spec(), state = scan_state(in, o), none{{0}, y.dtype};
    if ((in[0].spec() != y && in[0].spec() != none) || (in[1].spec() != state && in[1].spec() != none))
      throw_shape(name, "the cotangents must be " + y.str() + " and " + state.str() + ", or empty, got " +
                            in[0].spec().str() + " and " + in[1].spec().str());
    Specs out;
    for (int k = o.first; k < o.floats; ++k) out.push_back(in[static_cast<std::size_t>(k)].spec());
    return out;
  }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) { run_scan_grad(name, in, out); }
  static Effects effects(std::span<const Spec> in, const NoAttrs&) { return effects_with(in); }
  static Tensors reference(Inputs in, const NoAttrs&) { return composed_scan_grad(in); }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const NoAttrs&) {
    return products(in, kScanCotangents, 8);
  }
};

struct SelectiveScanOp {
  static constexpr auto name = "selective_scan", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "h = exp(delta A) h + (delta x) B step by step, y = D x + the sum of h C over states; y and the last h";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;

  static Specs infer(Inputs in, const NoAttrs&) {
    const ScanOperands o = ScanOperands::of(in, 0);
    check_scan(name, in, o);
    return {in[0].spec(), scan_state(in, o)};
  }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) { run_scan(name, in, out); }
  static Effects effects(std::span<const Spec> in, const NoAttrs&) { return effects_with(in); }
  static Tensors vjp(const Vjp& v, const NoAttrs&) {
    const Tensor nothing = Tensor::empty({{0}, v.in_spec(0).dtype});
    InlineVector<const Tensor*, 16> in;
    for (std::size_t k = 0; k < kScanCotangents; ++k) in.push_back(v.grad(k).defined() ? &v.grad(k) : &nothing);
    for (std::size_t k = 0; k < v.inputs(); ++k) in.push_back(&v.in(k));
    Tensors g = structured<SelectiveScanGrad>.apply({in.data(), in.size()}, {});
    while (g.size() < v.inputs()) g.push_back(Tensor());  // lengths and resets have none
    for (std::size_t k = 0; k < g.size(); ++k)
      if (!v.wants(k)) g[k] = Tensor();
    return g;
  }
  static Tensors reference(Inputs in, const NoAttrs&) { return composed_scan(in); }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const NoAttrs&) {
    return products(in, 0, 3);
  }
};

}  // namespace

Family selective_scan_family() {
  static constexpr const Primitive* list[] = {&structured<SelectiveScanOp>, &structured<SelectiveScanGrad>};
  return list;
}

Spec scan_state(Inputs in, const ScanOperands& o) {
  const Shape &x = in[static_cast<std::size_t>(o.x)].shape(), &A = in[static_cast<std::size_t>(o.A)].shape();
  return {{x[0], A[0], A[1]}, in[static_cast<std::size_t>(o.x)].dtype()};
}

void check_scan(std::string_view where, Inputs in, const ScanOperands& o) {
  if (!o.complete)
    throw_shape(where,
                "expects x, delta, A, B, C and, where there are any, D [Dm], a state [Bt, Dm, N], lengths i64 [Bt], "
                "resets bool [Bt, T]");
  const auto at = [in](int k) -> const Tensor& { return in[static_cast<std::size_t>(k)]; };
  for (int k = o.x; k < o.floats; ++k)
    if (!is_float(at(k).dtype()) || is_storage_only(at(k).dtype()) || at(k).dtype() != at(o.x).dtype())
      throw_dtype(where,
                  "takes floats of one dtype, f32 or f64, got " + at(o.x).spec().str() + " and " + at(k).spec().str());
  const Shape &x = at(o.x).shape(), &A = at(o.A).shape();
  const auto refuse = [&](const std::string& what) {
    throw_shape(where, what + ": x " + x.str() + ", delta " + at(o.delta).shape().str() + ", A " + A.str() + ", B " +
                           at(o.B).shape().str() + ", C " + at(o.C).shape().str());
  };
  if (x.rank() != 3 || A.rank() != 2) refuse("expects x [Bt, T, Dm] and A [Dm, N]");
  const std::int64_t rows = x[0], T = x[1], states = A[1];
  if (T == 0 || x[2] == 0 || states == 0) refuse("there are no steps, channels or states");
  const Shape by_state{rows, T, states};
  if (at(o.delta).shape() != x || A[0] != x[2] || at(o.B).shape() != by_state || at(o.C).shape() != by_state)
    refuse("expects delta [Bt, T, Dm], A [Dm, N], B and C [Bt, T, N]");
  const auto expect = [&](int k, const Spec& wanted, const char* what) {
    if (k >= 0 && at(k).spec() != wanted)
      throw_shape(where, std::string("expects ") + what + " " + wanted.str() + ", got " + at(k).spec().str());
  };
  expect(o.D, {{x[2]}, at(o.x).dtype()}, "D");
  expect(o.state, scan_state(in, o), "a state");
  expect(o.lengths, {{rows}, Dtype::i64}, "lengths");
  expect(o.resets, {{rows, T}, Dtype::boolean}, "resets");
}

}  // namespace detail

SelectiveScan selective_scan_with_state(const Tensor& x, const Tensor& delta, const Tensor& A, const Tensor& B,
                                        const Tensor& C, const Tensor& D, const SelectiveScanOptions& options) {
  InlineVector<const Tensor*, 16> in = {&x, &delta, &A, &B, &C};
  const auto refuse = [](const char* what, const Tensor& t, bool dtype) {
    const std::string text = std::string("selective_scan: expects ") + what + ", got " + t.spec().str();
    if (dtype) throw DtypeError(text);
    throw ShapeError(text);
  };
  // The operation tells operands that may be absent by rank and dtype: what is of neither is refused here.
  const auto add = [&](const Tensor& t, std::optional<Dtype> dtype, int rank, const char* what) {
    if (!t.defined()) return;
    const bool right = dtype ? t.dtype() == *dtype : is_float(t.dtype());
    if (!right || t.rank() != rank) refuse(what, t, !right);
    in.push_back(&t);
  };
  add(D, {}, 1, "D [Dm] of x's dtype");
  add(options.state, {}, 3, "a state [Bt, Dm, N] of x's dtype");
  add(options.lengths, Dtype::i64, 1, "lengths i64 [Bt]");
  add(options.resets, Dtype::boolean, 2, "resets bool [Bt, T]");
  Tensors out = detail::structured<detail::SelectiveScanOp>.apply({in.data(), in.size()}, {});
  return {std::move(out[0]), std::move(out[1])};
}

Tensor selective_scan(const Tensor& x, const Tensor& delta, const Tensor& A, const Tensor& B, const Tensor& C,
                      const Tensor& D, const SelectiveScanOptions& options) {
  return selective_scan_with_state(x, delta, A, B, C, D, options).y;
}

}  // namespace ferrite
