/// Lowerings of operations that StableHLO lacks or names differently, by family. Those that no format has are in
/// common_lowerings (emit/program_builder.cpp).
#include <cmath>
#include <limits>
#include <numbers>

#include "ferrite/exchange/stablehlo/hlo_lowering.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

Value one(HloBuilder& b, const Value& x) { return b.like(1, x); }
Value zero(HloBuilder& b, const Value& x) { return b.like(0, x); }

// ---- activations --------------------------------------------------------------------------------------------------

Values clamp(HloBuilder& b, const Application& c) { return {b.elementwise("clamp", {c.in[1], c.in[0], c.in[2]})}; }

Values reciprocal(HloBuilder& b, const Application& c) { return {b.divide(b.like(1, c.in[0]), c.in[0])}; }

/// Lowers relu to StableHLO's maximum, which gives NaN where either operand is NaN, as Ferrite's does.
Values relu(HloBuilder& b, const Application& c) { return {b.elementwise("maximum", {c.in[0], b.like(0, c.in[0])})}; }

Values softplus(HloBuilder& b, const Application& c) {
  const Value& x = c.in[0];
  const Value tail = b.elementwise("exponential", {b.elementwise("negate", {b.elementwise("abs", {x})})});
  const Value positive = b.elementwise("maximum", {x, b.like(0, x)});
  return {b.add(positive, b.elementwise("log_plus_one", {tail}))};
}

Values tanh_grad(HloBuilder& b, const Application& c) {
  const Value& y = c.in[1];
  const Value one = b.like(1, y);
  return {b.multiply(c.in[0], b.subtract(one, b.multiply(y, y)))};
}

Values sigmoid_grad(HloBuilder& b, const Application& c) {
  const Value& y = c.in[1];
  return {b.multiply(c.in[0], b.multiply(y, b.subtract(b.like(1, y), y)))};
}

// ---- functions of numbers -----------------------------------------------------------------------------------------

Value root(HloBuilder& b, const Value& x) { return b.elementwise("sqrt", {x}); }
Value half(HloBuilder& b, const Value& x) { return b.multiply(x, b.like(0.5, x)); }
Value angle(HloBuilder& b, const Value& y, const Value& x) { return b.elementwise("atan2", {y, x}); }

Values tan(HloBuilder& b, const Application& c) {
  const Value sine = b.elementwise("sine", {c.in[0]});
  return {b.divide(sine, b.elementwise("cosine", {c.in[0]}))};
}

/// Returns sqrt((1 - x) (1 + x)).
Value other_side(HloBuilder& b, const Value& x) {
  const Value unit = one(b, x);
  const Value below = b.subtract(unit, x);
  return root(b, b.multiply(below, b.add(unit, x)));
}
Values asin(HloBuilder& b, const Application& c) { return {angle(b, c.in[0], other_side(b, c.in[0]))}; }
Values acos(HloBuilder& b, const Application& c) { return {angle(b, other_side(b, c.in[0]), c.in[0])}; }
Values atan(HloBuilder& b, const Application& c) { return {angle(b, c.in[0], one(b, c.in[0]))}; }

/// Returns whether x is so large that its square may overflow, and that adding 1 to the square does not matter.
Value is_large(HloBuilder& b, const Value& x) { return b.compare("GT", x, b.like(1e9, x)); }
Value log_of_twice(HloBuilder& b, const Value& x) {
  const Value natural = b.elementwise("log", {x});
  return b.add(natural, b.like(std::numbers::ln2, x));
}
Value with_sign_of(HloBuilder& b, const Value& x, const Value& y) {
  const Value negative = b.compare("LT", x, zero(b, x));
  return b.select(negative, b.elementwise("negate", {y}), y);
}

/// Lowers sinh to (t + t / (t + 1)) / 2 with t = e^x - 1: no cancellation near 0.
Values sinh(HloBuilder& b, const Application& c) {
  const Value size = b.elementwise("abs", {c.in[0]});
  const Value t = b.elementwise("exponential_minus_one", {size});
  const Value unit = one(b, t);
  const Value ratio = b.divide(t, b.add(t, unit));
  const Value large = is_large(b, t);
  return {with_sign_of(b, c.in[0], half(b, b.add(t, b.select(large, unit, ratio))))};
}
Values cosh(HloBuilder& b, const Application& c) {
  const Value up = b.elementwise("exponential", {c.in[0]});
  const Value down = b.elementwise("exponential", {b.elementwise("negate", {c.in[0]})});
  return {half(b, b.add(up, down))};
}

