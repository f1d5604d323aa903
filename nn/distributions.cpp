/// Probability distributions, composed of operations.
#include "ferrite/nn/distributions.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "ferrite/nn/gamma_distributions.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeast = 1.2e-38;  ///< minimum of parameters that must be positive: the least normal number of f32
const double kLogRootTwoPi = 0.5 * std::log(2 * std::numbers::pi);

void check_parameter(const char* where, const Tensor& x) {
  if (!is_float(x.dtype()))
    throw DtypeError(std::string(where) + ": parameters must be f32 or f64, got " + x.spec().str() + "; cast them");
}

/// Two parameters, expanded to their common shape.
struct Pair {
  Pair(const char* where, const Tensor& a, const Tensor& b) : first(a), second(b) {
    check_parameter(where, a);
    check_parameter(where, b);
    if (a.dtype() != b.dtype())
      throw DtypeError(std::string(where) + ": dtypes differ: " + a.spec().str() + " and " + b.spec().str() +
                       "; cast one of them");
    const Shape shape = broadcast(a.shape(), b.shape(), where);
    first = expand(a, shape);
    second = expand(b, shape);
  }
  Tensor first, second;
};

/// Returns the shape of a draw: `shape` followed by the batch.
Shape drawn_shape(const Shape& shape, const Shape& batch) {
  Shape all = shape;
  for (const std::int64_t n : batch) all.push_back(n);
  return all;
}

Tensor normal_numbers(const Shape& shape, const DrawKey& key, Dtype dtype) {
  Tensor out = key.key().defined() ? normal(shape, key.key(), key.counter(), 0, 1, dtype)
                                   : normal(shape, key.constant(), 0, 1, dtype, key.counter());
  key.drawn();
  return out;
}
Tensor uniform_numbers(const Shape& shape, const DrawKey& key, Dtype dtype) {
  Tensor out = key.key().defined() ? uniform(shape, key.key(), key.counter(), 0, 1, dtype)
                                   : uniform(shape, key.constant(), 0, 1, dtype, key.counter());
  key.drawn();
  return out;
}

/// Returns p f, and 0 where p is 0, whatever f is there; neither has a gradient there.
Tensor weighted(const Tensor& p, const Tensor& f) {
  const Tensor none = eq(p, 0);
  return where(none, 0.0, p * where(none, 0.0, f));
}

/// Returns ln p of a probability; there is no gradient where p is 0.
Tensor log_of(const Tensor& p) {
  const Tensor none = eq(p, 0);
  return where(none, -kInfinity, log(where(none, 1.0, p)));
}

/// Returns the log density of values outside a support: -infinity, and NaN for NaN.
Tensor excluded(const Tensor& value) { return where(eq(value, value), -kInfinity, value); }

/// Returns f((value - centre) / width) where the quotient is not infinite, else `beyond`, without a gradient: 0 times
/// the infinite quotient would be NaN, also in mixtures.
template <class F>
Tensor standardized(const Tensor& value, const Tensor& centre, const Tensor& width, F f, const Tensor& beyond) {
  const Tensor far = isinf((detach(value) - detach(centre)) / detach(width));
  return where(far, beyond, f((where(far, centre, value) - centre) / width));
}

/// Returns 1 where the value is above the centre, else 0, without a gradient.
Tensor step_of(const Tensor& value, const Tensor& centre) {
  return cast(gt(detach(value), detach(centre)), value.dtype());
}

/// Returns ln(a / b) where `ratio`, the computed a / b, may have underflowed or overflowed.
Tensor log_of_ratio(const Tensor& ratio, const Tensor& a, const Tensor& b) {
  const Tensor fits = gt(ratio, kLeast) && lt(ratio, kInfinity);
  return where(fits, log(where(fits, ratio, 1.0)), log(a) - log(b));
}

}  // namespace

// ---- Normal ------------------------------------------------------------------------------------------------

