/// Lowers the operations that nearly every model has: constants, shapes, arithmetic, products.
#include <algorithm>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/exchange/onnx/operations/unsigned64.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

Values identity(const Call& call) { return {call.value(0)}; }

Values constant(const Call& call) {
  if (call.has_attribute("value")) return {call.tensor_attribute("value")};
  if (call.has_attribute("sparse_value")) return {call.tensor_attribute("sparse_value")};
  if (call.has_attribute("value_float"))
    return {{full({}, call.number("value_float"), Dtype::f32), ElementType::f32, true}};
  if (call.has_attribute("value_int"))
    return {{full({}, call.integer("value_int"), Dtype::i64), ElementType::i64, true}};
  if (call.has_attribute("value_ints")) return {known_integers(call.integers("value_ints"))};
  if (call.has_attribute("value_floats")) {
    const auto values = call.numbers("value_floats");
    const std::vector<float> narrow(values.begin(), values.end());
    return {{Tensor::from<float>(narrow, {static_cast<std::int64_t>(narrow.size())}), ElementType::f32, true}};
  }
  call.refuse("a constant of text is not supported");
}

Values shape(const Call& call) {
  const Shape s = call.tensor(0).shape();
  const auto bound = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + s.rank() : at, 0, s.rank());
  };
  const std::int64_t begin = bound(call.integer("start", 0));
  const std::int64_t end = std::max(begin, bound(call.integer("end", s.rank())));
  return {known_integers(std::span(s.begin() + begin, s.begin() + end))};
}

Values arithmetic(const Call& call) {
  const ElementType type = call.type(0);
  if (call.type(1) != type)
    call.refuse("its operands are of different types: " + std::string(name_of(type)) + " and " +
                std::string(name_of(call.type(1))));
  const Tensor& a = call.tensor(0);
  const Tensor b = second_operand(call);
  switch (call.name()[0]) {
    case 'A': return {narrowed(a + b, type)};
    case 'S': return {narrowed(a - b, type)};
    case 'M': return {narrowed(a * b, type)};
    default: break;
  }
  if (is_floating(type)) return {narrowed(a / b, type)};
  if (type == ElementType::u64) return {{unsigned_quotient(a, b), type}};
  // truncated toward zero, as in C: the floor of positive numbers, and the sign
  const Tensor quotient = floor_divide(abs(a), abs(b));
  return {narrowed(is_unsigned(type) ? quotient : quotient * (sign(a) * sign(b)), type)};
}

Values matrix_product(const Call& call) { return {narrowed(matmul(call.tensor(0), call.tensor(1)), call.type(0))}; }

Values gemm(const Call& call) {
  Tensor a = call.tensor(0);
  Tensor b = call.tensor(1);
  if (a.rank() != 2 || b.rank() != 2)
    call.refuse("its operands must be matrices: " + a.shape().str() + " and " + b.shape().str());
  if (call.integer("transA", 0)) a = transpose(a, 0, 1);
  if (call.integer("transB", 0)) b = transpose(b, 0, 1);
  if (call.version() < 7) call.without_effect("broadcast");  // shapes that do not broadcast are refused below
  const double alpha = call.number("alpha", 1.0);
  const double beta = call.number("beta", 1.0);
  Tensor y = matmul(a, b);
  if (alpha != 1) y = y * alpha;
  if (call.has(2)) {
    const Tensor& c = call.tensor(2);
    y = y + (beta != 1 ? c * beta : c);
  }
  if (y.shape() != Shape{a.size(0), b.size(1)}) call.refuse("C is larger than the product: " + y.shape().str());
  return {narrowed(y, call.type(0))};
}

template <Tensor (*f)(const Tensor&)>
Values of_floats(const Call& call) {
  return {narrowed(f(call.tensor(0)), call.type(0))};
}

Values relu_of(const Call& call) {
  const Tensor& x = call.tensor(0);
  return {{is_floating(call.type(0)) ? relu(x) : maximum(x, 0), call.type(0)}};
}

Values reshaped(const Call& call) {
  const Tensor& x = call.tensor(0);
  const bool allow_zero = call.integer("allowzero", 0) != 0;
  std::vector<std::int64_t> wanted = call.known_ints(1);
  if (wanted.size() > static_cast<std::size_t>(Shape::kMaxRank)) call.refuse("more than 8 axes are not supported");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != 0 || allow_zero) continue;
    if (i >= static_cast<std::size_t>(x.rank()))
      call.refuse("the 0 at axis " + std::to_string(i) + " has no extent to copy");
    wanted[i] = x.shape()[static_cast<int>(i)];
  }
  return {{reshape(x, Shape(std::span<const std::int64_t>(wanted))), call.type(0)}};
}

Values transposed(const Call& call) {
  const Tensor& x = call.tensor(0);
  std::vector<std::int64_t> order = call.integers("perm");
  if (!call.has_attribute("perm"))
    for (int i = x.rank(); i-- > 0;) order.push_back(i);
  return {{permute(x, Shape(std::span<const std::int64_t>(order))), call.type(0)}};
}

Values concatenated(const Call& call) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    parts.push_back(call.tensor(i));
    if (call.type(i) != call.type(0)) call.refuse("its inputs are of different types");
  }
  if (parts.empty()) call.refuse("it has no inputs");
  return {{concat(parts, call.integer("axis")), call.type(0)}};
}

constexpr Operation kOperations[] = {
    {.name = "Identity", .lower = identity},
    {.name = "Constant", .lower = constant},
    {.name = "Shape", .lower = shape},
    {.name = "Add", .lower = arithmetic, .since = 6},
    {.name = "Sub", .lower = arithmetic, .since = 6},
    {.name = "Mul", .lower = arithmetic, .since = 6},
    {.name = "Div", .lower = arithmetic, .since = 6},
    {.name = "MatMul", .lower = matrix_product},
    {.name = "Gemm", .lower = gemm, .since = 6},
    {.name = "Relu", .lower = relu_of, .since = 6},
    {.name = "Sigmoid", .lower = of_floats<sigmoid>, .since = 6},
    {.name = "Tanh", .lower = of_floats<tanh>, .since = 6},
    {.name = "Reshape", .lower = reshaped, .static_inputs = 2, .since = 5},
    {.name = "Transpose", .lower = transposed},
    {.name = "Concat", .lower = concatenated, .since = 4},
};

}  // namespace

Operations core_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
