// Cases in which fit could silently compute a wrong number: lengths, unequal batches, empty sets, repeated names, other
// data.
#include <cmath>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/io/module_file.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/train/fit.h"
#include "io/temporary_folder.h"
#include "support/compare.h"
#include "train/line.h"

using namespace ferrite;
using namespace ferrite::train;
using io_test::TemporaryFolder;
using support::identical;
using support::says;
using support::within;
using train_test::line;

namespace {

/// Returns 11 sequences of 1 to 7 steps with a number as target of each step, or a class of which some are ignored.
Dataset steps(bool classes) {
  std::vector<Tensor> x, y;
  for (std::int64_t i = 0; i < 11; ++i) {
    const std::int64_t T = 1 + i * 3 % 7;
    const RandomKey key{.seed = 4, .call = static_cast<std::uint64_t>(i)};
    x.push_back(uniform({T, 2}, key, -1, 1));
    std::vector<std::int64_t> labels;
    for (std::int64_t t = 0; t < T; ++t) labels.push_back((i + t) % 5 == 0 ? -100 : (i * t) % 3);
    y.push_back(classes ? Tensor::from(labels, {T}) : sum(x.back(), {1}, true));
  }
  return {{sequences(x), sequences(y, classes ? -100 : 0)}};
}

dsl::Network of_steps(bool classes) { return dsl::sequence(2).gru(3).linear(classes ? 3 : 1).build(1); }

}  // namespace

BOOST_AUTO_TEST_SUITE(hostile)

/// The mean over all steps does not depend on how sequences are batched.
BOOST_AUTO_TEST_CASE(losses_of_padded_targets_are_means_over_steps) {
  for (const bool classes : {false, true}) {
    const auto net = of_steps(classes);
    net.eval();
    const char* const loss = classes ? "cross_entropy_classes_last" : "mse";
    const Batch all = steps(classes).all();
    const double whole = Loss(loss)(net(all.x(), all.context()), all).item();
    double sum = 0, n = 0;  // a scalar loop
    const std::vector<double> y = support::doubles(net(all.x(), all.context()));
    const std::vector<double> t = support::doubles(all.y());
    const std::vector<std::int64_t> lengths = all.lengths[1].to_vector<std::int64_t>();
    for (std::size_t b = 0; b < 11; ++b)
      for (std::size_t s = 0; s < static_cast<std::size_t>(lengths[b]); ++s) {
        const std::size_t at = b * 7 + s;
        if (classes && t[at] < 0) continue;
        if (classes) {
          const double* row = &y[at * 3];
          sum +=
              std::log(std::exp(row[0]) + std::exp(row[1]) + std::exp(row[2])) - row[static_cast<std::size_t>(t[at])];
        } else {
          sum += (y[at] - t[at]) * (y[at] - t[at]);
        }
        n += 1;
      }
    BOOST_TEST(std::fabs(whole - sum / n) < 1e-6);
    for (const std::int64_t size : {2, 3, 11}) {
      const Logs logs = evaluate(net, DataLoader(steps(classes), {.batch_size = size}), {.loss = loss});
      BOOST_TEST(std::fabs(logs["loss"] - sum / n) < 1e-6, loss << " in batches of " << size);
    }
  }
  // Ignored pixels are parts of an image.
  Batch images;
  images.fields = {zeros({2, 1, 2, 2}), full({2, 2, 2}, -100, Dtype::i64)};
  images.lengths = {Tensor(), Tensor()};
  BOOST_TEST(Loss("cross_entropy_classes_second").weight(images) == 0);
  images.fields[1] = concat({full({1, 2, 2}, -100, Dtype::i64), zeros({1, 2, 2}, Dtype::i64)}, 0);
  BOOST_TEST(Loss("cross_entropy_classes_second").weight(images) == 1);
  BOOST_TEST(Loss("mse").weight(images) == 2);
}

