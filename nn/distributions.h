#pragma once
/// Probability distributions like those of torch.distributions: draws, densities, entropies and divergences of batches
/// of normal, Laplace, uniform, exponential, Bernoulli and categorical distributions, and mixtures of them. Parameters
/// are tensors, f32 or f64, that broadcast to one shape, the batch; all functions but draws are differentiable to any
/// order with respect to parameters and values. `rsample` is a draw through which gradients reach the parameters. The
/// shape of a draw is `shape` followed by the batch.
///
///     const nn::Normal policy(mean, deviation);
///     const Tensor action = policy.sample(noise);                     // noise: a Generator, or RandomKey{.seed = 7}
///     const Tensor loss = -mean(policy.log_prob(action) * advantage);
///
/// log_prob is -infinity for values outside the support, and NaN for NaN; gradients stay finite there, in mixtures,
/// too, where PyTorch's are NaN. Infinities are outside every support: log_prob and cdf have gradients of 0 at them,
/// and at values so far from the mean that the quotient by the deviation overflows. Bernoulli does not check its
/// values, and Categorical throws for classes that do not exist. Draws lie within the support. Constructors throw
/// ShapeError and DtypeError for parameters that do not fit, and ValueError for those outside their ranges, in compiled
/// functions, too.
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/sampling.h"

namespace ferrite::nn {

/// A batch of normal distributions, one for each element of the parameters: density e^(-(x - mean)^2 / (2 deviation^2))
/// / (deviation sqrt(2 pi)), with the standard deviation > 0.
class Normal {
 public:
  Normal(const Tensor& mean, const Tensor& deviation);
  /// Draws values, [shape..., batch...], without gradients; an empty shape means one draw from each distribution.
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  /// Draws values like `sample`, the same ones, with gradients with respect to the parameters.
  Tensor rsample(const DrawKey& key, const Shape& shape = {}) const;
  /// Returns the natural logarithm of the density at each value; the value and the batch broadcast.
  Tensor log_prob(const Tensor& value) const;
  /// Returns the probability that a draw is not above the value.
  Tensor cdf(const Tensor& value) const;
  /// Returns the entropy of each distribution, in nats.
  Tensor entropy() const;
  const Tensor& mean() const { return mean_; }
  Tensor variance() const;
  const Tensor& deviation() const { return deviation_; }
  /// Returns the shape to which the parameters broadcast, one distribution for each element.
  const Shape& batch() const { return mean_.shape(); }

 private:
  Tensor mean_, deviation_;
};

/// A batch of Laplace distributions: density e^(-|x - mean| / scale) / (2 scale), scale > 0. Functions are like those
/// of Normal.
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

/// A batch of uniform distributions on [low, high), low < high. Functions are like those of Normal.
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

/// A batch of exponential distributions: density rate e^(-rate x) for x >= 0, rate > 0. Functions are like those of
/// Normal.
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

/// A batch of Bernoulli distributions: a draw is 1 with the given probability, else 0, in the parameter's dtype. Small
/// probabilities keep their digits, and 0 and 1 are exact: log_prob of an impossible value is -infinity. (PyTorch
/// clamps probabilities at the dtype's epsilon.) Draws compare the probability with uniform numbers, which in f32 are
/// multiples of 2^-24. `sample`, `log_prob` and `entropy` are like those of Normal.
class Bernoulli {
 public:
  /// Creates distributions whose probability of 1 is sigmoid(logits); infinite logits mean exactly 0 and 1.
  static Bernoulli from_logits(const Tensor& logits);
  /// Creates distributions from their probabilities of 1, which must lie in 0..1.
  static Bernoulli from_probabilities(const Tensor& probabilities);
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  Tensor log_prob(const Tensor& value) const;
  Tensor entropy() const;
  /// Returns the probability of 1.
  Tensor mean() const;
  /// Returns the probability of 0, without rounding it to 1 minus that of 1.
  Tensor complement() const;
  Tensor variance() const;
  const Tensor& logits() const { return logits_; }
  const Shape& batch() const { return logits_.shape(); }
  /// Returns the natural logarithm of the probability of 1.
  Tensor log_one() const;
  /// Returns the natural logarithm of the probability of 0.
  Tensor log_zero() const;

