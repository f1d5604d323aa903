/// Compares the gradients of a function with central differences.
#include "ferrite/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "ferrite/autograd/lenient_grad.h"

namespace ferrite {
namespace {

using Function = std::function<Tensor(const Tensors&)>;
using Values = std::vector<double>;

std::vector<Values> values_of(const Tensors& inputs) {
  std::vector<Values> v;
  for (const Tensor& x : inputs) v.push_back(x.to_vector<double>());
  return v;
}

Tensors tensors_of(const std::vector<Values>& v, const Tensors& like) {
  Tensors t;
  for (std::size_t i = 0; i < v.size(); ++i) t.push_back(Tensor::from(v[i], like[i].shape()));
  return t;
}

/// Returns J^T c for every input.
std::vector<Values> pull_back(const Function& f, const Tensors& inputs, const Tensor& cotangent) {
  Tape tape;
  Tensors variables;
  for (const Tensor& x : inputs) variables.push_back(tape.watch(x));
  const Tensors g = detail::lenient_grad(tape, {f(variables), cotangent}, {variables.data(), variables.size()});
  return values_of(g);
}

class Check {
 public:
  Check(const Function& f, const Tensors& inputs, const GradcheckOptions& options, int order)
      : f_(f), inputs_(inputs), options_(options), x_(values_of(inputs)) {
    report_.order = order;
  }

  GradcheckReport run() {
    const Tensor y = f_(inputs_);
    if (y.dtype() != Dtype::f64) throw DtypeError("gradcheck: the result must be f64, got " + y.spec().str());
    shape_ = y.shape();
    if (options_.directions > 0) {
      for (int k = 0; k < options_.directions; ++k) direction(static_cast<std::uint32_t>(k));
    } else {
      jacobian();
    }
    return report_;
  }

 private:
  Values evaluate(const std::vector<Values>& x) { return f_(tensors_of(x, inputs_)).to_vector<double>(); }

  void compare(std::size_t input, std::int64_t index, std::int64_t output, double analytic, double numeric) {
    ++report_.compared;
    const double gap = std::fabs(analytic - numeric) / (1 + std::fabs(numeric));
    const bool same = analytic == numeric || gap <= options_.tolerance;
    const bool worse = !(gap <= worst_);  // NaN counts as worst
    if (same && !worse) return;
    if (worse || report_.compared == 1) {
      worst_ = std::isnan(gap) ? INFINITY : gap;
      report_.input = input;
      report_.index = index;
      report_.output = output;
      report_.analytic = analytic;
      report_.numeric = numeric;
    }
    report_.ok &= same;
  }

  void jacobian() {
    const std::int64_t outputs = shape_.numel();
    std::vector<std::vector<Values>> rows;
    for (std::int64_t i = 0; i < outputs; ++i) {
      Values unit(static_cast<std::size_t>(outputs));
      unit[static_cast<std::size_t>(i)] = 1;
      rows.push_back(pull_back(f_, inputs_, Tensor::from(unit, shape_)));
    }
    for (std::size_t k = 0; k < x_.size(); ++k)
      for (std::size_t j = 0; j < x_[k].size(); ++j) {
        const Values column = difference(k, j);
        for (std::size_t i = 0; i < column.size(); ++i)
          compare(k, static_cast<std::int64_t>(j), static_cast<std::int64_t>(i), rows[i][k][j], column[i]);
      }
  }

  Values difference(std::size_t input, std::size_t element) {
    double& x = x_[input][element];
    const double centre = x;
    const double h = options_.step * std::max(1.0, std::fabs(centre));
    x = centre + h;
    const double above = x;
    Values up = evaluate(x_);
    x = centre - h;
    const double width = above - x;
    const Values down = evaluate(x_);
    x = centre;
    for (std::size_t i = 0; i < up.size(); ++i) up[i] = (up[i] - down[i]) / width;
    return up;
  }

