/// Lowers operations of com.microsoft that onnxruntime.quantization and ONNX Runtime's optimiser write to operations on
/// floats. Sums of integers are exact; what follows them is rounded in f32 in ONNX Runtime's order.
#include <algorithm>

#include "ferrite/compile/scan.h"
#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/exchange/onnx/operations/quantised.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

/// Returns input i, a scale or zero point for all elements, as f32.
Tensor single(const Call& call, std::size_t i) {
  const Tensor& x = call.tensor(i);
  if (x.numel() != 1) call.refuse("input " + std::to_string(i) + " must have one element, got " + x.shape().str());
  return reshape(cast(x, Dtype::f32), {});
}
Tensor zero_point(const Call& call, std::size_t i) { return call.has(i) ? single(call, i) : zeros({}, Dtype::f32); }

/// Returns input i dequantised by its scale and zero point, which are the next two inputs.
Tensor dequantised(const Call& call, std::size_t i) {
  return (cast(call.tensor(i), Dtype::f32) - zero_point(call, i + 2)) * single(call, i + 1);
}
/// Returns y / scale + zero point in an integer type.
Value quantised(const Call& call, const Tensor& y, std::size_t scale, std::size_t zero, ElementType type) {
  return saturated(call, round(y / single(call, scale)) + zero_point(call, zero), type);
}

/// Returns x * scale + y, rounded once to f32, as a fused multiply-add rounds.
Tensor multiplied_and_added(const Tensor& x, const Tensor& scale, const Tensor& y) {
  return cast(cast(x, Dtype::f64) * cast(scale, Dtype::f64) + cast(y, Dtype::f64), Dtype::f32);
}

/// Lowers QLinearAdd as ONNX Runtime computes it: both operands are scaled to the result's scale and the zero points
/// are collected in one constant.
Values add_quantised(const Call& call) {
  const Tensor out = single(call, 6);
  const Tensor a = single(call, 1) / out, b = single(call, 4) / out;
  const Tensor rest = zero_point(call, 7) - (a * zero_point(call, 2) + b * zero_point(call, 5));
  const Tensor sum = multiplied_and_added(call.tensor(0), a, multiplied_and_added(call.tensor(3), b, rest));
  return {saturated(call, sum, call.type(0))};
}

Values multiply_quantised(const Call& call) {
  const Tensor scale = single(call, 1) * single(call, 4) / single(call, 6);
  const Tensor a = cast(call.tensor(0), Dtype::f32) - zero_point(call, 2),
               b = cast(call.tensor(3), Dtype::f32) - zero_point(call, 5);
  return {saturated(call, round(a * b * scale) + zero_point(call, 7), call.type(0))};
}

Values concatenate_quantised(const Call& call) {
  if (call.inputs() < 5 || (call.inputs() - 2) % 3 != 0)
    call.refuse("its inputs are a scale, a zero point, and three for each part: " + std::to_string(call.inputs()));
  std::vector<Tensor> parts;
  for (std::size_t i = 2; i < call.inputs(); i += 3) {
    if (call.type(i) != call.type(2)) call.refuse("its parts are of different types");
    parts.push_back(dequantised(call, i));
  }
  const int axis = axis_of(call, call.integer("axis"), parts[0].rank());
  return {quantised(call, concat(parts, axis), 0, 1, call.type(2))};
}

Values sigmoid_quantised(const Call& call) {
  return {quantised(call, sigmoid(dequantised(call, 0)), 3, 4, call.type(0))};
}
Values leaky_relu_quantised(const Call& call) {
  const double alpha = call.number("alpha", 0.01);
  return {quantised(call, leaky_relu(dequantised(call, 0), alpha), 3, 4, call.type(0))};
}

/// Returns input i, one scale for all columns or one for each.
Tensor of_columns(const Call& call, std::size_t i) {
  const Tensor s = cast(call.tensor(i), Dtype::f32);
  return s.numel() == 1 ? reshape(s, {}) : s;
}

