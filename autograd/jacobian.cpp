/// Products with a Jacobian, as forward and backward sweeps over a tape; Jacobians row by row or column by column;
/// Hessians as Jacobians of gradients.
#include "ferrite/autograd/jacobian.h"

#include <functional>
#include <string_view>
#include <vector>

#include "ferrite/autograd/jvp.h"
#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/autograd/tape.h"

namespace ferrite {
namespace detail {

// ---- products ---------------------------------------------------------------------------------------------

namespace {

/// A function evaluated at one point, once, for any number of products with its Jacobian from either side.
class Linearized {
 public:
  /// Evaluates f. Throws ValueError for a null function, no inputs or an undefined result, DtypeError for inputs that
  /// are not floats; messages begin with `who`.
  Linearized(std::string_view who, const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs);

  const Tensors& values() const { return values_; }
  /// Returns J'u for cotangents u of the values; an undefined one counts as zeros. No calls may follow one with `last`.
  Tensors pull_back(const Tensors& cotangents, bool last = false);
  /// Returns J v for tangents v of the inputs; an undefined one counts as zeros.
  Tensors push_forward(const Tensors& tangents);

 private:
  Tape tape_;
  Tensors variables_, values_;
  std::vector<std::size_t> floats_;  ///< indices of the values that have a gradient
};

Linearized::Linearized(std::string_view who, const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs) {
  const std::string where(who);
  if (!f) throw ValueError(where + ": the function is null");
  if (inputs.empty()) throw ValueError(where + ": there are no inputs to differentiate by");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!has_gradient(inputs[i].dtype()))
      throw DtypeError(where + ": input " + std::to_string(i) + " must be a float, got " + inputs[i].spec().str() +
                       "; let the function refer to it");
  for (const Tensor& x : inputs) variables_.push_back(tape_.watch(x));
  values_ = f(variables_);
  for (std::size_t k = 0; k < values_.size(); ++k) {
    if (!values_[k].defined())
      throw ValueError(where + ": result " + std::to_string(k) + " of the function is undefined");
    if (has_gradient(values_[k].dtype())) floats_.push_back(k);
  }
}

Tensors Linearized::pull_back(const Tensors& cotangents, bool last) {
  std::vector<GradOf> of;
  for (const std::size_t k : floats_)
    if (cotangents[k].defined()) of.push_back({values_[k], cotangents[k]});
  return lenient_grad(tape_, of, variables_, {.retain = !last});
}

Tensors Linearized::push_forward(const Tensors& tangents) {
  Tensors found = detail::push_forward(tape_, values_, variables_, tangents);
  for (std::size_t k = 0; k < found.size(); ++k)
    if (!found[k].defined()) found[k] = zeros(values_[k].shape(), gradient_dtype(values_[k].dtype()));
  return found;
}

/// Throws ShapeError unless every tensor has the shape and gradient_dtype of its counterpart, and ValueError unless the
/// numbers agree: "jvp: the tangent of input 0 must be f32[3], got f32[2]".
void check_like(std::string_view who, std::string_view what, const Tensors& given, const Tensors& like) {
  const std::string where(who), name(what);
  if (given.size() != like.size())
    throw ValueError(where + ": there must be a " + name + " for each of " + std::to_string(like.size()) +
                     " tensors, got " + std::to_string(given.size()));
  for (std::size_t i = 0; i < like.size(); ++i) {
    if (!given[i].defined() && !has_gradient(like[i].dtype())) continue;
    const Spec wanted{like[i].shape(), gradient_dtype(like[i].dtype())};
    if (!given[i].defined() || !(given[i].spec() == wanted))
      throw ShapeError(where + ": " + name + " " + std::to_string(i) + " must be " + wanted.str() + ", got " +
                       (given[i].defined() ? given[i].spec().str() : "an undefined tensor"));
  }
}

}  // namespace

}  // namespace detail

JvpResult jvp(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs, const Tensors& tangents) {
  detail::check_like("jvp", "tangent", tangents, inputs);
  detail::Linearized at("jvp", f, inputs);
  Tensors found = at.push_forward(tangents);
  return {at.values(), std::move(found)};
}

SingleJvpResult jvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& tangent) {
  if (!f) throw ValueError("jvp: the function is null");
  JvpResult r = jvp([&](const Tensors& in) { return Tensors{f(in[0])}; }, Tensors{x}, Tensors{tangent});
  return {r.values[0], r.tangents[0]};
}

VjpResult vjp(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs, const Tensors& cotangents) {
  detail::Linearized at("vjp", f, inputs);
  detail::check_like("vjp", "cotangent", cotangents, at.values());
  Tensors found = at.pull_back(cotangents, true);
  return {at.values(), std::move(found)};
}

SingleVjpResult vjp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& cotangent) {
  if (!f) throw ValueError("vjp: the function is null");
  VjpResult r = vjp([&](const Tensors& in) { return Tensors{f(in[0])}; }, Tensors{x}, Tensors{cotangent});
  return {r.values[0], r.gradients[0]};
}

// ---- whole matrices ---------------------------------------------------------------------------------------

