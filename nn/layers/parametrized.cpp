/// Weight norm and spectral norm: layers with one parameter that is computed from others.
#include "ferrite/nn/layers/parametrized.h"

#include <algorithm>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/with_values.h"

namespace ferrite::nn {
namespace {

const Parameter& parameter_of(const std::string& norm, const Layer* layer, const std::string& name) {
  if (!layer) throw ValueError(norm + ": the layer is null");
  for (const Named<Parameter>& p : layer->named_parameters())
    if (p.name == name) return p.variable;
  std::string names;
  for (const Named<Parameter>& p : layer->named_parameters()) names += (names.empty() ? "" : ", ") + p.name;
  throw ValueError(norm + ": " + layer->kind() + " has no parameter '" + name +
                   "', it has: " + (names.empty() ? "none" : names));
}

/// Returns a full name with its last part replaced.
std::string sibling(std::string_view full_name, std::string_view last) {
  const std::size_t dot = full_name.rfind('.');
  return std::string(full_name.substr(0, dot == std::string_view::npos ? 0 : dot + 1)) + std::string(last);
}

/// Returns the lengths of the slices of v along an axis, with a shape that divides v; without an axis, the length of v.
Tensor lengths_of(const Tensor& v, std::optional<std::int64_t> axis) {
  if (!axis) return norm(v);
  Shape others;
  for (int i = 0; i < v.rank(); ++i)
    if (i != *axis) others.push_back(i);
  if (others.rank() == 0) return abs(v);
  return norm(v, {.axes = others, .keepdim = true});
}

// ---- the largest singular value ------------------------------------------------------------------------

/// Returns the rows along an axis, with all other axes joined: [rows, columns].
Tensor as_matrix(const Tensor& w, std::int64_t axis) {
  Shape order{axis};
  for (int i = 0; i < w.rank(); ++i)
    if (i != axis) order.push_back(i);
  const std::int64_t rows = w.shape()[static_cast<int>(axis)];
  return reshape(permute(w, order), {rows, rows ? w.numel() / rows : 0});
}
Tensor times(const Tensor& matrix, const Tensor& vector) { return squeeze(matmul(matrix, unsqueeze(vector, 1)), 1); }
Tensor unit(const Tensor& x, double epsilon) { return normalize(x, {.axis = 0, .epsilon = epsilon}); }

struct Singular {
  Tensor u, v;
};
Singular improved(const Tensor& matrix, Singular s, std::int64_t iterations, double epsilon) {
  for (std::int64_t i = 0; i < iterations; ++i) {
    s.u = unit(times(matrix, s.v), epsilon);
    s.v = unit(times(transpose(matrix, 0, 1), s.u), epsilon);
  }
  return s;
}

/// Returns the first singular vectors that a seed gives: normal draws by the full names of both, improved.
Singular first_singular(const Tensor& matrix, double epsilon, std::string_view full_name, std::uint64_t seed) {
  const auto drawn = [&](const char* name, std::int64_t n) {
    const std::string full = sibling(full_name, name);
    return unit(normal({n}, {seed, stream_of(full), 0}, 0, 1, matrix.dtype()), epsilon);
  };
  constexpr std::int64_t kIterations = 15;
  return improved(matrix, {drawn("_u", matrix.shape()[0]), drawn("_v", matrix.shape()[1])}, kIterations, epsilon);
}

}  // namespace

// ---- a computed parameter ------------------------------------------------------------------------------

Parametrized::Parametrized(std::string norm, std::unique_ptr<Layer> layer, std::string parameter)
    : norm_(std::move(norm)),
      name_(std::move(parameter)),
      layer_(std::move(layer)),
      parameter_(parameter_of(norm_, layer_.get(), name_)) {
  adopt("", *layer_, name_);
}

std::string Parametrized::kind() const { return norm_ + "(" + layer_->kind() + ")"; }
std::string Parametrized::summary() const { return norm_ + "(" + layer_->summary() + ")"; }

std::string Parametrized::full_name(std::string_view variable) const {
  const std::size_t dot = name_.rfind('.'), leaf = dot == std::string::npos ? 0 : dot + 1;
  return name_.substr(0, leaf) + "parametrizations." + name_.substr(leaf) + "." + std::string(variable);
}

std::int64_t Parametrized::axis_in_memory(std::int64_t axis) const {
  const std::int64_t rank = parameter_.shape().rank(), at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank)
    throw ValueError(norm_ + ": '" + name_ + "' of " + layer_->kind() + " is " + parameter_.spec().str() +
                     ", it has no axis " + std::to_string(axis));
  return parameter_.layout() == FileLayout::transposed ? 1 - at : at;
}

