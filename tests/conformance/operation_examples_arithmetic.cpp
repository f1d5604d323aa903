// Examples of pointwise arithmetic and functions.
#include "conformance/operation_examples.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/math.h"

namespace conformance {
namespace {

using namespace ferrite;

const OperationExample kArithmetic[] = {
    {"add", "torch.add", FERRITE_EXAMPLE(Tensor::from({1.f, 2.f}) + Tensor::from({10.f, 20.f}))},
    {"sub", "torch.sub", FERRITE_EXAMPLE(10 - Tensor::from({1.f, 2.f}))},
    {"mul", "torch.mul", FERRITE_EXAMPLE(Tensor::from({1.f, 2.f}) * Tensor::from({10.f, 20.f}))},
    {"div", "torch.div, which takes integers, too", FERRITE_EXAMPLE(Tensor::from({1.f, 2.f}) / 4)},
    {"neg", "torch.neg", FERRITE_EXAMPLE(-Tensor::from({1.f, -2.f}))},
    {"pow", "torch.pow", FERRITE_EXAMPLE(pow(Tensor::from({2.f, 3.f}), 3))},
    {"abs", "torch.abs", FERRITE_EXAMPLE(abs(Tensor::from({1.f, -2.f})))},
    {"maximum", "torch.maximum", FERRITE_EXAMPLE(maximum(Tensor::from({1.f, 4.f}), Tensor::from({3.f, 2.f})))},
    {"minimum", "torch.minimum", FERRITE_EXAMPLE(minimum(Tensor::from({1.f, 4.f}), Tensor::from({3.f, 2.f})))},
    {"sign", "torch.sign, which is 0 of NaN", FERRITE_EXAMPLE(sign(Tensor::from({-3.f, 0.f, 2.f})))},
    {"square", "torch.square", FERRITE_EXAMPLE(square(Tensor::from({1.f, -3.f})))},
    {"clamp", "torch.clamp", FERRITE_EXAMPLE(clamp(Tensor::from({-3.f, 0.5f, 2.f}), -1, 1))},
    {"sqrt", "torch.sqrt", FERRITE_EXAMPLE(sqrt(Tensor::from({4.f, 2.f})))},
    {"rsqrt", "torch.rsqrt", FERRITE_EXAMPLE(rsqrt(Tensor::from({4.f, 2.f})))},
    {"reciprocal", "torch.reciprocal", FERRITE_EXAMPLE(reciprocal(Tensor::from({4.f, 0.5f})))},
    {"exp", "torch.exp", FERRITE_EXAMPLE(exp(Tensor::from({0.f, 1.f})))},
    {"exp2", "torch.exp2", FERRITE_EXAMPLE(exp2(Tensor::from({3.f, 0.5f})))},
    {"expm1", "torch.expm1", FERRITE_EXAMPLE(expm1(Tensor::from({0.01f, 1.f})))},
    {"log", "torch.log", FERRITE_EXAMPLE(log(Tensor::from({1.f, 2.f})))},
    {"log1p", "torch.log1p", FERRITE_EXAMPLE(log1p(Tensor::from({0.01f, 1.f})))},
    {"log2", "torch.log2", FERRITE_EXAMPLE(log2(Tensor::from({8.f, 10.f})))},
    {"log10", "torch.log10", FERRITE_EXAMPLE(log10(Tensor::from({100.f, 2.f})))},
    {"sin", "torch.sin", FERRITE_EXAMPLE(sin(Tensor::from({0.f, 1.f})))},
    {"cos", "torch.cos", FERRITE_EXAMPLE(cos(Tensor::from({0.f, 1.f})))},
    {"tan", "torch.tan", FERRITE_EXAMPLE(tan(Tensor::from({0.f, 1.f})))},
    {"asin", "torch.asin", FERRITE_EXAMPLE(asin(Tensor::from({0.5f, 1.f})))},
    {"acos", "torch.acos", FERRITE_EXAMPLE(acos(Tensor::from({0.5f, 1.f})))},
    {"atan", "torch.atan", FERRITE_EXAMPLE(atan(Tensor::from({0.f, 1.f})))},
    {"atan2", "torch.atan2", FERRITE_EXAMPLE(atan2(Tensor::from({1.f, 1.f}), Tensor::from({1.f, -1.f})))},
    {"sinh", "torch.sinh", FERRITE_EXAMPLE(sinh(Tensor::from({0.f, 1.f})))},
    {"cosh", "torch.cosh", FERRITE_EXAMPLE(cosh(Tensor::from({0.f, 1.f})))},
    {"tanh", "torch.tanh", FERRITE_EXAMPLE(tanh(Tensor::from({0.f, 1.f})))},
    {"asinh", "torch.asinh", FERRITE_EXAMPLE(asinh(Tensor::from({0.f, 1.f})))},
    {"acosh", "torch.acosh", FERRITE_EXAMPLE(acosh(Tensor::from({1.f, 2.f})))},
    {"atanh", "torch.atanh", FERRITE_EXAMPLE(atanh(Tensor::from({0.f, 0.5f})))},
    {"hypot", "torch.hypot", FERRITE_EXAMPLE(hypot(Tensor::from({3.f, 1.f}), Tensor::from({4.f, 1.f})))},
    {"sinc", "torch.sinc", FERRITE_EXAMPLE(sinc(Tensor::from({0.f, 0.5f})))},
    {"erf", "torch.erf", FERRITE_EXAMPLE(erf(Tensor::from({0.f, 0.5f})))},
    {"erfc", "torch.erfc", FERRITE_EXAMPLE(erfc(Tensor::from({0.f, 2.f})))},
    {"erfinv", "torch.erfinv", FERRITE_EXAMPLE(erfinv(Tensor::from({0.f, 0.5f})))},
    {"lgamma", "torch.lgamma", FERRITE_EXAMPLE(lgamma(Tensor::from({5.f, 0.5f})))},
    {"digamma", "torch.digamma", FERRITE_EXAMPLE(digamma(Tensor::from({1.f, 2.f})))},
    {"trigamma", "torch.polygamma with n=1", FERRITE_EXAMPLE(polygamma(1, Tensor::from({1.f, 2.f})))},
    {"polygamma", "torch.polygamma", FERRITE_EXAMPLE(polygamma(2, Tensor::from({1.f, 2.f})))},
    {"logaddexp", "torch.logaddexp", FERRITE_EXAMPLE(logaddexp(Tensor::from({0.f, 100.f}), Tensor::from({0.f, 99.f})))},
    {"xlogy", "torch.xlogy", FERRITE_EXAMPLE(xlogy(Tensor::from({0.f, 2.f}), Tensor::from({0.f, 3.f})))},
    {"multiply_no_nan", "", FERRITE_EXAMPLE(multiply_no_nan(log(Tensor::from({0.f, 2.f})), Tensor::from({0.f, 1.f})))},
    {"floor", "torch.floor", FERRITE_EXAMPLE(floor(Tensor::from({1.5f, -1.5f})))},
    {"ceil", "torch.ceil", FERRITE_EXAMPLE(ceil(Tensor::from({1.5f, -1.5f})))},
    {"round", "torch.round", FERRITE_EXAMPLE(round(Tensor::from({0.5f, 1.5f, 1.6f})))},
    {"trunc", "torch.trunc", FERRITE_EXAMPLE(trunc(Tensor::from({1.5f, -1.5f})))},
    {"fmod", "torch.fmod", FERRITE_EXAMPLE(fmod(Tensor::from({5.f, -5.f}), 3))},
    {"remainder", "torch.remainder", FERRITE_EXAMPLE(remainder(Tensor::from({5.f, -5.f}), 3))},
    {"floor_divide", "torch.floor_divide", FERRITE_EXAMPLE(floor_divide(Tensor::from({5.f, -5.f}), 3))},
    {"copysign", "torch.copysign", FERRITE_EXAMPLE(copysign(Tensor::from({1.f, 2.f}), Tensor::from({-3.f, 3.f})))},
    {"equal", "torch.eq", FERRITE_EXAMPLE(eq(Tensor::from({1.f, 2.f}), 2))},
    {"less", "torch.lt", FERRITE_EXAMPLE(Tensor::from({1.f, 2.f}) < 2)},
    {"less_equal", "torch.le", FERRITE_EXAMPLE(Tensor::from({1.f, 2.f, 3.f}) <= 2)},
    {"logical_and", "torch.logical_and, which takes any dtype",
     FERRITE_EXAMPLE(Tensor::from({true, true}) && Tensor::from({false, true}))},
    {"logical_or", "torch.logical_or, which takes any dtype",
     FERRITE_EXAMPLE(Tensor::from({false, true}) || Tensor::from({false, false}))},
    {"logical_not", "torch.logical_not, which takes any dtype", FERRITE_EXAMPLE(!Tensor::from({false, true}))},
    {"where", "torch.where", FERRITE_EXAMPLE(where(Tensor::from({true, false}), Tensor::from({1.f, 2.f}), 0))},
    {"bitwise_and", "torch.bitwise_and", FERRITE_EXAMPLE(bitwise_and(Tensor::from({12, 7}), 10))},
    {"bitwise_or", "torch.bitwise_or", FERRITE_EXAMPLE(bitwise_or(Tensor::from({12, 7}), 10))},
    {"bitwise_xor", "torch.bitwise_xor", FERRITE_EXAMPLE(bitwise_xor(Tensor::from({12, 7}), 10))},
    {"bitwise_not", "torch.bitwise_not", FERRITE_EXAMPLE(bitwise_not(Tensor::from({0, 7})))},
    {"bitwise_left_shift", "torch.bitwise_left_shift", FERRITE_EXAMPLE(bitwise_left_shift(Tensor::from({1, 3}), 2))},
    {"bitwise_right_shift", "torch.bitwise_right_shift",
     FERRITE_EXAMPLE(bitwise_right_shift(Tensor::from({12, -12}), 2))},
};

}  // namespace

std::span<const OperationExample> arithmetic_examples() { return kArithmetic; }

}  // namespace conformance
