/// Arithmetic on lists of tensors, tensor by tensor.
#include "ferrite/tensor/lists.h"

#include <algorithm>
#include <cmath>

#include "ferrite/tensor/ops.h"

namespace ferrite {
namespace lists {
namespace {

void check_lengths(const char* who, List a, List b) {
  if (a.size() != b.size())
    throw ValueError(std::string("lists::") + who + ": the lists have different lengths: " + std::to_string(a.size()) +
                     " and " + std::to_string(b.size()));
}

/// Returns a + b, where an undefined tensor counts as zeros.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a + b : a;
}

std::int64_t elements(List a) {
  std::int64_t n = 0;
  for (const Tensor& x : a) n += x.numel();
  return n;
}

}  // namespace

Tensors map(const std::function<Tensor(const Tensor&)>& f, List a) {
  if (!f) throw ValueError("lists::map: the function is null");
  Tensors all;
  for (const Tensor& x : a) all.push_back(x.defined() ? f(x) : Tensor());
  return all;
}

Tensors zip(const std::function<Tensor(const Tensor&, const Tensor&)>& f, List a, List b) {
  if (!f) throw ValueError("lists::zip: the function is null");
  check_lengths("zip", a, b);
  Tensors all;
  for (std::size_t i = 0; i < a.size(); ++i) all.push_back(a[i].defined() && b[i].defined() ? f(a[i], b[i]) : Tensor());
  return all;
}

Tensors add(List a, List b, Scalar alpha) {
  check_lengths("add", a, b);
  Tensors all;
  const bool once = alpha.real() == 1;
  for (std::size_t i = 0; i < a.size(); ++i) all.push_back(sum_of(a[i], b[i].defined() && !once ? b[i] * alpha : b[i]));
  return all;
}

Tensors sub(List a, List b) {
  check_lengths("sub", a, b);
  Tensors all;
  for (std::size_t i = 0; i < a.size(); ++i)
    all.push_back(!b[i].defined() ? a[i] : a[i].defined() ? a[i] - b[i] : -b[i]);
  return all;
}

Tensors scale(List a, Scalar by) {
  return map([&](const Tensor& x) { return x * by; }, a);
}

Tensors scale(List a, const Tensor& by) {
  if (by.numel() != 1) throw ShapeError("lists::scale: the factor must hold one element, got " + by.spec().str());
  const Tensor factor = reshape(by, {});
  return map([&](const Tensor& x) { return x * factor; }, a);
}

Tensor dot(List a, List b) {
  check_lengths("dot", a, b);
  Tensor total;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].defined() && b[i].defined()) total = sum_of(total, ferrite::sum(a[i] * b[i]));
  if (!total.defined()) throw ValueError("lists::dot: no pair of tensors is defined, of " + std::to_string(a.size()));
  return total;
}

Tensor norm(List a) {
  if (std::ranges::none_of(a, &Tensor::defined))
    throw ValueError("lists::norm: no tensor is defined, of " + std::to_string(a.size()));
  return sqrt(dot(a, a));
}

Tensors detach(List a) { return map(static_cast<Tensor (*)(const Tensor&)>(&ferrite::detach), a); }
Tensors zeros_like(List a) { return map(&ferrite::zeros_like, a); }

bool all_finite(List a) {
  for (const Tensor& x : a) {
    if (!x.defined()) continue;
    const bool finite = visit_dtype(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      return std::ranges::all_of(x.to_vector<T>(), [](T v) { return std::isfinite(static_cast<double>(v)); });
    });
    if (!finite) return false;
  }
  return true;
}

Tensor flatten(List a) {
  if (a.empty()) throw ValueError("lists::flatten: the list is empty");
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].defined())
      throw ValueError("lists::flatten: tensor " + std::to_string(i) + " is undefined; give zeros in its place");
    parts.push_back(reshape(a[i], {-1}));
  }
  return concat(std::span<const Tensor>(parts), 0);
}

Tensors unflatten(const Tensor& vector, List like) {
  for (std::size_t i = 0; i < like.size(); ++i)
    if (!like[i].defined()) throw ValueError("lists::unflatten: tensor " + std::to_string(i) + " is undefined");
  if (vector.rank() != 1 || vector.numel() != elements(like))
    throw ShapeError("lists::unflatten: the vector must hold the elements of all tensors, [" +
                     std::to_string(elements(like)) + "], got " + vector.shape().str());
  Tensors all;
  std::int64_t at = 0;
  for (const Tensor& x : like) {
    all.push_back(reshape(slice(vector, 0, at, at + x.numel()), x.shape()));
    at += x.numel();
  }
  return all;
}

}  // namespace lists

Tensor parameters_to_vector(std::span<const Parameter> parameters) {
  std::vector<Tensor> values;
  for (const Parameter& p : parameters) values.push_back(p.value());
  return lists::flatten(values);
}

Tensor parameters_to_vector(const std::vector<Parameter>& parameters) {
  return parameters_to_vector(std::span<const Parameter>(parameters));
}

void vector_to_parameters(const Tensor& vector, std::span<const Parameter> parameters) {
  std::int64_t n = 0;
  for (const Parameter& p : parameters) {
    if (p.dtype() != vector.dtype())
      throw DtypeError("vector_to_parameters: '" + p.name() + "' holds " + p.spec().str() + ", the vector is " +
                       vector.spec().str() + "; cast it");
    n += p.numel();
  }
  if (vector.rank() != 1 || vector.numel() != n)
    throw ShapeError("vector_to_parameters: the parameters have " + std::to_string(n) + " elements, the vector is " +
                     vector.spec().str());
  std::int64_t at = 0;
  for (const Parameter& p : parameters) {
    p.assign(contiguous(reshape(slice(vector, 0, at, at + p.numel()), p.shape())));
    at += p.numel();
  }
}

void vector_to_parameters(const Tensor& vector, const std::vector<Parameter>& parameters) {
  vector_to_parameters(vector, std::span<const Parameter>(parameters));
}

}  // namespace ferrite
