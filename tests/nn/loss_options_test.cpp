// Options that several losses share: weights and masks of alignments, lengths of spectral and of region losses, the
// operands of accuracy. Expected values are sums over the losses of elements in loops, and the same loss of signals cut
// to their lengths; tests/golden compares those with PyTorch, torchaudio and auraloss.
#include <cmath>
#include <limits>

#include "ferrite/compile/compile.h"
#include "ferrite/nn/loss.h"
#include "ferrite/tensor/sampling.h"
#include "ferrite/tensor/signal.h"
#include "support/compare.h"

using namespace ferrite;
using support::doubles;
using support::identical;
using support::within;

namespace {

const double kNotANumber = std::numeric_limits<double>::quiet_NaN();

Tensor some(const Shape& shape, std::uint64_t seed) { return uniform(shape, {.seed = seed}, 0.1, 0.9, Dtype::f64); }
Tensor integers(const std::vector<std::int64_t>& v, const Shape& shape = {}) {
  return Tensor::from(v, shape.rank() ? shape : Shape{std::ssize(v)});
}
Tensor numbers(const std::vector<double>& v) { return Tensor::from(v, {std::ssize(v)}); }
Tensor truths(const std::vector<double>& v) { return numbers(v) > 0.5; }

}  // namespace

BOOST_AUTO_TEST_SUITE(loss_options)

/// A mean of ctc_loss is over losses divided by the lengths of their targets.
BOOST_AUTO_TEST_CASE(alignments_are_weighted_and_masked) {
  const std::int64_t T = 6, C = 4, S = 3;
  const Tensor targets = integers({1, 2, 3, 1, 2, 2, 3, 1, 1}, {3, S}), frames = integers({6, 4, 5}),
               labels = integers({3, 1, 2});
  const Tensor log_probs = log_softmax(some({T, 3, C}, 1), -1), logits = some({3, T, S + 1, C}, 2);
  const Tensor weight = numbers({0.5, 3, 2}), mask = truths({1, 1, 0});
  using nn::Reduction;
  const auto ctc = [&](Reduction r, const Tensor& w, const Tensor& m) {
    return nn::ctc_loss(log_probs, targets, frames, labels, {.reduction = r, .element_weight = w, .mask = m});
  };
  const auto rnnt = [&](Reduction r, const Tensor& w, const Tensor& m) {
    return nn::rnnt_loss(logits, targets, frames, labels, {.blank = 0, .reduction = r, .element_weight = w, .mask = m});
  };
  const std::vector<double> of_ctc = doubles(ctc(Reduction::none, {}, {})),
                            of_rnnt = doubles(rnnt(Reduction::none, {}, {})), n = doubles(labels);
  for (const bool weighted : {false, true})
    for (const bool masked : {false, true}) {
      const Tensor w = weighted ? weight : Tensor(), m = masked ? mask : Tensor();
      double ctc_sum = 0, ctc_mean = 0, rnnt_sum = 0, weights = 0;
      std::vector<double> each;
      for (std::size_t b = 0; b < 3; ++b) {
        const double counts = masked && b == 2 ? 0 : weighted ? doubles(weight)[b] : 1;
        ctc_sum += counts * of_ctc[b], ctc_mean += counts * of_ctc[b] / n[b], rnnt_sum += counts * of_rnnt[b];
        weights += counts;
        each.push_back(counts * of_ctc[b]);
      }
      BOOST_TEST_CONTEXT("weighted " << weighted << ", masked " << masked) {
        BOOST_TEST(within(ctc(Reduction::none, w, m), numbers(each), 1e-14));
        BOOST_TEST(within(ctc(Reduction::sum, w, m), full({}, ctc_sum, Dtype::f64), 1e-14));
        BOOST_TEST(within(ctc(Reduction::batch_mean, w, m), full({}, ctc_sum / 3, Dtype::f64), 1e-14));
        BOOST_TEST(within(ctc(Reduction::mean, w, m), full({}, ctc_mean / weights, Dtype::f64), 1e-14));
        BOOST_TEST(within(rnnt(Reduction::sum, w, m), full({}, rnnt_sum, Dtype::f64), 1e-14));
        BOOST_TEST(within(rnnt(Reduction::mean, w, m), full({}, rnnt_sum / weights, Dtype::f64), 1e-14));
      }
    }
  const auto compiled = compile([&](const Tensor& w) { return ctc(Reduction::mean, w, mask); });
  BOOST_TEST(identical(compiled(weight), ctc(Reduction::mean, weight, mask)));
  BOOST_CHECK_EXCEPTION((void)ctc(Reduction::sum, numbers({1, 2}), {}), ShapeError,
                        support::says("ctc_loss: element_weight does not broadcast to the losses: [2] and [3]"));
  BOOST_CHECK_EXCEPTION((void)rnnt(Reduction::sum, {}, truths({1, 1})), ShapeError,
                        support::says("rnnt_loss: the mask must have the first axes of the losses [3], got [2]"));
}