/// Lowers asinh to ln(1 + s + s^2 / (1 + sqrt(s^2 + 1))) with s = |x| and the sign of x.
Values asinh(HloBuilder& b, const Application& c) {
  const Value size = b.elementwise("abs", {c.in[0]});
  const Value square = b.multiply(size, size);
  const Value unit = one(b, size);
  const Value below = b.add(unit, root(b, b.add(square, unit)));
  const Value y = b.elementwise("log_plus_one", {b.add(size, b.divide(square, below))});
  const Value large = is_large(b, size);
  return {with_sign_of(b, c.in[0], b.select(large, log_of_twice(b, size), y))};
}
/// Lowers acosh to ln(1 + t + sqrt(t (t + 2))) with t = x - 1; below 1 to sqrt(t), which is NaN.
Values acosh(HloBuilder& b, const Application& c) {
  const Value t = b.subtract(c.in[0], one(b, c.in[0]));
  const Value product = b.multiply(t, b.add(t, b.like(2, t)));
  const Value y = b.elementwise("log_plus_one", {b.add(t, root(b, product))});
  const Value large = is_large(b, t);
  const Value above = b.select(large, log_of_twice(b, c.in[0]), y);
  const Value below = b.compare("LT", t, zero(b, t));
  return {b.select(below, root(b, t), above)};
}
Values atanh(HloBuilder& b, const Application& c) {
  const Value up = b.elementwise("log_plus_one", {c.in[0]});
  const Value down = b.elementwise("log_plus_one", {b.elementwise("negate", {c.in[0]})});
  return {half(b, b.subtract(up, down))};
}

// ---- erf and gelu, which StableHLO has not: from rational functions (Cephes, ndtr.c, Moshier 1984-2000) -------------
// The relative error of tails is that of e^(-x^2), x^2 units in the last place.

/// The coefficients of a polynomial, the highest power first.
using Coefficients = std::span<const double>;

constexpr double kErfNumerator[] = {9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
                                    7.00332514112805075473e3, 5.55923013010394962768e4};
constexpr double kErfDenominator[] = {1.0,
                                      3.35617141647503099647e1,
                                      5.21357949780152679795e2,
                                      4.59432382970980127987e3,
                                      2.26290000613890934246e4,
                                      4.92673942608635921086e4};
/// Numerator of the rational approximation of erfc(x) e^(x^2) for 1 <= x < 8.
constexpr double kNearNumerator[] = {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
                                     4.86371970985681366614e1,   1.96520832956077098242e2,  5.26445194995477358631e2,
                                     9.34528527171957607540e2,   1.02755188689515710272e3,  5.57535335369399327526e2};
constexpr double kNearDenominator[] = {1.0,
                                       1.32281951154744992508e1,
                                       8.67072140885989742329e1,
                                       3.54937778887819891062e2,
                                       9.75708501743205489753e2,
                                       1.82390916687909736289e3,
                                       2.24633760818710981792e3,
                                       1.65666309194161350182e3,
                                       5.57535340817727675546e2};
/// Numerator of the rational approximation of erfc(x) e^(x^2) for x >= 8.
constexpr double kFarNumerator[] = {5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
                                    6.16021097993053585195e0,  7.40974269950448939160e0, 2.97886665372100240670e0};
constexpr double kFarDenominator[] = {1.0,
                                      2.26052863220117276590e0,
                                      9.39603524938001434673e0,
                                      1.20489539808096656605e1,
                                      1.70814450747565897222e1,
                                      9.60896809063285878198e0,
                                      3.36907645100081516050e0};

/// Returns the value of a polynomial at x by Horner's rule.
Value polynomial(HloBuilder& b, const Value& x, Coefficients c) {
  Value y = b.like(c[0], x);
  for (const double next : c.subspan(1)) {
    y = b.multiply(y, x);
    y = b.add(y, b.like(next, x));
  }
  return y;
}

