/// Lowerings of operations that ONNX lacks, names differently or has for some types only, by family.
#include <cmath>
#include <limits>
#include <numbers>

#include "ferrite/compile/scan.h"
#include "ferrite/exchange/emit/keep_extents_open.h"
#include "ferrite/exchange/onnx_export/export_lowering.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/sorting.h"

namespace ferrite::exchange::detail {
namespace {

Value zero(OnnxBuilder& b, const Value& x) { return b.like(0, x); }
Value one(OnnxBuilder& b, const Value& x) { return b.like(1, x); }

// ---- elementwise ---------------------------------------------------------------------------------------------------

bool of_f32(const Application& c) { return c.out[0].dtype == Dtype::f32; }

Values maximum(OnnxBuilder& b, const Application& c) {
  return {b.elementwise(c.out[0].dtype == Dtype::boolean ? "Or" : "Max", c.in)};
}
Values minimum(OnnxBuilder& b, const Application& c) {
  return {b.elementwise(c.out[0].dtype == Dtype::boolean ? "And" : "Min", c.in)};
}

/// Lowers clamp; Clip takes only bounds of one element.
Values clamp(OnnxBuilder& b, const Application& c) {
  return {b.elementwise("Min", {b.elementwise("Max", {c.in[0], c.in[1]}), c.in[2]})};
}

Values reciprocal_root(OnnxBuilder& b, const Application& c) {
  return {b.elementwise("Reciprocal", {b.elementwise("Sqrt", {c.in[0]})})};
}

Value magnitude(OnnxBuilder& b, const Value& x) { return b.elementwise("Abs", {x}); }

/// Lowers expm1 to 2 t / (1 - t) with t = tanh(x / 2) near 0, where e^x - 1 cancels.
Values expm1(OnnxBuilder& b, const Application& c) {
  const Value& x = c.in[0];
  const Value one = b.like(1, x), half = b.like(0.5, x);
  const Value near = b.compare("LT", magnitude(b, x), half);
  const Value small = b.elementwise("Tanh", {b.multiply(b.select(near, x, b.like(0, x)), half)});
  const Value above = b.add(small, small);
  const Value exact = b.divide(above, b.subtract(one, small));
  return {b.select(near, exact, b.subtract(b.elementwise("Exp", {x}), one))};
}

/// Writes ln(1 + x) as ln(u) x / (u - 1) with the rounded u = 1 + x below 1, where ln(1 + x) would lose what rounding
/// took from x.
Value log_plus_one(OnnxBuilder& b, const Value& x) {
  const Value one = b.like(1, x);
  const Value u = b.add(one, x);
  const Value natural = b.elementwise("Log", {u});
  const Value rest = b.subtract(u, one);
  const Value none = b.compare("EQ", rest, b.like(0, x));
  const Value corrected = b.multiply(natural, b.divide(x, b.select(none, one, rest)));
  const Value near = b.select(none, x, corrected);
  return b.select(b.compare("GT", x, one), natural, near);
}
Values log1p(OnnxBuilder& b, const Application& c) { return {log_plus_one(b, c.in[0])}; }

Values relu(OnnxBuilder& b, const Application& c) {
  if (c.out[0].dtype == Dtype::i64) return {b.elementwise("Max", {c.in[0], b.like(0, c.in[0])})};
  return {b.elementwise("Relu", {c.in[0]})};
}

/// Lowers softplus; ONNX Runtime lacks Softplus for f64.
Values softplus(OnnxBuilder& b, const Application& c) {
  const Value& x = c.in[0];
  if (of_f32(c)) return {b.elementwise("Softplus", {x})};
  const Value tail = b.elementwise("Exp", {b.elementwise("Neg", {magnitude(b, x)})});
  const Value positive = b.elementwise("Max", {x, b.like(0, x)});
  return {b.add(positive, log_plus_one(b, tail))};
}

/// Lowers gelu to x / 2 (1 + erf(x / sqrt(2))); below -40, where it is 0, x may be infinite.
Values gelu(OnnxBuilder& b, const Application& c) {
  const Value x = b.elementwise("Max", {c.in[0], b.like(-40, c.in[0])});
  const Value inner = b.elementwise("Erf", {b.multiply(x, b.like(1 / std::numbers::sqrt2, x))});
  const Value twice = b.add(inner, b.like(1, x));
  return {b.multiply(b.multiply(x, twice), b.like(0.5, x))};
}
/// Lowers the gradient of gelu to g (Phi(x) + x phi(x)); beyond 40, where phi is 0, x may be infinite.
Values gelu_grad(OnnxBuilder& b, const Application& c) {
  const Value &g = c.in[0], &x = c.in[1];
  const Value inner = b.elementwise("Erf", {b.multiply(x, b.like(1 / std::numbers::sqrt2, x))});
  const Value phi = b.multiply(b.add(inner, b.like(1, x)), b.like(0.5, x));
  const Value below = b.elementwise("Min", {x, b.like(40, x)});
  const Value inside = b.elementwise("Max", {below, b.like(-40, x)});
  const Value power = b.elementwise("Exp", {b.multiply(b.multiply(inside, inside), b.like(-0.5, x))});
  const double root = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const Value density = b.multiply(power, b.like(root, x));
  return {b.multiply(g, b.add(phi, b.multiply(inside, density)))};
}
Values erfc(OnnxBuilder& b, const Application& c) {
  return {b.subtract(b.like(1, c.in[0]), b.elementwise("Erf", {c.in[0]}))};
}

/// Lowers an activation that ONNX has with a slope as attribute; with other slopes, or in f64, to its composition.
Values sloped(OnnxBuilder& b, const Application& c) {
  const Scalar* slope = c.literal(1);
  if (!slope || !of_f32(c)) return {};
  return {b.node(std::string(c.op.onnx), {c.in[0]}, c.out[0], {{"alpha", slope->as<float>()}})};
}
Values unary_of_f32(OnnxBuilder& b, const Application& c) {
  if (!of_f32(c)) return {};
  return {b.node(std::string(c.op.onnx), {c.in[0]}, c.out[0])};
}
Values hardsigmoid(OnnxBuilder& b, const Application& c) {
  if (!of_f32(c)) return {};
  return {b.node("HardSigmoid", {c.in[0]}, c.out[0], {{"alpha", 1.0F / 6}, {"beta", 0.5F}})};
}

bool on_bool(const Application& c) { return c.in[0].dtype() == Dtype::boolean; }

/// Lowers bitwise operations on bool; those on integers need opset 18.
Values bits(OnnxBuilder& b, const Application& c) {
  if (!on_bool(c)) return {};
  std::string op(c.op.name.substr(std::string_view("bitwise_").size()));
  op[0] = static_cast<char>(op[0] - 'a' + 'A');
  return {b.elementwise(op, c.in)};
}

// ---- functions of numbers ------------------------------------------------------------------------------------------

/// Returns whether x is negative, including -0: 1 / -0 is below 0. The sign of NaN is not read.
Value has_sign(OnnxBuilder& b, const Value& x) {
  const Value below = b.compare("LT", x, zero(b, x));
  return b.elementwise("Or", {below, b.compare("LT", b.elementwise("Reciprocal", {x}), zero(b, x))});
}

/// Lowers atan2 to the angle of the smaller coordinate over the larger, adjusted for the octant.
Values atan2(OnnxBuilder& b, const Application& c) {
  const Value &y = c.in[0], &x = c.in[1];
  const Value p = magnitude(b, y), q = magnitude(b, x);
  const Value large = b.elementwise("Max", {p, q}), small = b.elementwise("Min", {p, q});
  const Value none = b.compare("EQ", large, zero(b, large));
  const Value same = b.compare("EQ", small, large);  // also where both are infinite
  const Value quotient = b.divide(small, b.select(none, one(b, large), large));
  const Value ratio = b.select(none, zero(b, p), b.select(same, one(b, p), quotient));
  const Value first = b.elementwise("Atan", {ratio});
  const Value steep = b.compare("GT", p, q);
  const Value in_quarter = b.select(steep, b.subtract(b.like(std::numbers::pi / 2, first), first), first);
  const Value left = has_sign(b, x);
  const Value in_half = b.select(left, b.subtract(b.like(std::numbers::pi, first), in_quarter), in_quarter);
  return {b.select(has_sign(b, y), b.elementwise("Neg", {in_half}), in_half)};
}

// ---- reductions and products ---------------------------------------------------------------------------------------

using ferrite::detail::ArgAttrs;
using ferrite::detail::ReductionAttrs;

/// Lowers a reduction; in opset 17 the axes of ReduceSum are an operand, those of the others an attribute.
Values reduced(OnnxBuilder& b, const Application& c, Dtype in) {
  const auto [axes, keepdim] = c.as<ReductionAttrs>();
  const Value x = b.convert(c.in[0], in);
  if (axes.rank() == 0) return {b.convert(x, c.out[0].dtype)};
  const Spec out{c.out[0].shape, in};
  Attributes attributes{{"keepdims", std::int64_t{keepdim}}};
  Values operands{x};
  if (c.op.onnx == "ReduceSum")
    operands.push_back(b.shape_of(axes));
  else
    attributes.push_back({"axes", Integers(axes.begin(), axes.end())});
  return {b.convert(b.node(std::string(c.op.onnx), operands, out, std::move(attributes)), c.out[0].dtype)};
}
Values total(OnnxBuilder& b, const Application& c) { return reduced(b, c, c.out[0].dtype); }
Values extremum(OnnxBuilder& b, const Application& c) {
  return reduced(b, c, c.out[0].dtype == Dtype::boolean ? Dtype::i32 : c.out[0].dtype);
}

Values place(OnnxBuilder& b, const Application& c) {
  const auto [axis, keepdim] = c.as<ArgAttrs>();
  const Value x = c.in[0].dtype() == Dtype::boolean ? b.convert(c.in[0], Dtype::i32) : c.in[0];
  return {b.node(std::string(c.op.onnx), {x}, c.out[0],
                 {{"axis", std::int64_t{axis}}, {"keepdims", std::int64_t{keepdim}}})};
}

/// Lowers matmul; a sum of no terms is written as zeros, since not every implementation takes it.
Values matmul(OnnxBuilder& b, const Application& c) {
  if (c.in[0].shape()[-1] == 0) return {b.filled(0, c.out[0])};
  return {b.node("MatMul", c.in, c.out[0])};
}

Values determinant(OnnxBuilder& b, const Application& c) { return {b.node("Det", c.in, c.out[0])}; }

// ---- gathers, scatters and orders along an axis --------------------------------------------------------------------

Values index_select(OnnxBuilder& b, const Application& c) {
  return {b.node("Gather", {c.in[0], c.in[1]}, c.out[0], {{"axis", std::int64_t{c.axis()}}})};
}

Values gather(OnnxBuilder& b, const Application& c) {
  return {b.node("GatherElements", {c.in[0], c.in[1]}, c.out[0], {{"axis", std::int64_t{c.axis()}}})};
}

Values scattered(OnnxBuilder& b, const Application& c, const std::string& reduction) {
  if (c.in[1].shape().numel() == 0) return {c.in[0]};
  return {b.node("ScatterElements", {c.in[0], c.in[1], c.in[2]}, c.out[0],
                 {{"axis", std::int64_t{c.axis()}}, {"reduction", reduction}})};
}
/// Lowers scatter. Of elements for the same place Ferrite keeps the last one; ONNX leaves that undefined.
Values scatter(OnnxBuilder& b, const Application& c) { return scattered(b, c, "none"); }
Values scatter_add(OnnxBuilder& b, const Application& c) { return scattered(b, c, "add"); }
Values scatter_prod(OnnxBuilder& b, const Application& c) { return scattered(b, c, "mul"); }

/// Writes TopK, which gives the first of equal elements first, in either direction: a stable order. It lacks bool.
Values ordered(OnnxBuilder& b, const Application& c, std::int64_t k, bool largest, bool sorted) {
  const bool of_bool = c.in[0].dtype() == Dtype::boolean;
  const Value x = of_bool ? b.convert(c.in[0], Dtype::i32) : c.in[0];
  Spec values = x.spec, places{x.shape(), Dtype::i64};
  values.shape[c.axis()] = places.shape[c.axis()] = k;
  Values out =
      b.nodes("TopK", {x, b.integers({k})}, {values, places},
              {{"axis", std::int64_t{c.axis()}}, {"largest", std::int64_t{largest}}, {"sorted", std::int64_t{sorted}}});
  if (of_bool) out[0] = b.convert(out[0], Dtype::boolean);
  return out;
}
Values sort(OnnxBuilder& b, const Application& c) {
  return ordered(b, c, c.in[0].shape()[c.axis()], c.named("descending", false), true);
}
/// Lowers topk; without `sorted`, elements come in the order of their places.
Values topk(OnnxBuilder& b, const Application& c) {
  const Values best = ordered(b, c, c.out[0].shape[c.axis()], c.named("largest", true), true);
  if (c.named("sorted", true)) return best;
  const int axis = c.axis();
  const auto by_place = [&](const Tensors& in) -> Tensors {
    const Tensor places = ferrite::sort(in[1], axis).values;
    return {ferrite::gather(in[0], axis, places), places};
  };
  return lower_traced(b, by_place, {c.in[0], best[1]});
}
Values rank_index(OnnxBuilder& b, const Application& c) {
  const auto k = c.named<std::int64_t>("k", 1);
  const Values best = ordered(b, c, k, false, true);
  return {b.slice(best[1], c.axis(), k - 1, 1)};
}

/// Lowers searchsorted: counts the elements of a row that come before each value.
Values searchsorted(OnnxBuilder& b, const Application& c) {
  const bool right = c.named("right", false);
  const auto count = [&](const Tensors& in) -> Tensors {
    const Tensor row = in[0].rank() == 1 ? in[0] : unsqueeze(in[0], -2), value = unsqueeze(in[1], -1);
    return {sum(cast(right ? !(row > value) : !(row >= value), Dtype::i64), {-1})};
  };
  return lower_traced(b, count, {c.in[0], c.in[1]});
}

// ---- running sums, products and extremes: in f64, as they are computed here ----------------------------------------

Dtype wide(Dtype t) { return is_float(t) ? Dtype::f64 : Dtype::i64; }

Values cumsum(OnnxBuilder& b, const Application& c) {
  const Value x = b.convert(c.in[0], wide(c.out[0].dtype));
  const Value sums = b.node("CumSum", {x, b.scalar(c.axis(), Dtype::i64)}, x.spec,
                            {{"reverse", std::int64_t{c.named("reverse", false)}}});
  return {b.convert(sums, c.out[0].dtype)};
}

/// Writes a scan along the axis from a first carry and a step, on operands in the wider type.
Values scanned(OnnxBuilder& b, const Application& c, double first,
               const std::function<Tensor(const Tensor& carry, const Tensors& x)>& step) {
  const int axis = c.axis();
  const bool reverse = c.named("reverse", false);
  const auto run = [&](const Tensors& in) -> Tensors {
    Tensors xs;
    for (const Tensor& x : in) xs.push_back(movedim(cast(x, wide(c.out[0].dtype)), {axis}, {0}));
    Shape state = xs[0].shape();
    state.erase(0);
    const auto next = [&](const Tensors& carry, const Tensors& x) -> ScanStep {
      const Tensor y = step(carry[0], x);
      return {{y}, {y}};
    };
    const Tensor begin = is_float(xs[0].dtype()) ? full(state, first, xs[0].dtype())
                                                 : full(state, static_cast<std::int64_t>(first), xs[0].dtype());
    const ScanResult r = scan(next, {begin}, xs, {.reverse = reverse});
    return {cast(movedim(r.y[0], {0}, {axis}), c.out[0].dtype)};
  };
  return lower_traced(b, run, c.in);
}

Values cumprod(OnnxBuilder& b, const Application& c) {
  return scanned(b, c, 1, [](const Tensor& y, const Tensors& x) { return y * x[0]; });
}
Values linear_recurrence(OnnxBuilder& b, const Application& c) {
  const int axis = c.axis();
  const std::int64_t n = c.out[0].shape[axis], first = c.named("reverse", false) ? n - 1 : 0;
  // y[0] = b[0] whatever a[0] is, so a[0] is written as zeros.
  const auto without_first = [&](const Tensors& in) -> Tensors {
    Shape column = Shape::filled(in[0].rank(), 1);
    column[axis] = n;
    return {where(eq(reshape(arange(n), column), first), 0, in[0])};
  };
  const Value a = lower_traced(b, without_first, {c.in[0]})[0];
  const Values operands{a, c.in[1]};
  const Application rest{c.op, operands, c.attrs, c.out, c.read};
  return scanned(b, rest, 0, [](const Tensor& y, const Tensors& x) { return x[0] * y + x[1]; });
}
Values logcumsumexp(OnnxBuilder& b, const Application& c) {
  return scanned(b, c, -std::numeric_limits<double>::infinity(),
                 [](const Tensor& y, const Tensors& x) { return logaddexp(y, x[0]); });
}

/// Lowers cummax or cummin with value and index as carries; of equal elements the last one stays, and a NaN always.
Values running_extreme(OnnxBuilder& b, const Application& c, bool largest) {
  const int axis = c.axis();
  const bool reverse = c.named("reverse", false);
  const auto run = [&](const Tensors& in) -> Tensors {
    const Dtype dtype = in[0].dtype();
    const Tensor x = movedim(dtype == Dtype::boolean ? cast(in[0], Dtype::i32) : in[0], {axis}, {0});
    Shape state = x.shape();
    state.erase(0);
    const Tensor first = select(x, 0, reverse ? -1 : 0);
    const auto step = [&](const Tensors& carry, const Tensors& now) -> ScanStep {
      Tensor takes = largest ? now[0] >= carry[0] : now[0] <= carry[0];
      if (is_float(dtype)) takes = takes || !(now[0] <= now[0]);
      if (is_float(dtype)) takes = takes && (carry[0] <= carry[0] || !(now[0] <= now[0]));
      const Tensor value = where(takes, now[0], carry[0]);
      const Tensor place = where(takes, now[1], carry[1]);
      return {{value, place}, {value, place}};
    };
    const ScanResult r = scan(step, {first, zeros(state, Dtype::i64)}, {x, arange(x.shape()[0])}, {.reverse = reverse});
    return {cast(movedim(r.y[0], {0}, {axis}), dtype), movedim(r.y[1], {0}, {axis})};
  };
  return lower_traced(b, run, c.in);
}
Values cummax(OnnxBuilder& b, const Application& c) { return running_extreme(b, c, true); }
Values cummin(OnnxBuilder& b, const Application& c) { return running_extreme(b, c, false); }

// ---- Fourier transforms: DFT on rows of complex numbers ------------------------------------------------------------

/// Writes a Fourier transform of x [rows, n, 1 or 2] -> [rows, n (or n / 2 + 1), 2].
Value transform(OnnxBuilder& b, const Value& x, bool inverse, bool one_sided) {
  Spec out = x.spec;
  out.shape[2] = 2;
  if (one_sided) out.shape[1] = x.shape()[1] / 2 + 1;
  return b.node("DFT", {x}, out,
                {{"axis", std::int64_t{1}}, {"inverse", std::int64_t{inverse}}, {"onesided", std::int64_t{one_sided}}});
}

/// Returns the shape [rows, last...] of a tensor with its leading axes merged.
Shape rows_of(const Shape& s, const Shape& last) {
  return {s.numel() / std::max<std::int64_t>(last.numel(), 1), last[0], last[1]};
}

/// Returns the factors [m, 1] of the frequencies of n real points.
Value weights(OnnxBuilder& b, const Value& x, std::int64_t n, double scale, double inner) {
  const std::int64_t m = n / 2 + 1;
  std::vector<double> w;
  for (std::int64_t k = 0; k < m; ++k) w.push_back(k == 0 || 2 * k == n ? scale : scale * inner);
  const NewFrame frame;
  const Tensor all = Tensor::from(w, {m, 1});
  return b.convert(b.constant(all), x.dtype());
}

Values rfft(OnnxBuilder& b, const Application& c) {
  const Shape& s = c.in[0].shape();
  const std::int64_t n = s[-1];
  const Value x = b.reshape(c.in[0], rows_of(s, {n, 1}));
  const Value y = transform(b, x, false, true);
  const Value scaled = b.multiply(y, weights(b, y, n, c.named("scale", 1.0), c.named("inner", 1.0)));
  return {b.reshape(scaled, c.out[0].shape)};
}

/// Lowers irfft to the real part of the inverse transform of all n frequencies, of which the upper half is zero.
Values irfft(OnnxBuilder& b, const Application& c) {
  const Shape& s = c.in[0].shape();
  const std::int64_t n = c.out[0].shape[-1], m = n / 2 + 1;
  const Value x = b.slice(b.reshape(c.in[0], rows_of(s, {s[-2], 2})), 1, 0, m);
  const double scale = c.named("scale", 1.0) * static_cast<double>(n);  // DFT divides by n
  Value y = b.multiply(x, weights(b, x, n, scale, c.named("inner", 2.0)));
  Spec all = y.spec;
  all.shape[1] = n;
  if (n > m) y = b.node("Pad", {y, b.integers({0, 0, 0, 0, n - m, 0}), b.like(0, y)}, all);
  return {b.reshape(b.slice(transform(b, y, true, false), 2, 0, 1), c.out[0].shape)};
}

Values fft(OnnxBuilder& b, const Application& c) {
  const Shape& s = c.in[0].shape();
  const bool inverse = c.named("inverse", false);
  const Value y = transform(b, b.reshape(c.in[0], rows_of(s, {s[-2], 2})), inverse, false);
  const double scale = c.named("scale", 1.0) * (inverse ? static_cast<double>(s[-2]) : 1);
  return {b.reshape(scale == 1 ? y : b.multiply(y, b.like(scale, y)), c.out[0].shape)};
}

// ---- views ---------------------------------------------------------------------------------------------------------

Values split(OnnxBuilder& b, const Application& c) {
  const int axis = c.axis();
  if (c.out.size() == 1) return {c.in[0]};
  Integers sizes;
  for (const Spec& piece : c.out) sizes.push_back(piece.shape[axis]);
  return b.nodes("Split", {c.in[0], b.integers(sizes)}, c.out, {{"axis", std::int64_t{axis}}});
}

/// Lowers pad, cropping first: runtimes differ for negative amounts that leave nothing. Amounts of 0 are written where
/// extents stay open, since they may differ at other extents.
Values pad(OnnxBuilder& b, const Application& c) {
  const auto [before, after, value] = c.as<ferrite::detail::PadAttrs>();
  Value x = c.in[0];
  Integers amounts;
  bool grows = false, crops = false;
  for (const Shape& side : {before, after})
    for (const std::int64_t n : side) {
      amounts.push_back(std::max<std::int64_t>(n, 0));
      grows |= n > 0;
      crops |= n < 0;
    }
  for (int i = 0; i < before.rank(); ++i) {
    const std::int64_t begin = std::max<std::int64_t>(-before[i], 0), cut = std::max<std::int64_t>(-after[i], 0);
    const std::int64_t left = x.shape()[i] - begin - cut;
    if (left <= 0 && begin + cut > 0) return {b.filled(value, c.out[0])};  // nothing of x remains
    x = b.slice(x, i, begin, left);
  }
  if (!grows && (crops || !KeepExtentsOpen::active())) return {x};
  return {b.node("Pad", {x, b.integers(amounts), b.scalar(value, x.dtype())}, c.out[0])};
}

}  // namespace

ExportFamily export_lowerings() {
  static constexpr NamedLowering<OnnxBuilder> list[] = {{"maximum", maximum},
                                                        {"minimum", minimum},
                                                        {"clamp", clamp},
                                                        {"rsqrt", reciprocal_root},
                                                        {"expm1", expm1},
                                                        {"log1p", log1p},
                                                        {"relu", relu},
                                                        {"softplus", softplus},
                                                        {"gelu", gelu},
                                                        {"gelu_grad", gelu_grad},
                                                        {"erfc", erfc},
                                                        {"leaky_relu", sloped},
                                                        {"elu", sloped},
                                                        {"celu", sloped},
                                                        {"softsign", unary_of_f32},
                                                        {"selu", unary_of_f32},
                                                        {"hardswish", unary_of_f32},
                                                        {"hardsigmoid", hardsigmoid},
                                                        {"bitwise_and", bits},
                                                        {"bitwise_or", bits},
                                                        {"bitwise_xor", bits},
                                                        {"atan2", atan2},
                                                        {"sum", total},
                                                        {"prod", total},
                                                        {"amax", extremum},
                                                        {"amin", extremum},
                                                        {"argmax", place},
                                                        {"argmin", place},
                                                        {"matmul", matmul},
                                                        {"det", determinant},
                                                        {"index_select", index_select},
                                                        {"gather", gather},
                                                        {"scatter", scatter},
                                                        {"scatter_add", scatter_add},
                                                        {"scatter_prod", scatter_prod},
                                                        {"sort", sort},
                                                        {"topk", topk},
                                                        {"rank_index", rank_index},
                                                        {"searchsorted", searchsorted},
                                                        {"cumsum", cumsum},
                                                        {"cumprod", cumprod},
                                                        {"linear_recurrence", linear_recurrence},
                                                        {"logcumsumexp", logcumsumexp},
                                                        {"cummax", cummax},
                                                        {"cummin", cummin},
                                                        {"rfft", rfft},
                                                        {"irfft", irfft},
                                                        {"fft", fft},
                                                        {"split", split},
                                                        {"pad", pad}};
  return list;
}

}  // namespace ferrite::exchange::detail
