// Trainings by `fit` on several ranks, which print digests of their results for the tests to compare.
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "ferrite/distributed/checkpoint.h"
#include "ferrite/distributed/ranks.h"
#include "ferrite/ferrite.h"
#include "ranks.h"

using namespace ferrite;
using train::Batch;
using train::Dataset;
using train::FitOptions;
using train::LossSum;

namespace {

constexpr std::int64_t kRows = 53;  // batches of 12: the last one has 5, fewer than shards

/// Returns rows of numbers, their classes, and whether they count.
Dataset rows(std::uint64_t seed) {
  const Tensor x = normal({kRows, 6}, {.seed = seed});
  const Tensor y = cast(gt(sum(slice(x, 1, 0, 3), {1}), 0), Dtype::i64) + cast(gt(select(x, 1, 4), 0.5), Dtype::i64);
  return {{x, y, uniform({kRows}, {.seed = seed + 1})}};
}

/// Returns sequences of 1 to 9 steps with a class for each step; in every fourth only the first step counts.
Dataset sequences(std::uint64_t seed) {
  std::vector<Tensor> x, y;
  for (std::int64_t i = 0; i < kRows; ++i) {
    const std::int64_t steps = 1 + i * 5 % 9;
    const Tensor one = normal({steps, 3}, {.seed = seed, .call = static_cast<std::uint64_t>(i)});
    const Tensor classes = cast(gt(select(one, 1, 0), 0), Dtype::i64);
    x.push_back(one);
    y.push_back(i % 4 ? classes
                      : where(gt(arange(0, steps, 1, Dtype::i64), 0), full({steps}, -100, Dtype::i64), classes));
  }
  return {{train::sequences(x), train::sequences(y, -100)}};
}

/// A kind of training that tests run in several ways.
struct Training {
  dsl::Network net;
  train::DataLoader data, validation;
  FitOptions options{};

  static Training of(const std::string& kind, std::uint64_t seed, double drop) {
    if (kind == "rows") {  // batch norm, dropout, a mean of rows
      return {dsl::features(6).linear(16).batch_norm().relu().dropout(drop).linear(16).tanh().linear(3).build(seed),
              train::DataLoader(rows(1), {.batch_size = 12, .seed = 2}),
              train::DataLoader(rows(7), {.batch_size = 20, .shuffle = false}),
              {.loss = "cross_entropy", .metrics = {"accuracy", "f1"}}};
    }
    if (kind == "masked") {  // a masked loss of unequal counts by a function; gathered, clipped, by weights, by threads
      return {
          dsl::features(6).linear(16).batch_norm().relu().dropout(drop).linear(3).build(seed),
          train::DataLoader(
              rows(1), {.batch_size = 12, .seed = 2, .weights = uniform({kRows}, {.seed = 9}, 0.1, 1), .threads = 2}),
          train::DataLoader(rows(7), {.batch_size = 20, .shuffle = false}),
          {.loss =
               [](const Tensor& p, const Batch& b) {
                 const Tensor counts = gt(b.field(2), 0.6F);
                 return LossSum(sum(where(counts, nn::cross_entropy(p, b.y(), nn::Reduction::none), 0)),
                                sum(cast(counts, Dtype::f64)));
               },
           .metrics = {"accuracy"},
           .accumulate = 2,
           .clip_norm = 0.5,
           .clip_value = 0.2}};
    }
    // Padded sequences in buckets, whose targets count unequally.
    return {dsl::sequence(3).gru(8).dropout(drop).linear(2).build(seed),
            train::DataLoader(sequences(3), {.batch_size = 12, .seed = 4, .buckets = 2}),
            train::DataLoader(sequences(5), {.batch_size = 20, .shuffle = false}),
            {.loss = "cross_entropy_classes_last", .metrics = {"accuracy", "perplexity"}}};
  }
};

std::uint64_t digest_of_history(const train::History& history, std::uint64_t h) {
  for (const std::string& name : history.names())
    h = ranks::digest(Tensor::from(history[name], {history.epochs()}), h ^ stream_of(name));
  return h ^ stream_of(history.stopped());
}

std::uint64_t digest_of_file(const std::string& path, std::uint64_t h) {
  std::ifstream in(path, std::ios::binary);
  for (char c = 0; in.get(c);) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return h;
}

train::Compile mode_of(const std::string& how) {
  return how == "eager" ? train::Compile::never : how == "always" ? train::Compile::always : train::Compile::automatic;
}

}  // namespace