namespace {

using Function = std::function<Tensors(const Tensors&)>;

Function of_lists(const char* who, const std::function<Tensor(const Tensor&)>& f) {
  if (!f) throw ValueError(std::string(who) + ": the function is null");
  return [f](const Tensors& in) { return Tensors{f(in[0])}; };
}

Shape joined(const Shape& a, const Shape& b) {
  if (a.rank() + b.rank() > Shape::kMaxRank)
    throw ShapeError("jacobian: the axes of result and input together are more than " +
                     std::to_string(Shape::kMaxRank) + ": " + a.str() + " and " + b.str() +
                     "; flatten them in the function");
  Shape s = a;
  for (const std::int64_t n : b) s.push_back(n);
  return s;
}

/// Returns a tensor of zeros with 1 at one element.
Tensor unit(const Tensor& like, std::int64_t at) {
  return visit_dtype(gradient_dtype(like.dtype()), [&](auto zero) {
    using T = decltype(zero);
    return Tensor::build<T>(like.shape(), [&](std::span<T> out) {
      std::fill(out.begin(), out.end(), T(0));
      out[static_cast<std::size_t>(at)] = T(1);
    });
  });
}

std::int64_t elements(const Tensors& list) {
  std::int64_t n = 0;
  for (const Tensor& x : list) n += has_gradient(x.dtype()) ? x.numel() : 0;
  return n;
}

Tensor stacked(const std::vector<Tensor>& parts) { return stack(std::span<const Tensor>(parts), 0); }

/// Returns the Jacobians of result k with respect to all inputs, row by row.
Tensors rows_of(detail::Linearized& at, std::size_t k, const Tensors& inputs) {
  const Tensors& values = at.values();
  std::vector<std::vector<Tensor>> rows(inputs.size());
  for (std::int64_t r = 0; has_gradient(values[k].dtype()) && r < values[k].numel(); ++r) {
    Tensors cotangents(values.size());
    cotangents[k] = unit(values[k], r);
    const Tensors g = at.pull_back(cotangents);
    for (std::size_t i = 0; i < inputs.size(); ++i) rows[i].push_back(g[i]);
  }
  Tensors all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape shape = joined(values[k].shape(), inputs[i].shape());
    all.push_back(rows[i].empty() ? zeros(shape, gradient_dtype(inputs[i].dtype())) : reshape(stacked(rows[i]), shape));
  }
  return all;
}

/// Returns the Jacobians of all results with respect to input i, column by column.
Tensors columns_of(detail::Linearized& at, std::size_t i, const Tensors& inputs) {
  const Tensors& values = at.values();
  std::vector<std::vector<Tensor>> columns(values.size());
  for (std::int64_t c = 0; c < inputs[i].numel(); ++c) {
    Tensors tangents(inputs.size());
    tangents[i] = unit(inputs[i], c);
    const Tensors t = at.push_forward(tangents);
    for (std::size_t k = 0; k < values.size(); ++k) columns[k].push_back(reshape(t[k], {-1}));
  }
  Tensors all;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Shape shape = joined(values[k].shape(), inputs[i].shape());
    all.push_back(shape.numel() == 0 ? zeros(shape, gradient_dtype(inputs[i].dtype()))
                                     : reshape(transpose(stacked(columns[k])), shape));
  }
  return all;
}

std::vector<Tensors> jacobian_of(const char* who, const Function& f, const Tensors& inputs, JacobianBy by) {
  detail::Linearized at(who, f, inputs);
  const bool rows = by == JacobianBy::rows || (by == JacobianBy::smaller && elements(at.values()) <= elements(inputs));
  std::vector<Tensors> all(at.values().size());
  if (rows) {
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = rows_of(at, k, inputs);
    return all;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensors column = columns_of(at, i, inputs);
    for (std::size_t k = 0; k < all.size(); ++k) all[k].push_back(column[k]);
  }
  return all;
}

/// Returns the function inputs -> the gradients of f, then f(inputs).
Function gradient_of(const std::string& who, const std::function<Tensor(const Tensors&)>& f) {
  if (!f) throw ValueError(who + ": the function is null");
  return [who, f](const Tensors& inputs) {
    Tape tape;
    Tensors variables;
    for (const Tensor& x : inputs) variables.push_back(tape.watch(x));
    const Tensor value = f(variables);
    if (value.numel() != 1) throw ShapeError(who + ": the function must give one element, got " + value.spec().str());
    Tensors all = detail::lenient_grad(tape, {value}, variables, {.create_graph = true});
    all.push_back(value);
    return all;
  };
}

}  // namespace

std::vector<Tensors> jacobian(const Function& f, const Tensors& inputs, const JacobianOptions& options) {
  return jacobian_of("jacobian", f, inputs, options.by);
}

Tensor jacobian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const JacobianOptions& options) {
  return jacobian_of("jacobian", of_lists("jacobian", f), {x}, options.by)[0][0];
}

std::vector<Tensors> hessian(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  const Function g = gradient_of("hessian", f);
  const auto gradients = [&](const Tensors& in) {
    Tensors all = g(in);
    all.pop_back();
    return all;
  };
  return jacobian_of("hessian", gradients, inputs, JacobianBy::rows);
}

Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  if (!f) throw ValueError("hessian: the function is null");
  return hessian([&](const Tensors& in) { return f(in[0]); }, Tensors{x})[0][0];
}

HvpResult hvp(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs, const Tensors& vectors) {
  detail::check_like("hvp", "vector", vectors, inputs);
  detail::Linearized at("hvp", gradient_of("hvp", f), inputs);
  Tensors cotangents = vectors;  // works because the Hessian is symmetric
  cotangents.push_back({});
  Tensors found = at.pull_back(cotangents, true);
  return {at.values().back(), std::move(found)};
}

SingleHvpResult hvp(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const Tensor& vector) {
  if (!f) throw ValueError("hvp: the function is null");
  HvpResult r = hvp([&](const Tensors& in) { return f(in[0]); }, Tensors{x}, Tensors{vector});
  return {r.value, r.products[0]};
}

}  // namespace ferrite