  void direction(std::uint32_t call) {
    const Tensor cotangent = normal(shape_, {options_.seed, stream_of("cotangent"), call}, 0, 1, Dtype::f64);
    std::vector<Values> along;
    for (std::uint64_t k = 0; k < inputs_.size(); ++k)
      along.push_back(
          normal(inputs_[k].shape(), {options_.seed, stream_of("direction"), k << 32 | call}, 0, 1, Dtype::f64)
              .to_vector<double>());
    const Values up = evaluate(moved(along, options_.step));
    const Values down = evaluate(moved(along, -options_.step));
    const Values c = cotangent.to_vector<double>();
    double numeric = 0;
    for (std::size_t i = 0; i < c.size(); ++i) numeric += c[i] * (up[i] - down[i]) / (2 * options_.step);
    const std::vector<Values> g = pull_back(f_, inputs_, cotangent);
    double analytic = 0;
    for (std::size_t k = 0; k < g.size(); ++k)
      for (std::size_t j = 0; j < g[k].size(); ++j) analytic += g[k][j] * along[k][j];
    compare(0, -1, -1, analytic, numeric);
  }

  std::vector<Values> moved(const std::vector<Values>& along, double step) const {
    std::vector<Values> x = x_;
    for (std::size_t k = 0; k < x.size(); ++k)
      for (std::size_t j = 0; j < x[k].size(); ++j) x[k][j] += step * along[k][j];
    return x;
  }

  const Function& f_;
  const Tensors& inputs_;
  const GradcheckOptions& options_;
  std::vector<Values> x_;
  Shape shape_;
  double worst_ = -1;
  GradcheckReport report_;
};

/// Returns the function x -> gradient of <c, f(x)>, with the entries of all inputs in one row.
Function gradient_of(const Function& f, const Tensors& inputs, std::uint64_t seed) {
  const Shape shape = f(inputs).shape();
  const Tensor cotangent = normal(shape, {seed, stream_of("second order"), 0}, 0, 1, Dtype::f64);
  return [f, cotangent](const Tensors& at) {
    Tape tape;
    Tensors variables;
    for (const Tensor& x : at) variables.push_back(tape.watch(x));
    const Tensors g = detail::lenient_grad(tape, {f(variables), cotangent}, {variables.data(), variables.size()},
                                           {.create_graph = true});
    Tensors rows;
    for (const Tensor& x : g) rows.push_back(reshape(x, {-1}));
    return concat(std::span<const Tensor>(rows.data(), rows.size()), 0);
  };
}

}  // namespace

std::string GradcheckReport::str() const {
  std::ostringstream s;
  s.imbue(std::locale::classic());
  s.precision(12);
  s << "gradcheck: order " << order << ", input " << input;
  if (index >= 0)
    s << ", element " << index << ", result " << output;
  else
    s << ", along a random direction";
  s << ": analytic " << analytic << ", numeric " << numeric << (ok ? " (within tolerance)" : "");
  return s.str();
}

GradcheckReport gradcheck(const Function& f, const Tensors& inputs, const GradcheckOptions& options) {
  if (options.order != 1 && options.order != 2)
    throw ValueError("gradcheck: order must be 1 or 2, got " + std::to_string(options.order));
  if (!f) throw ValueError("gradcheck: the function is null");
  if (inputs.empty()) throw ValueError("gradcheck: there are no inputs, so nothing would be compared");
  if (!(options.step > 0) || std::isinf(options.step))
    throw ValueError("gradcheck: the step must be finite and positive, got " + Scalar(options.step).str());
  detail::check_not_negative("gradcheck: the tolerance", {options.tolerance});
  if (options.directions < 0)
    throw ValueError("gradcheck: the number of directions must not be negative, got " +
                     std::to_string(options.directions));
  for (const Tensor& x : inputs)
    if (x.dtype() != Dtype::f64)
      throw DtypeError("gradcheck: inputs must be f64, got " + x.spec().str() + "; cast them");
  const NewFrame frame;
  GradcheckReport first = Check(f, inputs, options, 1).run();
  if (!first.ok || options.order == 1) return first;
  const Function g = gradient_of(f, inputs, options.seed);
  GradcheckReport second = Check(g, inputs, options, 2).run();
  second.compared += first.compared;
  return second;
}

}  // namespace ferrite
