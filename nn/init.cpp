/// Initial values of parameters: distributions and their draws.
#include "ferrite/nn/init.h"

#include <cmath>
#include <vector>

#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

/// Number of values that a unit of the layer reads and feeds: rows and columns of a matrix [in, out].
struct Fans {
  double in;
  double out;
};

Fans fans_of(const Shape& shape, const char* where) {
  if (shape.rank() < 2) throw ShapeError(std::string(where) + ": needs a matrix, got " + shape.str());
  return {static_cast<double>(shape[-2]), static_cast<double>(shape[-1])};
}

Fill uniform_within(double (*bound)(const Fans&), double gain, const char* where) {
  return [=](const Shape& s, const RandomKey& key, Dtype dtype) {
    const double b = gain * bound(fans_of(s, where));
    return ferrite::uniform(s, key, -b, b, dtype);
  };
}

Fill normal_with(double (*deviation)(const Fans&), double gain, const char* where) {
  return [=](const Shape& s, const RandomKey& key, Dtype dtype) {
    return ferrite::normal(s, key, 0, gain * deviation(fans_of(s, where)), dtype);
  };
}

/// Makes the rows of a [rows, columns] (rows <= columns) orthonormal by Gram-Schmidt, twice for accuracy.
void orthonormalise(std::vector<double>& a, std::size_t rows, std::size_t columns) {
  const auto dot = [&](std::size_t i, std::size_t j) {
    double s = 0;
    for (std::size_t k = 0; k < columns; ++k) s += a[i * columns + k] * a[j * columns + k];
    return s;
  };
  for (std::size_t i = 0; i < rows; ++i) {
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t j = 0; j < i; ++j) {
        const double along = dot(i, j);
        for (std::size_t k = 0; k < columns; ++k) a[i * columns + k] -= along * a[j * columns + k];
      }
    const double norm = std::sqrt(dot(i, i));
    for (std::size_t k = 0; k < columns; ++k) a[i * columns + k] /= norm;
  }
}

}  // namespace

Tensor Fill::operator()(const Shape& shape, const RandomKey& key, Dtype dtype) const {
  const Tensor t = f_(shape, key, dtype);
  if (t.shape() != shape) throw ShapeError("fill: gives " + t.shape().str() + " for a parameter " + shape.str());
  if (t.dtype() != dtype)
    throw DtypeError("fill: gives " + t.spec().str() + " for a parameter " + Spec{shape, dtype}.str());
  return t;
}

RandomKey Init::key(std::string_view name) const {
  if (!seed) throw ValueError("init: there is no seed to draw '" + full_name(name) + "' from");
  return {*seed, stream_of(full_name(name)), 0};
}

Init Init::child(std::string_view name) const { return {seed, full_name(name), dtype}; }

std::string Init::full_name(std::string_view name) const {
  return prefix.empty() ? std::string(name) : prefix + "." + std::string(name);
}

namespace init {

Fill constant(double value) {
  return Fill([=](const Shape& s, const RandomKey&, Dtype dtype) { return full(s, value, dtype); }, /*random=*/false);
}
Fill uniform(double low, double high) {
  return [=](const Shape& s, const RandomKey& key, Dtype dtype) { return ferrite::uniform(s, key, low, high, dtype); };
}
Fill normal(double mean, double deviation) {
  return [=](const Shape& s, const RandomKey& key, Dtype dtype) {
    return ferrite::normal(s, key, mean, deviation, dtype);
  };
}
Fill xavier_uniform(double gain) {
  return uniform_within([](const Fans& f) { return std::sqrt(6 / (f.in + f.out)); }, gain, "xavier_uniform");
}
Fill xavier_normal(double gain) {
  return normal_with([](const Fans& f) { return std::sqrt(2 / (f.in + f.out)); }, gain, "xavier_normal");
}
Fill kaiming_uniform(double gain) {
  return uniform_within([](const Fans& f) { return std::sqrt(3 / f.in); }, gain, "kaiming_uniform");
}
Fill kaiming_normal(double gain) {
  return normal_with([](const Fans& f) { return std::sqrt(1 / f.in); }, gain, "kaiming_normal");
}

Fill orthogonal(double gain) {
  return [=](const Shape& s, const RandomKey& key, Dtype dtype) {
    if (s.rank() != 2) throw ShapeError("orthogonal: needs a matrix, got " + s.str());
    const bool wide = s[0] <= s[1];
    const Shape rows_first = wide ? s : Shape{s[1], s[0]};
    std::vector<double> a = ferrite::normal(rows_first, key, 0, 1, Dtype::f64).to_vector<double>();
    orthonormalise(a, static_cast<std::size_t>(rows_first[0]), static_cast<std::size_t>(rows_first[1]));
    const Tensor q = gain * Tensor::from(a, rows_first);
    return cast(contiguous(wide ? q : transpose(q)), dtype);
  };
}

}  // namespace init
}  // namespace ferrite::nn
