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

/// a ln x, 0 where a is 0.
Tensor times_log(const Tensor& a, const Tensor& x) {
  const Tensor none = eq(a, 0) && eq(x, 0);
  return where(none, 0.0, a * log(where(none, 1.0, x)));
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
  return gamma(a, key) / detach(rate_);
}
Tensor Gamma::log_prob(const Tensor& value) const {
  return times_log(concentration_ - 1, value) + concentration_ * log(rate_) - rate_ * value - lgamma(concentration_);
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
  return beta(expand(detach(a_), all), expand(detach(b_), all), key);
}
Tensor Beta::log_prob(const Tensor& value) const {
  return times_log(a_ - 1, value) + times_log(b_ - 1, 1 - value) - log_beta(a_, b_);
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
