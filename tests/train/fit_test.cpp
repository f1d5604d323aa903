// fit compared bit for bit with hand-written loops; errors when something is not finite; evaluation and prediction.
#include "ferrite/train/fit.h"

#include <cmath>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/accumulate_gradients.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/tensor/anomaly.h"
#include "support/compare.h"
#include "train/line.h"

using namespace ferrite;
using namespace ferrite::train;
using support::identical;
using support::says;
using train_test::line;

namespace {

/// Returns 50 sequences of 2 to 6 steps and their classes.
Dataset labelled() {
  std::vector<std::int64_t> lengths, labels;
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < 50; ++i) {
    lengths.push_back(2 + i * 7 % 5);
    labels.push_back(i % 3);
    total += lengths.back();
  }
  return {
      {sequences(uniform({total, 4}, {.seed = 5}, -1, 1), Tensor::from(lengths, {50})), Tensor::from(labels, {50})}};
}

dsl::Network recurrent() { return dsl::sequence(4).gru(6).dropout(0.2).last_step().linear(3).build(1); }

bool equal(const nn::Module& a, const nn::Module& b) {
  for (std::size_t i = 0; i < a.named_parameters().size(); ++i)
    if (!identical(a.named_parameters()[i].variable.peek(), b.named_parameters()[i].variable.peek())) return false;
  return true;
}

/// A layer that divides by its weight.
struct Divide final : nn::Layer {
  Parameter weight;
  explicit Divide() { weight = parameter("weight", {}, nn::init::constant(1), {.seed = 1}); }
  std::string kind() const override { return "divide"; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return x / weight; }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Divide>(); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(fitting)

BOOST_AUTO_TEST_CASE(has_the_bits_of_a_loop_by_hand) {
  const DataLoader data(labelled(), {.batch_size = 8, .seed = 3});
  const dsl::Network by_hand = recurrent();
  nn::Adam adam(by_hand.parameters(), {.learning_rate = 1e-2});
  nn::CosineSchedule schedule(adam, 20);
  std::vector<double> losses;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    double sum = 0;
    for (const Batch& b : data.epoch(epoch)) {
      Tape tape;
      const Tensor loss = nn::cross_entropy(by_hand(b.x(), b.context()), b.y());
      adam.step(nn::clip_grad_norm(tape.grad(loss, by_hand.parameters()), 0.5).grads);
      schedule.advance();
      sum += static_cast<double>(loss.item()) * static_cast<double>(b.size());
    }
    losses.push_back(sum / 50);
  }
  for (const Compile mode : {Compile::never, Compile::automatic, Compile::always})
    for (const int threads : {0, 2}) {
      const DataLoader loader(labelled(), {.batch_size = 8, .seed = 3, .threads = threads});
      const dsl::Network net = recurrent();
      nn::Adam optimizer(net.parameters(), {.learning_rate = 1e-2});
      nn::CosineSchedule rate(optimizer, 20);
      const History history = fit(net, loader,
                                  {.loss = "cross_entropy",
                                   .optimizer = &optimizer,
                                   .epochs = 3,
                                   .metrics = {"accuracy"},
                                   .clip_norm = 0.5,
                                   .schedule = &rate,
                                   .compile = mode});
      BOOST_TEST(equal(net, by_hand));
      BOOST_TEST((history["loss"] == losses));
      BOOST_TEST(history.epochs() == 3);
      BOOST_TEST(history.stopped().empty());
      BOOST_TEST((history.names() == std::vector<std::string>{"loss", "accuracy"}));
    }
}

