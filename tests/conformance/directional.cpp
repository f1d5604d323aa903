// Directional derivatives of operations: they are adjoint to the gradients, and equal to difference quotients.
#include "ferrite/autograd/jvp.h"

#include <sstream>

#include "cases.h"

namespace conformance {
namespace {

double inner_product(const Tensor& a, const Tensor& b) { return ferrite::sum(a * b).item<double>(); }

std::string compared(const char* what, double found, double wanted, double tolerance) {
  if (found == wanted || std::fabs(found - wanted) <= tolerance * (1 + std::fabs(wanted))) return {};
  std::ostringstream s;
  s.precision(12);
  s << what << ": " << found << " and " << wanted;
  return s.str();
}

}  // namespace

std::string fault_of_jvp(const std::function<Tensor(const Tensors&)>& f, const Tensors& points) {
  Tensors v, above, below;
  const double step = 1e-6;
  for (std::size_t i = 0; i < points.size(); ++i) {
    v.push_back(ferrite::normal(points[i].shape(), {8, i, 0}, 0, 1, Dtype::f64));
    above.push_back(points[i] + step * v[i]);
    below.push_back(points[i] - step * v[i]);
  }
  const auto list = [&](const Tensors& x) { return Tensors{f(x)}; };
  const auto [values, tangents] = ferrite::jvp(list, points, v);
  const Tensor u = ferrite::normal(values[0].shape(), {8, 99, 0}, 0, 1, Dtype::f64);
  const Tensors g = ferrite::vjp(list, points, {u}).gradients;
  double adjoint = 0;
  for (std::size_t i = 0; i < g.size(); ++i) adjoint += inner_product(g[i], v[i]);
  const double along = inner_product(u, tangents[0]);
  const std::string fault = compared("jvp: <u, Jv> and <J'u, v>", along, adjoint, 1e-10);
  if (!fault.empty()) return fault;
  const double right = inner_product(u, f(above) - values[0]) / step;
  const double left = inner_product(u, values[0] - f(below)) / step;
  if (std::fabs(right - left) > 1e-2 * (1 + std::fabs(right))) return {};  // a kink in this direction
  return compared("jvp: <u, Jv> and the difference quotient", along, (right + left) / 2, 1e-5);
}

}  // namespace conformance