Value ratio(HloBuilder& b, const Value& x, Coefficients numerator, Coefficients denominator) {
  const Value above = polynomial(b, x, numerator);
  return b.divide(above, polynomial(b, x, denominator));
}

/// The values that erf and erfc share.
struct ErrorFunction {
  Value small;     ///< erf(x), for |x| < 1
  Value tail;      ///< erfc(|x|), for |x| >= 1
  Value is_small;  ///< |x| < 1
  Value negative;  ///< x < 0
};

ErrorFunction error_function(HloBuilder& b, const Value& x) {
  // Beyond 30, erfc is 0 in either dtype; the bound keeps powers of x finite. NaN stays.
  const Value z = b.elementwise("minimum", {b.elementwise("abs", {x}), b.like(30, x)});
  const Value z2 = b.multiply(z, z);
  const Value near = ratio(b, z, kNearNumerator, kNearDenominator);
  const Value far = ratio(b, z, kFarNumerator, kFarDenominator);
  const Value scaled = b.select(b.compare("LT", z, b.like(8, z)), near, far);
  return {.small = b.multiply(x, ratio(b, z2, kErfNumerator, kErfDenominator)),
          .tail = b.multiply(b.elementwise("exponential", {b.elementwise("negate", {z2})}), scaled),
          .is_small = b.compare("LT", z, b.like(1, z)),
          .negative = b.compare("LT", x, b.like(0, x))};
}

Values erf(HloBuilder& b, const Application& c) {
  const ErrorFunction e = error_function(b, c.in[0]);
  const Value large = b.subtract(b.like(1, e.tail), e.tail);
  return {b.select(e.is_small, e.small, b.select(e.negative, b.elementwise("negate", {large}), large))};
}

Value erfc(HloBuilder& b, const Value& x) {
  const ErrorFunction e = error_function(b, x);
  const Value near = b.subtract(b.like(1, x), e.small);
  const Value far = b.select(e.negative, b.subtract(b.like(2, x), e.tail), e.tail);
  return b.select(e.is_small, near, far);
}

Values erfc_call(HloBuilder& b, const Application& c) { return {erfc(b, c.in[0])}; }

/// Lowers gelu to x erfc(-x / sqrt 2) / 2: no cancellation on the negative side; at -inf it is the limit 0.
Values gelu(HloBuilder& b, const Application& c) {
  const Value& x = c.in[0];
  const Value scaled = b.multiply(x, b.like(-1 / std::numbers::sqrt2, x));
  const Value whole = erfc(b, scaled);
  const Value half = b.multiply(whole, b.like(0.5, x));
  const Value vanished = b.compare("LT", x, b.like(-40, x));
  const Value product = b.multiply(x, half);
  return {b.select(vanished, b.like(-0.0, x), product)};
}

/// Lowers the gradient of gelu to g (erfc(-x / sqrt 2) / 2 + x phi(x)), with x bounded to -40..40.
Values gelu_grad(HloBuilder& b, const Application& c) {
  const Value high = b.elementwise("minimum", {c.in[1], b.like(40, c.in[1])});
  const Value x = b.elementwise("maximum", {high, b.like(-40, high)});
  const Value whole = erfc(b, b.multiply(x, b.like(-1 / std::numbers::sqrt2, x)));
  const Value half = b.multiply(whole, b.like(0.5, x));
  const Value exponent = b.multiply(b.multiply(x, x), b.like(-0.5, x));
  const Value power = b.elementwise("exponential", {exponent});
  const Value density = b.multiply(power, b.like(std::numbers::inv_sqrtpi / std::numbers::sqrt2, x));
  return {b.multiply(c.in[0], b.add(half, b.multiply(x, density)))};
}

// ---- reductions and products --------------------------------------------------------------------------------------

/// Returns the smallest or the largest value of a dtype.
Scalar extreme(Dtype dtype, bool smallest) {
  return visit_computed(dtype, [&](auto zero) -> Scalar {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) return smallest ? -Limits::infinity() : Limits::infinity();
    return smallest ? Limits::min() : Limits::max();
  });
}