BOOST_AUTO_TEST_CASE(gathers_gradients) {
  const DataLoader data(line(64), {.batch_size = 10});  // batches of 10, the last one of 4; three per update
  const auto build = [] { return dsl::features(3).linear(1).build(2); };
  const auto by_hand = build();
  nn::Sgd sgd(by_hand.parameters(), {.learning_rate = 0.1});
  nn::GradientAccumulator gathered(3, true);
  for (std::int64_t i = 0; i < 6; ++i) {
    const Batch b = data.batch(0, i);
    Tape tape;
    if (gathered.add(tape.grad(nn::mse_loss(by_hand(b.x()), b.y()), by_hand.parameters()))) sgd.step(gathered.take());
  }
  {
    const Batch b = data.batch(0, 6);
    Tape tape;
    sgd.step(tape.grad(nn::mse_loss(by_hand(b.x()), b.y()), by_hand.parameters()));
  }
  for (const Compile mode : {Compile::never, Compile::automatic, Compile::always}) {
    const auto net = build();
    nn::Sgd optimizer(net.parameters(), {.learning_rate = 0.1});
    std::int64_t updates = 0;
    LambdaCallback count({.on_train_end = [&](Training& t) { updates = t.step(); }});
    (void)fit(net, data,
              {.loss = "mse", .optimizer = &optimizer, .callbacks = {&count}, .accumulate = 3, .compile = mode});
    BOOST_TEST(equal(net, by_hand));
    BOOST_TEST(updates == 3);
  }
  // Batches of 10 and 4 together have the gradient of the 14 examples.
  const auto net = build(), whole = build();
  nn::Sgd optimizer(net.parameters(), {.learning_rate = 0.1}), of_whole(whole.parameters(), {.learning_rate = 0.1});
  std::vector<std::int64_t> places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  const Dataset some = line(64).subset(places);
  (void)fit(net, DataLoader(some, {.batch_size = 10, .shuffle = false}),
            {.loss = "mse", .optimizer = &optimizer, .accumulate = 2});
  (void)fit(whole, DataLoader(some, {.batch_size = 14, .shuffle = false}), {.loss = "mse", .optimizer = &of_whole});
  for (std::size_t i = 0; i < 2; ++i)
    BOOST_TEST(support::within(net.parameters()[i].peek(), whole.parameters()[i].peek(), 1e-7));
}

BOOST_AUTO_TEST_CASE(a_forward_pass_and_a_step_of_ones_own) {
  const DataLoader data(line(64), {.batch_size = 16});
  const auto build = [] { return dsl::features(3).linear(1).build(2); };
  const auto plain = build(), forward = build(), own = build();
  nn::Adam a(plain.parameters()), b(forward.parameters()), c(own.parameters());
  const History first = fit(plain, data, {.loss = "mse", .optimizer = &a, .epochs = 2, .metrics = {"mae"}});
  const Forward pass = [&](const Batch& batch) {
    const Tensor y = forward(batch.x());
    return StepOutput{nn::mse_loss(y, batch.y()), y};
  };
  const History second = fit(forward, pass, data, {.optimizer = &b, .epochs = 2, .metrics = {"mae"}});
  const OwnStep step{.run =
                         [&](const Batch& batch) {
                           Tape tape;
                           const Tensor y = own(batch.x()), loss = nn::mse_loss(y, batch.y());
                           c.step(tape.grad(loss, own.parameters()));
                           return StepOutput{loss, y};
                         },
                     .optimizers = {&c}};
  const History third = fit(own, step, data, {.epochs = 2, .metrics = {"mae"}, .compile = Compile::always});
  BOOST_TEST(equal(plain, forward));
  BOOST_TEST(equal(plain, own));
  BOOST_TEST((first["mae"] == second["mae"]));
  BOOST_TEST((first["mae"] == third["mae"]));
}

