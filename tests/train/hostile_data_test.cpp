// Where metrics and data could let a wrong number pass in silence: classes that are none, NaN, windows and splits at
// their ends, constant features.
#include <cmath>
#include <limits>

#include "ferrite/train/adapt.h"
#include "ferrite/train/metrics.h"
#include "ferrite/train/split.h"
#include "ferrite/train/windows.h"
#include "support/compare.h"
#include "train/line.h"

using namespace ferrite;
using namespace ferrite::train;
using support::identical;
using support::says;
using train_test::line;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor i64s(std::initializer_list<std::int64_t> values) { return Tensor::from<std::int64_t>(values); }

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile_data)

BOOST_AUTO_TEST_CASE(metrics_refuse_what_they_cannot_count) {
  Batch b;
  b.fields = {zeros({4, 1}), i64s({0, 1, 1, 0})};
  b.lengths = {Tensor(), Tensor()};
  for (const char* name : {"top2", "perplexity"})  // scores without classes
    BOOST_CHECK_EXCEPTION(metric(name)->add(zeros({4}), b), ShapeError, says("predictions must be [..., C]"));
  b.fields[1] = Tensor::from({0.0F, 0.7F, 1.0F, 0.2F});
  for (const char* name : {"accuracy", "f1"})  // of a regression
    BOOST_CHECK_EXCEPTION(metric(name)->add(zeros({4}), b), ShapeError, says("a target of 0.7"));
  b.fields[1] = Tensor::from({0.0F, 1.0F, 2.0F, 0.0F});
  BOOST_CHECK_EXCEPTION(metric("accuracy")->add(zeros({4}), b), ShapeError, says("class 2 lies outside 0..1"));
  b.fields[1] = i64s({0, 1, -1, 0});
  for (const char* name : {"accuracy", "f1", "top2", "perplexity"}) {
    const auto m = metric(name);
    BOOST_CHECK_EXCEPTION(m->add(zeros({4, 3}), b), ShapeError, says("class -1 lies outside 0..2"));
    BOOST_TEST(std::isnan(m->value()));  // nothing was taken in
  }
  // Scores that are NaN among many, at every place: there is no area.
  for (std::int64_t at = 0; at < 64; at += 7) {
    std::vector<float> scores;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < 64; ++i) {
      scores.push_back(i == at || i % 9 == 4 ? NAN : static_cast<float>(i * 37 % 64));
      labels.push_back(i % 2);
    }
    b.fields = {zeros({64, 1}), Tensor::from(labels, {64})};
    const auto m = auc();
    m->add(Tensor::from(scores, {64}), b);
    BOOST_TEST(std::isnan(m->value()));
  }
  // A batch of a user's without lengths.
  Batch bare;
  bare.fields = {zeros({1, 2, 1}), Tensor::from<std::int64_t>({1, 2}, {1, 2})};
  bare.lengths = {Tensor()};
  const auto m = edit_distance();
  m->add(one_hot(Tensor::from<std::int64_t>({1, 1}, {1, 2}), 3), bare);
  BOOST_TEST(m->value() == 0.5);
}

BOOST_AUTO_TEST_CASE(windows_splits_and_folds_at_their_ends) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Tensor series = arange(6);
  for (const train::WindowOptions& o : {train::WindowOptions{.length = 6},
                                        {.length = 7},
                                        {.length = most},
                                        {.length = 2, .horizon = most},
                                        {.length = 2, .delay = most},
                                        {.length = 6, .every_step = true},
                                        {.length = most, .delay = most}})
    BOOST_TEST(windows(series, o).size() == 0);
  BOOST_TEST(windows(series, {.length = 6, .horizon = 0}).size() == 1);
  BOOST_TEST(windows(series, {.length = 5}).size() == 1);
  BOOST_TEST(windows(series, {.length = 5, .step = most}).size() == 1);
  BOOST_TEST(windows(series, {.length = 5, .every_step = true}).size() == 1);
  BOOST_TEST(identical(windows(series, {.length = 3, .horizon = 2, .step = 1, .delay = 1})[0][1], i64s({4, 5})));
  BOOST_CHECK_THROW(split(line(), {}), ValueError);
  BOOST_CHECK_THROW(split(line(), {kNaN}), ValueError);
  BOOST_CHECK_THROW(split(line(), {0.6, 0.6}), ValueError);
  BOOST_CHECK_THROW(split(line(), {-0.5, 0.5}), ValueError);
  std::int64_t used = 0;  // shares that add up to less leave the rest
  for (const Dataset& part : split(line(), {0.25, 0.5})) used += part.size();
  BOOST_TEST(used == 9);
  for (const std::int64_t n : {2, 3, 7, 12, 101})  // thirds of anything use all of it
    BOOST_TEST([&] {
      std::int64_t all = 0;
      for (const Dataset& part : split(line(n), {1 / 3.0, 1 / 3.0, 1 / 3.0})) all += part.size();
      return all;
    }() == n);
  const std::vector<Fold> one_out = k_folds(line(), 12);
  for (const Fold& f : one_out) BOOST_TEST((f.validation.size() == 1 && f.training.size() == 11));
  BOOST_CHECK_THROW(k_folds(line(), 13), ValueError);
  BOOST_CHECK_THROW(k_folds(line(), 1), ValueError);
}

/// A feature that is constant keeps the deviation 1, whatever its mean comes out as, and however small a deviation is.
BOOST_AUTO_TEST_CASE(constant_features_are_not_divided_by_what_rounding_left) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const nn::Standardize layer(3, {.dtype = dtype});
    const Tensor x = Tensor::from<double>({0.1, 1, 1e-60, 0.1, 2, 2e-60, 0.1, 3, 3e-60}, {3, 3});
    layer.adapt(x);
    const std::vector<double> d = support::doubles(layer.deviation.peek());
    BOOST_TEST(d[0] == 1);
    BOOST_TEST(std::fabs(d[1] - std::sqrt(2 / 3.0)) < 1e-7);
    BOOST_TEST(d[2] > 0);
    const Tensor y = layer(cast(x, dtype));
    for (const double v : support::doubles(y)) BOOST_TEST(std::isfinite(v));
    const nn::Standardize of_set(3, {.dtype = dtype});
    adapt(of_set, Dataset({x}));
    BOOST_TEST(identical(of_set.deviation.peek(), layer.deviation.peek()));
  }
}

BOOST_AUTO_TEST_SUITE_END()