/// Targets and lengths of a masked sequence are not read: they may be out of range.
BOOST_AUTO_TEST_CASE(masked_sequences_have_any_targets_and_lengths) {
  const Tensor log_probs = log_softmax(some({4, 2, 3}, 1), -1), logits = some({2, 4, 3, 3}, 2);
  const Tensor mask = truths({1, 0}), good = integers({1, 2, 1, 1}, {2, 2}), bad = integers({1, 2, -7, 99}, {2, 2});
  const nn::CtcOptions ctc{.mask = mask};
  const nn::RnntOptions rnnt{.blank = 0, .mask = mask};
  BOOST_TEST(identical(nn::ctc_loss(log_probs, bad, integers({4, -1}), integers({2, 50}), ctc),
                       nn::ctc_loss(log_probs, good, integers({4, 4}), integers({2, 2}), ctc)));
  BOOST_TEST(identical(nn::rnnt_loss(logits, bad, integers({4, -1}), integers({2, 50}), rnnt),
                       nn::rnnt_loss(logits, good, integers({4, 4}), integers({2, 2}), rnnt)));
  BOOST_CHECK_THROW((void)nn::ctc_loss(log_probs, bad, integers({4, 4}), integers({2, 2})), ValueError);
}

/// The expected value sums the frames of separate signals: even and odd transforms, one signal with a third axis.
BOOST_AUTO_TEST_CASE(spectral_losses_end_where_signals_do) {
  const Tensor prediction = some({3, 40, 2}, 1), target = some({3, 40, 2}, 2), lengths = integers({40, 0, 23});
  nn::StftLossParameters p{
      .resolutions = {{16, 4, 12}, {9, 3, 9}}, .convergence = 0.5, .log_magnitude = 2, .magnitude = 3};
  double expected = 0;
  for (const nn::StftResolution& r : p.resolutions) {
    double off = 0, power = 0, logs = 0, sizes = 0, count = 0;
    for (const auto& [b, n] : {std::pair{0, 40}, {2, 23}})
      for (int c = 0; c < 2; ++c) {
        const auto magnitudes = [&, b = b, n = n](const Tensor& x) {
          const Tensor row = slice(select(select(x, 0, b), 1, c), 0, 0, n);
          const Tensor s = stft(row, r.n_fft, hann_window(r.win_length, {.dtype = Dtype::f64}),
                                {.hop_length = r.hop_length, .win_length = r.win_length});
          return doubles(sqrt(clamp(sum(square(s), {-1}), p.epsilon, std::numeric_limits<double>::infinity())));
        };
        const std::vector<double> x = magnitudes(prediction), y = magnitudes(target);
        for (std::size_t i = 0; i < x.size(); ++i) {
          off += (y[i] - x[i]) * (y[i] - x[i]), power += y[i] * y[i], sizes += std::fabs(y[i] - x[i]);
          logs += std::fabs(std::log(x[i]) - std::log(y[i])), count += 1;
        }
      }
    expected += (0.5 * std::sqrt(off / power) + 2 * logs / count + 3 * sizes / count) / 2;
  }
  p.lengths = lengths;
  const auto loss = [&](const Tensor& x, const Tensor& y) { return nn::multi_resolution_stft_loss(x, y, p); };
  BOOST_TEST(within(loss(prediction, target), full({}, expected, Dtype::f64), 1e-13));
  // Signals of full length have the bits of no lengths, up to the sums of means.
  p.lengths = integers({40, 40, 40});
  const Tensor whole = loss(prediction, target);
  p.lengths = {};
  BOOST_TEST(within(loss(prediction, target), whole, 1e-14));
}