/// What is frozen decides which plan runs a step: after a change the plan may be missing, or an older one.
BOOST_AUTO_TEST_CASE(compiled_steps_follow_callbacks_that_freeze_and_unfreeze) {
  const DataLoader data(line(64), {.batch_size = 10}), validation(line(20), {.batch_size = 8, .shuffle = false});
  const auto build = [] { return dsl::features(3).linear(4).tanh().linear(1).build(2); };
  const auto train_one = [&](const dsl::Network& net, Compile mode, std::int64_t accumulate, bool thaw) {
    nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
    const auto part = std::span(adam.parameters()).subspan(0, 2);
    adam.freeze(part);
    LambdaCallback change({.on_epoch_end = [&](Training& t) {
      if (thaw && (t.epoch() == 0 || t.epoch() == 3)) adam.unfreeze(part);
      if (t.epoch() == 2) adam.freeze(part);
    }});
    return fit(net, data,
               {.loss = "mse",
                .optimizer = &adam,
                .epochs = 6,
                .validation = &validation,
                .callbacks = {&change},
                .accumulate = accumulate,
                .compile = mode});
  };
  for (const std::int64_t accumulate : {1, 2}) {
    const auto eager = build(), cold = build();
    const History wanted = train_one(eager, Compile::never, accumulate, true);
    (void)train_one(cold, Compile::never, accumulate, false);
    BOOST_TEST(!equal(eager, cold));
    for (const Compile mode : {Compile::automatic, Compile::always}) {
      const auto net = build();
      const History history = train_one(net, mode, accumulate, true);
      BOOST_TEST(equal(net, eager));
      for (const std::string& name : wanted.names()) BOOST_TEST((history[name] == wanted[name]), name);
    }
  }
}

/// A plan that was dropped cannot be compared with its function, so it is made again.
BOOST_AUTO_TEST_CASE(compiled_steps_of_more_shapes_than_plans_are_kept) {
  std::vector<Tensor> x, y;
  for (std::int64_t i = 0; i < 130; ++i) {
    x.push_back(uniform({i + 1, 2}, {.seed = 1, .call = static_cast<std::uint64_t>(i)}, -1, 1));
    y.push_back(x.back() * 2);
  }
  const DataLoader data({{sequences(x), sequences(y)}}, {.batch_size = 1, .shuffle = false});
  std::vector<Parameter> weights;
  for (const Compile mode : {Compile::never, Compile::always}) {
    const auto net = dsl::features(2).linear(2).build(3);
    nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
    const Forward pass = [&](const Batch& b) { return StepOutput{nn::mse_loss(net(b.x()), b.y())}; };
    (void)fit(net, pass, data, {.optimizer = &sgd, .epochs = 2, .compile = mode});
    weights.push_back(net.parameters()[0]);
  }
  BOOST_TEST(identical(weights[0].peek(), weights[1].peek()));
}

BOOST_AUTO_TEST_CASE(numbers_that_a_compiled_step_captured_may_not_change) {
  const DataLoader data(line(64), {.batch_size = 16});
  const auto net = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  double scale = 1;
  const Forward pass = [&](const Batch& b) { return StepOutput{nn::mse_loss(net(b.x()), b.y()) * scale}; };
  LambdaCallback change({.on_epoch_end = [&](Training&) { scale *= 2; }});
  BOOST_CHECK_EXCEPTION(
      (void)fit(net, pass, data, {.optimizer = &sgd, .epochs = 2, .callbacks = {&change}, .compile = Compile::always}),
      TraceError, says("is no longer the one that was traced"));
  // Eager steps see the changes; `automatic` does not compile a function with captures.
  std::vector<std::vector<double>> losses;
  for (const Compile mode : {Compile::automatic, Compile::never}) {
    const auto other = dsl::features(3).linear(1).build(2);
    nn::Sgd rate(other.parameters(), {.learning_rate = 0.01});
    scale = 1;
    const Forward of_other = [&](const Batch& b) { return StepOutput{nn::mse_loss(other(b.x()), b.y()) * scale}; };
    losses.push_back(
        fit(other, of_other, data, {.optimizer = &rate, .epochs = 4, .callbacks = {&change}, .compile = mode})["loss"]);
  }
  BOOST_TEST((losses[0] == losses[1]));
  // It does not compile a loss with captures either.
  losses.clear();
  for (const Compile mode : {Compile::automatic, Compile::never}) {
    const auto other = dsl::features(3).linear(1).build(2);
    nn::Sgd rate(other.parameters(), {.learning_rate = 0.01});
    scale = 1;
    const auto scaled = [&](const Tensor& y, const Tensor& target) { return nn::mse_loss(y, target) * scale; };
    losses.push_back(
        fit(other, data,
            {.loss = scaled, .optimizer = &rate, .epochs = 4, .callbacks = {&change}, .compile = mode})["loss"]);
  }
  BOOST_TEST((losses[0] == losses[1]));
}

