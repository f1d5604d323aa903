/// Lowers products of quantised integers, and quantisation by the range of the numbers.
#include <algorithm>
#include <cmath>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/exchange/onnx/operations/quantised.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {

Tensor centred(const Call& call, std::size_t i, std::size_t zero, bool rows) {
  const Tensor x = cast(call.tensor(i), Dtype::f64);
  if (!call.has(zero)) return x;
  Tensor z = cast(call.tensor(zero), Dtype::f64);
  if (z.numel() == 1) return x - reshape(z, {});
  if (rows && z.rank() == 1 && x.rank() >= 2) z = unsqueeze(z, 1);
  return x - z;
}

Value saturated(const Call& call, const Tensor& y, ElementType to) {
  if (!is_integral(to) || bits_of(to) > 16)
    call.refuse("results of type " + std::string(name_of(to)) + " are not supported");
  const double range = std::ldexp(1, bits_of(to)), low = is_unsigned(to) ? 0 : -range / 2;
  return {cast(clamp(round(y), low, low + range - 1), dtype_for(to)), to};
}

DynamicBytes bytes_of(const Tensor& x) {
  const Tensor high = maximum(amax(x), 0), low = minimum(amin(x), 0);
  const Tensor range = high - low;
  const Tensor scale = where(eq(range, 0), ones_like(range), range) / 255.0;
  const Tensor zero = round(clamp(-low / scale, 0, 255));
  return {clamp(round(x / scale) + zero, 0, 255), scale, zero};
}

namespace {

Values matmul_integer(const Call& call) {
  const Tensor y = matmul(centred(call, 0, 2, true), centred(call, 1, 3, false));
  return {{cast(y, Dtype::i32), ElementType::i32}};
}

Values matmul_quantised(const Call& call) {
  const Tensor product = matmul(centred(call, 0, 2, true), centred(call, 3, 5, false));
  const auto scale = [&](std::size_t i) {
    const Tensor s = cast(call.tensor(i), Dtype::f64);
    return s.numel() == 1 ? reshape(s, {}) : s;
  };
  Tensor a = scale(1);
  if (a.rank() == 1) a = unsqueeze(a, 1);
  const Tensor y = product * (a * scale(4) / scale(6)) + cast(call.tensor(7), Dtype::f64);
  return {saturated(call, y, call.type(7))};
}

/// Returns the weight, input i, less its zero point, which is one number or one for each channel.
Tensor weight_of(const Call& call, std::size_t i, std::size_t zero) {
  const Tensor w = cast(call.tensor(i), Dtype::f64);
  if (!call.has(zero)) return w;
  const Tensor z = cast(call.tensor(zero), Dtype::f64);
  Shape channels = Shape::filled(w.rank(), 1);
  if (z.numel() != 1) channels[0] = z.numel();
  return w - reshape(z, channels);
}

Values convolution_integer(const Call& call) {
  const Tensor y = convolution_of(call, centred(call, 0, 2, false), weight_of(call, 1, 3), {});
  return {{cast(y, Dtype::i32), ElementType::i32}};
}

Values convolution_quantised(const Call& call) {
  const Tensor bias = call.has(8) ? cast(call.tensor(8), Dtype::f64) : Tensor{};
  const Tensor sums = convolution_of(call, centred(call, 0, 2, false), weight_of(call, 3, 5), bias);
  Tensor scale = cast(call.tensor(4), Dtype::f64);
  Shape channels = Shape::filled(sums.rank(), 1);
  channels[1] = scale.numel();
  scale = reshape(scale, channels);
  const auto single = [&](std::size_t i) { return reshape(cast(call.tensor(i), Dtype::f64), {}); };
  return {saturated(call, sums * (single(1) * scale / single(6)) + single(7), call.type(7))};
}

Values quantise_dynamically(const Call& call) {
  const DynamicBytes q = bytes_of(call.tensor(0));
  return {{cast(q.bytes, Dtype::i32), ElementType::u8},
          {q.scale, ElementType::f32},
          {cast(q.zero, Dtype::i32), ElementType::u8}};
}

constexpr Operation kOperations[] = {
    {.name = "MatMulInteger", .lower = matmul_integer, .quoted = true},
    {.name = "QLinearMatMul", .lower = matmul_quantised, .quoted = true},
    {.name = "ConvInteger", .lower = convolution_integer, .quoted = true},
    {.name = "QLinearConv", .lower = convolution_quantised, .quoted = true},
    {.name = "DynamicQuantizeLinear", .lower = quantise_dynamically},
};

}  // namespace

Operations quantised_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