/// Gathered gradients of unequal padded batches equal those of one batch of all.
BOOST_AUTO_TEST_CASE(gathered_gradients_of_padded_batches) {
  for (const bool classes : {false, true})
    for (const Compile mode : {Compile::never, Compile::always}) {
      const auto net = of_steps(classes), whole = of_steps(classes);
      nn::Sgd sgd(net.parameters(), {.learning_rate = 0.5}), of_whole(whole.parameters(), {.learning_rate = 0.5});
      const Loss loss = classes ? "cross_entropy_classes_last" : "mse";
      (void)fit(net, DataLoader(steps(classes), {.batch_size = 3, .shuffle = false}),
                {.loss = loss, .optimizer = &sgd, .accumulate = 4, .compile = mode});
      (void)fit(whole, DataLoader(steps(classes), {.batch_size = 11, .shuffle = false}),
                {.loss = loss, .optimizer = &of_whole});
      for (std::size_t i = 0; i < net.parameters().size(); ++i)
        BOOST_TEST(within(net.parameters()[i].peek(), whole.parameters()[i].peek(), 1e-6));
    }
}

/// Compiled programs of other shapes may reach other parameters.
BOOST_AUTO_TEST_CASE(gathered_gradients_of_branches_that_depend_on_shapes) {
  struct Two final : nn::Module {
    nn::Linear a{2, 1, {.seed = 1}}, b{2, 1, {.seed = 2}};
    Two() { adopt("a", a), adopt("b", b); }
    StepOutput loss(const Batch& batch) const {
      const Tensor x = batch.x();
      return {mean(square(x.shape()[1] > 2 ? b(x) : a(x)))};
    }
  };
  std::vector<Tensor> each;
  for (std::int64_t i = 0; i < 12; ++i)
    each.push_back(uniform({i % 2 == 0 ? 2 : 4, 2}, {.seed = 3, .call = static_cast<std::uint64_t>(i)}, -1, 1));
  const DataLoader data(Dataset({sequences(each)}), {.batch_size = 2, .seed = 1, .buckets = 2});
  std::vector<Tensor> eager;
  for (const Compile mode : {Compile::never, Compile::always}) {
    const Two two;
    nn::Sgd sgd(two.parameters(), {.learning_rate = 0.1});
    (void)fit(two, [&](const Batch& b) { return two.loss(b); }, data,
              {.optimizer = &sgd, .epochs = 3, .accumulate = 2, .compile = mode});
    for (std::size_t i = 0; i < 4; ++i) {
      if (mode == Compile::never) eager.push_back(two.parameters()[i].peek());
      BOOST_TEST(identical(two.parameters()[i].peek(), eager[i]), i);
    }
  }
  const Two fresh;
  for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(!identical(fresh.parameters()[i].peek(), eager[i]), i);
}

BOOST_AUTO_TEST_CASE(sets_without_batches_are_refused) {
  const auto net = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  const DataLoader data(line()), none(line().first(0)), dropped(line(), {.batch_size = 13, .drop_last = true});
  for (const DataLoader* empty : {&none, &dropped}) {
    BOOST_TEST(empty->batches() == 0);
    BOOST_TEST(empty->samples() == 0);
    BOOST_CHECK_EXCEPTION((void)fit(net, *empty, {.loss = "mse", .optimizer = &sgd}), ValueError,
                          says("fit: the data has no batches"));
    BOOST_CHECK_EXCEPTION((void)fit(net, data, {.loss = "mse", .optimizer = &sgd, .validation = empty}), ValueError,
                          says("fit: the validation data has no batches"));
    BOOST_CHECK_EXCEPTION((void)evaluate(net, *empty, {.loss = "mse"}), ValueError,
                          says("evaluate: the data has no batches"));
  }
  BOOST_CHECK_EXCEPTION((void)predict(net, line().first(0)), ValueError, says("the data set is empty"));
  BOOST_TEST(DataLoader(line(), {.batch_size = 100}).batches() == 1);
  BOOST_TEST(DataLoader(line(), {.batch_size = 100}).batch(0, 0).size() == 12);
}