Value reduce(HloBuilder& b, const Application& c, std::string_view op, Scalar init) {
  const Value x = b.convert(c.in[0], c.out[0].dtype);
  const Shape axes = c.as<ferrite::detail::ReductionAttrs>().axes;
  if (axes.rank() == 0) return x;
  const Value dropped = b.reduce(op, x, b.filled(init, {{}, x.dtype()}), axes);
  return b.reshape(dropped, c.out[0].shape);
}

Values sum(HloBuilder& b, const Application& c) { return {reduce(b, c, "add", 0)}; }
Values prod(HloBuilder& b, const Application& c) { return {reduce(b, c, "multiply", 1)}; }
Values amax(HloBuilder& b, const Application& c) { return {reduce(b, c, "maximum", extreme(c.out[0].dtype, true))}; }
Values amin(HloBuilder& b, const Application& c) { return {reduce(b, c, "minimum", extreme(c.out[0].dtype, false))}; }

/// Lowers argmax or argmin: the smallest index that holds the extreme value or, if there is a NaN, a NaN.
Values arg_extreme(HloBuilder& b, const Application& c, bool largest) {
  const Value& x = c.in[0];
  const int axis = c.axis();
  Shape kept = x.shape();
  kept[axis] = 1;
  const Value none = b.filled(extreme(x.dtype(), largest), {{}, x.dtype()});
  const Value best = b.reduce(largest ? "maximum" : "minimum", x, none, {axis});
  Value chosen = b.compare("EQ", x, b.expand(b.reshape(best, kept), x.shape()));
  if (is_float(x.dtype())) chosen = b.elementwise("or", {chosen, b.compare("NE", x, x)});
  const Value index = b.iota({x.shape(), Dtype::i64}, axis);
  const std::int64_t beyond = std::numeric_limits<std::int64_t>::max();
  const Value candidates = b.select(chosen, index, b.like(beyond, index));
  const Value first = b.reduce("minimum", candidates, b.filled(beyond, {{}, Dtype::i64}), {axis});
  return {b.reshape(first, c.out[0].shape)};
}

Values argmax(HloBuilder& b, const Application& c) { return arg_extreme(b, c, true); }
Values argmin(HloBuilder& b, const Application& c) { return arg_extreme(b, c, false); }

/// Lowers matmul. If only one operand has leading axes, they are rows of one product; else both get the leading axes of
/// the result. A sum of no terms is written as zeros, since not every implementation takes it.
Values matmul(HloBuilder& b, const Application& c) {
  const Value &x = c.in[0], &y = c.in[1];
  const Shape& out = c.out[0].shape;
  if (x.shape()[-1] == 0) return {b.filled(0, c.out[0])};
  if (y.shape().rank() == 2) return {b.dot(x, y, x.shape().rank() - 1, 0, 0, out)};
  const int lead = out.rank() - 2;
  const auto widened = [&](const Value& v) {
    Shape s = out;
    s[-2] = v.shape()[-2];
    s[-1] = v.shape()[-1];
    return b.expand(v, s);
  };
  const Value left = widened(x), right = widened(y);
  return {b.dot(left, right, lead + 1, lead, lead, out)};
}

// ---- gathers and scatters -----------------------------------------------------------------------------------------

/// Returns indices counted from the front; negative ones count from the end.
Value from_the_front(HloBuilder& b, const Value& index, std::int64_t extent) {
  const Value negative = b.compare("LT", index, b.like(0, index));
  return b.select(negative, b.add(index, b.like(extent, index)), index);
}

/// Returns the coordinates [..., rank] of the elements at an index along an axis.
Value coordinates(HloBuilder& b, const Value& index, const Application& c) {
  const Shape& x = c.in[0].shape();
  Shape column = index.shape();
  column.push_back(1);
  Values columns;
  for (int i = 0; i < x.rank(); ++i) {
    const Value along = i == c.axis() ? from_the_front(b, index, x[i]) : b.iota(index.spec, i);
    columns.push_back(b.reshape(along, column));
  }
  return b.concatenate(columns, x.rank());
}

