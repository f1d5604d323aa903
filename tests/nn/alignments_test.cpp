// Losses over alignments of targets longer than a packet of states: values from the number of alignments, gradients
// from central differences, and the effect of a NaN among the scores.
#include <cmath>
#include <limits>

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/losses/sequence.h"
#include "support/compare.h"

using namespace ferrite;
using support::within;

namespace {

/// Returns labels [1, S]: 1, 2, 3 in turn, the first `repeated` labels twice.
Tensor labels(std::int64_t S, std::int64_t repeated = 0) {
  return Tensor::build<std::int64_t>({1, S}, [&](std::span<std::int64_t> y) {
    for (std::int64_t s = 0; s < S; ++s)
      y[static_cast<std::size_t>(s)] = 1 + (s < 2 * repeated ? s / 2 : s - repeated) % 3;
  });
}

double ln_binomial(std::int64_t n, std::int64_t k) {
  const auto ln_factorial = [](std::int64_t m) { return std::lgamma(static_cast<double>(m + 1)); };
  return ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(alignments)

// In T frames of C equally probable classes, binomial(T + S - r, 2 S) of the C^T paths give S labels, r of which are
// the same as the one before (Graves et al. 2006: a blank must separate those).
BOOST_AUTO_TEST_CASE(ctc_counts_paths_of_any_number_of_labels) {
  const std::int64_t C = 4;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t S : {1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 40})
      for (const std::int64_t repeated : {std::int64_t{0}, S / 4}) {
        const std::int64_t T = 2 * S + 5;
        const Tensor scores = full({T, 1, C}, -std::log(C), dtype);
        const double expected = static_cast<double>(T) * std::log(C) - ln_binomial(T + S - repeated, 2 * S);
        const Tensor loss = nn::ctc_loss(scores, labels(S, repeated), {}, {}, {.reduction = nn::Reduction::sum});
        BOOST_TEST_CONTEXT("S " << S << ", repeated " << repeated << ", " << loss.spec().str())
        BOOST_TEST(within(cast(loss, Dtype::f64), full({}, expected, Dtype::f64), dtype == Dtype::f32 ? 1e-6 : 1e-13));
      }
}

BOOST_AUTO_TEST_CASE(ctc_gradient_of_many_labels) {
  const Tensor lengths = Tensor::from<std::int64_t>({20, 17}), targets = expand(labels(20, 3), {2, 20});
  const Tensor inputs = Tensor::from<std::int64_t>({48, 41});
  const auto loss = [&](const Tensor& x) {
    return nn::ctc_loss(x, targets, inputs, lengths, {.reduction = nn::Reduction::none});
  };
  const Tensor scores = log_softmax(uniform({48, 2, 5}, {1, 2, 3}, -2, 2, Dtype::f64), -1);
  const GradcheckReport report =
      gradcheck([&](const Tensors& x) { return loss(x[0]); }, {scores}, {.directions = 20, .seed = 3});
  BOOST_TEST(report.ok, report.str());
  const auto gradient = [&](const Tensor& x) {
    Tape tape;
    const Tensor watched = tape.watch(x);
    return tape.grad(sum(loss(watched)), {watched})[0];
  };
  BOOST_TEST(within(cast(gradient(cast(scores, Dtype::f32)), Dtype::f64), gradient(scores), 2e-5));
}

BOOST_AUTO_TEST_CASE(a_nan_among_the_scores_makes_the_loss_nan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor at = arange(0, 12, 1, Dtype::i64);
  for (const std::int64_t k : {0, 4, 5, 6, 8, 11}) {
    const Tensor scores = where(eq(at, k), nan, full({12}, -1.0));
    const Tensor target = full({1, 1}, 1, Dtype::i64);
    const double ctc = nn::ctc_loss(reshape(scores, {6, 1, 2}), target).item();  // some path reads every score
    BOOST_TEST(std::isnan(ctc), "ctc_loss, score " << k);
    // [T = 3, U + 1 = 2, C = 2]: no path ends before the label (8) or emits another one after it (11).
    const Tensor grid = reshape(scores, {1, 3, 2, 2});
    const double rnnt = nn::rnnt_loss(grid, target, {}, {}, {.blank = 0, .log_probs = true}).item();
    BOOST_TEST(std::isnan(rnnt) == (k != 8 && k != 11), "rnnt_loss, score " << k);
  }
}

BOOST_AUTO_TEST_SUITE_END()