BOOST_AUTO_TEST_CASE(two_values_of_one_name_are_refused) {
  const auto net = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  const DataLoader data(line());
  const auto run = [&](std::vector<AnyMetric> metrics) {
    return fit(net, data, {.loss = "mse", .optimizer = &sgd, .metrics = std::move(metrics)});
  };
  BOOST_CHECK_EXCEPTION((void)run({"mae", "mae"}), ValueError, says("two values have the name 'mae'"));
  BOOST_CHECK_EXCEPTION((void)run({mean_of("loss", [](const Tensor&, const Batch&) { return 0.0; })}), ValueError,
                        says("two values have the name 'loss'"));
  BOOST_TEST(f1(Average::micro)->name() == "f1_micro");
  BOOST_TEST(metric("f1_weighted")->name() == f1(Average::weighted)->name());
  BOOST_TEST(metric("f1_binary")->larger_is_better());
}

BOOST_AUTO_TEST_CASE(a_validation_that_is_not_finite) {
  const Dataset bad({full({4, 3}, 1), full({4, 1}, std::numeric_limits<double>::infinity())});
  const auto net = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  const DataLoader data(line()), validation(bad);
  EarlyStopping stop({.patience = 1});
  const History h = fit(net, data,
                        {.loss = "mse",
                         .optimizer = &sgd,
                         .epochs = 9,
                         .validation = &validation,
                         .metrics = {"mae"},
                         .callbacks = {&stop}});
  BOOST_TEST(std::isinf(h["val_loss"][0]));  // it is reported
  BOOST_TEST(h.epochs() == 3);               // infinity is better than no value, and never better than itself
  BOOST_TEST(std::isfinite(h["loss"][0]));
}

/// The best weights are those with which the best value was computed.
BOOST_AUTO_TEST_CASE(the_best_weights_of_averages_are_averages) {
  const TemporaryFolder folder;
  const DataLoader data(line(), {.batch_size = 4});
  const auto net = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.2});
  EarlyStopping stop({.patience = 9});
  ModelCheckpoint save(folder / "models");
  const History h = fit(net, data,
                        {.loss = "mse",
                         .optimizer = &sgd,
                         .epochs = 4,
                         .validation = &data,
                         .callbacks = {Ema(net.parameters(), 0.8), &stop, &save}});
  BOOST_TEST(stop.best() == h["val_loss"].back());  // averages follow, so that the last is the best
  BOOST_TEST(evaluate(net, data, {.loss = "mse"})["loss"] == stop.best());
  const auto loaded = dsl::features(3).linear(1).build(9);
  io::load(loaded, save.best_path());
  BOOST_TEST(evaluate(loaded, data, {.loss = "mse"})["loss"] == stop.best());
  // For a value of the training itself they are the weights at the epoch's end.
  const auto other = dsl::features(3).linear(1).build(2);
  nn::Sgd rate(other.parameters(), {.learning_rate = 0.2});
  Tensor last;
  LambdaCallback keep({.on_epoch_end = [&](Training& t) { last = t.model().parameters()[0].peek() + 0; }});
  (void)fit(other, data,
            {.loss = "mse",
             .optimizer = &rate,
             .epochs = 4,
             .validation = &data,
             .callbacks = {Ema(other.parameters(), 0.8), EarlyStopping({.monitor = {.value = "loss"}, .patience = 9}),
                           &keep}});
  BOOST_TEST(identical(other.parameters()[0].peek(), last));
}

