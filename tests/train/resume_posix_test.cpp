// fit that is stopped or killed and resumes: its final file has the bytes of an uninterrupted run.
#include <array>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/train/fit.h"
#include "io/temporary_folder.h"
#include "support/compare.h"
#include "train/killed_run.h"

using namespace ferrite;
using namespace ferrite::train;
using io_test::TemporaryFolder;
using support::says;
using namespace train_test;

namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns sequences of 3 to 9 steps with different noise in every epoch.
Dataset noisy() {
  std::vector<Tensor> each;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 40; ++i) {
    each.push_back(uniform({3 + i * 5 % 7, 2}, {.seed = 1, .call = static_cast<std::uint64_t>(i)}, -1, 1));
    labels.push_back(i % 3);
  }
  return Dataset({sequences(each), Tensor::from(labels, {40})}).augment([](const Tensors& e, const ExampleKey& key) {
    pass(Moment::example);
    return Tensors{e[0] + normal(e[0].shape(), key("noise"), 0, 0.1), e[1]};
  });
}

/// A callback that reports the current moment.
struct Watch final : Callback {
  std::string name() const override { return "watch"; }
  void on_batch_end(Training&) override { pass(Moment::batch); }
  void on_validation_begin(Training&) override { pass(Moment::validation); }
  void on_validation_end(Training&) override { pass(Moment::validated); }
  std::vector<double> state() const override {
    pass(Moment::saving);
    return {};
  }
};

/// A run with two models and an optimiser each, dropout, buckets, loader threads, averages, early stopping, and a
/// falling rate.
struct Run {
  dsl::Network net = dsl::sequence(2).gru(4).dropout(0.2).last_step().batch_norm().linear(3).build(1);
  std::vector<Parameter> all = net.parameters();
  nn::Adam adam{{all.begin(), all.begin() + 4}, {.learning_rate = 1e-2}};
  nn::Sgd sgd{{all.begin() + 4, all.end()}, {.learning_rate = 1e-2, .momentum = 0.9}};
  DataLoader data{noisy(), {.batch_size = 4, .seed = 3, .drop_last = true, .buckets = 2, .threads = 2}};
  DataLoader validation{noisy(), {.batch_size = 20, .shuffle = false}};
  nn::CosineSchedule schedule{sgd, 30};