Values index_select(HloBuilder& b, const Application& c) {
  const Value index = from_the_front(b, c.in[1], c.in[0].shape()[c.axis()]);
  return {b.gather_slices(c.in[0], index, c.axis())};
}

Values gather(HloBuilder& b, const Application& c) { return {b.gather_elements(c.in[0], coordinates(b, c.in[1], c))}; }

Values scattered(HloBuilder& b, const Application& c, std::string_view applies) {
  if (c.in[1].shape().numel() == 0) return {c.in[0]};
  return {b.scatter(applies, c.in[0], coordinates(b, c.in[1], c), c.in[2])};
}
Values scatter_add(HloBuilder& b, const Application& c) { return scattered(b, c, "add"); }
Values scatter_prod(HloBuilder& b, const Application& c) { return scattered(b, c, "multiply"); }
Values scatter_extremum(HloBuilder& b, const Application& c) {
  return scattered(b, c, c.named("largest", true) ? "maximum" : "minimum");
}

/// Lowers scatter so that of elements for the same place the last one stays, in whatever order they are applied: the
/// largest of their numbers is scattered, and its element is gathered.
Values scatter(HloBuilder& b, const Application& c) {
  const Value &x = c.in[0], &source = c.in[2];
  const Shape& shape = source.shape();
  if (shape.numel() == 0) return {x};
  const Value number = b.reshape(b.counted(shape.numel()), shape);
  const Value none = b.filled(-1, {x.shape(), Dtype::i64});
  const Value last = b.scatter("maximum", none, coordinates(b, c.in[1], c), number);
  Shape column = x.shape();
  column.push_back(1);
  const Value place = b.reshape(b.elementwise("maximum", {last, b.like(0, last)}), column);
  const Value all = b.reshape(source, {shape.numel()});
  const Value placed = b.gather_elements(all, place);
  const Value stays = b.compare("LT", last, b.like(0, last));
  return {b.select(stays, x, placed)};
}

// ---- padding and ranges -------------------------------------------------------------------------------------------

Values pad(HloBuilder& b, const Application& c) {
  const auto [before, after, value] = c.as<ferrite::detail::PadAttrs>();
  return {b.pad(c.in[0], b.scalar(value, c.in[0].dtype()), before, after)};
}

/// Lowers arange. Floats are computed at export, in f64 as the operation does, which not every target has. Where an
/// extent may stay open the program computes them, as in every format.
Values arange(HloBuilder& b, const Application& c) {
  const auto a = c.as<ferrite::detail::ArangeAttrs>();
  const bool real = a.begin.is_floating() || a.step.is_floating();
  if (!real || b.style().comparable) return {};
  const NewFrame frame;
  return {b.constant(c.op.apply({}, c.attrs)[0])};
}

}  // namespace

HloFamily hlo_lowerings() {
  static constexpr NamedLowering<HloBuilder> list[] = {{"clamp", clamp},
                                                       {"reciprocal", reciprocal},
                                                       {"relu", relu},
                                                       {"softplus", softplus},
                                                       {"tanh_grad", tanh_grad},
                                                       {"sigmoid_grad", sigmoid_grad},
                                                       {"erf", erf},
                                                       {"erfc", erfc_call},
                                                       {"gelu", gelu},
                                                       {"gelu_grad", gelu_grad},
                                                       {"tan", tan},
                                                       {"asin", asin},
                                                       {"acos", acos},
                                                       {"atan", atan},
                                                       {"sinh", sinh},
                                                       {"cosh", cosh},
                                                       {"asinh", asinh},
                                                       {"acosh", acosh},
                                                       {"atanh", atanh},
                                                       {"sum", sum},
                                                       {"prod", prod},
                                                       {"amax", amax},
                                                       {"amin", amin},
                                                       {"argmax", argmax},
                                                       {"argmin", argmin},
                                                       {"matmul", matmul},
                                                       {"index_select", index_select},
                                                       {"gather", gather},
                                                       {"scatter_add", scatter_add},
                                                       {"scatter", scatter},
                                                       {"scatter_prod", scatter_prod},
                                                       {"scatter_extremum", scatter_extremum},
                                                       {"arange", arange},
                                                       {"pad", pad}};
  return list;
}

}  // namespace ferrite::exchange::detail
