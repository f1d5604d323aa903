#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ferrite/tensor/ops/define.h"

// Operations composed of others: gradients, tracing, fusion and export come by themselves.

namespace ferrite {
namespace {

void check_float(const Tensor& x, std::string_view where) {
  if (!is_float(x.dtype()))
    detail::throw_dtype(where,
                        "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast it to a float first");
}

double count(const Shape& shape, const Shape& axes) {
  double n = 1;
  for (const std::int64_t a : axes) n *= static_cast<double>(shape[static_cast<int>(a)]);
  return n;
}

Shape sum_shape(const Shape& shape, const Shape& axes) {
  Shape out = shape;
  for (int i = axes.rank() - 1; i >= 0; --i) out.erase(static_cast<int>(axes[i]));
  return out;
}

/// The largest element along axes as a constant, 0 where it is not finite: the shift that keeps exp in range.
Tensor shift(const Tensor& x, const Shape& axes) {
  const Tensor m = detach(amax(detach(x), axes, true));
  return where(lt(abs(m), std::numeric_limits<double>::infinity()), m, 0.0);
}

}  // namespace

Tensor mean(const Tensor& x, const Shape& axes, bool keepdim) {
  check_float(x, "mean");
  const Shape over = axes_of(axes, x.rank(), "mean");
  return sum(x, axes, keepdim) / count(x.shape(), over);
}

Tensor var(const Tensor& x, const Shape& axes, bool keepdim, double correction) {
  check_float(x, "var");
  if (!std::isfinite(correction))
    throw ValueError("var: the correction must be finite, got " + std::to_string(correction));
  const Shape over = axes_of(axes, x.rank(), "var");
  const Tensor centred = x - mean(x, axes, true);
  return sum(square(centred), axes, keepdim) / std::max(0.0, count(x.shape(), over) - correction);
}

Tensor logsumexp(const Tensor& x, const Shape& axes, bool keepdim) {
  check_float(x, "logsumexp");
  const Shape over = axes_of(axes, x.rank(), "logsumexp");
  if (over.rank() == 0) return x;
  if (x.numel() == 0) return log(sum(x, axes, keepdim));
  const Tensor m = shift(x, over);
  const Tensor y = log(sum(exp(x - m), over, true)) + m;
  return keepdim ? y : reshape(y, sum_shape(x.shape(), over));
}

Tensor softmax(const Tensor& x, std::int64_t axis) {
  check_float(x, "softmax");
  const Shape over{axis_of(axis, x.rank(), "softmax")};
  if (x.numel() == 0) return x;
  const Tensor e = exp(x - shift(x, over));
  return e / sum(e, over, true);
}

Tensor log_softmax(const Tensor& x, std::int64_t axis) {
  check_float(x, "log_softmax");
  const Shape over{axis_of(axis, x.rank(), "log_softmax")};
  if (x.numel() == 0) return x;
  const Tensor centred = x - shift(x, over);
  return centred - log(sum(exp(centred), over, true));
}

Tensor layer_norm(const Tensor& x, int axes, double epsilon) {
  check_float(x, "layer_norm");
  if (axes < 1 || axes > x.rank())
    detail::throw_shape("layer_norm", std::to_string(axes) + " axes of a tensor of rank " + std::to_string(x.rank()));
  detail::check_not_negative("layer_norm: epsilon", {epsilon});
  Shape over;
  for (int i = x.rank() - axes; i < x.rank(); ++i) over.push_back(i);
  const Tensor centred = x - mean(x, over, true);
  return centred * rsqrt(mean(square(centred), over, true) + epsilon);
}

Tensor gelu(const Tensor& x, GeluForm form) {
  if (form == GeluForm::exact) return detail::gelu_exact(x);
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Tensor inner = scale * (x + 0.044715 * (x * x * x));
  return 0.5 * x * (1 + tanh(inner));
}

Tensor silu(const Tensor& x) { return x * sigmoid(x); }
Tensor log_sigmoid(const Tensor& x) { return -softplus(-x); }

}  // namespace ferrite
