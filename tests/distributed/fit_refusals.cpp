// Errors of `fit` with several ranks: all ranks throw together, and training can continue afterwards.
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>

#include "ferrite/distributed/checkpoint.h"
#include "ferrite/distributed/ranks.h"
#include "ferrite/ferrite.h"
#include "ranks.h"

using namespace ferrite;

namespace {

train::Dataset line(std::int64_t n, std::uint64_t seed) {
  const Tensor x = uniform({n, 3}, {.seed = seed}, -1, 1);
  return {{x, sum(x, {1}, true)}};
}

}  // namespace

namespace ranks {

int fit_refusals(const mpi::World& world, const Arguments&) {
  int wrong = 0;
  const bool alone = world.size() == 1;
  const auto throws = [&]<class E>(const E*, const std::string& words, const std::function<void()>& f) {
    std::string told = "nothing was thrown";
    try {
      f();
    } catch (const E& e) {
      told = e.what();
    } catch (const Error& e) {
      told = std::string("another type: ") + e.what();
    }
    if (told.find(words) != std::string::npos) return;
    std::cout << "rank " << world.rank() << ": wanted '" << words << "', got '" << told << "'\n";
    ++wrong;
  };
  constexpr const ValueError* value = nullptr;
  constexpr const IoError* io = nullptr;
  constexpr const AnomalyError* anomaly = nullptr;

  const auto net = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  const train::DataLoader data(line(30, 1), {.batch_size = 10});
  const auto parallel = mpi::ranks(world);
  const Tensor before = net.parameters()[0].peek();

  // A mean of an unknown count would silently be a wrong mean.
  const train::Loss mean = [](const Tensor& p, const Tensor& y) { return nn::mse_loss(p, y); };
  throws(value, "train::LossSum",
         [&] { (void)train::fit(net, data, {.loss = mean, .optimizer = &sgd, .parallel = parallel}); });
  throws(value, "train::LossSum", [&] { (void)train::evaluate(net, data, {.loss = mean, .parallel = parallel}); });
  const train::Loss negative = [](const Tensor& p, const Tensor& y) { return train::LossSum(sum(p - y), -1.0); };
  throws(value, "the count of all shards",
         [&] { (void)train::fit(net, data, {.loss = negative, .optimizer = &sgd, .parallel = parallel}); });
  throws(value, "step of your own", [&] {
    (void)train::fit(net, train::OwnStep{.run = [](const train::Batch&) { return train::StepOutput{}; }}, data,
                     {.parallel = parallel});
  });
  throws(value, "do not divide the shards: 7", [&] {
    if (alone) throw ValueError("do not divide the shards: 7");
    (void)train::fit(net, data, {.loss = "mse", .optimizer = &sgd, .parallel = mpi::ranks(world, {.shards = 7})});
  });
  throws(value, "have data of different sizes", [&] {
    if (alone) throw ValueError("have data of different sizes");
    const train::DataLoader own(line(30 + world.rank(), 1), {.batch_size = 10});
    (void)train::fit(net, own, {.loss = "mse", .optimizer = &sgd, .parallel = parallel});
  });
  throws(value, "have different data", [&] {
    if (alone) throw ValueError("have different data");
    const train::DataLoader own(line(30, static_cast<std::uint64_t>(1 + world.rank())), {.batch_size = 10});
    (void)train::fit(net, own, {.loss = "mse", .optimizer = &sgd, .parallel = parallel});
  });
  throws(value, "have different validation data", [&] {
    if (alone) throw ValueError("have different validation data");
    const train::DataLoader own(line(30, static_cast<std::uint64_t>(1 + world.rank())), {.shuffle = false});
    (void)train::fit(net, data, {.loss = "mse", .optimizer = &sgd, .validation = &own, .parallel = parallel});
  });
  throws(value, "have different options", [&] {
    if (alone) throw ValueError("have different options");
    (void)train::fit(net, data, {.loss = "mse", .optimizer = &sgd, .epochs = 1 + world.rank(), .parallel = parallel});
  });
  throws(value, "have different options", [&] {  // however small they are
    if (alone) throw ValueError("have different options");
    (void)train::fit(net, data,
                     {.loss = "mse", .optimizer = &sgd, .clip_norm = 1e-9 * (1 + world.rank()), .parallel = parallel});
  });
  throws(value, "have different parameters", [&] {
    if (alone) throw ValueError("have different parameters");
    train::LambdaCallback change({.on_epoch_end = [&](train::Training& t) {
      const Parameter p = t.model().named_parameters()[0].variable;
      if (!t.is_main()) p.assign(p.peek() + 1);
    }});
    (void)train::fit(net, data,
                     {.loss = "mse", .optimizer = &sgd, .epochs = 2, .callbacks = {&change}, .parallel = parallel});
  });
  throws(io, "nowhere", [&] {
    (void)train::fit(net, data,
                     {.loss = "mse", .optimizer = &sgd, .checkpoint = "nowhere/at/all/x", .parallel = parallel});
  });

  // A value that is not finite in the rows of one rank is found by all ranks, before anything changes.
  std::vector<std::int64_t> places(30);
  for (std::size_t i = 0; i < 30; ++i) places[i] = static_cast<std::int64_t>(i);
  const train::Dataset bad = line(30, 1).map([](const Tensors& e) {
    const bool odd = e[0].to_vector<float>()[0] > 0.9F;
    return Tensors{odd ? e[0] * std::numeric_limits<float>::infinity() : e[0], e[1]};
  });
  const train::DataLoader with_bad(bad, {.batch_size = 10, .shuffle = false});
  for (const train::Compile mode : {train::Compile::never, train::Compile::always}) {
    throws(anomaly, "field 0 of the batch holds", [&] {
      (void)train::fit(net, with_bad, {.loss = "mse", .optimizer = &sgd, .compile = mode, .parallel = parallel});
    });
    const train::History h = train::fit(net, with_bad,
                                        {.loss = "mse",
                                         .optimizer = &sgd,
                                         .callbacks = {train::TerminateOnNaN()},
                                         .compile = mode,
                                         .parallel = parallel});
    if (h.stopped().find("field 0 of the batch holds") == std::string::npos) ++wrong, std::cout << h.stopped() << "\n";
  }

  // A forward pass of the user's returns the sum and the count.
  const train::Forward sums = [&](const train::Batch& b) {
    const Tensor y = net(b.x());
    return train::StepOutput{nn::mse_loss(y, b.y(), nn::Reduction::sum), y,
                             full({}, static_cast<double>(b.size()), Dtype::f64)};
  };
  const train::History by_forward =
      train::fit(net, sums, data, {.optimizer = &sgd, .epochs = 20, .metrics = {"mae"}, .parallel = parallel});
  if (!(by_forward["mae"].back() < 0.5 * by_forward["mae"].front())) ++wrong, std::cout << "it does not learn\n";
  if (same(net.parameters()[0].peek(), before)) ++wrong;
  return wrong ? 1 : 0;
}

/// callback: rank 1 throws in the fifth update; mean: the forward pass returns a mean, on every rank; frozen: no rank
/// has anything to update.
int fit_throws(const mpi::World& world, const Arguments& a) {
  const auto net = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  const train::DataLoader data(line(30, 1), {.batch_size = 10});
  if (a.at(0) == "mean") {
    const auto mean = [&](const train::Batch& b) { return train::StepOutput{nn::mse_loss(net(b.x()), b.y())}; };
    (void)train::fit(net, mean, data, {.optimizer = &sgd, .parallel = mpi::ranks(world)});
  }
  if (a.at(0) == "frozen") {
    sgd.freeze(sgd.parameters());
    (void)train::fit(net, data,
                     {.loss = "mse", .optimizer = &sgd, .parallel = mpi::ranks(world, {.shard_optimizer = true})});
    return 0;
  }
  train::LambdaCallback odd({.on_batch_end = [&](train::Training& t) {
    if (world.rank() == 1 && t.step() == 4) throw ValueError("rank 1 throws");
  }});
  (void)train::fit(net, data,
                   {.loss = "mse", .optimizer = &sgd, .epochs = 3, .callbacks = {&odd}, .parallel = mpi::ranks(world)});
  return 0;
}

}  // namespace ranks