/// A validation that throws leaves the model with the weights of the last update, not with the averages.
BOOST_AUTO_TEST_CASE(a_validation_that_throws_puts_the_weights_back) {
  const Dataset broken(3, [](std::int64_t i) -> Tensors {
    if (i == 2) throw IoError("no example 2");
    return {zeros({3}), zeros({1})};
  });
  const DataLoader validation(broken, {.batch_size = 2, .shuffle = false});
  const auto net = dsl::features(3).linear(1).build(2), plain = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.2}), rate(plain.parameters(), {.learning_rate = 0.2});
  BOOST_CHECK_EXCEPTION(
      (void)fit(
          net, DataLoader(line(), {.batch_size = 4}),
          {.loss = "mse", .optimizer = &sgd, .validation = &validation, .callbacks = {Ema(net.parameters(), 0.5)}}),
      IoError, says("no example 2"));
  (void)fit(plain, DataLoader(line(), {.batch_size = 4}), {.loss = "mse", .optimizer = &rate});
  BOOST_TEST(identical(net.parameters()[0].peek(), plain.parameters()[0].peek()));
  BOOST_TEST(net.training());
}

BOOST_AUTO_TEST_CASE(one_optimiser_and_the_same_callbacks_twice) {
  const DataLoader data(line(), {.batch_size = 4});
  const auto net = dsl::features(3).linear(1).build(2), whole = dsl::features(3).linear(1).build(2);
  nn::Adam adam(net.parameters(), {.learning_rate = 0.05}), of_whole(whole.parameters(), {.learning_rate = 0.05});
  Ema averages(net.parameters(), 0.5, false);
  EarlyStopping stop({.monitor = {.value = "loss"}, .restore_best_weights = false});
  for (int k = 0; k < 2; ++k)
    (void)fit(net, data, {.loss = "mse", .optimizer = &adam, .validation = &data, .callbacks = {&averages, &stop}});
  // The moments continue: epoch 1 of the second call has the order of epoch 1, as in any fit.
  for (int k = 0; k < 2; ++k)
    for (const Batch& b : data.epoch(0)) {
      Tape tape;
      of_whole.step(tape.grad(nn::mse_loss(whole(b.x()), b.y()), whole.parameters()));
    }
  for (std::size_t i = 0; i < 2; ++i) BOOST_TEST(identical(net.parameters()[i].peek(), whole.parameters()[i].peek()));
  Ema in_the_end(net.parameters(), 0.5);  // the averages replace the weights: the next training begins with them
  for (int k = 0; k < 2; ++k)
    BOOST_CHECK_NO_THROW((void)fit(net, data, {.loss = "mse", .optimizer = &adam, .callbacks = {&in_the_end}}));
}

BOOST_AUTO_TEST_CASE(a_tape_around_it_sees_nothing_of_fit) {
  const DataLoader data(line(), {.batch_size = 4});
  std::vector<Tensor> weights;
  for (const bool inside : {false, true}) {
    const auto net = dsl::features(3).linear(1).build(2);
    nn::Adam adam(net.parameters(), {.learning_rate = 0.05});
    std::optional<Tape> tape;
    if (inside) tape.emplace();
    const History h = fit(net, data, {.loss = "mse", .optimizer = &adam, .epochs = 2, .validation = &data});
    weights.push_back(net.parameters()[0].peek());
    if (!inside) continue;
    // Gradients of later uses of the trained net are by its weights alone.
    const Tensor x = ones({1, 3});
    const Tensor g = tape->grad(sum(net(x)), net.parameters())[0];
    BOOST_TEST(identical(g, ones({3, 1})));
  }
  BOOST_TEST(identical(weights[0], weights[1]));
}

/// A forward pass that reads values cannot be traced: it is refused if it must be compiled, and else runs eagerly.
BOOST_AUTO_TEST_CASE(branches_that_depend_on_values) {
  const DataLoader data(line(), {.batch_size = 4});
  struct Clamped final : nn::Layer {
    nn::Linear inner{3, 1, {.seed = 1}};
    Clamped() { adopt("inner", inner); }
    std::string kind() const override { return "clamped"; }
    Tensor forward(const Tensor& x, const nn::Context& context) const override {
      const Tensor y = inner(x, context);
      return sum(y).item() > 0 ? y : y * 0.5;
    }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Clamped>(); }
  };
  std::vector<Tensor> weights;
  for (const Compile mode : {Compile::never, Compile::automatic}) {
    const Clamped net;
    nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
    (void)fit(net, data, {.loss = "mse", .optimizer = &sgd, .epochs = 3, .compile = mode});
    weights.push_back(net.parameters()[0].peek());
  }
  BOOST_TEST(identical(weights[0], weights[1]));
  const Clamped net;
  const Tensor before = net.parameters()[0].peek();
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  BOOST_CHECK_THROW((void)fit(net, data, {.loss = "mse", .optimizer = &sgd, .compile = Compile::always}), TraceError);
  BOOST_TEST(identical(net.parameters()[0].peek(), before));
}