Normal::Normal(const Tensor& mean, const Tensor& deviation) {
  const Pair p("normal", mean, deviation);
  mean_ = p.first;
  deviation_ = checked(p.second, kLeast, kInfinity, "normal: deviation");
}
Tensor Normal::rsample(const DrawKey& key, const Shape& shape) const {
  return mean_ + deviation_ * normal_numbers(drawn_shape(shape, batch()), key, mean_.dtype());
}
Tensor Normal::sample(const DrawKey& key, const Shape& shape) const { return detach(rsample(key, shape)); }
Tensor Normal::log_prob(const Tensor& value) const {
  const auto density = [&](const Tensor& z) { return -0.5 * square(z) - log(deviation_) - kLogRootTwoPi; };
  return standardized(value, mean_, deviation_, density, full({}, -kInfinity, mean_.dtype()));
}
Tensor Normal::cdf(const Tensor& value) const {
  const auto share = [](const Tensor& z) { return 0.5 * (1 + erf(z * (1 / std::numbers::sqrt2))); };
  return standardized(value, mean_, deviation_, share, step_of(value, mean_));
}
Tensor Normal::entropy() const { return log(deviation_) + (0.5 + kLogRootTwoPi); }
Tensor Normal::variance() const { return square(deviation_); }

// ---- Laplace -----------------------------------------------------------------------------------------------

Laplace::Laplace(const Tensor& mean, const Tensor& scale) {
  const Pair p("laplace", mean, scale);
  mean_ = p.first;
  scale_ = checked(p.second, kLeast, kInfinity, "laplace: scale");
}
Tensor Laplace::rsample(const DrawKey& key, const Shape& shape) const {
  return mean_ + scale_ * laplace(drawn_shape(shape, batch()), key, 0, 1, mean_.dtype());
}
Tensor Laplace::sample(const DrawKey& key, const Shape& shape) const { return detach(rsample(key, shape)); }
Tensor Laplace::log_prob(const Tensor& value) const {
  const auto density = [&](const Tensor& z) { return -abs(z) - log(2 * scale_); };
  return standardized(value, mean_, scale_, density, full({}, -kInfinity, mean_.dtype()));
}
Tensor Laplace::cdf(const Tensor& value) const {
  const auto share = [](const Tensor& z) { return 0.5 - 0.5 * sign(z) * expm1(-abs(z)); };
  return standardized(value, mean_, scale_, share, step_of(value, mean_));
}
Tensor Laplace::entropy() const { return 1 + log(2 * scale_); }
Tensor Laplace::variance() const { return 2 * square(scale_); }

// ---- Uniform -----------------------------------------------------------------------------------------------

Uniform::Uniform(const Tensor& low, const Tensor& high) {
  const Pair p("uniform", low, high);
  low_ = p.first;
  high_ = low_ + checked(p.second - low_, kLeast, kInfinity, "uniform: high - low");
}
Tensor Uniform::rsample(const DrawKey& key, const Shape& shape) const {
  const Tensor x = low_ + (high_ - low_) * uniform_numbers(drawn_shape(shape, batch()), key, low_.dtype());
  return where(lt(x, high_), x, low_);  // the sum may be rounded up to the end
}
Tensor Uniform::sample(const DrawKey& key, const Shape& shape) const { return detach(rsample(key, shape)); }
Tensor Uniform::log_prob(const Tensor& value) const {
  const Tensor density = -log(high_ - low_);
  return where(le(low_, value) && lt(value, high_), density, density + excluded(value));
}
Tensor Uniform::cdf(const Tensor& value) const {
  const auto share = [](const Tensor& z) { return clamp(z, 0.0, 1.0); };
  return standardized(value, low_, high_ - low_, share, step_of(value, low_));
}
Tensor Uniform::entropy() const { return log(high_ - low_); }
Tensor Uniform::mean() const { return 0.5 * (low_ + high_); }
Tensor Uniform::variance() const { return square(high_ - low_) * (1.0 / 12); }

// ---- Exponential -------------------------------------------------------------------------------------------

Exponential::Exponential(const Tensor& rate) {
  check_parameter("exponential", rate);
  rate_ = checked(rate, kLeast, kInfinity, "exponential: rate");
}
Tensor Exponential::rsample(const DrawKey& key, const Shape& shape) const {
  return exponential(drawn_shape(shape, batch()), key, 1, rate_.dtype()) / rate_;
}
Tensor Exponential::sample(const DrawKey& key, const Shape& shape) const { return detach(rsample(key, shape)); }
Tensor Exponential::log_prob(const Tensor& value) const {
  const Tensor inside = le(0, value) && lt(value, kInfinity);
  return where(inside, log(rate_) - rate_ * where(inside, value, 0.0), excluded(value));
}
Tensor Exponential::cdf(const Tensor& value) const {
  const Tensor all = eq(value, kInfinity);
  return where(all, 1.0, -expm1(-rate_ * relu(where(all, 0.0, value))));
}
Tensor Exponential::entropy() const { return 1 - log(rate_); }
Tensor Exponential::mean() const { return 1 / rate_; }
Tensor Exponential::variance() const { return 1 / square(rate_); }

