/// Lowers normalisations over channels, dropout, determinants and gates.
#include <algorithm>
#include <cmath>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/linalg.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/normalization.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Returns a vector [C] as [1, C, 1, ...].
Tensor by_channel(const Tensor& v, int rank) {
  Numbers extents(static_cast<std::size_t>(std::max(rank, 2)), 1);
  extents[1] = v.numel();
  return reshape(v, shape_of(rank < 2 ? Numbers{v.numel()} : extents));
}

Values batch_normalization(const Call& call) {
  const Tensor& x = call.tensor(0);
  const ElementType type = call.type(0);
  const double epsilon = call.number("epsilon", 1e-5);
  const double momentum = call.number("momentum", 0.9);
  if (call.version() < 7 && call.integer("is_test", 0) == 0) call.refuse("is_test = 0 is not supported");
  const bool training = call.version() >= 14 && call.integer("training_mode", 0) != 0;
  if (call.version() < 9 && call.integer("spatial", 1) == 0) call.refuse("spatial = 0 is not supported");
  if (call.version() < 14 && call.wants(1)) call.refuse("training in versions before 14 is not supported");
  const Tensor &scale = call.tensor(1), &bias = call.tensor(2), &mean_in = call.tensor(3), &var_in = call.tensor(4);
  if (!training) {
    const Tensor gain = scale * rsqrt(var_in + epsilon);
    if (x.rank() >= 2 && scale.dtype() == x.dtype() && mean_in.dtype() == x.dtype())
      return {narrowed(batch_norm(x, mean_in, var_in, {.weight = scale, .bias = bias}, epsilon), type)};
    return {
        narrowed((x - by_channel(mean_in, x.rank())) * by_channel(gain, x.rank()) + by_channel(bias, x.rank()), type)};
  }
  Numbers axes{0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  const Tensor mean_now = mean(x, shape_of(axes));
  const Tensor var_now = var(x, shape_of(axes), false, 0);
  const Tensor y = batch_norm(x, mean_now, var_now, {.weight = scale, .bias = bias}, epsilon);
  return {narrowed(y, type), narrowed(mean_in * momentum + mean_now * (1 - momentum), call.type(3)),
          narrowed(var_in * momentum + var_now * (1 - momentum), call.type(4))};
}

Values local_response(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t size = call.integer("size");
  const double alpha = call.number("alpha", 1e-4), beta = call.number("beta", 0.75), bias = call.number("bias", 1.0);
  if (size < 1 || x.rank() < 3) call.refuse("a size of " + std::to_string(size) + " does not fit " + x.shape().str());
  // (size - 1) / 2 channels before and size / 2 after: PyTorch does the reverse where the size is even.
  Numbers front(static_cast<std::size_t>(x.rank())), back(front);
  front[1] = (size - 1) / 2;
  back[1] = size / 2;
  const Tensor squares = pad(square(x), shape_of(front), shape_of(back), 0);
  Tensor total = slice(squares, 1, 0, x.size(1));
  for (std::int64_t i = 1; i < size; ++i) total = total + slice(squares, 1, i, i + x.size(1));
  return {narrowed(x / pow(total * (alpha / static_cast<double>(size)) + bias, beta), call.type(0))};
}

Values mean_variance(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Shape axes = shape_of(axes_of(call, call.integers("axes", {0, 2, 3}), x.rank()));
  const Tensor centred = x - mean(x, axes, true);
  return {narrowed(centred / (sqrt(mean(square(centred), axes, true)) + 1e-9), call.type(0))};
}

Values determinant(const Call& call) { return {narrowed(det(call.tensor(0)), call.type(0))}; }

/// Lowers Dropout for evaluation only; the mask shows that nothing was dropped.
Values dropout(const Call& call) {
  const Value& x = call.value(0);
  call.without_effect("ratio");  // only for training
  call.without_effect("seed");
  bool drops = false;
  if (call.version() >= 12) {
    if (call.has(2)) {
      if (call.version() < 7 && call.integer("is_test", 0) == 0) call.refuse("is_test = 0 is not supported");
      const bool training = call.known_int(2) != 0;
      drops = training && (call.has(1) ? call.known_float(1) : 0.5) != 0;
    }
    (void)call.has(1);
  }
  if (drops) call.refuse("training_mode is not supported: its numbers are not defined by the standard");
  const Tensor mask = ones(x.tensor.shape(), call.version() < 10 ? x.tensor.dtype() : Dtype::boolean);
  return {x, {mask, call.version() < 10 ? x.type : ElementType::boolean}};
}

Values swiglu(const Call& call) {
  const Tensor& gate = call.tensor(0);
  const double alpha = call.number("alpha", 1.0);
  if (gate.shape() != call.tensor(1).shape()) call.refuse("its inputs differ in shape");
  return {narrowed((alpha == 1 ? silu(gate) : gate * sigmoid(gate * alpha)) * call.tensor(1), call.type(0))};
}

constexpr Operation kOperations[] = {
    {.name = "BatchNormalization", .lower = batch_normalization, .since = 6, .statistics = 24},
    {.name = "LRN", .lower = local_response},
    {.name = "MeanVarianceNormalization", .lower = mean_variance},
    {.name = "Det", .lower = determinant},
    {.name = "Dropout", .lower = dropout, .static_inputs = 6, .since = 7},
    {.name = "SwiGLU", .lower = swiglu},
};

}  // namespace

Operations network_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