/// Another loader is refused; the error names the difference, and the parts are unchanged.
BOOST_AUTO_TEST_CASE(resuming_on_other_data_is_refused_by_name) {
  const auto run = [](const std::filesystem::path& path, const Dataset& data, const LoaderOptions& options,
                      std::int64_t accumulate = 1) {
    const auto net = dsl::features(3).linear(1).build(2);
    nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
    return fit(net, DataLoader(data, options),
               {.loss = "mse", .optimizer = &sgd, .epochs = 2, .accumulate = accumulate, .checkpoint = path});
  };
  const auto refused = [&](const LoaderOptions& first, const Dataset& data, const LoaderOptions& second,
                           const std::string& what, std::int64_t accumulate = 1) {
    const TemporaryFolder folder;
    (void)run(folder / "c", line(), first);
    BOOST_CHECK_EXCEPTION((void)run(folder / "c", data, second, accumulate), IoError, says(what));
    BOOST_CHECK_NO_THROW((void)run(folder / "c", line(), first));
  };
  refused({.batch_size = 7}, line(), {.batch_size = 8}, "batch_size was 7, is now 8");  // two batches each
  refused({}, line(11), {}, "examples was 12, is now 11");
  refused({.batch_size = 5, .drop_last = true}, line(11), {.batch_size = 5, .drop_last = true},
          "examples was 12, is now 11");  // as many samples
  refused({}, line(), {.seed = 3}, "seed was 0, is now 3");
  refused({}, line(), {.shuffle = false}, "shuffle was 1, is now 0");
  refused({}, line(), {.weights = ones({12})}, "weights was none, is now ");
  refused({.weights = ones({12})}, line(), {.weights = ones({12}) * 2}, "weights was ");
  refused({}, line(), {}, "accumulate was 1, is now 2", 2);
  // Sums of one metric are not taken for those of another.
  const TemporaryFolder folder;
  const auto judged = [&](const char* metric, std::int64_t epochs) {
    const auto net = dsl::features(3).linear(1).build(2);
    nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
    return fit(net, DataLoader(line()),
               {.loss = "mse", .optimizer = &sgd, .epochs = epochs, .metrics = {metric}, .checkpoint = folder / "m"});
  };
  (void)judged("mae", 1);
  BOOST_CHECK_EXCEPTION((void)judged("rmse", 2), IoError, says("has no numbers of 'metric.rmse'"));
  BOOST_TEST(judged("mae", 2).epochs() == 2);
}

/// A target of another shape would otherwise be broadcast.
BOOST_AUTO_TEST_CASE(predictions_and_targets_of_other_shapes) {
  Batch b;
  b.fields = {zeros({4, 3}), zeros({4})};
  b.lengths = {Tensor(), Tensor()};
  for (const char* name : {"mse", "l1", "huber", "smooth_l1", "bce_with_logits"}) {
    BOOST_TEST(Loss(name)(zeros({4, 1}), b).rank() == 0);  // a column of predictions for a list of targets
    BOOST_CHECK_THROW((void)Loss(name)(zeros({4, 4}), b), ShapeError);
    BOOST_CHECK_THROW((void)Loss(name)(zeros({1}), b), ShapeError);
  }
  b.fields[1] = zeros({4, 1});
  for (const char* name : {"mse", "l1", "huber", "smooth_l1", "bce_with_logits"})
    BOOST_CHECK_THROW((void)Loss(name)(zeros({4}), b), ShapeError);
}

BOOST_AUTO_TEST_SUITE_END()