BOOST_AUTO_TEST_CASE(spectral_losses_refuse_lengths_that_do_not_fit) {
  const Tensor x = some({2, 40}, 1);
  const auto with = [&](const Tensor& lengths, std::int64_t axis = 1) {
    return nn::multi_resolution_stft_loss(x, x, {.resolutions = {{16, 4, 16}}, .axis = axis, .lengths = lengths});
  };
  for (const std::int64_t n : {1, 8, 41}) BOOST_CHECK_THROW((void)with(integers({40, n})), ShapeError);
  BOOST_CHECK_EXCEPTION((void)with(integers({40, 8})), ShapeError,
                        support::says("multi_resolution_stft_loss: length 8 lies outside 9..40"));
  BOOST_TEST(std::isfinite(with(integers({40, 9})).item<double>()));
  BOOST_CHECK_EXCEPTION((void)with(numbers({40, 40})), DtypeError, support::says("lengths must be i64"));
  BOOST_CHECK_EXCEPTION((void)with(integers({40})), ShapeError, support::says("lengths [B] belong to"));
  BOOST_CHECK_EXCEPTION((void)with(integers({40, 40}), 0), ShapeError, support::says("lengths need time as axis 1"));
  const auto compiled = compile([&](const Tensor& n) { return with(n); });
  BOOST_TEST(within(compiled(integers({40, 20})), with(integers({40, 20})), 1e-14));
  BOOST_CHECK_EXCEPTION((void)compiled(integers({40, 8})), ShapeError, support::says("length 8 lies outside 9..40"));
}

/// A region with lengths has the loss that it has alone at its length.
BOOST_AUTO_TEST_CASE(regions_end_where_rows_do) {
  const Tensor p = some({3, 5, 2}, 1), t = some({3, 5, 2}, 2), lengths = integers({5, 2, 0});
  const nn::LossOptions none{.reduction = nn::Reduction::none};
  const nn::TverskyParameters parameters{.alpha = 0.3, .beta = 0.7};
  nn::LossOptions cut = none;
  cut.lengths = lengths;
  const Tensor dice = nn::dice_loss(p, t, 1, cut), tversky = nn::tversky_loss(p, t, parameters, cut);
  for (const std::int64_t b : {0, 1, 2}) {
    const auto row = [&](const Tensor& x) {
      return slice(slice(x, 0, b, b + 1), 1, 0, lengths[b].item<std::int64_t>());
    };
    const Tensor alone = nn::dice_loss(row(p), row(t), 1, none);
    BOOST_TEST(within(slice(dice, 0, b, b + 1), alone, 1e-15));
    BOOST_TEST(within(slice(tversky, 0, b, b + 1), nn::tversky_loss(row(p), row(t), parameters, none), 1e-15));
  }
  BOOST_TEST(doubles(dice)[2] == 0);
  BOOST_CHECK_THROW((void)nn::dice_loss(slice(p, 0, 0, 1), slice(t, 0, 0, 1), 1, cut), ShapeError);
}