// ---- Bernoulli ---------------------------------------------------------------------------------------------

Bernoulli Bernoulli::from_logits(const Tensor& logits) {
  check_parameter("bernoulli", logits);
  return {logits, {}};
}
Bernoulli Bernoulli::from_probabilities(const Tensor& probabilities) {
  check_parameter("bernoulli", probabilities);
  const Tensor p = checked(probabilities, 0.0, 1.0, "bernoulli: probability"), certain = eq(p, 1);
  return {log_of(p) - where(certain, -kInfinity, log1p(-where(certain, 0.0, p))), p};
}
Tensor Bernoulli::log_one() const { return probability_.defined() ? log_of(probability_) : -softplus(-logits_); }
Tensor Bernoulli::log_zero() const {
  if (!probability_.defined()) return -softplus(logits_);
  const Tensor certain = eq(probability_, 1);
  return where(certain, -kInfinity, log1p(-where(certain, 0.0, probability_)));
}
Tensor Bernoulli::sample(const DrawKey& key, const Shape& shape) const {
  const Shape all = drawn_shape(shape, batch());
  return cast(lt(uniform_numbers(all, key, logits_.dtype()), detach(mean())), logits_.dtype());
}
Tensor Bernoulli::log_prob(const Tensor& value) const {
  return multiply_no_nan(log_one(), value) + multiply_no_nan(log_zero(), 1 - value);
}
Tensor Bernoulli::entropy() const { return -(weighted(mean(), log_one()) + weighted(complement(), log_zero())); }
Tensor Bernoulli::mean() const { return probability_.defined() ? probability_ : sigmoid(logits_); }
Tensor Bernoulli::complement() const { return probability_.defined() ? 1 - probability_ : sigmoid(-logits_); }
Tensor Bernoulli::variance() const { return mean() * complement(); }

// ---- Categorical -------------------------------------------------------------------------------------------

Categorical::Categorical(const Tensor& log_probabilities)
    : log_probabilities_(log_probabilities), batch_(log_probabilities.shape()) {
  batch_.erase(batch_.rank() - 1);
}
Categorical Categorical::from_logits(const Tensor& logits) {
  check_parameter("categorical", logits);
  if (logits.rank() == 0) throw ShapeError("categorical: logits must be [..., C], got []");
  return Categorical(log_softmax(logits, -1));
}
Categorical Categorical::from_probabilities(const Tensor& probabilities) {
  check_parameter("categorical", probabilities);
  if (probabilities.rank() == 0) throw ShapeError("categorical: probabilities must be [..., C], got []");
  const Tensor p = checked(probabilities, 0.0, kInfinity, "categorical: probability");
  const double most = p.dtype() == Dtype::f32 ? static_cast<double>(std::numeric_limits<float>::max())
                                              : std::numeric_limits<double>::max();
  return Categorical(log_of(p / checked(sum(p, {-1}, true), kLeast, most, "categorical: sum of probabilities")));
}
Tensor Categorical::sample(const DrawKey& key, const Shape& shape) const {
  Shape all = drawn_shape(shape, batch_);
  all.push_back(log_probabilities_.shape()[-1]);
  return categorical(expand(detach(log_probabilities_), all), key);
}
Tensor Categorical::log_prob(const Tensor& value) const {
  if (!is_integer(value.dtype())) throw DtypeError("categorical: values must be i64 or i32, got " + value.spec().str());
  Shape shape = broadcast(value.shape(), batch_, "categorical: values");
  const Tensor index = unsqueeze(expand(value, shape), -1);
  shape.push_back(log_probabilities_.shape()[-1]);
  return squeeze(gather(expand(log_probabilities_, shape), -1, index, {"categorical: value"}), -1);
}
Tensor Categorical::entropy() const { return -sum(weighted(probabilities(), log_probabilities_), {-1}); }
Tensor Categorical::probabilities() const { return exp(log_probabilities_); }

// ---- divergences -------------------------------------------------------------------------------------------