 private:
  Bernoulli(const Tensor& logits, const Tensor& probability) : logits_(logits), probability_(probability) {}
  Tensor logits_, probability_;  ///< the probability is undefined if logits were given
};

/// A batch [...] of categorical distributions over C classes, from logits or probabilities [..., C]. Draws are numbers
/// of classes, i64 in 0..C - 1. `sample` and `entropy` are like those of Normal.
class Categorical {
 public:
  /// Creates distributions whose probabilities are softmax(logits) over the last axis.
  static Categorical from_logits(const Tensor& logits);
  /// Creates distributions with probabilities proportional to these, which must not be negative and must add up to a
  /// positive, finite number, not necessarily 1.
  static Categorical from_probabilities(const Tensor& probabilities);
  Tensor sample(const DrawKey& key, const Shape& shape = {}) const;
  /// Returns the log probability of classes, i64 or i32 of a shape that broadcasts with the batch. Throws ShapeError
  /// for a class outside 0..C - 1, DtypeError for other dtypes.
  Tensor log_prob(const Tensor& value) const;
  Tensor entropy() const;
  /// Returns the probabilities of the classes, [..., C]; they add up to 1.
  Tensor probabilities() const;
  /// Returns the natural logarithms of the probabilities, [..., C].
  const Tensor& log_probabilities() const { return log_probabilities_; }
  const Shape& batch() const { return batch_; }

 private:
  explicit Categorical(const Tensor& log_probabilities);
  Tensor log_probabilities_;
  Shape batch_;
};

/// Returns the Kullback-Leibler divergence KL(p || q) of each pair in the batch: the mean of ln p(x) - ln q(x) for x
/// drawn from p, in closed form. It is infinite where q excludes values that p allows.
Tensor kl_divergence(const Normal& p, const Normal& q);
Tensor kl_divergence(const Laplace& p, const Laplace& q);
Tensor kl_divergence(const Uniform& p, const Uniform& q);
Tensor kl_divergence(const Exponential& p, const Exponential& q);
Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q);
Tensor kl_divergence(const Categorical& p, const Categorical& q);
Tensor kl_divergence(const Uniform& p, const Normal& q);
Tensor kl_divergence(const Exponential& p, const Normal& q);

/// Returns the log density of a mixture, [...], from the log densities of its K parts, [..., K]. The weights are a
/// distribution over K classes, the numbers of the parts, with the batch [...].
///
///     const nn::Mixture<nn::Normal> y(nn::Categorical::from_logits(pi), nn::Normal(mu, sigma));
///     const Tensor loss = -mean(y.log_prob(target));
Tensor mixture_log_prob(const Categorical& weights, const Tensor& log_probs);
/// Draws from a mixture, [...]: chooses one of the draws of its parts, [..., K], with the probabilities `weights`. No
/// gradient passes.
Tensor mixture_sample(const Categorical& weights, const Tensor& parts, const DrawKey& key);
/// Returns the mean of a mixture, [...], from the means of its parts, [..., K].
Tensor mixture_mean(const Categorical& weights, const Tensor& means);
/// Throws ShapeError unless the batch of the parts is [..., K] for weights with the batch [...] and K classes.
void check_mixture(const Categorical& weights, const Shape& parts);

/// A mixture of distributions of one kind (torch.distributions.MixtureSameFamily): `parts` has the batch [..., K],
/// `weights` K classes and the batch [...], which is the batch of the mixture.
template <class Parts>
class Mixture {
 public:
  Mixture(const Categorical& weights, const Parts& parts) : weights_(weights), parts_(parts) {
    check_mixture(weights, parts.batch());
  }
  /// Draws values from the mixture, [shape..., batch...], without gradients. The draws of the parts and the choice
  /// among them use two streams of the same key.
  Tensor sample(const RandomKey& key, const Shape& shape = {}) const {
    RandomKey choice = key;
    choice.stream = ~key.stream;
    const Tensor all = parts_.sample(key, shape);
    Shape wanted = all.shape();
    wanted.erase(wanted.rank() - 1);
    return mixture_sample(weights_, all, choice);
  }
  /// Returns the natural logarithm of the density of the mixture at each value; the value and the batch broadcast.
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