BOOST_AUTO_TEST_CASE(accuracy_takes_what_cross_entropy_takes) {
  const Tensor scores = Tensor::from<double>({0.1, 0.9, 0.2, 0.8, 0.3, 0.5, 0.4, 0.3, 0.2, 0.1, 0.2, 0.9}, {4, 3});
  const Tensor target = integers({1, 1, 2, 2});  // the largest are 1, 0, 0, 2; then 2, 2, 1, 1
  BOOST_TEST(nn::accuracy(scores, target) == 0.5);
  BOOST_TEST(nn::accuracy(scores, target, {.k = 2}) == 0.5);
  BOOST_TEST(nn::accuracy(scores, target, {.k = 3}) == 1);
  BOOST_TEST(nn::accuracy(scores, integers({1, 2, -100, -100}), {.k = 2}) == 1);
  BOOST_TEST(nn::accuracy(scores, integers({1, 1, 7, 2}), {.ignore_index = 7}) == 2.0 / 3);
  BOOST_TEST(nn::accuracy(scores, target, {.element_weight = numbers({1, 3, 0, 4})}) == 5.0 / 8);
  BOOST_TEST(nn::accuracy(scores, target, {.mask = truths({0, 1, 1, 1})}) == 1.0 / 3);
  BOOST_TEST(std::isnan(nn::accuracy(scores, target, {.mask = truths({0, 0, 0, 0})})));
  // Scores [B = 2, T = 2, C = 3], and [B, C, T].
  const Tensor steps = reshape(scores, {2, 2, 3}), targets = reshape(target, {2, 2});
  BOOST_TEST(nn::accuracy(steps, targets, {.classes_last = true}) == 0.5);
  BOOST_TEST(nn::accuracy(steps, targets, {.classes_last = true, .lengths = integers({1, 2})}) == 2.0 / 3);
  BOOST_TEST(nn::accuracy(transpose(steps, 1, 2), targets, {.classes_last = false, .lengths = integers({1, 2})}) ==
             2.0 / 3);
  BOOST_TEST(nn::accuracy(select(scores, 0, 0), integers({1})[0]) == 1);
  BOOST_CHECK_EXCEPTION((void)nn::accuracy(steps, targets), ValueError, support::says("accuracy: which axis holds"));
  BOOST_CHECK_EXCEPTION((void)nn::accuracy(scores, target, {.k = 0}), ValueError,
                        support::says("accuracy: k must be at least 1, got 0"));
  BOOST_CHECK_EXCEPTION((void)nn::accuracy(scores, integers({1, 1, 2, 3})), ShapeError,
                        support::says("accuracy: target 3 lies outside 0..2"));
  BOOST_CHECK_EXCEPTION((void)nn::accuracy(scores, target, {.element_weight = numbers({1, 1, 1})}), ShapeError,
                        support::says("weights of the 3 classes are class_weight"));
}

/// The first of equal scores counts as the larger; NaN is never right, and is not read if hidden.
BOOST_AUTO_TEST_CASE(accuracy_at_ties_and_nan) {
  const Tensor scores =
      Tensor::from<double>({0.5, 0.5, 0.1, 0.5, 0.5, 0.1, kNotANumber, 1, 0, kNotANumber, 1, 0}, {4, 3});
  BOOST_TEST(nn::accuracy(slice(scores, 0, 0, 2), integers({0, 1})) == 0.5);
  BOOST_TEST(nn::accuracy(slice(scores, 0, 0, 2), integers({0, 1}), {.k = 2}) == 1);
  BOOST_TEST(nn::accuracy(scores, integers({0, 0, 0, 1})) == 0.5);
  BOOST_TEST(nn::accuracy(scores, integers({0, 0, 0, 1}), {.k = 2}) == 0.75);
  BOOST_TEST(nn::accuracy(scores, integers({0, 0, -100, -100})) == 1);
  BOOST_TEST(nn::accuracy(scores, integers({0, 0, 99, -3}), {.mask = truths({1, 1, 0, 0})}) == 1);
}

BOOST_AUTO_TEST_SUITE_END()