/// Lowers QGemm, whose result is float where no scale for it is given.
Values gemm_quantised(const Call& call) {
  const bool turned = call.integer("transB", 0) != 0;
  Tensor a = centred(call, 0, 2, false), b = centred(call, 3, 5, turned);
  if (a.rank() != 2 || b.rank() != 2) call.refuse("its operands must be matrices");
  if (call.integer("transA", 0)) a = transpose(a, 0, 1);
  if (turned) b = transpose(b, 0, 1);
  const double alpha = call.number("alpha", 1.0);
  Tensor sums = matmul(a, b);
  if (call.has(6)) sums = sums + cast(call.tensor(6), Dtype::f64);
  const Tensor scale = single(call, 1) * of_columns(call, 4) * alpha;
  sums = cast(sums, Dtype::f32);
  if (!call.has(7)) return {{sums * scale, ElementType::f32}};
  const ElementType type = call.has(8) ? call.type(8) : call.type(0);
  return {saturated(call, round(sums * (scale / single(call, 7))) + zero_point(call, 8), type)};
}

Values matmul_to_float(const Call& call) {
  const Tensor sums = matmul(centred(call, 0, 4, true), centred(call, 1, 5, false));
  Tensor a = of_columns(call, 2);
  if (a.rank() == 1) a = unsqueeze(a, 1);
  Tensor y = cast(sums, Dtype::f32) * (a * of_columns(call, 3));
  if (call.has(6)) y = y + call.tensor(6);
  return {{y, ElementType::f32}};
}

/// Returns, in f32, the product of x, quantised to bytes, and integers that are centred already.
Tensor product_of_bytes(const Tensor& x, const Tensor& whole, const Tensor& scale) {
  const DynamicBytes q = bytes_of(x);
  const Tensor sums = matmul(cast(q.bytes - q.zero, Dtype::f64), whole);
  return cast(sums, Dtype::f32) * (q.scale * scale);
}

Values matmul_dynamic(const Call& call) {
  Tensor y = product_of_bytes(call.tensor(0), centred(call, 1, 3, false), of_columns(call, 2));
  if (call.has(4)) y = y + call.tensor(4);
  return {{y, ElementType::f32}};
}

/// One direction of a DynamicQuantizeLSTM: W [D, 4H] and R [H, 4H] as integers, gates i, o, f, c.
struct QuantisedLstm {
  Tensor w{}, r{}, w_scale{}, r_scale{}, bias{}, h0{}, c0{};
  bool reverse = false;

  /// Returns y [T, B, H], the last h and the last c.
  Tensors run(const Tensor& x, const Tensor& lengths) const {
    const std::int64_t H = r.size(0);
    const auto step = [&](const Tensors& carry, const Tensors& in) -> ScanStep {
      const Tensor all = in[0] + product_of_bytes(carry[0], r, r_scale);
      const auto gate = [&](std::int64_t at) { return slice(all, -1, at * H, (at + 1) * H); };
      const Tensor c = sigmoid(gate(2)) * carry[1] + sigmoid(gate(0)) * tanh(gate(3));
      const Tensor h = sigmoid(gate(1)) * tanh(c);
      return {{h, c}, {h}};
    };
    const Tensor inputs = product_of_bytes(x, w, w_scale) + bias;
    const ScanResult result = scan(step, {h0, c0}, {inputs}, {.reverse = reverse, .lengths = lengths});
    return {result.y[0], result.carry[0], result.carry[1]};
  }
};

