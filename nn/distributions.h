#pragma once
/// Probability distributions, as torch.distributions has them: draws, densities, entropies and divergences of batches
/// of normal, Laplace, uniform, exponential, Bernoulli and categorical distributions, and mixtures of them. Parameters
/// are tensors, f32 or f64, that broadcast to one shape, the batch; all functions but draws are differentiable to any
/// order with respect to parameters and values. `rsample` is a draw through which gradients reach the parameters. A
/// draw of shape S gives S followed by the batch.
///
///     const nn::Normal policy(mean, deviation);
///     const Tensor action = policy.sample(noise);                     // noise: a Generator, or RandomKey{.seed = 7}
///     const Tensor loss = -mean(policy.log_prob(action) * advantage);
///
/// Values outside a support have log_prob -infinity, NaN stays NaN; gradients stay finite there, in mixtures, too,
/// where PyTorch's are NaN. Infinities are outside every support: log_prob and cdf have gradients of 0 at them, and so
/// does a value so far from a mean that the quotient with the deviation overflows. Values of Bernoulli and Categorical
/// are read as they are. Draws lie within the support. Constructors throw ShapeError and DtypeError for parameters that
/// do not fit, and ValueError for those outside their ranges, in compiled functions, too.
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/sampling.h"

namespace ferrite::nn {

/// Normal distributions: density e^(-(x - mean)^2 / (2 deviation^2)) / (deviation sqrt(2 pi)), deviation > 0.
class Normal {
 public:
  Normal(const Tensor& mean, const Tensor& deviation);
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor rsample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor log_prob(const Tensor& value) const;
  /// Probability of a value not above the given one.
  Tensor cdf(const Tensor& value) const;
  Tensor entropy() const;
  const Tensor& mean() const { return mean_; }
  Tensor variance() const;
  const Tensor& deviation() const { return deviation_; }
  const Shape& batch() const { return mean_.shape(); }

 private:
  Tensor mean_, deviation_;
};

/// Laplace distributions: density e^(-|x - mean| / scale) / (2 scale), scale > 0.
class Laplace {
 public:
  Laplace(const Tensor& mean, const Tensor& scale);
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor rsample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor log_prob(const Tensor& value) const;
  Tensor cdf(const Tensor& value) const;
  Tensor entropy() const;
  const Tensor& mean() const { return mean_; }
  Tensor variance() const;
  const Tensor& scale() const { return scale_; }
  const Shape& batch() const { return mean_.shape(); }

 private:
  Tensor mean_, scale_;
};

/// Uniform distributions on [low, high), low < high.
class Uniform {
 public:
  Uniform(const Tensor& low, const Tensor& high);
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor rsample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor log_prob(const Tensor& value) const;
  Tensor cdf(const Tensor& value) const;
  Tensor entropy() const;
  Tensor mean() const;
  Tensor variance() const;
  const Tensor& low() const { return low_; }
  const Tensor& high() const { return high_; }
  const Shape& batch() const { return low_.shape(); }

 private:
  Tensor low_, high_;
};

/// Exponential distributions: density rate e^(-rate x) for x >= 0, rate > 0.
class Exponential {
 public:
  explicit Exponential(const Tensor& rate);
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor rsample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor log_prob(const Tensor& value) const;
  Tensor cdf(const Tensor& value) const;
  Tensor entropy() const;
  Tensor mean() const;
  Tensor variance() const;
  const Tensor& rate() const { return rate_; }
  const Shape& batch() const { return rate_.shape(); }

 private:
  Tensor rate_;
};

/// 1 with a probability, else 0, of the parameter's dtype. Small probabilities keep their digits, and 0 and 1 are what
/// they say: log_prob of what cannot be is -infinity. (PyTorch clamps probabilities at the dtype's epsilon.) Draws
/// compare the probability with uniform numbers, which in f32 are multiples of 2^-24.
class Bernoulli {
 public:
  /// Infinite logits are certain.
  static Bernoulli from_logits(const Tensor& logits);
  /// In 0..1.
  static Bernoulli from_probabilities(const Tensor& probabilities);
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor log_prob(const Tensor& value) const;
  Tensor entropy() const;
  Tensor mean() const;
  /// The probability of 0, with its own digits.
  Tensor complement() const;
  Tensor variance() const;
  const Tensor& logits() const { return logits_; }
  const Shape& batch() const { return logits_.shape(); }
  /// Logarithms of the probabilities of 1 and of 0.
  Tensor log_one() const;
  Tensor log_zero() const;

