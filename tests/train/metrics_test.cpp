// Metrics compared with published numbers and closed forms.
#include "ferrite/train/metrics.h"

#include <cmath>

#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::says;

namespace {

Tensor i64s(std::initializer_list<std::int64_t> values) { return Tensor::from<std::int64_t>(values); }

/// Returns a batch whose target is y.
Batch target(const Tensor& y, const Tensor& lengths = {}) {
  Batch b;
  b.fields = {zeros({y.shape()[0], 1}), y};
  b.lengths = {Tensor(), lengths};
  return b;
}

/// Returns the value of a metric that has seen one batch.
double once(std::unique_ptr<Metric> m, const Tensor& prediction, const Tensor& y, const Tensor& lengths = {}) {
  m->reset();
  BOOST_TEST(std::isnan(m->value()));
  m->add(prediction, target(y, lengths));
  return m->value();
}

/// Returns scores whose largest entry is that of each class.
Tensor logits_of(const Tensor& classes, std::int64_t C) { return one_hot(classes, C) * 3 - 1; }

void near(double a, double b) { BOOST_TEST(std::fabs(a - b) <= 1e-12, a << " is not " << b); }

}  // namespace

BOOST_AUTO_TEST_SUITE(metrics)

BOOST_AUTO_TEST_CASE(accuracy_and_the_largest_k) {
  const Tensor scores =
      Tensor::from<float>({0.5F, 0.2F, 0.2F, 0.3F, 0.4F, 0.2F, 0.2F, 0.4F, 0.3F, 0.7F, 0.2F, 0.1F}, {4, 3});
  const Tensor y = i64s({0, 1, 2, 2});
  near(once(accuracy(), scores, y), 0.5);
  near(once(top_k_accuracy(2), scores, y), 0.75);  // the example of sklearn.metrics.top_k_accuracy_score
  near(once(top_k_accuracy(3), scores, y), 1);
  near(once(top_k_accuracy(1), zeros({2, 3}), i64s({0, 1})), 0.5);  // of equal scores the first is the largest
  near(once(accuracy(7), scores, i64s({0, 7, 7, 7})), 1);
  near(once(accuracy(), Tensor::from<float>({-1, 2, 3, -4}), i64s({0, 0, 1, 1})), 0.5);  // scores of two classes
  near(once(accuracy(), Tensor::from<float>({-1, 2}, {2, 1}), Tensor::from<float>({0, 1})), 1);
  const Tensor steps = logits_of(Tensor::from<std::int64_t>({1, 1, 1, 0, 0, 0}, {2, 3}), 2);
  near(once(accuracy(), steps, Tensor::from<std::int64_t>({1, 0, 0, 0, 0, 1}, {2, 3}), i64s({1, 2})), 1);
  BOOST_CHECK_EXCEPTION(once(accuracy(), scores, i64s({0, 1, 2, 3})), ShapeError, says("class 3 lies outside 0..2"));
  BOOST_CHECK_EXCEPTION(once(accuracy(), scores, i64s({0, 1})), ShapeError, says("predictions must be [..., C]"));
  BOOST_CHECK_EXCEPTION(once(accuracy(), scores, zeros({4})), DtypeError, says("targets must be integers"));
}

BOOST_AUTO_TEST_CASE(f1_of_classes) {
  // The example of sklearn.metrics.f1_score: macro 0.26..., micro 0.33..., weighted 0.26...
  const Tensor y = i64s({0, 1, 2, 0, 1, 2}), of = logits_of(i64s({0, 2, 1, 0, 0, 1}), 3);
  near(once(f1(Average::macro), of, y), 0.8 / 3);
  near(once(f1(Average::micro), of, y), 1 / 3.0);
  near(once(f1(Average::weighted), of, y), 0.8 / 3);
  const Tensor binary = i64s({0, 1, 1, 1, 0});  // right: 2, wrongly 1: 1, missed: 1
  near(once(f1(Average::binary), logits_of(i64s({1, 1, 1, 0, 0}), 2), binary), 4 / 6.0);
  BOOST_CHECK_EXCEPTION(once(f1(Average::binary), of, y), ShapeError, says("binary is for two classes"));
}

BOOST_AUTO_TEST_CASE(precision_and_recall_of_classes) {
  // The example of sklearn.metrics.precision_score and recall_score: macro 0.22 and 0.33, micro 0.33.
  const Tensor y = i64s({0, 1, 2, 0, 1, 2}), of = logits_of(i64s({0, 2, 1, 0, 0, 1}), 3);
  near(once(precision(), of, y), 2 / 9.0);
  near(once(recall(), of, y), 1 / 3.0);
  near(once(precision(Average::micro), of, y), 1 / 3.0);
  const Tensor binary = i64s({0, 1, 1, 1, 0});  // right: 1, wrongly 1: 1, missed: 2
  const Tensor told = logits_of(i64s({1, 1, 0, 0, 0}), 2);
  near(once(precision(Average::binary), told, binary), 1 / 2.0);
  near(once(recall(Average::binary), told, binary), 1 / 3.0);
  near(once(precision(Average::binary), logits_of(i64s({0, 0}), 2), i64s({1, 0})), 0);  // 0 / 0
  BOOST_CHECK_EXCEPTION(once(recall(Average::binary), of, y), ShapeError, says("recall: binary is for two classes"));
  BOOST_CHECK_EXCEPTION((void)metric("precison"), ValueError, says("did you mean 'precision'?"));
}

