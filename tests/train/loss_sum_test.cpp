// Losses as sums and counts: their quotient is the mean, which tests/golden and tests/nn compare with PyTorch.
#include <cmath>
#include <limits>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/tensor/anomaly.h"
#include "ferrite/train/fit.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::train;
using support::identical;
using support::says;

namespace {

/// Returns a batch with targets that are numbers or classes, and with lengths if given.
Batch batch_of(Tensor x, Tensor y, const Tensor& lengths = {}) {
  Batch b;
  b.fields = {std::move(x), std::move(y)};
  b.lengths = {lengths, Tensor()};
  return b;
}

void check(const char* name, const Tensor& prediction, const Batch& batch, double count) {
  BOOST_TEST_CONTEXT(name) {
    const Loss loss(name);
    BOOST_TEST(loss.gives_sums());
    const LossSum s = loss.sum(prediction, batch);
    BOOST_TEST(cast(s.count, Dtype::f64).item<double>() == count);
    const Tensor mean = loss(prediction, batch);
    BOOST_TEST(std::abs(s.sum.item() / static_cast<float>(count) - mean.item()) < 1e-6F * (1 + std::abs(mean.item())));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loss_sums)

BOOST_AUTO_TEST_CASE(of_every_name_are_those_of_its_mean) {
  const Tensor x = zeros({4, 5, 2}), lengths = Tensor::from<std::int64_t>({5, 0, 2, 3}, {4});
  const Tensor p = normal({4, 5, 3}, {.seed = 1}), t = uniform({4, 5, 3}, {.seed = 2});
  for (const char* name : {"bce_with_logits", "mse", "l1", "huber", "smooth_l1"}) {
    check(name, p, batch_of(x, t), 60);
    check(name, p, batch_of(x, t, lengths), 30);  // 5 + 0 + 2 + 3 steps of 3
    check(name, reshape(p, {20, 3}), batch_of(x, reshape(t, {20, 3})), 60);
    check(name, reshape(slice(p, 2, 0, 1), {20, 1}), batch_of(x, reshape(slice(t, 2, 0, 1), {20})), 20);
  }
  Tensor classes = cast(uniform({4, 5}, {.seed = 3}, 0, 3), Dtype::i64);
  check("cross_entropy_classes_last", p, batch_of(x, classes), 20);
  check("cross_entropy_classes_last", p, batch_of(x, classes, lengths), 10);
  // The first and the last of the steps 0 to 4 of each row are ignored.
  const Tensor step = arange(0, 5, 1, Dtype::i64);
  classes = where(eq(step, 0) || eq(step, 4), full({4, 5}, -100, Dtype::i64), classes);
  check("cross_entropy_classes_last", p, batch_of(x, classes), 12);
  check("cross_entropy_classes_last", p, batch_of(x, classes, lengths), 3 + 0 + 1 + 2);
  check("cross_entropy", reshape(p, {20, 3}), batch_of(x, reshape(classes, {20})), 12);
  check("cross_entropy_classes_last", p, batch_of(x, softmax(t, 2)), 20);  // targets that are probabilities
  check("cross_entropy", reshape(p, {20, 3}), batch_of(x, reshape(softmax(t, 2), {20, 3})), 20);
  const Tensor images = normal({2, 3, 4, 5}, {.seed = 4});
  check("cross_entropy_classes_second", images, batch_of(x, cast(uniform({2, 4, 5}, {.seed = 5}, 0, 3), Dtype::i64)),
        40);
}

BOOST_AUTO_TEST_CASE(functions_of_them_train_and_others_cannot_be_summed) {
  const Tensor x = uniform({30, 3}, {.seed = 6}, -1, 1);
  const DataLoader data(Dataset({x, sum(x, {1}, true)}), {.batch_size = 8});
  const Loss of_target = [](const Tensor& p, const Tensor& y) {
    return LossSum(nn::mse_loss(p, y, nn::Reduction::sum), static_cast<double>(y.numel()));
  };
  const Loss of_batch = [](const Tensor& p, const Batch& b) {
    return LossSum(nn::mse_loss(p, b.y(), nn::Reduction::sum), full({1}, static_cast<double>(b.size()), Dtype::f64));
  };
  const auto trained = [&](const Loss& loss) {
    const auto net = dsl::features(3).linear(4).tanh().linear(1).build(2);
    nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
    (void)fit(net, data, {.loss = loss, .optimizer = &sgd, .epochs = 3});
    return net.parameters()[0].peek();
  };
  BOOST_TEST(identical(trained(of_target), trained(of_batch)));
  BOOST_TEST(support::within(trained(of_target), trained("mse"), 1e-6));
  const Loss mean = [](const Tensor& p, const Tensor& y) { return nn::mse_loss(p, y); };
  BOOST_TEST(!mean.gives_sums());
  BOOST_CHECK_EXCEPTION((void)mean.sum(x, data.batch(0, 0)), ValueError, says("gives a mean"));
  const Loss counted = [](const Tensor& p, const Tensor& y) {
    return LossSum(nn::mse_loss(p, y, nn::Reduction::sum), 5.0);
  };
  const Tensor five = nn::mse_loss(ones({8, 1}), data.batch(0, 0).y(), nn::Reduction::sum) / 5;
  BOOST_TEST(support::within(counted(ones({8, 1}), data.batch(0, 0)), five, 1e-6));  // divided by five, not 8
  const Loss wrong = [](const Tensor& p, const Tensor&) { return LossSum(p, 1.0); };
  BOOST_CHECK_EXCEPTION((void)wrong(x, data.batch(0, 0)), ShapeError, says("must hold one element"));
  // A forward pass that returns sums.
  const auto net = dsl::features(3).linear(1).build(3), other = dsl::features(3).linear(1).build(3);
  nn::Adam a(net.parameters()), b(other.parameters());
  (void)fit(net,
            [&](const Batch& batch) {
              return StepOutput{nn::mse_loss(net(batch.x()), batch.y(), nn::Reduction::sum),
                                {},
                                full({}, static_cast<double>(batch.size()), Dtype::f64)};
            },
            data, {.optimizer = &a, .epochs = 2});
  (void)fit(other, data, {.loss = of_target, .optimizer = &b, .epochs = 2});
  BOOST_TEST(identical(net.parameters()[0].peek(), other.parameters()[0].peek()));
}

BOOST_AUTO_TEST_CASE(means_over_batches_are_over_all_that_counts) {
  // Three batches of four examples have 1, 4 and 2 that count; the loss of an example is (w x)^2 = x^2 at first.
  const Tensor mask = Tensor::from<float>({0, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1}, {12, 1});
  const Tensor x = reshape(arange(1, 13, 1, Dtype::f32), {12, 1});
  const Dataset all({x, zeros({12, 1}), mask});
  const Loss masked = [](const Tensor& p, const Batch& b) { return LossSum(sum(p * p * b.field(2)), sum(b.field(2))); };
  const double expected = (9 + 25 + 36 + 49 + 64 + 81 + 144) / 7.0;
  for (const std::int64_t batch_size : {4, 12}) {
    const nn::Linear net({.in_features = 1, .out_features = 1, .bias = false});
    net.parameters()[0].assign(ones({1, 1}));
    const DataLoader data(all, {.batch_size = batch_size, .shuffle = false});
    BOOST_TEST(evaluate(net, data, {.loss = masked})["loss"] == expected, boost::test_tools::tolerance(1e-6));
    nn::Sgd sgd(net.parameters(), {.learning_rate = 0.001});
    const History h = fit(net, data, {.loss = masked, .optimizer = &sgd, .epochs = 1, .accumulate = 12 / batch_size});
    BOOST_TEST(h["loss"][0] == expected, boost::test_tools::tolerance(1e-6));
    // The gradient with respect to w is twice the mean of x^2.
    BOOST_TEST(net.parameters()[0].peek().item() == static_cast<float>(1 - 0.002 * expected),
               boost::test_tools::tolerance(1e-6F));
  }
  BOOST_CHECK_EXCEPTION((void)masked.weight(DataLoader(all).batch(0, 0)), ValueError, says("has a count"));
}

BOOST_AUTO_TEST_CASE(counts_that_are_none_are_refused) {
  const Tensor x = ones({4, 1});
  const DataLoader data(Dataset({x, x}), {.batch_size = 2});
  for (const double count : {-2.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const Loss wrong = [=](const Tensor& p, const Tensor& y) { return LossSum(sum(p - y), count); };
    for (const Compile compile : {Compile::never, Compile::always}) {
      const auto net = dsl::features(1).linear(1).build(1);
      const Tensor before = net.parameters()[0].peek();
      nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
      BOOST_CHECK_EXCEPTION((void)fit(net, data, {.loss = wrong, .optimizer = &sgd, .epochs = 3, .compile = compile}),
                            ValueError, says("the count of losses"));
      BOOST_TEST(identical(before, net.parameters()[0].peek()));
      BOOST_CHECK_EXCEPTION((void)evaluate(net, data, {.loss = wrong}), ValueError, says("the count of losses"));
    }
  }
}

BOOST_AUTO_TEST_CASE(batches_in_which_nothing_counts_leave_means_as_they_are) {
  const Tensor x = uniform({20, 3}, {.seed = 1}, -1, 1);
  const Tensor ignored = full({10}, -100, Dtype::i64),
               classes = Tensor::from<std::int64_t>({0, 1, 2, 3, 0, 1, 2, 3, 0, 1}, {10});
  const Dataset all({x, concat({classes, ignored}, 0)}), counted({slice(x, 0, 0, 10), classes});
  const auto net = dsl::features(3).linear(4).build(2);
  const double expected = evaluate(net, DataLoader(counted), {.loss = "cross_entropy"})["loss"];
  BOOST_TEST(std::isfinite(expected));
  for (const std::int64_t batch_size : {10, 20})
    BOOST_TEST(evaluate(net, DataLoader(all, {.batch_size = batch_size, .shuffle = false}),
                        {.loss = "cross_entropy"})["loss"] == expected,
               boost::test_tools::tolerance(1e-6));
  const DataLoader nothing(Dataset({slice(x, 0, 10, 20), ignored}), {.batch_size = 5});
  BOOST_TEST(std::isnan(evaluate(net, nothing, {.loss = "cross_entropy"})["loss"]));  // the mean of nothing
  // A step without targets that count has no gradient.
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  BOOST_CHECK_THROW((void)fit(net, nothing, {.loss = "cross_entropy", .optimizer = &sgd}), AnomalyError);
}

BOOST_AUTO_TEST_SUITE_END()