  History to_the_end(const std::filesystem::path& folder) {
    const OwnStep step{.run =
                           [&](const Batch& b) {
                             Tape tape;
                             const Tensor y = net(b.x(), b.context()), loss = nn::cross_entropy(y, b.y());
                             const Tensors g = tape.grad(loss, all);
                             adam.step(std::span(g.data(), 4));
                             sgd.step(std::span(g.data() + 4, g.size() - 4));
                             return StepOutput{loss, y};
                           },
                       .optimizers = {&adam, &sgd},
                       .evaluate =
                           [&](const Batch& b) {
                             const Tensor y = net(b.x(), b.context());
                             return StepOutput{nn::cross_entropy(y, b.y()), y};
                           }};
    return fit(net, step, data,
               {.epochs = 3,
                .validation = &validation,
                .metrics = {"accuracy"},
                .callbacks = {Ema(all, 0.9), EarlyStopping({.patience = 9}), ReduceLROnPlateau({.patience = 0}),
                              CSVLogger(folder / "log.csv"), Watch()},
                .schedule = &schedule,
                .compile = Compile::always,
                .checkpoint = folder / "training.safetensors",
                .checkpoint_every = 3});
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(resuming)

/// Runs are killed again and again at random moments, until one finishes.
BOOST_AUTO_TEST_CASE(killed_at_200_moments_the_final_file_has_the_same_bytes) {
  const TemporaryFolder whole;
  const History wanted = Run().to_the_end(whole.path());
  const std::string checkpoint = bytes_of(whole / "training.safetensors"), log = bytes_of(whole / "log.csv");
  BOOST_TEST(wanted.epochs() == 3);
  const char* const first = std::getenv("FERRITE_FIRST_SEED");  // so that every run of CI has other moments
  const auto seed = static_cast<unsigned>(first ? std::atoll(first) : 7);
  std::minstd_rand random(seed + 1);
  // Largest number of times that a moment may come before the kill: about a third of how often it comes in a whole run.
  constexpr std::array<unsigned, kMoments> kOften = {1, 180, 8, 1, 1, 4, 5, 5, 5, 10, 5, 5, 1};
  std::array<int, kMoments> killed{};
  int deaths = 0, resumed = 0;
  BOOST_TEST_CONTEXT("seed " << seed)
  while (deaths < 200) {
    const TemporaryFolder folder;
    for (bool ended = false; !ended;) {
      const std::size_t which = random() % kMoments;
      const bool saved = std::filesystem::exists(folder / "training.safetensors");
      const bool dead = died_at(static_cast<Moment>(which), 1 + static_cast<int>(random() % kOften[which]), [&] {
        Run run;
        pass(Moment::start);
        (void)run.to_the_end(folder.path());
        pass(Moment::end);
      });
      ended = !dead || static_cast<Moment>(which) == Moment::end;
      if (!dead) continue;
      ++deaths;
      ++killed[which];
      resumed += saved ? 1 : 0;
    }
    const History h = Run().to_the_end(folder.path());
    BOOST_TEST((bytes_of(folder / "training.safetensors") == checkpoint), "after " << deaths);
    BOOST_TEST((bytes_of(folder / "log.csv") == log), "after " << deaths);
    for (const std::string& name : wanted.names()) BOOST_TEST((h[name] == wanted[name]), name);
  }
  const auto of = [&](Moment from, Moment to) {
    return std::accumulate(killed.begin() + static_cast<int>(from), killed.begin() + static_cast<int>(to) + 1, 0);
  };
  for (std::size_t i = 0; i < kMoments; ++i) BOOST_TEST_MESSAGE(kMomentNames[i] << ": " << killed[i]);
  BOOST_TEST_MESSAGE(deaths << " deaths, " << resumed << " of runs that had been resumed");
  BOOST_TEST(resumed >= 60);
  BOOST_TEST(of(Moment::example, Moment::batch) >= 10);
  BOOST_TEST(of(Moment::validation, Moment::validated) >= 10);
  BOOST_TEST(of(Moment::saving, Moment::rename) >= 50);
  BOOST_TEST(of(Moment::flush, Moment::rename) >= 10);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const TemporaryFolder folder;
  const auto net = dsl::features(2).linear(1).build(1);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  const Dataset data({ones({8, 2}), ones({8, 1})});
  const auto run = [&](const DataLoader& loader, std::vector<AnyCallback> callbacks, std::int64_t epochs = 2) {
    return fit(net, loader,
               {.loss = "mse",
                .optimizer = &sgd,
                .epochs = epochs,
                .callbacks = std::move(callbacks),
                .checkpoint = folder / "c.safetensors"});
  };
  (void)run(DataLoader(data), {EarlyStopping({.monitor = {.value = "loss"}})});
  BOOST_CHECK_EXCEPTION((void)run(DataLoader(data, {.seed = 1}), {EarlyStopping({.monitor = {.value = "loss"}})}),
                        OtherTrainingError, says("seed was 0, is now 1"));
  BOOST_CHECK_EXCEPTION((void)run(DataLoader(data), {}), IoError, says("early_stopping"));
  // A finished training is not repeated; with more epochs it continues.
  BOOST_TEST(run(DataLoader(data), {EarlyStopping({.monitor = {.value = "loss"}})}).epochs() == 2);
  BOOST_TEST(run(DataLoader(data), {EarlyStopping({.monitor = {.value = "loss"}})}, 3).epochs() == 3);
}

BOOST_AUTO_TEST_CASE(what_was_stopped_stays_stopped) {
  const TemporaryFolder folder;
  const auto net = dsl::features(2).linear(1).build(1);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  const DataLoader data(Dataset({ones({8, 2}), ones({8, 1})}));
  LambdaCallback stop({.on_epoch_end = [](Training& t) {
    if (t.epoch() == 1) t.stop("enough");
  }});
  for (int run = 0; run < 3; ++run) {
    const History h = fit(
        net, data,
        {.loss = "mse", .optimizer = &sgd, .epochs = 9, .callbacks = {&stop}, .checkpoint = folder / "c.safetensors"});
    BOOST_TEST(h.epochs() == 2);
    BOOST_TEST(h.stopped() == "enough");
  }
}

/// A training of which each part can be replaced.
struct Small {
  double rate = 0.1;
  bool adamw = false;
  double dropout = 0.5;
  Dataset data{{uniform({8, 2}, {.seed = 1}), uniform({8, 1}, {.seed = 2})}};
  FitOptions options{.loss = "mse", .epochs = 2};
  double last_rate = 0;

  History run(const std::filesystem::path& file) {
    const auto net = dsl::features(2).linear(3).dropout(dropout).linear(1).build(1);
    const nn::AdamOptions of_adam{.learning_rate = rate};
    std::unique_ptr<nn::Optimizer> adam = std::make_unique<nn::Adam>(net.parameters(), of_adam);
    if (adamw) adam = std::make_unique<nn::AdamW>(net.parameters(), of_adam);
    FitOptions o = options;
    o.optimizer = adam.get();
    o.checkpoint = file;
    const History h = fit(net, DataLoader(data, {.batch_size = 4}), o);
    last_rate = adam->learning_rate();
    return h;
  }
};

BOOST_AUTO_TEST_CASE(what_changed_since_the_file_was_written_is_refused_by_name) {
  const TemporaryFolder folder;
  const auto file = folder / "c.safetensors";
  (void)Small().run(file);
  const std::string before = bytes_of(file);
  const auto refused = [&](Small now, const std::string& text) {
    BOOST_CHECK_EXCEPTION((void)now.run(file), OtherTrainingError, says(text));
    BOOST_TEST((bytes_of(file) == before), text);
  };
  refused({.rate = 0.2}, "learning_rate was 0.1, is now 0.2");
  refused({.adamw = true}, "optimizer was Adam, is now AdamW");
  refused({.dropout = 0.25}, "net.1 was dropout");
  Small other;
  other.options.loss = "l1";
  refused(other, "loss was mse, is now l1");
  other = {};
  other.options.clip_norm = 1;
  refused(other, "clip_norm was 0, is now 1");
  other = {};
  other.options.identity = {{"augmentation", "2"}};
  refused(other, "augmentation was none, is now 2");
  other = {};
  other.data = Dataset({uniform({8, 2}, {.seed = 1}), uniform({8, 1}, {.seed = 3})});  // other targets alone
  refused(other, "data was 8 examples: f32[2], f32[1] (");
  other = {};
  other.options.callbacks = {TerminateOnNaN()};
  refused(other, "callback.terminate_on_nan was none, is now ends training");
  // Without changes nothing is left to do.
  BOOST_TEST(Small().run(file).resumed() == 2);
}

BOOST_AUTO_TEST_CASE(an_intended_change_of_the_rate_is_the_rate_from_then_on) {
  const TemporaryFolder folder;
  const auto file = folder / "c.safetensors";
  (void)Small().run(file);
  Small now{.rate = 0.2};
  now.options.epochs = 3;
  now.options.changed = {"learning_rat"};
  BOOST_CHECK_EXCEPTION((void)now.run(file), ValueError, says("did you mean 'learning_rate'"));
  now.options.changed = {"learning_rate"};
  BOOST_TEST(now.run(file).epochs() == 3);
  BOOST_TEST(now.last_rate == 0.2);
}

BOOST_AUTO_TEST_SUITE_END()