BOOST_AUTO_TEST_CASE(modes_are_kept) {
  const auto net = dsl::features(3).linear(8).batch_norm().dropout(0.5).linear(1).build(2);
  const DataLoader data(line(64), {.batch_size = 16});
  net[1].eval();  // frozen statistics of the norm
  const Tensor before = net.named_buffers()[0].variable.peek();
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.01});
  bool training = true;
  LambdaCallback look({.on_batch_end = [&](Training& t) { training = training && t.model().training(); }});
  (void)fit(net, data, {.loss = "mse", .optimizer = &sgd, .epochs = 2, .validation = &data, .callbacks = {&look}});
  BOOST_TEST(training);
  BOOST_TEST(net.training());
  BOOST_TEST(!net[1].training());
  BOOST_TEST(identical(net.named_buffers()[0].variable.peek(), before));
  net.eval();
  (void)fit(net, data, {.loss = "mse", .optimizer = &sgd});
  BOOST_TEST(!net.training());
  BOOST_TEST(!identical(net.named_buffers()[0].variable.peek(), before));
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_stops_before_anything_changes) {
  Dataset data = line(64);
  for (const Compile mode : {Compile::never, Compile::always}) {
    const auto net = dsl::features(3).linear(4).batch_norm().dropout(0.1).linear(1).build(2);
    nn::Adam adam(net.parameters());
    const Loss loss([](const Tensor& p, const Tensor& y) { return mean(log(sum(p * y) - sum(p * y) - 1)); });
    const Tensor running = net.named_buffers()[0].variable.peek(), weight = net.parameters()[0].peek();
    const Tensor draws = net.named_states()[0].variable.peek();
    BOOST_CHECK_EXCEPTION((void)fit(net, DataLoader(data, {.batch_size = 16}),
                                    {.loss = loss, .optimizer = &adam, .epochs = 3, .compile = mode}),
                          AnomalyError, says("fit: epoch 1 of 3, batch 1 of 4 (update 1): log gave"));
    BOOST_TEST(identical(net.named_buffers()[0].variable.peek(), running));
    BOOST_TEST(identical(net.named_states()[0].variable.peek(), draws));
    BOOST_TEST(identical(net.parameters()[0].peek(), weight));
  }
  // The error names the layer, also for a gradient that is not finite though the loss is.
  Divide divide;
  nn::Sgd sgd({divide.weight}, {.learning_rate = 1});
  const Forward pass = [&](const Batch& b) { return StepOutput{mean(sqrt(divide(b.x() * 0)))}; };
  BOOST_CHECK_EXCEPTION((void)fit(divide, pass, DataLoader(data), {.optimizer = &sgd}), AnomalyError,
                        says("gradient of sqrt"));
  // The error names the data if these are not finite.
  const Dataset bad({concat({ones({3, 1}), full({1, 1}, NAN)}), ones({4, 1})});
  const auto net = dsl::features(1).linear(1).build(2);
  nn::Sgd other(net.parameters(), {.learning_rate = 1});
  BOOST_CHECK_EXCEPTION(
      (void)fit(net, DataLoader(bad, {.batch_size = 2, .shuffle = false}), {.loss = "mse", .optimizer = &other}),
      AnomalyError, says("batch 2 of 2 (update 2): field 0 of the batch holds nan at element 1"));
  const History history = fit(net, DataLoader(bad, {.batch_size = 2, .shuffle = false}),
                              {.loss = "mse", .optimizer = &other, .epochs = 9, .callbacks = {TerminateOnNaN()}});
  BOOST_TEST(history.stopped().find("epoch 1 of 9, batch 2") == 0U, history.stopped());
}

