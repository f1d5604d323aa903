/// Gamma and beta distributions, composed of operations.
#include "ferrite/nn/gamma_distributions.h"

#include <limits>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/math.h"

namespace ferrite::nn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeast = 1.2e-38;  ///< of what must be positive: the smallest normal number of f32

/// Two positive parameters in their common shape.
struct Positive {
  Positive(const char* where, const Tensor& a, const Tensor& b, Label first_name, Label second_name) {
    for (const Tensor* x : {&a, &b})
      if (!is_float(x->dtype()))
        throw DtypeError(std::string(where) + ": parameters must be f32 or f64, got " + x->spec().str() +
                         "; cast them");
    if (a.dtype() != b.dtype())
      throw DtypeError(std::string(where) + ": dtypes differ: " + a.spec().str() + " and " + b.spec().str() +
                       "; cast one of them");
    const Shape shape = broadcast(a.shape(), b.shape(), where);
    first = checked(expand(a, shape), kLeast, kInfinity, first_name);
    second = checked(expand(b, shape), kLeast, kInfinity, second_name);
  }
  Tensor first, second;
};

Shape drawn_shape(const Shape& shape, const Shape& batch) {
  Shape all = shape;
  for (const std::int64_t n : batch) all.push_back(n);
  return all;
}

/// Log densities of values inside a support; of others infinity where the density has a pole, else -infinity; NaN of
/// NaN.
Tensor supported(const Tensor& inside, const Tensor& density, const Tensor& pole, const Tensor& value) {
  return where(inside, density, where(pole, kInfinity, where(eq(value, value), -kInfinity, value)));
}

/// The least normal number and the largest one below 1: draws that are rounded to an end of the support go there.
double least_of(Dtype t) {
  return t == Dtype::f32 ? static_cast<double>(std::numeric_limits<float>::min()) : std::numeric_limits<double>::min();
}
double below_one(Dtype t) {
  return 1 - (t == Dtype::f32 ? static_cast<double>(std::numeric_limits<float>::epsilon())
                              : std::numeric_limits<double>::epsilon()) /
                 2;
}

Tensor log_beta(const Tensor& a, const Tensor& b) { return lgamma(a) + lgamma(b) - lgamma(a + b); }

}  // namespace

Gamma::Gamma(const Tensor& concentration, const Tensor& rate) {
  const Positive p("gamma", concentration, rate, "gamma: concentration", "gamma: rate");
  concentration_ = p.first;
  rate_ = p.second;
}
Tensor Gamma::sample(const DrawKey& key, const Shape& shape) const {
  const Tensor a = expand(detach(concentration_), drawn_shape(shape, batch()));
  return clamp(gamma(a, key) / detach(rate_), least_of(rate_.dtype()), kInfinity);
}
Tensor Gamma::log_prob(const Tensor& value) const {
  const Tensor& a = concentration_;
  const Tensor zero = eq(value, 0), open = gt(value, 0) && lt(value, kInfinity);
  const Tensor inside = open || (zero && eq(a, 1)), x = where(open, value, 1.0);
  const Tensor density = (a - 1) * log(x) + a * log(rate_) - rate_ * where(open, value, 0.0) - lgamma(a);
  return supported(inside, density, zero && lt(a, 1), value);
}
Tensor Gamma::entropy() const {
  const Tensor& a = concentration_;
  return a - log(rate_) + lgamma(a) + (1 - a) * digamma(a);
}
Tensor Gamma::mean() const { return concentration_ / rate_; }
Tensor Gamma::variance() const { return concentration_ / square(rate_); }

Beta::Beta(const Tensor& a, const Tensor& b) {
  const Positive p("beta", a, b, "beta: a", "beta: b");
  a_ = p.first;
  b_ = p.second;
}
Tensor Beta::sample(const DrawKey& key, const Shape& shape) const {
  const Shape all = drawn_shape(shape, batch());
  const Tensor x = beta(expand(detach(a_), all), expand(detach(b_), all), key);
  return clamp(x, least_of(x.dtype()), below_one(x.dtype()));
}
/// At an end, the density of an exponent of 0 is finite.
Tensor Beta::log_prob(const Tensor& value) const {
  const Tensor zero = eq(value, 0), one = eq(value, 1), open = gt(value, 0) && lt(value, 1);
  const Tensor inside = open || (zero && eq(a_, 1)) || (one && eq(b_, 1));
  const Tensor x = where(open || one, value, 1.0), y = where(open || zero, value, 0.0);
  const Tensor density = (a_ - 1) * log(x) + (b_ - 1) * log1p(-y) - log_beta(a_, b_);
  return supported(inside, density, (zero && lt(a_, 1)) || (one && lt(b_, 1)), value);
}
Tensor Beta::entropy() const {
  return log_beta(a_, b_) - (a_ - 1) * digamma(a_) - (b_ - 1) * digamma(b_) + (a_ + b_ - 2) * digamma(a_ + b_);
}
Tensor Beta::mean() const { return a_ / (a_ + b_); }
Tensor Beta::variance() const {
  const Tensor total = a_ + b_;
  return a_ * b_ / (square(total) * (total + 1));
}

Tensor kl_divergence(const Gamma& p, const Gamma& q) {
  const Tensor &a = p.concentration(), &b = q.concentration();
  return b * log(p.rate() / q.rate()) + lgamma(b) - lgamma(a) + (a - b) * digamma(a) +
         (q.rate() - p.rate()) * (a / p.rate());
}
Tensor kl_divergence(const Beta& p, const Beta& q) {
  const Tensor total = p.a() + p.b();
  return log_beta(q.a(), q.b()) - log_beta(p.a(), p.b()) + (p.a() - q.a()) * digamma(p.a()) +
         (p.b() - q.b()) * digamma(p.b()) + (q.a() + q.b() - total) * digamma(total);
}

}  // namespace ferrite::nn
