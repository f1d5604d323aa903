// Data for which metrics could silently return a wrong number: invalid classes, NaN, windows and splits at their ends,
// constant features.
#include <cmath>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
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
  for (const char* name : {"accuracy", "f1"})  // targets of a regression
    BOOST_CHECK_EXCEPTION(metric(name)->add(zeros({4}), b), ShapeError, says("a target of 0.7"));
  b.fields[1] = Tensor::from({0.0F, 1.0F, 2.0F, 0.0F});
  BOOST_CHECK_EXCEPTION(metric("accuracy")->add(zeros({4}), b), ShapeError, says("class 2 lies outside 0..1"));
  b.fields[1] = i64s({0, 1, -1, 0});
  for (const char* name : {"accuracy", "f1", "top2", "perplexity"}) {
    const auto m = metric(name);
    BOOST_CHECK_EXCEPTION(m->add(zeros({4, 3}), b), ShapeError, says("class -1 lies outside 0..2"));
    BOOST_TEST(std::isnan(m->value()));  // nothing was added
  }
  // A NaN among many scores, at any place, leaves no area.
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
  // A user's batch without lengths.
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
  std::int64_t used = 0;  // shares that add up to less than 1 leave the rest
  for (const Dataset& part : split(line(), {0.25, 0.5})) used += part.size();
  BOOST_TEST(used == 9);
  for (const std::int64_t n : {2, 3, 7, 12, 101})  // thirds of any number use all of it
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

/// A constant feature keeps the deviation 1, whatever rounding does to its mean, and however small a deviation is.
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

// A missing number counts neither for the mean nor for the deviation, and is replaced by the mean.
BOOST_AUTO_TEST_CASE(missing_numbers_are_left_out_and_replaced_by_the_mean) {
  const Tensor x = Tensor::from<float>({1, NAN, 3, 8, NAN, 6, 5, 4}, {4, 2});  // means of 1, 3, 5 and of 8, 6, 4
  const nn::Standardize layer({.features = 2, .skip_missing = true});
  layer.adapt(x);
  BOOST_TEST(support::within(layer.mean.peek(), Tensor::from<float>({3, 6}), 1e-7));
  BOOST_TEST(support::within(layer.deviation.peek(), full({2}, std::sqrt(8 / 3.0)), 1e-7));
  const float u = std::sqrt(1.5F);  // 2 / deviation
  BOOST_TEST(support::within(layer(x), Tensor::from<float>({-u, 0, 0, u, 0, 0, u, -u}, {4, 2}), 1e-6));
  {
    Tape tape;
    const Tensor in = tape.watch(x);
    for (const double g : support::doubles(tape.grad(sum(square(layer(in))), Tensors{in})[0]))
      BOOST_TEST(std::isfinite(g));
  }
  const nn::Standardize plain(2);
  BOOST_CHECK_EXCEPTION(plain.adapt(x), ValueError, support::says("give the layer .skip_missing = true"));
  BOOST_TEST(std::isnan(plain(x)[0][1].item()));
  BOOST_CHECK_EXCEPTION(layer.adapt(Tensor::from<float>({1, NAN, 2, NAN}, {2, 2})), ValueError,
                        support::says("all numbers of feature 1 are missing"));
  BOOST_CHECK_EXCEPTION(layer.adapt(Tensor::from<float>({1, INFINITY, 2, NAN}, {2, 2})), ValueError,
                        support::says("infinite"));
  BOOST_TEST(support::within(layer.mean.peek(), Tensor::from<float>({3, 6}), 1e-7));  // unchanged
}

BOOST_AUTO_TEST_CASE(a_net_is_adapted_by_its_first_layer) {
  const Dataset data({Tensor::from<float>({0, 10, 2, 30}, {2, 2}), zeros({2, 1})});
  const auto net = dsl::features(2).standardize("scale").linear(1).build(0);
  adapt(net, data);
  BOOST_TEST(identical(net.layer<nn::Standardize>("scale").mean.peek(), Tensor::from<float>({1, 20})));
  const auto staged = dsl::features(2).stage("in", [](dsl::Builder& b) { b.standardize().linear(2); }).build(0);
  adapt(staged, data);
  BOOST_TEST(identical(staged.layer<nn::Standardize>("in.0").mean.peek(), Tensor::from<float>({1, 20})));
  BOOST_CHECK_EXCEPTION(adapt(dsl::features(2).linear(2).standardize().build(0), data), ValueError,
                        support::says("adapt: the net begins with linear, not with standardize"));
  BOOST_CHECK_EXCEPTION(adapt(net, data, 2), ValueError, support::says("there is no field 2"));
}

/// The input of a later layer is not the data, so the whole net is refused, wherever the other nn::Standardize is.
BOOST_AUTO_TEST_CASE(a_second_standardize_is_not_adapted_by_the_data) {
  const Dataset data({Tensor::from<float>({0, 10, 2, 30}, {2, 2}), zeros({2, 1})});
  const auto start = [] { return dsl::features(2).standardize().linear(2); };
  const auto inner = [](dsl::Builder& b) { b.standardize(); };
  for (const dsl::Builder& words : {start().standardize("again"), start().stage("part", inner), start().residual(inner),
                                    start().parallel({inner, [](dsl::Builder& b) { b.tanh(); }})}) {
    const dsl::Network net = words.build(0);
    BOOST_CHECK_EXCEPTION(adapt(net, data), ValueError, support::says("comes later"));
    BOOST_TEST(identical(dynamic_cast<const nn::Standardize&>(net[0]).mean.peek(), zeros({2})));  // unchanged
  }
  BOOST_CHECK_EXCEPTION(adapt(start().standardize("again").build(0), data), ValueError,
                        support::says("adapt: the standardize 'again' comes later"));
  BOOST_TEST(standardizes(dsl::features(2).linear(2).residual(inner).build(0)));
  BOOST_TEST(!standardizes(dsl::features(2).linear(2).build(0)));
}

BOOST_AUTO_TEST_SUITE_END()