BOOST_AUTO_TEST_CASE(evaluation_and_prediction) {
  const auto net = recurrent();
  const Dataset data = labelled();
  const Logs logs =
      evaluate(net, DataLoader(data, {.batch_size = 7}), {.loss = "cross_entropy", .metrics = {"accuracy"}});
  net.eval();
  const Batch all = data.all();
  const Tensor y = net(all.x(), all.context());
  BOOST_TEST(std::fabs(logs["loss"] - static_cast<double>(nn::cross_entropy(y, all.y()).item())) < 1e-6);
  BOOST_TEST(logs["accuracy"] == nn::accuracy(y, all.y()));
  BOOST_TEST(std::isnan(logs["other"]));
  net.train();
  BOOST_TEST(identical(predict(net, data, 7), y));
  BOOST_TEST(net.training());
  const auto steps = dsl::sequence(4).gru(2).build(1);  // outputs have other lengths
  const Tensor padded = predict(steps, data, 3);
  BOOST_TEST(padded.shape().str() == "[50, 6, 2]");
  BOOST_TEST(identical(padded, steps(all.x(), all.context())));
}

BOOST_AUTO_TEST_CASE(losses_by_name_keep_lengths) {
  Batch b;
  b.fields = {zeros({2, 3, 1}), Tensor::from<float>({1, 50, 50, 2, 3, 50}, {2, 3})};
  b.lengths = {Tensor::from<std::int64_t>({1, 2}), Tensor()};
  const Tensor zero = zeros({2, 3, 1});
  BOOST_TEST(std::fabs(Loss("l1")(zero, b).item() - 2) < 1e-6);
  BOOST_TEST(std::fabs(Loss("mse")(zero, b).item() - 14.0F / 3) < 1e-6);
  BOOST_TEST(std::fabs(Loss("huber")(zero, b).item() - 1.5F) < 1e-6);
  Batch tokens = b;
  tokens.fields[1] = Tensor::from<std::int64_t>({0, 9, 9, 1, 2, 9}, {2, 3});
  BOOST_TEST(std::fabs(Loss("cross_entropy_classes_last")(zeros({2, 3, 5}), tokens).item() - std::log(5.0F)) < 1e-6);
  Batch images;
  images.fields = {zeros({2, 1, 4, 4}), zeros({2, 4, 4}, Dtype::i64)};
  images.lengths = {Tensor(), Tensor()};
  BOOST_TEST(std::fabs(Loss("cross_entropy_classes_second")(zeros({2, 3, 4, 4}), images).item() - std::log(3.0F)) <
             1e-6);
  BOOST_CHECK_EXCEPTION(Loss("cross_entropie"), ValueError, says("did you mean 'cross_entropy'?"));
}

BOOST_AUTO_TEST_CASE(options_that_do_not_fit) {
  const auto net = dsl::features(3).linear(1).build(2);
  const DataLoader data(line(64));
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  BOOST_CHECK_EXCEPTION((void)fit(net, data, {.loss = "mse"}), ValueError, says("there is no optimizer"));
  BOOST_CHECK_EXCEPTION((void)fit(net, data, {.optimizer = &sgd}), ValueError, says("a net needs a loss"));
  BOOST_CHECK_EXCEPTION((void)fit(net, data, {.loss = "mse", .optimizer = &sgd, .epochs = -1}), ValueError,
                        says("epochs must be at least 0, got -1"));
  BOOST_CHECK_EXCEPTION((void)fit(net, data, {.loss = "mse", .optimizer = &sgd, .accumulate = 0}), ValueError,
                        says("accumulate must be at least 1"));
  const Loss each([](const Tensor& p, const Tensor& y) { return nn::mse_loss(p, y, nn::Reduction::none); });
  BOOST_CHECK_EXCEPTION((void)fit(net, data, {.loss = each, .optimizer = &sgd}), ShapeError,
                        says("the loss must be one float, got f32[32, 1]; average it over the batch"));
  const Forward no_prediction = [&](const Batch& b) { return StepOutput{nn::mse_loss(net(b.x()), b.y())}; };
  BOOST_CHECK_EXCEPTION((void)fit(net, no_prediction, data, {.optimizer = &sgd, .metrics = {"mae"}}), ValueError,
                        says("there are metrics, but the step gives no prediction"));
}

BOOST_AUTO_TEST_SUITE_END()
