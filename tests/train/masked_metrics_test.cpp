// Elements that do not count change no metric: NaN and infinities after the lengths and at ignored targets. The
// expected value, to the bit, is that of the same metric with other, finite numbers there.
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "ferrite/train/confusion.h"
#include "ferrite/train/metrics.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;

namespace {

const std::vector<double> kBad = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                  -std::numeric_limits<double>::infinity()};

double value_of(Metric& m, const Tensor& prediction, const Tensor& target, const Tensor& lengths) {
  Batch b;
  b.fields = {prediction, target};
  b.lengths = {lengths, lengths};
  m.reset();
  m.add(prediction, b);
  return m.value();
}

/// Returns the names of all metrics, with one example of "top<k>".
std::vector<std::string> all_names() {
  std::vector<std::string> names = {"top2"};
  try {
    (void)metric("????????????????????");
  } catch (const ValueError& e) {
    const std::string text = e.what();
    for (std::size_t at = text.find("<k>, ") + 3; at != std::string::npos; at = text.find(", ", at + 1)) {
      names.push_back(text.substr(at + 2, text.find(',', at + 2) - at - 2));
    }
  }
  return names;
}

/// Predictions, perhaps with classes, and targets [3, 4] for a kind of metric.
struct Operands {
  Tensor prediction, target;
};

Operands operands_of(const std::string& name) {
  const Tensor numbers = uniform({3, 4}, {.seed = 1}), others = uniform({3, 4}, {.seed = 2});
  const Tensor two = cast(gt(others, 0.5), Dtype::i64), three = cast(others * 3, Dtype::i64);
  if (name == "mae" || name == "mse" || name == "rmse" || name == "r2") return {numbers, others};
  if (name == "auc" || name.ends_with("_binary")) return {numbers - 0.5, two};
  return {uniform({3, 4, 3}, {.seed = 3}, -1, 1), name == "edit_distance" ? three + 1 : three};
}

Tensor like(const Tensor& hidden, const Tensor& x) {
  return expand(x.rank() == hidden.rank() ? hidden : unsqueeze(hidden, -1), x.shape());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(masked_metrics)

BOOST_AUTO_TEST_CASE(nothing_behind_lengths_reaches_a_metric) {
  const Tensor lengths = Tensor::from<std::int64_t>({4, 1, 2}), hidden = ge(arange(4), unsqueeze(lengths, 1));
  const std::vector<std::string> names = all_names();
  BOOST_TEST(names.size() >= 21U);
  for (const std::string& name : names) {
    const auto m = metric(name);
    const auto [prediction, target] = operands_of(name);
    const double clean = value_of(*m, prediction, target, lengths);
    BOOST_TEST(std::isfinite(clean), name);
    for (const double bad : kBad) {
      const Tensor p = where(like(hidden, prediction), bad, prediction);
      BOOST_TEST(value_of(*m, p, target, lengths) == clean, name << ": " << bad << " in the prediction");
      if (!is_float(target.dtype())) continue;
      const Tensor y = where(hidden, bad, target);
      BOOST_TEST(value_of(*m, prediction, y, lengths) == clean, name << ": " << bad << " in the target");
    }
    if (is_float(target.dtype())) continue;
    const Tensor y = where(hidden, 99, target);  // an invalid class
    BOOST_TEST(value_of(*m, prediction, y, lengths) == clean, name << ": no class in the target");
    // Labels as floats: NaN is not a class either.
    if (name == "accuracy" || name.ends_with("_binary") || name == "auc") {
      const Tensor scores = prediction.rank() > 2 ? select(prediction, -1, 0) : prediction;
      const Tensor labels = cast(gt(target, 0), Dtype::f32);
      BOOST_TEST(value_of(*m, scores, where(hidden, kBad[0], labels), lengths) == value_of(*m, scores, labels, lengths),
                 name << ": NaN among labels");
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_of_an_ignored_target_reaches_a_metric) {
  const std::map<std::string, std::function<std::unique_ptr<Metric>(std::int64_t)>> all = {
      {"accuracy", [](std::int64_t i) { return accuracy(i); }},
      {"top2", [](std::int64_t i) { return top_k_accuracy(2, i); }},
      {"precision", [](std::int64_t i) { return precision(Average::macro, i); }},
      {"recall", [](std::int64_t i) { return recall(Average::weighted, i); }},
      {"f1", [](std::int64_t i) { return f1(Average::micro, i); }},
      {"f1_binary", [](std::int64_t i) { return f1(Average::binary, i); }},
      {"perplexity", [](std::int64_t i) { return perplexity(i); }}};
  const Tensor hidden = gt(uniform({3, 4}, {.seed = 9}), 0.6);
  for (const auto& [name, make] : all)
    for (const std::int64_t ignored : {-100, 7}) {
      const auto m = make(ignored);
      const auto [prediction, classes] = operands_of(name);
      const Tensor target = where(hidden, ignored, classes);
      const double clean = value_of(*m, prediction, target, {});
      BOOST_TEST(std::isfinite(clean), name);
      for (const double bad : kBad)
        BOOST_TEST(value_of(*m, where(like(hidden, prediction), bad, prediction), target, {}) == clean,
                   name << ", " << bad);
    }
}

/// argmax takes NaN for the largest number, and NaN is not above 0, so a model that returns NaN would be right by
/// chance.
BOOST_AUTO_TEST_CASE(nan_predicts_no_class) {
  const double nan = kBad[0];
  const Tensor scores = Tensor::from<double>({nan, 1, 0, nan, 0, 1}, {2, 3}), target = zeros({2}, Dtype::i64);
  for (const auto& m : {metric("accuracy"), metric("top3"), metric("recall"), metric("precision"), metric("f1")})
    BOOST_TEST(value_of(*m, scores, target, {}) == 0, m->name());
  BOOST_TEST(value_of(*metric("accuracy"), full({2}, nan), target, {}) == 0);
  BOOST_TEST(value_of(*metric("recall_binary"), full({2}, nan), target + 1, {}) == 0);
}

BOOST_AUTO_TEST_CASE(confusion_leaves_out_what_is_ignored) {
  const auto of = [](std::vector<std::int64_t> v) { return Tensor::from(v, {std::ssize(v)}); };
  Confusion c(3);
  c.add(of({0, 1, 9, -1}), of({0, 2, -100, -100}));
  BOOST_TEST(c.total() == 2);
  BOOST_TEST(c.count(2, 1) == 1);
  c.add(of({0, 99}), of({1, 2}), 2);
  BOOST_TEST(c.total() == 3);
  BOOST_TEST(c.count(1, 0) == 1);
  c.add(of({1}), of({2}), 2);  // though both are valid classes
  BOOST_TEST(c.count(2, 1) == 1);
  BOOST_CHECK_THROW(c.add(of({0, 3}), of({0, 0})), ShapeError);
  BOOST_CHECK_THROW(c.add(of({0, 0}), of({0, -100}), 2), ShapeError);
  BOOST_TEST(c.total() == 3);
}

BOOST_AUTO_TEST_SUITE_END()
