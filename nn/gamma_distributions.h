#pragma once
/// Gamma and beta distributions like those of torch.distributions, with the conventions of nn/distributions.h. log_prob
/// is -infinity outside the support and at ends where the density is 0, and infinity at ends where the density is
/// infinite. Gradients do not pass through draws: there is no rsample.
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/sampling.h"

namespace ferrite::nn {

/// A batch of gamma distributions: density rate^a x^(a - 1) e^(-rate x) / Gamma(a), concentration a > 0, rate > 0.
/// Functions are like those of Normal.
class Gamma {
 public:
  Gamma(const Tensor& concentration, const Tensor& rate);
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor log_prob(const Tensor& value) const;
  Tensor entropy() const;
  Tensor mean() const;
  Tensor variance() const;
  const Tensor& concentration() const { return concentration_; }
  const Tensor& rate() const { return rate_; }
  const Shape& batch() const { return rate_.shape(); }

 private:
  Tensor concentration_, rate_;
};

/// A batch of beta distributions: density x^(a - 1) (1 - x)^(b - 1) Gamma(a + b) / (Gamma(a) Gamma(b)), a and b > 0.
/// Functions are like those of Normal.
class Beta {
 public:
  Beta(const Tensor& a, const Tensor& b);
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor log_prob(const Tensor& value) const;
  Tensor entropy() const;
  Tensor mean() const;
  Tensor variance() const;
  const Tensor& a() const { return a_; }
  const Tensor& b() const { return b_; }
  const Shape& batch() const { return a_.shape(); }

 private:
  Tensor a_, b_;
};

/// Returns the Kullback-Leibler divergence KL(p || q) of each pair in the batch: the mean of ln p(x) - ln q(x) for x
/// drawn from p, in closed form.
Tensor kl_divergence(const Gamma& p, const Gamma& q);
Tensor kl_divergence(const Beta& p, const Beta& q);

}  // namespace ferrite::nn