Tensor Parametrized::forward(const Tensor& x, const Context& context) const {
  return with_values({{parameter_, compute_(training())}}, [&] { return (*layer_)(x, context); });
}

StepResult Parametrized::step(const Tensor& x, const Tensors& states) const {
  return with_values({{parameter_, compute_(training())}}, [&] { return layer_->advance(x, states); });
}

std::unique_ptr<Layer> Parametrized::plain() const {
  std::unique_ptr<Layer> copy = layer_->clone();
  const NoTapes frame;
  parameter_of(norm_, copy.get(), name_).assign(compute_(false));
  return copy;
}

std::size_t Parametrized::add_steps(StepGraph& graph, std::size_t x) const {
  if (!streams()) return Layer::add_steps(graph, x);
  auto step = detail::computed_step(
      *layer_, name_, [compute = compute_] { return compute(false); }, graph.rows(x));
  return graph.add(*this, std::move(step), {x});
}

// ---- weight norm ---------------------------------------------------------------------------------------

WeightNorm::WeightNorm(std::unique_ptr<Layer> layer, const WeightNormOptions& options)
    : Parametrized("weight_norm", std::move(layer), options.parameter), options_(options) {
  std::optional<std::int64_t> axis;
  if (options_.axis) axis = axis_in_memory(*options_.axis);
  Shape shape;
  if (axis)
    for (int i = 0; i < inner().shape().rank(); ++i) shape.push_back(i == *axis ? inner().shape()[i] : 1);
  const Parameter v = inner();
  const auto draw = [v, axis](std::string_view full_name, std::uint64_t seed) {
    v.draw(sibling(full_name, "original1"), seed);
    return lengths_of(v.value(), axis);
  };
  length = parameter(full_name("original0"), {shape, v.dtype()}, draw, {}, v.layout());
  if (v.drawn()) length.assign(lengths_of(v.peek(), axis));
  direction = parameter(full_name("original1"), v);
  compute_by([g = length, v, axis](bool) {
    const Tensor of = v.value();
    return of * (g.value() / lengths_of(of, axis));
  });
}

std::unique_ptr<Layer> WeightNorm::clone() const {
  auto copy = std::make_unique<WeightNorm>(layer().clone(), options_);
  copy_values(*this, *copy);
  copy->take_after(*this);
  return copy;
}

// ---- spectral norm -------------------------------------------------------------------------------------

SpectralNorm::SpectralNorm(std::unique_ptr<Layer> layer, const SpectralNormOptions& options, const Init& init)
    : Parametrized("spectral_norm", std::move(layer), options.parameter), options_(options) {
  if (options_.power_iterations < 1)
    throw ValueError("spectral_norm: there must be power iterations, got " + std::to_string(options_.power_iterations));
  ferrite::detail::check_not_negative("spectral_norm: epsilon", {options_.epsilon});
  const bool turned = this->layer().kind().starts_with("conv_transpose");
  const std::int64_t axis = axis_in_memory(options_.axis.value_or(turned ? 1 : 0));
  const Parameter w = inner();
  original = parameter(full_name("original"), w);
  const double epsilon = options_.epsilon;
  if (w.shape().rank() == 1) {
    compute_by([w, epsilon](bool) { return unit(w.value(), epsilon); });
    return;
  }
  const auto first = [w, axis, epsilon](std::string_view full_name, std::uint64_t seed) {
    w.draw(std::string(full_name.substr(0, full_name.rfind(".0."))) + ".original", seed);
    return first_singular(as_matrix(w.value(), axis), epsilon, full_name, seed);
  };
  const std::int64_t rows = w.shape()[static_cast<int>(axis)];
  const auto vector = [&](const char* name, std::int64_t n, Tensor Singular::*part) {
    const auto draw = [=](std::string_view full_name, std::uint64_t seed) { return first(full_name, seed).*part; };
    return buffer(full_name(name), {{n}, w.dtype()}, draw, init);
  };
  u = vector("0._u", rows, &Singular::u);
  v = vector("0._v", w.numel() / rows, &Singular::v);
  compute_by([w, u = u, v = v, axis, epsilon, n = options_.power_iterations](bool training) {
    const Tensor value = w.value(), m = as_matrix(value, axis);
    Singular s{u.value(), v.value()};
    if (training) {
      s = improved(detach(m), s, n, epsilon);
      u.assign(s.u), v.assign(s.v);
    }
    return value / dot(s.u, times(m, s.v));
  });
}

std::unique_ptr<Layer> SpectralNorm::clone() const {
  auto copy = std::make_unique<SpectralNorm>(layer().clone(), options_);
  copy_values(*this, *copy);
  copy->take_after(*this);
  return copy;
}

}  // namespace ferrite::nn
