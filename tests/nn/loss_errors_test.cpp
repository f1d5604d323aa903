// Every wrong call of a loss has its error message, the same in compiled functions.
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/loss.h"
#include "support/compare.h"

using namespace ferrite;
using nn::Reduction;

namespace {

struct Wrong {
  std::function<Tensor()> call;
  const char* says;
};

template <class Exception>
void check(const std::vector<Wrong>& table) {
  for (const Wrong& w : table)
    BOOST_CHECK_EXCEPTION((void)w.call(), Exception, [&](const Exception& e) {
      BOOST_TEST(std::string(e.what()) == w.says);
      return std::string(e.what()) == w.says;
    });
}

Tensor integers(std::initializer_list<std::int64_t> v) { return Tensor::from<std::int64_t>(v); }
Tensor x(const Shape& shape) { return full(shape, 0.5); }
Tensor doubles(const Shape& shape) { return full(shape, 0.5, Dtype::f64); }
const double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

BOOST_AUTO_TEST_SUITE(loss_errors)

BOOST_AUTO_TEST_CASE(shapes) {
  const Tensor y = integers({0, 1}), targets = reshape(integers({1, 2, 1, 1}), {2, 2});
  check<ShapeError>({
      {[] { return nn::mse_loss(x({2}), x({3})); }, "mse_loss: shapes differ: [2] and [3]"},
      {[] { return nn::huber_loss(x({2}), x({3})); }, "huber_loss: shapes differ: [2] and [3]"},
      {[] {
         return nn::mse_loss(x({2, 3}), x({2, 3}), {.element_weight = x({2})});
       },
       "mse_loss: element_weight does not broadcast to the losses: [2] and [2, 3]"},
      {[] {
         return nn::mse_loss(x({3}), x({3}), {.element_weight = x({2, 3})});
       },
       "mse_loss: element_weight does not broadcast to the losses: [2, 3] and [3]"},
      {[] {
         return nn::l1_loss(x({2, 3}), x({2, 3}), {.mask = cast(x({3}), Dtype::boolean)});
       },
       "l1_loss: the mask must have the first axes of the losses [2, 3], got [3]"},
      {[] {
         return nn::l1_loss(x({2, 3}), x({2, 3}), {.lengths = integers({1})});
       },
       "l1_loss: lengths [B] belong to losses [B, T, ...], got [1] for losses [2, 3]"},
      {[] {
         return nn::l1_loss(x({2}), x({2}), {.lengths = integers({1, 1})});
       },
       "l1_loss: lengths [B] belong to losses [B, T, ...], got [2] for losses [2]"},
      {[] {
         return nn::l1_loss(x({2, 3}), x({2, 3}), {.lengths = integers({1, 4})});
       },
       "length_mask: length 4 lies outside 0..3"},
      {[] {
         return nn::length_mask(reshape(integers({1}), {1, 1}), 3);
       },
       "length_mask: lengths must have rank 1, got [1, 1]"},
      {[=] {
         return nn::cross_entropy(x({3, 4}), y);
       },
       "cross_entropy: expects logits [B, C, ...] and targets [B, ...], got [3, 4] and [2]"},
      {[=] {
         return nn::cross_entropy(x({2, 4, 3}), y, {.classes_last = true});
       },
       "cross_entropy: expects logits [B, ..., C] and targets [B, ...], got [2, 4, 3] and [2]"},
      {[=] { return nn::cross_entropy(x({}), y); }, "cross_entropy: expects scores [B, C, ...], got []"},
      {[=] {
         return nn::cross_entropy(x({2, 4}), y, {.class_weight = x({3})});
       },
       "cross_entropy: class_weight must be f32[4], got f32[3]; it has a weight for each class, element_weight one for "
       "each target"},
      {[=] {
         return nn::cross_entropy(x({2, 4}), y, {.element_weight = x({4})});
       },
       "cross_entropy: element_weight does not broadcast to the losses: [4] and [2]; weights of the 4 classes are "
       "class_weight"},
      {[=] {
         return nn::multi_margin_loss(x({2, 4}), y, {}, {.element_weight = x({4})});
       },
       "multi_margin_loss: element_weight does not broadcast to the losses: [4] and [2]; weights of the 4 classes are "
       "class_weight"},
      {[] {
         return nn::multilabel_soft_margin_loss(x({2, 4}), x({2, 4}), {}, {.element_weight = x({4})});
       },
       "multilabel_soft_margin_loss: element_weight does not broadcast to the losses: [4] and [2]; weights of the 4 "
       "classes are class_weight"},
      {[] {
         return nn::cross_entropy(x({2, 4}), integers({0, 4}));
       },
       "cross_entropy: target 4 lies outside 0..3"},
      {[] {
         return nn::cross_entropy(x({2, 4}), integers({-1, 0}));
       },
       "cross_entropy: target -1 lies outside 0..3"},
      {[] {
         return nn::nll_loss(x({2, 4}), integers({0, 4}));
       },
       "nll_loss: target 4 lies outside 0..3"},
      {[=] {
         return nn::multi_margin_loss(x({3, 4}), y);
       },
       "multi_margin_loss: expects scores [B, C] and targets [B], got [3, 4] and [2]"},
      {[=] {
         return nn::multi_margin_loss(x({2, 4}), y, {.class_weight = x({2})});
       },
       "multi_margin_loss: class_weight must be f32[4], got f32[2]"},
      {[] {
         return nn::multi_margin_loss(x({1, 4}), integers({4}));
       },
       "multi_margin_loss: target 4 lies outside 0..3"},
      {[=] {
         return nn::multilabel_margin_loss(x({2, 4}), y);
       },
       "multilabel_margin_loss: expects scores [B, C] and targets [B, C], got [2, 4] and [2]"},
      {[=] {
         return nn::multilabel_margin_loss(x({1, 2}), reshape(integers({2, -1}), {1, 2}));
       },
       "multilabel_margin_loss: target 2 lies outside -1..1"},
      {[] {
         return nn::multilabel_soft_margin_loss(x({2, 4}), x({2, 4}), x({2}));
       },
       "multilabel_soft_margin_loss: class_weight must be f32[4], got f32[2]"},
      {[] { return nn::multilabel_soft_margin_loss(x({}), x({})); },
       "multilabel_soft_margin_loss: expects logits [..., C], got []"},
      {[] { return nn::dice_loss(x({}), x({})); },
       "dice_loss: expects probabilities and targets [B, ...], got [] and []"},
      {[] {
         return nn::cosine_embedding_loss(x({2, 3}), x({2, 3}), x({3}));
       },
       "cosine_embedding_loss: the target must be f32[2], got f32[3]"},
      {[] { return nn::triplet_margin_loss(x({}), x({}), x({})); },
       "triplet_margin_loss: expects vectors [..., D], got []"},
      {[=] {
         return nn::ctc_loss(x({3, 4}), targets);
       },
       "ctc_loss: log_probs must be [T, B, C], got [3, 4]"},
      {[=] {
         return nn::ctc_loss(x({3, 4}), targets, {}, {}, {.batch_first = true});
       },
       "ctc_loss: log_probs must be [B, T, C], got [3, 4]"},
      {[=] {
         return nn::ctc_loss(x({3, 4, 3}), targets);
       },
       "ctc_loss: targets must be [4, 2], got [2, 2]"},
      {[=] {
         return nn::ctc_loss(x({3, 2, 3}), y);
       },
       "ctc_loss: targets must be [B, S], got [2]; pad sequences to one length"},
      {[=] {
         return nn::ctc_loss(x({3, 2, 3}), targets, integers({3}));
       },
       "ctc_loss: input_lengths must be [2], got [1]"},
      {[=] {
         return nn::ctc_loss(x({3, 2, 3}), targets, integers({3, 4}));
       },
       "ctc_loss: input length 4 lies outside 0..3"},
      {[=] {
         return nn::ctc_loss(x({3, 2, 3}), targets, {}, integers({-1, 2}));
       },
       "ctc_loss: target length -1 lies outside 0..2"},
      {[=] {
         return nn::rnnt_loss(x({2, 3, 3}), targets);
       },
       "rnnt_loss: logits must be [B, T, U + 1, C], got [2, 3, 3]"},
      {[=] {
         return nn::rnnt_loss(x({2, 4, 2, 3}), targets);
       },
       "rnnt_loss: targets must be [2, 1], got [2, 2]"},
      {[=] {
         return nn::rnnt_loss(x({2, 4, 3, 4}), targets, integers({0, 4}));
       },
       "rnnt_loss: input length 0 lies outside 1..4"},
      {[] { return nn::esr_loss(x({}), x({})); }, "esr_loss: expects signals [..., T, ...], got []"},
      {[] {
         return nn::esr_loss(x({2, 3, 4}), x({2, 3, 4}), {.axis = -1}, {.lengths = integers({1, 1})});
       },
       "esr_loss: lengths need time as axis 1, got axis 2"},
  });
}

BOOST_AUTO_TEST_CASE(dtypes) {
  const Tensor y = integers({0, 1});
  check<DtypeError>({
      {[] { return nn::mse_loss(x({2}), doubles({2})); },
       "mse_loss: dtypes differ: f32[2] and f64[2]; cast one of them"},
      {[=] { return nn::l1_loss(y, y); }, "l1_loss: the prediction must be f32 or f64, got i64[2]; cast it"},
      {[] { return nn::mse_loss(x({2}), x({2}), {.element_weight = doubles({2})}); },
       "mse_loss: element_weight must have the dtype of the losses, f32[2], got f64[2]"},
      {[] { return nn::mse_loss(x({2}), x({2}), {.mask = x({2})}); }, "mse_loss: the mask must be bool, got f32[2]"},
      {[] {
         return nn::mse_loss(x({2, 2}), x({2, 2}), {.lengths = x({2})});
       },
       "mse_loss: lengths must be i64, got f32[2]"},
      {[] { return nn::length_mask(x({2}), 3); }, "length_mask: lengths must be i64, got f32[2]"},
      {[=] { return nn::reduce_loss(y); }, "reduce_loss: the losses must be f32 or f64, got i64[2]; cast it"},
      {[] { return nn::gaussian_nll_loss(x({2}), x({2}), doubles({2})); },
       "gaussian_nll_loss: dtypes differ: f32[2] and f64[2]; cast one of them"},
      {[] {
         return nn::cross_entropy(x({2, 4}), x({2}));
       },
       "cross_entropy: targets must be i64 or i32, or shares of the classes f32[2, 4], got f32[2]"},
      {[] {
         return nn::cross_entropy(x({2, 4}), cast(x({2}), Dtype::boolean));
       },
       "cross_entropy: targets must be i64 or i32, got bool[2]"},
      {[] {
         return nn::nll_loss(x({2, 4}), x({2, 4}));
       },
       "nll_loss: targets must be i64 or i32, got f32[2, 4]"},
      {[=] {
         return nn::cross_entropy(reshape(y, {1, 2}), y);
       },
       "cross_entropy: the scores must be f32 or f64, got i64[1, 2]; cast it"},
      {[] {
         return nn::multi_margin_loss(x({2, 4}), x({2}));
       },
       "multi_margin_loss: targets must be i64 or i32, got f32[2]"},
      {[] {
         return nn::multilabel_margin_loss(x({2, 4}), x({2, 4}));
       },
       "multilabel_margin_loss: targets must be i64 or i32, got f32[2, 4]"},
      {[] { return nn::bce_with_logits(x({2}), x({2}), {.pos_weight = doubles({2})}); },
       "bce_with_logits: dtypes differ: logits f32[2] and pos_weight f64[2]; cast one of them"},
      {[] {
         return nn::ctc_loss(x({3, 2, 3}), x({2, 2}));
       },
       "ctc_loss: targets must be i64 or i32, got f32[2, 2]"},
      {[=] {
         return nn::ctc_loss(x({3, 1, 3}), reshape(y, {1, 2}), x({1}));
       },
       "ctc_loss: input_lengths must be i64, got f32[1]"},
      {[=] {
         return nn::ctc_loss(reshape(y, {1, 1, 2}), reshape(y, {1, 2}));
       },
       "ctc_loss: log_probs must be f32 or f64, got i64[1, 1, 2]; cast it"},
      {[=] {
         return nn::rnnt_loss(reshape(y, {1, 1, 1, 2}), reshape(y, {1, 2}));
       },
       "rnnt_loss: logits must be f32 or f64, got i64[1, 1, 1, 2]; cast it"},
  });
}

BOOST_AUTO_TEST_CASE(values) {
  const Tensor y = reshape(integers({1, 2}), {1, 2});
  check<ValueError>({
      {[] { return nn::length_mask(integers({0}), -1); },
       "length_mask: the number of steps must not be negative, got -1"},
      {[] { return nn::smooth_l1_loss(x({2}), x({2}), -1); },
       "smooth_l1_loss: beta must be finite and must not be negative, got -1.0"},
      {[] { return nn::huber_loss(x({2}), x({2}), 0); }, "huber_loss: delta must be positive and finite, got 0.0"},
      {[] { return nn::huber_loss(x({2}), x({2}), kNan); }, "huber_loss: delta must be positive and finite, got nan"},
      {[] { return nn::poisson_nll_loss(x({2}), x({2}), {.epsilon = -1}); },
       "poisson_nll_loss: epsilon must be finite and must not be negative, got -1.0"},
      {[] { return nn::gaussian_nll_loss(x({2}), x({2}), x({2}), {.epsilon = 0}); },
       "gaussian_nll_loss: epsilon must be positive and finite, got 0.0"},
      {[] { return nn::gaussian_nll_loss(x({2}), x({2}), -x({2})); },
       "gaussian_nll_loss: variance -0.5 lies outside 0..inf"},
      {[] { return nn::bce(x({2}) * 3, x({2})); }, "bce: probability 1.5 lies outside 0..1"},
      {[] { return nn::focal_loss(x({2}), x({2}), {.alpha = 2}); }, "focal_loss: alpha must not be above 1, got 2.0"},
      {[] { return nn::focal_loss(x({2}), x({2}), {.gamma = -1}); },
       "focal_loss: gamma must be finite and must not be negative, got -1.0"},
      {[] {
         return nn::cross_entropy(x({1, 4}), integers({0}), {.label_smoothing = 1.5});
       },
       "cross_entropy: label_smoothing must lie in 0.0..1.0, got 1.5"},
      {[] {
         return nn::nll_loss(x({1, 4}), integers({0}), {.label_smoothing = 0.1});
       },
       "nll_loss: label_smoothing must be 0, got 0.1; use cross_entropy"},
      {[] {
         return nn::multi_margin_loss(x({1, 4}), integers({0}), {.p = 3});
       },
       "multi_margin_loss: p must be 1 or 2, got 3"},
      // T == C, and images as wide as the number of classes: both the second and the last axis would fit the targets.
      {[=] {
         return nn::cross_entropy(x({2, 3, 3}), reshape(integers({0, 1, 2, 0, 1, 2}), {2, 3}));
       },
       "cross_entropy: which axis holds the classes is not said: scores [2, 3, 3]; give classes_last = true for [B, "
       "..., "
       "C], or classes_last = false for [B, C, ...], as in PyTorch"},
      {[=] {
         return nn::nll_loss(x({1, 2, 2, 2}), reshape(integers({0, 1, 1, 0}), {1, 2, 2}));
       },
       "nll_loss: which axis holds the classes is not said: scores [1, 2, 2, 2]; give classes_last = true for [B, ..., "
       "C], or classes_last = false for [B, C, ...], as in PyTorch"},
      {[] {
         return nn::multi_margin_loss(x({1, 4}), integers({0}), {.margin = kNan});
       },
       "multi_margin_loss: the margin must be finite, got nan"},
      {[] { return nn::tversky_loss(x({2}), x({2}), {.alpha = -1}); },
       "tversky_loss: alpha, beta and smooth must be finite and must not be negative, got -1.0 and 0.5 and "
       "1.0"},
      {[] { return nn::margin_ranking_loss(x({2}), x({2}), x({2}), kNan); },
       "margin_ranking_loss: the margin must be finite, got nan"},
      {[] { return nn::triplet_margin_loss(x({2}), x({2}), x({2}), {.p = 0.5}); },
       "triplet_margin_loss: p must be at least 1, got 0.5"},
      {[=] {
         return nn::ctc_loss(x({3, 1, 3}), y, {}, {}, {.blank = 3});
       },
       "ctc_loss: the blank 3 lies outside 0..2"},
      {[=] {
         return nn::ctc_loss(x({3, 1, 3}), y, {}, {}, {.blank = 2});
       },
       "ctc_loss: target 2 is the blank"},
      {[=] {
         return nn::ctc_loss(x({3, 1, 2}), y);
       },
       "ctc_loss: target 2 lies outside 0..1"},
      {[=] {
         return nn::rnnt_loss(x({1, 3, 3, 3}), y);
       },
       "rnnt_loss: target 2 is the blank"},
      {[=] {
         return nn::rnnt_loss(x({1, 3, 3, 3}), y, {}, {}, {.blank = -4});
       },
       "rnnt_loss: the blank -1 lies outside 0..2"},
      {[] {
         return nn::esr_loss(x({2, 3}), x({2, 3}), {.pre_emphasis = kNan});
       },
       "esr_loss: pre_emphasis must be finite, got nan"},
      {[] {
         return nn::dc_loss(x({2, 3}), x({2, 3}), {.epsilon = -1});
       },
       "dc_loss: epsilon must be finite and must not be negative, got -1.0"},
  });
}

BOOST_AUTO_TEST_CASE(values_are_refused_in_compiled_functions_in_the_same_words) {
  const auto ctc = compile([](const Tensor& s, const Tensor& y) { return nn::ctc_loss(s, y); });
  const Tensor bad = reshape(integers({1, 5}), {1, 2});
  BOOST_CHECK_EXCEPTION((void)ctc(x({3, 1, 3}), bad), ValueError,
                        support::says("ctc_loss: target 5 lies outside 0..2"));
  const auto entropy = compile([](const Tensor& s, const Tensor& y) { return nn::bce(s, y); });
  BOOST_CHECK_EXCEPTION((void)entropy(x({2}) * 3, x({2})), ValueError, support::says("bce: probability 1.5"));
}

/// Padding may hold anything, and nothing of it reaches a result.
BOOST_AUTO_TEST_CASE(padding_adds_nothing) {
  const Tensor lengths = integers({2, 1});
  const Tensor valid = unsqueeze(nn::length_mask(lengths, 3), -1);
  const Tensor clean = uniform({2, 3, 4}, {.seed = 1}, 0.1, 0.9), target = uniform({2, 3, 4}, {.seed = 2}, 0.1, 0.9);
  const Tensor dirty = where(valid, clean, kNan);
  const Tensor classes = reshape(integers({0, 3, 77, 2, -5, 99}), {2, 3});
  const nn::LossOptions o{.lengths = lengths};
  using Loss = std::function<Tensor(const Tensor&)>;
  const std::vector<Loss> losses = {
      [&](const Tensor& y) { return nn::mse_loss(y, target, o); },
      [&](const Tensor& y) { return nn::huber_loss(y, target, 1, o); },
      [&](const Tensor& y) { return nn::bce(y, target, o); },
      [&](const Tensor& y) { return nn::gaussian_nll_loss(target, target, y, {}, o); },
      [&](const Tensor& y) {
        return nn::cosine_embedding_loss(y, target, ones({2, 3}), 0, o);
      },
      [&](const Tensor& y) { return nn::cross_entropy(y, classes, {.classes_last = true, .lengths = lengths}); },
      [&](const Tensor& y) { return nn::cross_entropy(y, target, {.classes_last = true, .lengths = lengths}); },
      [&](const Tensor& y) { return nn::esr_loss(y, target, {}, o); },
      [&](const Tensor& y) { return nn::dc_loss(y, target, {}, o); }};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const Tensor gradient = grad(losses[i])(dirty);
    BOOST_TEST(support::identical(losses[i](dirty), losses[i](clean)), "loss " << i);
    BOOST_TEST(support::identical(gradient, grad(losses[i])(clean)), "gradient of loss " << i);
    BOOST_TEST(support::identical(where(valid, 0.0, gradient), zeros({2, 3, 4})), "padding of loss " << i);
  }
}

BOOST_AUTO_TEST_SUITE_END()