namespace ranks {

/// KIND eager|automatic|always FILE EPOCHS [sharded] [late] [stop] [kill|suspend RANK BATCH MICROSECONDS]: trains,
/// resuming from FILE if it exists, and prints the digest of all results. With `late` all parameters but two are frozen
/// for two epochs. With `stop` a callback of the last rank stops the training in its fourth epoch. With the last words
/// a rank is lost that many microseconds after the end of one of its batches.
int fit(const mpi::World& world, const Arguments& a) {
  Training t = Training::of(a.at(0), static_cast<std::uint64_t>(world.rank()), 0.3);  // rank 0's parameters count
  nn::Adam adam(t.net.parameters(), {.learning_rate = 2e-2});
  nn::CosineSchedule schedule(adam, 200);
  const auto has = [&](const char* word) { return std::find(a.begin(), a.end(), word) != a.end(); };
  const auto late = std::span(adam.parameters()).subspan(2);
  if (has("late")) adam.freeze(late);  // ranks that hold only these have nothing to update
  const std::string file = a.at(2) == "-" ? "" : a.at(2);
  FitOptions o = t.options;
  o.optimizer = &adam;
  o.epochs = std::stoi(a.at(3));
  o.validation = &t.validation;
  o.schedule = &schedule;
  o.compile = mode_of(a.at(1));
  o.checkpoint = file;
  o.checkpoint_every = 2;
  o.parallel = mpi::ranks(world, {.bucket_bytes = 300, .shard_optimizer = has("sharded")});
  using Clock = std::chrono::steady_clock;
  std::atomic<std::int64_t> batches = 0;
  Clock::time_point last = Clock::now();
  std::ostringstream shown;
  train::LambdaCallback count({.on_batch_end =
                                   [&](train::Training&) {
                                     ++batches;
                                     last = Clock::now();
                                   },
                               .on_epoch_end =
                                   [&](train::Training& training) {
                                     if (has("late") && training.epoch() == 1) adam.unfreeze(late);
                                     if (has("stop") && training.epoch() == 3 && world.rank() == world.size() - 1)
                                       training.stop("rank's own reason");
                                   }});
  o.callbacks = {train::ProgressBar(shown), train::Ema(t.net.parameters(), 0.9), &count,
                 train::EarlyStopping({.patience = 3}), train::ReduceLROnPlateau({.patience = 1})};
  if (!file.empty()) o.callbacks.push_back(train::CSVLogger(file + ".csv"));
  std::thread killer;
  const auto lost =
      std::find_if(a.begin(), a.end(), [](const std::string& w) { return w == "kill" || w == "suspend"; });
  if (lost != a.end() && std::stoi(lost[1]) == world.rank())
    killer = std::thread(
        [&, at = std::stoi(lost[2]), delay = std::stoi(lost[3]), signal = *lost == "kill" ? SIGKILL : SIGSTOP] {
          while (batches < at) std::this_thread::sleep_for(std::chrono::microseconds(50));
          std::this_thread::sleep_for(std::chrono::microseconds(delay));
          std::raise(signal);
        });
  train::History history;
  try {
    history = train::fit(t.net, t.data, o);
  } catch (const mpi::RankError& e) {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last).count();
    std::string text = "lost " + std::to_string(world.rank()) + " " + std::to_string(took);
    for (const int r : e.ranks()) text += " " + std::to_string(r);
    std::cout << text + "\n" + e.what() + "\n" << std::flush;
    if (killer.joinable()) killer.detach();
    throw;
  }
  if (killer.joinable()) killer.join();
  world.barrier();
  std::uint64_t h = digest_of(t.net, adam, digest_of_history(history, 1));
  if (!file.empty()) h = digest_of_file(file + ".csv", digest_of_file(file, h));
  const train::Logs after = train::evaluate(
      t.net, t.validation, {.loss = t.options.loss, .metrics = t.options.metrics, .parallel = o.parallel});
  for (const auto& [name, value] : after) h = digest(Tensor::from({value}), h ^ stream_of(name));
  std::ostringstream text;
  text << "digest " << std::hex << h << std::dec << " epochs " << history.epochs() << " shown "
       << std::count(shown.view().begin(), shown.view().end(), '\n') << " stopped '" << history.stopped() << "'";
  tell(world, text.str());
  return 0;
}

/// `fit` on ranks has the numbers of `fit` up to rounding. The shards of a batch are summed separately, in another
/// order than the rows of a whole batch, so parameters of about 1 differ by a few units in the last place of f32, 6e-8,
/// per step. Adam enlarges this where gradients are small; SGD does not.
int fit_plainly(const mpi::World& world, const Arguments&) {
  bool right = true;
  const auto near = [&](double a, double b, double within, const std::string& what) {
    if (std::abs(a - b) <= within) return;
    right = false;
    std::cout << what << ": " << a << " and " << b << "\n";
  };
  for (const char* kind : {"rows", "masked", "sequences"})
    for (const char* how : {"eager", "automatic"}) {
      Training plain = Training::of(kind, 1, 0), parallel = Training::of(kind, 1, 0);
      const auto train_one = [&](Training& t, bool by_all) {
        nn::Sgd sgd(t.net.parameters(), {.learning_rate = 0.1});
        FitOptions o = t.options;
        o.optimizer = &sgd;
        o.epochs = 3;
        o.validation = &t.validation;
        o.compile = mode_of(how);
        if (by_all) o.parallel = mpi::ranks(world);
        return train::fit(t.net, t.data, o);
      };
      const train::History one = train_one(plain, false), all = train_one(parallel, true);
      right &= one.names() == all.names() && one.epochs() == 3 && all.epochs() == 3;
      for (const std::string& name : one.names())
        for (std::size_t e = 0; e < 3; ++e) near(all[name][e], one[name][e], 5e-6, std::string(kind) + " " + name);
      for (std::size_t i = 0; i < plain.net.named_parameters().size(); ++i) {
        const auto &p = plain.net.named_parameters()[i], &q = parallel.net.named_parameters()[i];
        near(amax(abs(p.variable.peek() - q.variable.peek())).item(), 0, 5e-6, std::string(kind) + " " + p.name);
      }
      for (std::size_t i = 0; i < plain.net.named_buffers().size(); ++i) {
        const auto &p = plain.net.named_buffers()[i], &q = parallel.net.named_buffers()[i];
        if (is_float(p.variable.dtype()))
          near(amax(abs(p.variable.peek() - q.variable.peek())).item(), 0, 5e-6, std::string(kind) + " " + p.name);
      }
    }
  return right ? 0 : 1;
}

}  // namespace ranks