/// Lowers DynamicQuantizeLSTM. After the inputs of an LSTM it has W_scale, W_zero_point, R_scale, R_zero_point; W and R
/// are transposed.
Values lstm_dynamic(const Call& call) {
  const std::string direction = call.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    call.refuse("direction must be forward, reverse or bidirectional: \"" + direction + "\"");
  for (const std::string& name : call.texts("activations"))
    if (name != "Sigmoid" && name != "Tanh") call.refuse("activation \"" + name + "\" is not supported");
  if (call.integer("input_forget", 0) != 0) call.refuse("input_forget is not supported");
  if (call.has_attribute("clip") && call.number("clip") != 0) call.refuse("clip is not supported");
  const Tensor& x = call.tensor(0);
  const Tensor &w = call.tensor(1), &r = call.tensor(2);
  const std::int64_t D = direction == "bidirectional" ? 2 : 1, H = call.integer("hidden_size");
  if (x.rank() != 3 || w.shape() != Shape{D, x.size(2), 4 * H} || r.shape() != Shape{D, H, 4 * H})
    call.refuse("X, W and R must be [T, B, I], [D, I, 4H] and [D, H, 4H], they are " + x.shape().str() + ", " +
                w.shape().str() + " and " + r.shape().str());
  const std::int64_t B = x.size(1);
  const auto optional = [&](std::size_t i, const Shape& shape) {
    const Tensor t = call.has(i) ? call.tensor(i) : zeros(shape, Dtype::f32);
    if (t.shape() != shape)
      call.refuse("input " + std::to_string(i) + " must be " + shape.str() + ", it is " + t.shape().str());
    return t;
  };
  const Tensor bias = optional(3, {D, 8 * H}), h0 = optional(5, {D, B, H}), c0 = optional(6, {D, B, H});
  const Tensor lengths = call.has(4) ? cast(call.tensor(4), Dtype::i64) : Tensor();
  if (call.has(7)) call.refuse("peepholes are not supported");
  // scales [D] or [D, 4H]
  const auto of_direction = [&](std::size_t i, std::int64_t d) {
    if (!call.has(i)) return zeros({}, Dtype::f64);
    const Tensor& all = call.tensor(i);
    if (all.rank() < 1 || all.size(0) != D)
      call.refuse("input " + std::to_string(i) + " must have a row for each direction, it is " + all.shape().str());
    return cast(select(all, 0, d), Dtype::f64);
  };
  std::vector<Tensors> all;
  for (std::int64_t d = 0; d < D; ++d) {
    const Tensor b = select(bias, 0, d);
    const QuantisedLstm one{.w = cast(select(w, 0, d), Dtype::f64) - of_direction(9, d),
                            .r = cast(select(r, 0, d), Dtype::f64) - of_direction(11, d),
                            .w_scale = cast(of_direction(8, d), Dtype::f32),
                            .r_scale = cast(of_direction(10, d), Dtype::f32),
                            .bias = slice(b, 0, 0, 4 * H) + slice(b, 0, 4 * H, 8 * H),
                            .h0 = select(h0, 0, d),
                            .c0 = select(c0, 0, d),
                            .reverse = d == 1 || direction == "reverse"};
    all.push_back(one.run(x, lengths));
  }
  const auto joined = [&](std::size_t at, int axis) {
    std::vector<Tensor> parts;
    for (const Tensors& one : all) parts.push_back(one[at]);
    return stack(parts, axis);
  };
  call.lowered_as("scan: the state is quantised in each step");
  return {{joined(0, 1), ElementType::f32}, {joined(1, 0), ElementType::f32}, {joined(2, 0), ElementType::f32}};
}

constexpr std::string_view kDomain = "com.microsoft";
constexpr Operation kOperations[] = {
    {.name = "QLinearAdd", .lower = add_quantised, .domain = kDomain, .quoted = true},
    {.name = "QLinearMul", .lower = multiply_quantised, .domain = kDomain, .quoted = true},
    {.name = "QLinearConcat", .lower = concatenate_quantised, .domain = kDomain, .quoted = true},
    {.name = "QLinearSigmoid", .lower = sigmoid_quantised, .domain = kDomain, .quoted = true},
    {.name = "QLinearLeakyRelu", .lower = leaky_relu_quantised, .domain = kDomain, .quoted = true},
    {.name = "QGemm", .lower = gemm_quantised, .domain = kDomain, .quoted = true},
    {.name = "MatMulIntegerToFloat", .lower = matmul_to_float, .domain = kDomain, .quoted = true},
    {.name = "DynamicQuantizeMatMul", .lower = matmul_dynamic, .domain = kDomain, .quoted = true},
    {.name = "DynamicQuantizeLSTM", .lower = lstm_dynamic, .domain = kDomain, .quoted = true},
};

}  // namespace

Operations contributed_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
