/// erf and gelu from rational functions (Cephes, ndtr.c, Moshier 1984-2000): StableHLO has neither. The
/// relative error of tails is that of e^(-x^2), x^2 units in the last place.
#include <numbers>

#include "ferrite/exchange/stablehlo/hlo_lowering.h"

namespace ferrite::exchange::detail {
namespace {

/// The highest power first.
using Coefficients = std::span<const double>;

constexpr double kErfNumerator[] = {9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
                                    7.00332514112805075473e3, 5.55923013010394962768e4};
constexpr double kErfDenominator[] = {1.0,
                                      3.35617141647503099647e1,
                                      5.21357949780152679795e2,
                                      4.59432382970980127987e3,
                                      2.26290000613890934246e4,
                                      4.92673942608635921086e4};
/// erfc(x) e^(x^2) for 1 <= x < 8.
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
/// The same for x >= 8.
constexpr double kFarNumerator[] = {5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
                                    6.16021097993053585195e0,  7.40974269950448939160e0, 2.97886665372100240670e0};
constexpr double kFarDenominator[] = {1.0,
                                      2.26052863220117276590e0,
                                      9.39603524938001434673e0,
                                      1.20489539808096656605e1,
                                      1.70814450747565897222e1,
                                      9.60896809063285878198e0,
                                      3.36907645100081516050e0};

/// By Horner's rule.
HloValue polynomial(HloBuilder& b, const HloValue& x, Coefficients c) {
  HloValue y = b.constant_like(c[0], x);
  for (const double next : c.subspan(1)) {
    y = b.multiply(y, x);
    y = b.add(y, b.constant_like(next, x));
  }
  return y;
}

HloValue ratio(HloBuilder& b, const HloValue& x, Coefficients numerator, Coefficients denominator) {
  const HloValue above = polynomial(b, x, numerator);
  return b.divide(above, polynomial(b, x, denominator));
}

/// What erf and erfc share.
struct ErrorFunction {
  HloValue small;     ///< erf(x), for |x| < 1
  HloValue tail;      ///< erfc(|x|), for |x| >= 1
  HloValue is_small;  ///< |x| < 1
  HloValue negative;  ///< x < 0
};

ErrorFunction error_function(HloBuilder& b, const HloValue& x) {
  // Beyond 30, erfc is 0 in either dtype; the bound keeps powers of x finite. NaN stays.
  const HloValue z = b.elementwise("minimum", {b.elementwise("abs", {x}), b.constant_like(30, x)});
  const HloValue z2 = b.multiply(z, z);
  const HloValue near = ratio(b, z, kNearNumerator, kNearDenominator);
  const HloValue far = ratio(b, z, kFarNumerator, kFarDenominator);
  const HloValue scaled = b.select(b.compare("LT", z, b.constant_like(8, z)), near, far);
  return {.small = b.multiply(x, ratio(b, z2, kErfNumerator, kErfDenominator)),
          .tail = b.multiply(b.elementwise("exponential", {b.elementwise("negate", {z2})}), scaled),
          .is_small = b.compare("LT", z, b.constant_like(1, z)),
          .negative = b.compare("LT", x, b.constant_like(0, x))};
}

HloValues erf(HloBuilder& b, const HloCall& c) {
  const ErrorFunction e = error_function(b, c.in[0]);
  const HloValue large = b.subtract(b.constant_like(1, e.tail), e.tail);
  return {b.select(e.is_small, e.small, b.select(e.negative, b.elementwise("negate", {large}), large))};
}

HloValue erfc(HloBuilder& b, const HloValue& x) {
  const ErrorFunction e = error_function(b, x);
  const HloValue near = b.subtract(b.constant_like(1, x), e.small);
  const HloValue far = b.select(e.negative, b.subtract(b.constant_like(2, x), e.tail), e.tail);
  return b.select(e.is_small, near, far);
}

HloValues erfc_call(HloBuilder& b, const HloCall& c) { return {erfc(b, c.in[0])}; }

/// x erfc(-x / sqrt 2) / 2: no cancellation on the negative side; -inf times 0 is 0 here, the limit.
HloValues gelu(HloBuilder& b, const HloCall& c) {
  const HloValue& x = c.in[0];
  const HloValue scaled = b.multiply(x, b.constant_like(-1 / std::numbers::sqrt2, x));
  const HloValue whole = erfc(b, scaled);
  const HloValue half = b.multiply(whole, b.constant_like(0.5, x));
  const HloValue vanished = b.compare("LT", x, b.constant_like(-40, x));
  const HloValue product = b.multiply(x, half);
  return {b.select(vanished, b.constant_like(-0.0, x), product)};
}

/// g (erfc(-x / sqrt 2) / 2 + x phi(x)), x bounded to -40..40.
HloValues gelu_grad(HloBuilder& b, const HloCall& c) {
  const HloValue high = b.elementwise("minimum", {c.in[1], b.constant_like(40, c.in[1])});
  const HloValue x = b.elementwise("maximum", {high, b.constant_like(-40, high)});
  const HloValue whole = erfc(b, b.multiply(x, b.constant_like(-1 / std::numbers::sqrt2, x)));
  const HloValue half = b.multiply(whole, b.constant_like(0.5, x));
  const HloValue exponent = b.multiply(b.multiply(x, x), b.constant_like(-0.5, x));
  const HloValue power = b.elementwise("exponential", {exponent});
  const HloValue density = b.multiply(power, b.constant_like(std::numbers::inv_sqrtpi / std::numbers::sqrt2, x));
  return {b.multiply(c.in[0], b.add(half, b.multiply(x, density)))};
}

}  // namespace

HloFamily hlo_error_functions() {
  static constexpr NamedHloLowering list[] = {
      {"erf", erf}, {"erfc", erfc_call}, {"gelu", gelu}, {"gelu_grad", gelu_grad}};
  return list;
}

}  // namespace ferrite::exchange::detail