BOOST_AUTO_TEST_CASE(area_under_the_curve) {
  near(once(auc(), Tensor::from<float>({0.1F, 0.4F, 0.35F, 0.8F}), i64s({0, 0, 1, 1})), 0.75);  // sklearn's example
  near(once(auc(), Tensor::from<float>({1, 1, 1, 1}), i64s({0, 1, 0, 1})), 0.5);
  near(once(auc(), Tensor::from<float>({1, 2, 2, 3}), i64s({0, 0, 1, 1})), 0.875);
  BOOST_TEST(std::isnan(once(auc(), Tensor::from<float>({1, 2}), i64s({1, 1}))));
  BOOST_TEST(std::isnan(once(auc(), Tensor::from<float>({NAN, 2}), i64s({0, 1}))));
  BOOST_CHECK_EXCEPTION(once(auc(), zeros({2}), i64s({1, 2})), ShapeError, says("targets must be 0 or 1"));
}

BOOST_AUTO_TEST_CASE(errors_of_numbers) {
  const Tensor p = Tensor::from<float>({2.5F, 0, 2, 8}),
               y = Tensor::from<float>({3, -0.5F, 2, 7});  // sklearn's example
  near(once(mae(), p, y), 0.5);
  near(once(mse(), p, y), 0.375);
  near(once(rmse(), p, y), std::sqrt(0.375));
  near(once(r2(), p, y), 1 - 1.5 / 29.1875);
  near(once(r2(), ones({3}), ones({3})), 1);
  BOOST_TEST(std::isinf(once(r2(), zeros({3}), ones({3}))));
  const Tensor padded = Tensor::from<float>({1, 9, 9, 2, 3, 9}, {2, 3});
  near(once(mae(), padded, zeros({2, 3}), i64s({1, 2})), 2);
  BOOST_CHECK_EXCEPTION(once(mae(), zeros({2, 2}), zeros({4})), ShapeError, says("must have one shape"));
}

BOOST_AUTO_TEST_CASE(sequences_of_labels) {
  near(once(perplexity(), zeros({2, 5, 7}), zeros({2, 5}, Dtype::i64)), 7);
  near(once(perplexity(0), zeros({1, 2, 7}), Tensor::from<std::int64_t>({0, 3}, {1, 2})), 7);
  const std::vector<std::int64_t> kitten = {'k', 'i', 't', 't', 'e', 'n'},
                                  sitting = {'s', 'i', 't', 't', 'i', 'n', 'g'};
  BOOST_TEST(levenshtein(kitten, sitting) == 3);
  BOOST_TEST(levenshtein(sitting, {}) == 7);
  BOOST_TEST(levenshtein({}, kitten) == 6);
  // The decoded labels are 1 1 2 (a blank separates equal labels), the target is 1 2: one error for two labels.
  const Tensor logits = logits_of(Tensor::from<std::int64_t>({1, 1, 0, 1, 2, 2}, {1, 6}), 3);
  Batch b = target(Tensor::from<std::int64_t>({1, 2, 2}, {1, 3}), i64s({2}));
  b.lengths[0] = i64s({6});
  const auto m = edit_distance();
  m->add(logits, b);
  near(m->value(), 0.5);
  // Steps after the length do not count.
  b.lengths[0] = i64s({3});
  m->reset();
  m->add(logits, b);  // 1, against 1 2
  near(m->value(), 0.5);
  b.lengths[0] = i64s({4});
  m->reset();
  m->add(logits_of(Tensor::from<std::int64_t>({1, 0, 2, 2, 1, 2}, {1, 6}), 3), b);
  near(m->value(), 0);
}

BOOST_AUTO_TEST_CASE(batches_add_up_and_states_go_on) {
  const Tensor p = uniform({30}, {.seed = 1}, -1, 1), y = uniform({30}, {.seed = 2}, -1, 1);
  const Tensor classes = cast(gt(y, 0), Dtype::i64), scores = uniform({30, 3}, {.seed = 3});
  const Tensor of_three = cast(uniform({30}, {.seed = 4}, 0, 3), Dtype::i64);
  const auto check = [](const char* name, const Tensor& prediction, const Tensor& all) {
    const double whole = once(metric(name), prediction, all);
    auto first = metric(name), second = metric(name);
    first->add(slice(prediction, 0, 0, 13), target(slice(all, 0, 0, 13)));
    second->restore(first->state());
    second->add(slice(prediction, 0, 13, 30), target(slice(all, 0, 13, 30)));
    BOOST_TEST(std::fabs(second->value() - whole) <= 1e-12 * std::max(1.0, std::fabs(whole)), name);
    second->reset();
    BOOST_TEST(std::isnan(second->value()), name);
    BOOST_CHECK_THROW(second->restore({1, 2, 3, 4, 5}), ValueError);
    BOOST_TEST(metric(name)->name() == name);
  };
  for (const char* name : {"mae", "mse", "rmse", "r2"}) check(name, p, y);
  check("auc", p, classes);
  for (const char* name : {"accuracy", "top2", "f1", "perplexity"}) check(name, scores, of_three);
  BOOST_TEST(metric("accuracy")->larger_is_better());
  BOOST_TEST(!metric("rmse")->larger_is_better());
  BOOST_CHECK_EXCEPTION(metric("acuracy"), ValueError, says("did you mean 'accuracy'?"));
  BOOST_CHECK_EXCEPTION(metric("top0"), ValueError, says("there is no 'top0'"));
  auto mean = mean_of("ones", [](const Tensor&, const Batch& b) { return static_cast<double>(b.size()); });
  mean->add(p, target(zeros({2})));
  mean->add(p, target(zeros({6})));
  near(mean->value(), 5);  // (2 * 2 + 6 * 6) / 8
}

BOOST_AUTO_TEST_SUITE_END()