 private:
  Bernoulli(const Tensor& logits, const Tensor& probability) : logits_(logits), probability_(probability) {}
  Tensor logits_, probability_;  ///< the probability is undefined if it was not given
};

/// One of C classes: logits or probabilities [..., C], the batch [...]. Values are i64.
class Categorical {
 public:
  static Categorical from_logits(const Tensor& logits);
  /// Not negative; they need not add up to 1, but to a positive, finite number.
  static Categorical from_probabilities(const Tensor& probabilities);
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  /// i64 of a shape that broadcasts with the batch; ShapeError for a class outside 0..C - 1.
  Tensor log_prob(const Tensor& value) const;
  Tensor entropy() const;
  Tensor probabilities() const;
  /// Logarithms of the probabilities.
  const Tensor& log_probabilities() const { return log_probabilities_; }
  const Shape& batch() const { return batch_; }

 private:
  explicit Categorical(const Tensor& log_probabilities);
  Tensor log_probabilities_;
  Shape batch_;
};

/// Kullback-Leibler divergences of q from p: the mean of ln p(x) - ln q(x) under p, in closed form. Infinite where q
/// excludes what p gives.
Tensor kl_divergence(const Normal& p, const Normal& q);
Tensor kl_divergence(const Laplace& p, const Laplace& q);
Tensor kl_divergence(const Uniform& p, const Uniform& q);
Tensor kl_divergence(const Exponential& p, const Exponential& q);
Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q);
Tensor kl_divergence(const Categorical& p, const Categorical& q);
Tensor kl_divergence(const Uniform& p, const Normal& q);
Tensor kl_divergence(const Exponential& p, const Normal& q);

/// Draws and densities of mixtures: a part for every class of a categorical distribution. `parts` has the batch
/// [..., K], the weights the batch [...] and K classes.
///
///     const nn::Mixture<nn::Normal> y(nn::Categorical::from_logits(pi), nn::Normal(mu, sigma));
///     const Tensor loss = -mean(y.log_prob(target));
Tensor mixture_log_prob(const Categorical& weights, const Tensor& log_probs);
Tensor mixture_sample(const Categorical& weights, const Tensor& parts, const DrawKey& key);
Tensor mixture_mean(const Categorical& weights, const Tensor& means);
/// Throws ShapeError unless parts of a batch fit the weights.
void check_mixture(const Categorical& weights, const Shape& parts);

/// A mixture of parts of one kind (torch.distributions.MixtureSameFamily).
template <class Parts>
class Mixture {
 public:
  Mixture(const Categorical& weights, const Parts& parts) : weights_(weights), parts_(parts) {
    check_mixture(weights, parts.batch());
  }
  /// The numbers of the parts and of the choice among them come from the same key, in two streams.
  Tensor sample(const RandomKey& key, const Shape& shape = {}) const {
    RandomKey choice = key;
    choice.stream = ~key.stream;
    const Tensor all = parts_.sample(key, shape);
    Shape wanted = all.shape();
    wanted.erase(wanted.rank() - 1);
    return mixture_sample(weights_, all, choice);
  }
  Tensor log_prob(const Tensor& value) const {
    Shape shape = value.shape();
    shape.push_back(1);
    return mixture_log_prob(weights_, parts_.log_prob(reshape(value, shape)));
  }
  Tensor mean() const { return mixture_mean(weights_, parts_.mean()); }
  const Categorical& weights() const { return weights_; }
  const Parts& parts() const { return parts_; }
  const Shape& batch() const { return weights_.batch(); }

 private:
  Categorical weights_;
  Parts parts_;
};

}  // namespace ferrite::nn
