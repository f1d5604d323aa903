/// Comparison of tensors within tolerances.
#include "ferrite/tensor/allclose.h"

#include <cmath>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {
namespace {

std::vector<double> values_of(const Tensor& x, const Shape& shape) {
  const Tensor all = expand(x, shape);
  return visit_dtype(x.dtype(), [&](auto zero) {
    std::vector<double> values;
    for (const auto v : all.to_vector<decltype(zero)>()) values.push_back(static_cast<double>(v));
    return values;
  });
}

}  // namespace

bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options) {
  detail::check_not_negative("allclose: the tolerances", {options.relative, options.absolute});
  if (a.is_abstract() || b.is_abstract())
    throw TraceError("allclose: it reads values, and these are traced: " + a.spec().str() + " and " + b.spec().str() +
                     "; call it outside of the traced function");
  const NewFrame frame;
  const Shape shape = broadcast(a.shape(), b.shape(), "allclose");
  const std::vector<double> x = values_of(a, shape), y = values_of(b, shape);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (options.equal_nan && std::isnan(x[i]) && std::isnan(y[i]))) continue;
    if (std::isinf(x[i]) || std::isinf(y[i])) return false;
    if (!(std::fabs(x[i] - y[i]) <= options.absolute + options.relative * std::fabs(y[i]))) return false;
  }
  return true;
}

}  // namespace ferrite