Tensor kl_divergence(const Normal& p, const Normal& q) {
  const Tensor ratio = p.deviation() / q.deviation();
  return 0.5 * (square(ratio) + square((p.mean() - q.mean()) / q.deviation()) - 1) -
         log_of_ratio(ratio, p.deviation(), q.deviation());
}
Tensor kl_divergence(const Laplace& p, const Laplace& q) {
  const Tensor far = isinf(detach(p.scale()) / detach(q.scale())), scale = where(far, q.scale(), p.scale());
  const Tensor ratio = scale / q.scale(), gap = abs(p.mean() - q.mean());
  return where(far, kInfinity,
               gap / q.scale() + ratio * exp(-(gap / scale)) - 1 - log_of_ratio(ratio, scale, q.scale()));
}
Tensor kl_divergence(const Uniform& p, const Uniform& q) {
  const Tensor inside = le(q.low(), p.low()) && le(p.high(), q.high());
  return where(inside, log((q.high() - q.low()) / (p.high() - p.low())), kInfinity);
}
Tensor kl_divergence(const Exponential& p, const Exponential& q) {
  const Tensor ratio = q.rate() / p.rate();
  return ratio - 1 - log_of_ratio(ratio, q.rate(), p.rate());
}
Tensor kl_divergence(const Bernoulli& p, const Bernoulli& q) {
  return weighted(p.mean(), p.log_one() - q.log_one()) + weighted(p.complement(), p.log_zero() - q.log_zero());
}
Tensor kl_divergence(const Categorical& p, const Categorical& q) {
  return sum(weighted(p.probabilities(), p.log_probabilities() - q.log_probabilities()), {-1});
}
Tensor kl_divergence(const Uniform& p, const Normal& q) {
  const Tensor width = p.high() - p.low(), variance = q.variance();
  return log(q.deviation() / width) + kLogRootTwoPi +
         0.5 * (square(width) * (1.0 / 12) + square(p.mean() - q.mean())) / variance;
}
Tensor kl_divergence(const Exponential& p, const Normal& q) {
  const Tensor mean = p.mean();
  return log(p.rate() * q.deviation()) + (kLogRootTwoPi - 1) +
         (square(mean) - q.mean() * mean + 0.5 * square(q.mean())) / q.variance();
}

// ---- mixtures ----------------------------------------------------------------------------------------------

void check_mixture(const Categorical& weights, const Shape& parts) {
  if (weights.log_probabilities().shape() != parts)
    throw ShapeError("mixture: the batch of the parts must be [..., K], that of the weights, " +
                     weights.log_probabilities().shape().str() + ", got " + parts.str());
}

/// A part of weight 0 adds nothing, even where its density is infinite. There is no gradient where all parts exclude
/// the value or the density of one is infinite: `logsumexp` has none in the first case, and in the second it would
/// multiply 0 by infinity.
Tensor mixture_log_prob(const Categorical& weights, const Tensor& log_probs) {
  const Tensor& shares = weights.log_probabilities();
  const Tensor all = where(eq(shares, -kInfinity), -kInfinity, log_probs) + shares;
  const Tensor pole = eq(amax(detach(all), {-1}), kInfinity);
  return where(pole, kInfinity, logsumexp(where(unsqueeze(pole, -1), 0.0, all), {-1}));
}
Tensor mixture_sample(const Categorical& weights, const Tensor& parts, const DrawKey& key) {
  const Tensor which = categorical(expand(detach(weights.log_probabilities()), parts.shape()), key);
  return squeeze(gather(detach(parts), -1, unsqueeze(which, -1)), -1);
}
Tensor mixture_mean(const Categorical& weights, const Tensor& means) {
  return sum(multiply_no_nan(means, weights.probabilities()), {-1});
}

// ---- gamma and beta ------------------------------------------------------------------------------------

namespace {

/// Two positive parameters, expanded to their common shape.
struct Positive {
  Positive(const char* where, const Tensor& a, const Tensor& b, Label first_name, Label second_name) {
    const Pair pair(where, a, b);
    first = checked(pair.first, kLeast, kInfinity, first_name);
    second = checked(pair.second, kLeast, kInfinity, second_name);
  }
  Tensor first, second;
};

/// Returns the log density of values inside a support; for others infinity where the density has a pole, NaN for NaN,
/// else -infinity.
Tensor supported(const Tensor& inside, const Tensor& density, const Tensor& pole, const Tensor& value) {
  return where(inside, density, where(pole, kInfinity, where(eq(value, value), -kInfinity, value)));
}

/// Returns the least normal number; draws that are rounded to 0 become that number, and draws that are rounded to 1
/// become `below_one`, the largest number below 1.
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

/// The density is finite at an end of the support whose exponent is 0.
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
