// Masked elements count as absent: NaN and both infinities under a mask, beyond lengths, with a weight of 0 or of an
// ignored class change neither a loss nor a gradient. The expected values, bit for bit, are those of the same call with
// other, finite numbers there; the gradients there must be 0.
#include "ferrite/compile/compile.h"
#include "ferrite/nn/loss.h"
#include "nn/hidden.h"

using namespace ferrite;
using namespace hidden;
using support::identical;
using support::within;

namespace {

/// A loss with losses [3, 4] or [3], whose operands may have further axes; `axis` is that of the classes.
struct Case {
  std::string name;
  Tensors operands;
  std::function<Tensor(const Tensors& x, const nn::LossOptions& o)> loss;
  int losses = 2;  ///< rank of the losses
  int axis = -1;   ///< axis that the mask of hidden elements gets for operands of a higher rank
};

nn::ClassLossOptions of_classes(const nn::LossOptions& o, nn::ClassLossOptions more = {}) {
  more.element_weight = o.element_weight, more.mask = o.mask, more.lengths = o.lengths, more.reduction = o.reduction;
  return more;
}

std::vector<Case> cases() {
  const Shape s{3, 4}, wide{3, 4, 5};
  using In = const Tensors&;
  using O = const nn::LossOptions&;
  const Tensor target = classes(s, 5, 31), row_target = classes({3}, 4, 32);
  const Tensor shares = softmax(some(wide, 33), -1);
  std::vector<Case> list = {
      {"mse", {some(s, 1), some(s, 2)}, [](In x, O o) { return nn::mse_loss(x[0], x[1], o); }},
      {"l1", {some(s, 1), some(s, 2)}, [](In x, O o) { return nn::l1_loss(x[0], x[1], o); }},
      {"smooth_l1", {some(s, 1), some(s, 2)}, [](In x, O o) { return nn::smooth_l1_loss(x[0], x[1], 0.2, o); }},
      {"huber", {some(s, 1), some(s, 2)}, [](In x, O o) { return nn::huber_loss(x[0], x[1], 0.2, o); }},
      {"poisson", {some(s, 1), some(s, 2)}, [](In x, O o) { return nn::poisson_nll_loss(x[0], x[1], {}, o); }},
      {"poisson rates",
       {some(s, 1), some(s, 2)},
       [](In x, O o) { return nn::poisson_nll_loss(x[0], x[1], {.log_input = false, .full = true}, o); }},
      {"gaussian",
       {some(s, 1), some(s, 2), some(s, 3)},
       [](In x, O o) { return nn::gaussian_nll_loss(x[0], x[1], x[2], {}, o); }},
      {"kl_div", {some(s, 1), some(s, 2)}, [](In x, O o) { return nn::kl_div(x[0], x[1], {}, o); }},
      {"kl_div of logs",
       {some(s, 1), some(s, 2)},
       [](In x, O o) { return nn::kl_div(x[0], x[1], {.log_target = true}, o); }},
      {"bce", {some(s, 1), some(s, 2)}, [](In x, O o) { return nn::bce(x[0], x[1], o); }},
      {"bce_with_logits",
       {some(s, 1), some(s, 2)},
       [](In x, O o) { return nn::bce_with_logits(x[0], x[1], nn::BceParameters{}, o); }},
      {"bce_with_logits, weighted",
       {some(s, 1), some(s, 2), some(s, 3)},
       [](In x, O o) { return nn::bce_with_logits(x[0], x[1], {.pos_weight = x[2]}, o); }},
      {"focal", {some(s, 1), some(s, 2)}, [](In x, O o) { return nn::focal_loss(x[0], x[1], {}, o); }},
      {"soft_margin", {some(s, 1), signs(s, 2)}, [](In x, O o) { return nn::soft_margin_loss(x[0], x[1], o); }},
      {"margin_ranking",
       {some(s, 1), some(s, 2), signs(s, 3)},
       [](In x, O o) { return nn::margin_ranking_loss(x[0], x[1], x[2], 0.5, o); }},
      {"hinge_embedding",
       {some(s, 1), signs(s, 2)},
       [](In x, O o) { return nn::hinge_embedding_loss(x[0], x[1], 1, o); }},
      {"cosine_embedding",
       {some(wide, 1), some(wide, 2)},
       [](In x, O o) {
         return nn::cosine_embedding_loss(x[0], x[1], signs({3, 4}, 3), 0.1, o);
       }},
      {"triplet",
       {some(wide, 1), some(wide, 2), some(wide, 3)},
       [](In x, O o) { return nn::triplet_margin_loss(x[0], x[1], x[2], {}, o); }},
      {"triplet, p = 1.5",
       {some(wide, 1), some(wide, 2), some(wide, 3)},
       [](In x, O o) { return nn::triplet_margin_loss(x[0], x[1], x[2], {.p = 1.5, .swap = true}, o); }},
      {"multilabel_soft_margin",
       {some(wide, 1), some(wide, 2)},
       [](In x, O o) { return nn::multilabel_soft_margin_loss(x[0], x[1], {}, o); }},
      {"tversky", {some(s, 1), some(s, 2)}, [](In x, O o) { return nn::tversky_loss(x[0], x[1], {}, o); }, 1},
      {"dice", {some(wide, 1), some(wide, 2)}, [](In x, O o) { return nn::dice_loss(x[0], x[1], 1, o); }, 1},
      {"esr", {some({3, 7}, 1), some({3, 7}, 2)}, [](In x, O o) { return nn::esr_loss(x[0], x[1], {}, o); }, 1},
      {"dc",
       {some({3, 7}, 1), some({3, 7}, 2)},
       [](In x, O o) { return nn::dc_loss(x[0], x[1], {.pre_emphasis = 0.85}, o); },
       1},
      {"multi_margin",
       {some({3, 4}, 1)},
       [=](In x, O o) { return nn::multi_margin_loss(x[0], row_target, {.p = 2}, o); },
       1},
      {"multilabel_margin",
       {some({3, 4}, 1)},
       [=](In x, O o) {
         return nn::multilabel_margin_loss(x[0], classes({3, 4}, 3, 5), o);
       },
       1},
      {"cross_entropy",
       {some({3, 5, 4}, 1)},
       [=](In x, O o) { return nn::cross_entropy(x[0], target, of_classes(o, {.classes_last = false})); },
       2,
       1},
      {"cross_entropy, smoothed, weighted",
       {some(wide, 1)},
       [=](In x, O o) {
         return nn::cross_entropy(
             x[0], target, of_classes(o, {.class_weight = some({5}, 4), .label_smoothing = 0.1, .classes_last = true}));
       }},
      {"cross_entropy of shares",
       {some(wide, 1), shares},
       [=](In x, O o) { return nn::cross_entropy(x[0], x[1], of_classes(o, {.classes_last = true})); }},
      {"nll",
       {log_softmax(some(wide, 1), -1)},
       [=](In x, O o) {
         return nn::nll_loss(x[0], target, of_classes(o, {.class_weight = some({5}, 4), .classes_last = true}));
       }},
  };
  return list;
}

/// Returns the mask of hidden elements in the rank of an operand.
Tensor like(const Tensor& hidden, const Tensor& operand, const Case& c) {
  Tensor h = hidden;
  while (h.rank() < operand.rank()) h = unsqueeze(h, c.axis < 0 ? h.rank() : c.axis);
  return expand(h, operand.shape());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(masked)

BOOST_AUTO_TEST_CASE(nothing_behind_a_mask_reaches_a_loss_or_a_gradient) {
  for (const Case& c : cases())
    for (const nn::Reduction r : {nn::Reduction::mean, nn::Reduction::sum, nn::Reduction::none}) {
      const Tensor counts = c.losses == 2 ? lt(some({3, 4}, 7), 0.6) : numbers({1.0, 0.0, 1.0}) > 0.5;
      Tensors hidden;
      for (const Tensor& x : c.operands) hidden.push_back(like(!counts, x, c));
      check_hidden(
          c.name + ", mask", [&](const Tensors& x) { return c.loss(x, {.reduction = r, .mask = counts}); }, c.operands,
          hidden, c.operands.size());
    }
}

BOOST_AUTO_TEST_CASE(nothing_behind_lengths_reaches_a_loss_or_a_gradient) {
  const Tensor lengths = integers({4, 0, 2}), counts = lt(arange(4), unsqueeze(lengths, 1));
  for (const Case& c : cases()) {
    if (c.losses != 2) continue;
    Tensors hidden;
    for (const Tensor& x : c.operands) hidden.push_back(like(!counts, x, c));
    check_hidden(
        c.name + ", lengths", [&](const Tensors& x) { return c.loss(x, {.lengths = lengths}); }, c.operands, hidden,
        c.operands.size());
  }
  const Tensor steps = integers({7, 0, 3}), behind = !lt(arange(7), unsqueeze(steps, 1));
  for (const Case& c : cases())
    if (c.name == "esr" || c.name == "dc")
      check_hidden(
          c.name + ", lengths", [&](const Tensors& x) { return c.loss(x, {.lengths = steps}); }, c.operands,
          {behind, behind}, 2);
}

/// An element of weight 0 does not count either; for finite ones the gradient of the weight is the loss.
BOOST_AUTO_TEST_CASE(nothing_of_weight_0_reaches_a_loss_or_a_gradient) {
  for (const Case& c : cases())
    for (const nn::Reduction r : {nn::Reduction::mean, nn::Reduction::sum}) {
      const Tensor counts = c.losses == 2 ? lt(some({3, 4}, 7), 0.6) : numbers({1.0, 0.0, 1.0}) > 0.5;
      const Tensor weight = where(counts, some(counts.shape(), 8), 0.0);
      Tensors hidden;
      for (const Tensor& x : c.operands) hidden.push_back(like(!counts, x, c));
      check_hidden(
          c.name + ", weight 0",
          [&](const Tensors& x) { return c.loss(x, {.reduction = r, .element_weight = weight}); }, c.operands, hidden,
          c.operands.size());
    }
  const Tensor x = numbers({1.0, 2.0, 5.0}), y = zeros({3}), weight = numbers({0.0, 1.0, 0.0});
  const Tensors got = values_and_gradients(
      [&](const Tensors& w) { return nn::mse_loss(x, y, {.reduction = nn::Reduction::sum, .element_weight = w[0]}); },
      {weight});
  BOOST_TEST(within(got[1], numbers({1.0, 4.0, 25.0}), 0));
}

/// A weight under a mask may be NaN, too.
BOOST_AUTO_TEST_CASE(weights_behind_a_mask_are_not_read) {
  const Tensor counts = numbers({1.0, 0.0, 1.0}) > 0.5;
  for (const nn::Reduction r : {nn::Reduction::mean, nn::Reduction::sum})
    check_hidden(
        "weight",
        [&](const Tensors& x) {
          return nn::mse_loss(x[1], x[2], {.reduction = r, .element_weight = x[0], .mask = counts});
        },
        {some({3}, 1), some({3}, 2), some({3}, 3)}, {!counts, !counts, !counts}, 3);
}

/// PyTorch's gradients are NaN in all of these cases.
BOOST_AUTO_TEST_CASE(scores_of_ignored_targets_may_be_anything) {
  const Tensor target = integers({2, -100, 0, -100, 4});
  const Tensor hidden = expand(unsqueeze(eq(target, -100), 1), {5, 5}), scores = some({5, 5}, 1), w = some({5}, 2);
  for (const double smoothing : {0.0, 0.2})
    for (const bool weighted : {false, true}) {
      const Tensors all{scores, w};
      check_hidden(
          "cross_entropy",
          [&](const Tensors& x) {
            return nn::cross_entropy(x[0], target,
                                     {.class_weight = weighted ? x[1] : Tensor(), .label_smoothing = smoothing});
          },
          all, {hidden}, 1);
      if (smoothing == 0)
        check_hidden(
            "nll_loss",
            [&](const Tensors& x) { return nn::nll_loss(x[0], target, {.class_weight = weighted ? x[1] : Tensor()}); },
            all, {hidden}, 1);
    }
  // A compiled step has these gradients, too.
  const auto step = compile([&](const Tensor& x) {
    Tape tape;
    const Tensor y = tape.watch(x);
    return tape.grad({{nn::cross_entropy(y, target)}}, {y})[0];
  });
  BOOST_TEST(identical(step(where(hidden, kNan, scores)), step(scores)));
  // The weight of an ignored target may be anything, too.
  const Tensor ignored = eq(target, -100);
  check_hidden(
      "weight of the ignored",
      [&](const Tensors& x) { return nn::cross_entropy(scores, target, {.element_weight = x[0]}); }, {some({5}, 3)},
      {ignored}, 1);
}

BOOST_AUTO_TEST_CASE(scores_of_classes_of_weight_0_may_be_anything) {
  const Tensor target = integers({2, 1, 0, 1}), weight = numbers({0.5, 0.0, 2.0});
  const Tensor hidden = expand(unsqueeze(eq(target, 1), 1), {4, 3});
  check_hidden(
      "class of weight 0", [&](const Tensors& x) { return nn::cross_entropy(x[0], target, {.class_weight = weight}); },
      {some({4, 3}, 1)}, {hidden}, 1);
}

/// Losses define 0 times infinity in these cases; the expected values are computed by hand from the formulas.
BOOST_AUTO_TEST_CASE(nothing_of_share_0_is_nan) {
  const auto one = [](double v) { return numbers({v}); };
  const auto same = [](const char* name, const Function& f, const Tensors& x, double value, double gradient) {
    const Tensors got = values_and_gradients(f, x);
    BOOST_TEST(support::doubles(got[0])[0] == value, name);
    BOOST_TEST(support::doubles(got[1])[0] == gradient, name << ": the gradient");
    for (const Tensor& g : got) BOOST_TEST(!std::isnan(support::doubles(g)[0]), name);
  };
  const auto kl = [](bool log) {
    return [log](const Tensors& x) { return nn::kl_div(x[0], x[1], {.log_target = log}); };
  };
  same("kl_div", kl(false), {one(-kInfinity), one(0)}, 0, 0);
  same("kl_div", kl(false), {one(kNan), one(0)}, 0, 0);
  same("kl_div of logs", kl(true), {one(-kInfinity), one(-kInfinity)}, 0, 0);
  same("kl_div of logs", kl(true), {one(-kInfinity), one(-200)}, 0, 0);  // e^-200 is 0 in f32
  BOOST_TEST(std::isinf(nn::kl_div(one(-kInfinity), one(0.5)).item<float>()));
  const auto bce = [](const Tensors& x) { return nn::bce_with_logits(x[0], x[1]); };
  same("bce_with_logits", bce, {one(kInfinity), one(1)}, 0, 0);
  same("bce_with_logits", bce, {one(-kInfinity), one(0)}, 0, 0);
  same("bce_with_logits", bce, {one(kInfinity), one(0)}, kInfinity, 1);
  same("bce_with_logits", bce, {one(-kInfinity), one(1)}, kInfinity, -1);
  const auto focal = [](double gamma) {
    return [gamma](const Tensors& x) { return nn::focal_loss(x[0], x[1], {.alpha = -1, .gamma = gamma}); };
  };
  same("focal", focal(2), {one(kInfinity), one(1)}, 0, 0);
  same("focal", focal(0.5), {one(200), one(1)}, 0, 0);
  const auto poisson = [](bool log) {
    return [log](const Tensors& x) { return nn::poisson_nll_loss(x[0], x[1], {.log_input = log, .epsilon = 0}); };
  };
  same("poisson", poisson(true), {one(-kInfinity), one(0)}, 0, 0);
  same("poisson", poisson(false), {one(0), one(0)}, 0, 1);
  // An excluded class without a share: the loss is that of the others, ln 2.
  const Tensors got = values_and_gradients([](const Tensors& x) { return nn::cross_entropy(x[0], x[1]); },
                                           {numbers({0.0, 0.0, -kInfinity}, {1, 3}), numbers({1.0, 0.0, 0.0}, {1, 3})});
  BOOST_TEST(within(got[0], full({}, std::log(2.0)), 1e-6));
  BOOST_TEST(within(got[1], numbers({-0.5, 0.5, 0.0}, {1, 3}), 1e-6));
}

BOOST_AUTO_TEST_CASE(multiply_no_nan_is_0_where_the_weight_is) {
  const Tensor x = numbers({kNan, kInfinity, -kInfinity, 3.0, 3.0, kNan});
  const Tensor w = numbers({0.0, 0.0, -0.0, 0.0, 2.0, 1.0});
  const Tensors got = values_and_gradients([](const Tensors& t) { return multiply_no_nan(t[0], t[1]); }, {x, w});
  BOOST_TEST(within(got[0], numbers({0.0, 0.0, 0.0, 0.0, 6.0, kNan}), 0));
  BOOST_TEST(within(got[1], numbers({0.0, 0.0, 0.0, 0.0, 2.0, 1.0}), 0));
  BOOST_TEST(within(got[2], numbers({0.0, 0.0, 0.0, 3.0, 3.0, kNan}), 0));
}

BOOST_AUTO_TEST_SUITE_END()
