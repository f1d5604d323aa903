// Elementwise functions compared with PyTorch 2.13: values (also special ones), gradients and second derivatives.
#include "ferrite/tensor/math.h"

#include "golden/elementwise_cases.h"

using namespace ferrite;

namespace {

using In = const Tensors&;

Tensor as_float(const Tensor& x) { return cast(x, Dtype::f64); }

/// Returns functions of one tensor, each at random points and at special values.
golden::Functions unary() {
  const golden::Functions table = {
      {"tan", [](In x) { return tan(x[0]); }},
      {"asin", [](In x) { return asin(x[0]); }},
      {"acos", [](In x) { return acos(x[0]); }},
      {"atan", [](In x) { return atan(x[0]); }},
      {"sinh", [](In x) { return sinh(x[0]); }},
      {"cosh", [](In x) { return cosh(x[0]); }},
      {"asinh", [](In x) { return asinh(x[0]); }},
      {"acosh", [](In x) { return acosh(x[0]); }},
      {"atanh", [](In x) { return atanh(x[0]); }},
      {"sinc", [](In x) { return sinc(x[0]); }},
      {"floor", [](In x) { return floor(x[0]); }},
      {"ceil", [](In x) { return ceil(x[0]); }},
      {"round", [](In x) { return round(x[0]); }},
      {"trunc", [](In x) { return trunc(x[0]); }},
      {"frac", [](In x) { return frac(x[0]); }},
      {"lgamma", [](In x) { return lgamma(x[0]); }},
      {"digamma", [](In x) { return digamma(x[0]); }},
      {"polygamma_1", [](In x) { return polygamma(1, x[0]); }},
      {"polygamma_2", [](In x) { return polygamma(2, x[0]); }},
      {"polygamma_5", [](In x) { return polygamma(5, x[0]); }},
      {"erfc", [](In x) { return erfc(x[0]); }},
      {"erfinv", [](In x) { return erfinv(x[0]); }},
      {"logit", [](In x) { return logit(x[0]); }},
      {"logit_epsilon", [](In x) { return logit(x[0], 0.25); }},
      {"log10", [](In x) { return log10(x[0]); }},
      {"exp10", [](In x) { return exp10(x[0]); }},
      {"nan_to_num", [](In x) { return nan_to_num(x[0]); }},
      {"nan_to_num_options", [](In x) { return nan_to_num(x[0], {.nan = 1, .posinf = 2, .neginf = -3}); }},
  };
  golden::Functions all = table;
  for (const auto& [name, f] : table)
    if (!name.starts_with("polygamma")) all[name + "_ends"] = f;
  return all;
}

/// Returns functions of two tensors, each with operands of one sign and of all.
golden::Functions binary() {
  const golden::Functions table = {
      {"atan2", [](In x) { return atan2(x[0], x[1]); }},
      {"hypot", [](In x) { return hypot(x[0], x[1]); }},
      {"fmod", [](In x) { return fmod(x[0], x[1]); }},
      {"remainder", [](In x) { return remainder(x[0], x[1]); }},
      {"logaddexp", [](In x) { return logaddexp(x[0], x[1]); }},
      {"logaddexp2", [](In x) { return logaddexp2(x[0], x[1]); }},
      {"copysign", [](In x) { return copysign(x[0], x[1]); }},
  };
  golden::Functions all = table;
  for (const auto& [name, f] : table) all[name + "_signs"] = f;
  return all;
}

golden::Functions functions() {
  golden::Functions table = unary();
  table.merge(binary());
  table.merge(golden::Functions{
      {"fmod_values", [](In x) { return fmod(x[0], x[1]); }},
      {"remainder_values", [](In x) { return remainder(x[0], x[1]); }},
      {"floor_divide_values", [](In x) { return floor_divide(x[0], x[1]); }},
      {"fmod_integers", [](In x) { return as_float(fmod(x[0], x[1])); }},
      {"remainder_integers", [](In x) { return as_float(remainder(x[0], x[1])); }},
      {"floor_divide_integers", [](In x) { return as_float(floor_divide(x[0], x[1])); }},
      {"fmod_literal", [](In x) { return fmod(x[0], 1.5); }},
      {"remainder_literal", [](In x) { return remainder(x[0], -1.5); }},
      {"remainder_of_literal", [](In x) { return remainder(2, x[0]); }},
      {"logaddexp_ties", [](In x) { return logaddexp(x[0], x[1]); }},
      {"logaddexp_infinite", [](In x) { return logaddexp(x[0], x[1]); }},
      {"logaddexp2_infinite", [](In x) { return logaddexp2(x[0], x[1]); }},
      {"copysign_zeros", [](In x) { return 1 / copysign(x[0], x[1]); }},
      {"copysign_at_zero", [](In x) { return copysign(x[0], x[1]); }},
      {"xlogy", [](In x) { return xlogy(x[0], x[1]); }},
      {"xlogy_zeros", [](In x) { return xlogy(x[0], detach(x[1])); }},
      {"lerp", [](In x) { return lerp(x[0], x[1], 0.25); }},
      {"lerp_far", [](In x) { return lerp(x[0], x[1], 0.75); }},
      {"lerp_tensor", [](In x) { return lerp(x[0], x[1], x[2]); }},
      {"heaviside", [](In x) { return heaviside(x[0], x[1]); }},
      {"isnan", [](In x) { return as_float(ferrite::isnan(x[0])); }},
      {"isinf", [](In x) { return as_float(ferrite::isinf(x[0])); }},
      {"isfinite", [](In x) { return as_float(ferrite::isfinite(x[0])); }},
      {"isclose", [](In x) { return as_float(isclose(x[0], x[1])); }},
      {"isclose_nan",
       [](In x) { return as_float(isclose(x[0], x[1], {.rtol = 0.1, .atol = 0.5, .equal_nan = true})); }},
      {"isclose_integers", [](In x) { return as_float(isclose(x[0], x[1], {.rtol = 0.25, .atol = 0})); }},
      {"logical_xor", [](In x) { return as_float(logical_xor(x[0], x[1])); }},
      {"bitwise_and", [](In x) { return as_float(bitwise_and(x[0], x[1])); }},
      {"bitwise_or", [](In x) { return as_float(bitwise_or(x[0], x[1])); }},
      {"bitwise_xor", [](In x) { return as_float(bitwise_xor(x[0], x[1])); }},
      {"bitwise_not", [](In x) { return as_float(bitwise_not(x[0])); }},
      {"bitwise_bool",
       [](In x) {
         const Tensor &a = x[0], &b = x[1];
         return as_float(stack({bitwise_and(a, b), bitwise_or(a, b), bitwise_xor(a, b), bitwise_not(a)}));
       }},
      {"bitwise_left_shift", [](In x) { return as_float(bitwise_left_shift(x[0], x[1])); }},
      {"bitwise_right_shift", [](In x) { return as_float(bitwise_right_shift(x[0], x[1])); }},
  });
  return table;
}

const bool registered = golden::register_cases("math.safetensors", "math", functions());

}  // namespace
