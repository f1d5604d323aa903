// Callbacks: when they are called, what they remember, and what they write.
#include "ferrite/train/callbacks.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "ferrite/dsl/builder.h"
#include "ferrite/io/module_file.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/train/fit.h"
#include "io/temporary_folder.h"
#include "support/comma_locale.h"
#include "support/compare.h"
#include "train/line.h"

using namespace ferrite;
using namespace ferrite::train;
using io_test::TemporaryFolder;
using support::identical;
using support::says;
using train_test::line;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A training of a small net.
struct Small {
  dsl::Network net = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd{net.parameters(), {.learning_rate = 0.1}};
  DataLoader data{line(20), {.batch_size = 8}};

  History fit(std::vector<AnyCallback> callbacks, std::int64_t epochs = 3, std::int64_t accumulate = 1) {
    return train::fit(net, data,
                      {.loss = "mse",
                       .optimizer = &sgd,
                       .epochs = epochs,
                       .validation = &data,
                       .callbacks = std::move(callbacks),
                       .accumulate = accumulate});
  }
};

/// Returns a callback that sets a value by epochs, so that later callbacks see what a test wants.
AnyCallback values(std::string name, std::vector<double> by_epoch) {
  return LambdaCallback({.on_epoch_end = [name = std::move(name), by_epoch = std::move(by_epoch)](Training& t) {
    t.log(name, by_epoch.at(static_cast<std::size_t>(t.epoch())));
  }});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(callbacks)

BOOST_AUTO_TEST_CASE(are_called_in_order) {
  struct Recorder final : Callback {
    std::string calls;
    std::string name() const override { return "recorder"; }
    void on_train_begin(Training&) override { calls += "("; }
    void on_epoch_begin(Training& t) override { calls += "[" + std::to_string(t.epoch()); }
    void on_batch_end(Training& t) override { calls += std::to_string(t.batch()) + (t.step() == 0 ? "-" : "."); }
    void on_validation_begin(Training&) override { calls += "<"; }
    void on_validation_end(Training& t) override { calls += t.logs().contains("val_loss") ? ">" : "?"; }
    void on_epoch_end(Training& t) override { calls += t.history().epochs() == t.epoch() + 1 ? "]" : "!"; }
    void on_train_end(Training&) override { calls += ")"; }
  } recorder;
  Small s;
  (void)s.fit({&recorder}, 2, 2);
  BOOST_TEST(recorder.calls == "([01-2.3.<>][11.2.3.<>])");
}

BOOST_AUTO_TEST_CASE(early_stopping_takes_the_best_weights) {
  Small s;
  std::vector<Tensor> weights;
  LambdaCallback keep({.on_epoch_end = [&](Training& t) { weights.push_back(t.model().parameters()[0].peek() + 0); }});
  EarlyStopping stop({.monitor = {.value = "val_loss"}, .patience = 1});
  const History h = s.fit({values("val_loss", {3, 2, 2.5, NAN, 1}), &keep, &stop}, 5);
  BOOST_TEST(h.epochs() == 4);
  BOOST_TEST(stop.best() == 2);
  BOOST_TEST(stop.best_epoch() == 2);
  BOOST_TEST(h.stopped() == "val_loss has not become better since epoch 2");
  BOOST_TEST(identical(s.net.parameters()[0].peek(), weights[1]));
  // A value that should grow, a least change, and first epochs that do not count.
  Small other;
  const History grown = other.fit({values("val_accuracy", {0.9, 0.5, 0.6, 0.605, 0.7, 0.8}),
                                   EarlyStopping({.monitor = {.value = "val_accuracy", .least_change = 0.01},
                                                  .restore_best_weights = false,
                                                  .start_from_epoch = 1})},
                                  6);
  BOOST_TEST(grown.epochs() == 4);
  Small third;
  const History fallen = third.fit({values("val_loss", {0.9, 0.8, 0.795, 0.7, 0.6}),
                                    EarlyStopping({.monitor = {.value = "val_loss", .least_change = 0.01}})},
                                   5);
  BOOST_TEST(fallen.epochs() == 3);
  // After an improvement the patience starts over.
  const History patient = Small().fit(
      {values("val_loss", {3, 4, 2, 4, 1}), EarlyStopping({.monitor = {.value = "val_loss"}, .patience = 1})}, 5);
  BOOST_TEST(patient.epochs() == 5);
  BOOST_CHECK_EXCEPTION((void)Small().fit({EarlyStopping({.monitor = {.value = "val_f1"}})}), ValueError,
                        says("there is no value 'val_f1' to look at; there are loss, val_loss"));
  BOOST_CHECK_EXCEPTION(EarlyStopping({.monitor = {.value = "val_ease"}}), ValueError, says("say larger_is_better"));
}

BOOST_AUTO_TEST_CASE(early_stopping_takes_the_buffers_with_the_weights) {
  const auto net = dsl::features(3).batch_norm().linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  const DataLoader data(line(20), {.batch_size = 8});
  std::vector<std::vector<Tensor>> buffers;
  LambdaCallback keep({.on_epoch_end = [&](Training&) {
    buffers.emplace_back();
    for (const auto& b : net.named_buffers()) buffers.back().push_back(b.variable.peek() + 0);
  }});
  (void)fit(net, data,
            {.loss = "mse",
             .optimizer = &sgd,
             .epochs = 4,
             .callbacks = {values("val_loss", {3, 2, 4, 5}), &keep, EarlyStopping({.patience = 9})}});
  const auto after = net.named_buffers();
  BOOST_REQUIRE(after.size() > 0U);
  bool moved = false;
  for (std::size_t i = 0; i < after.size(); ++i) {
    BOOST_TEST(identical(after[i].variable.peek(), buffers[1][i]), after[i].name);
    moved |= !identical(buffers[1][i], buffers[3][i]);
  }
  BOOST_TEST(moved);
}

BOOST_AUTO_TEST_CASE(the_best_model_is_that_of_all_parts_of_a_training) {
  const TemporaryFolder folder;
  const auto net = dsl::features(3).linear(1).build(2);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1});
  const DataLoader data(line(20), {.batch_size = 8});
  ModelCheckpoint save(folder / "models");
  Tensor of_two;
  for (const std::int64_t epochs : {2, 3}) {
    (void)fit(net, data,
              {.loss = "mse",
               .optimizer = &sgd,
               .epochs = epochs,
               .callbacks = {values("val_loss", {3, 2, 2.5}), &save},
               .checkpoint = folder / "training.safetensors"});
    const auto best = dsl::features(3).linear(1).build(9);
    io::load(best, save.best_path());
    if (epochs == 2) of_two = net.parameters()[0].peek() + 0;
    BOOST_TEST(identical(best.parameters()[0].peek(), of_two));
  }
}

BOOST_AUTO_TEST_CASE(the_best_and_the_last_models_are_saved) {
  const TemporaryFolder folder;
  Small s;
  std::vector<Tensor> weights;
  LambdaCallback keep({.on_epoch_end = [&](Training& t) { weights.push_back(t.model().parameters()[0].peek() + 0); }});
  ModelCheckpoint save(folder / "models", {.last = 2});
  (void)s.fit({values("val_loss", {3, 2, 2.5}), &keep, &save});
  const auto loaded = [&](const std::filesystem::path& path) {
    const auto net = dsl::features(3).linear(1).build(9);
    io::load(net, path);
    return net.parameters()[0].peek();
  };
  BOOST_TEST(identical(loaded(save.best_path()), weights[1]));
  BOOST_TEST(identical(loaded(folder / "models" / "epoch-0003.safetensors"), weights[2]));
  BOOST_TEST(std::filesystem::exists(folder / "models" / "epoch-0002.safetensors"));
  BOOST_TEST(!std::filesystem::exists(folder / "models" / "epoch-0001.safetensors"));
}

BOOST_AUTO_TEST_CASE(the_rate_falls_on_a_plateau) {
  Small s;
  const History h = s.fit({values("val_loss", {3, 2, 2, 2, 1}), ReduceLROnPlateau({.factor = 0.5, .patience = 1})}, 5);
  BOOST_TEST((h["learning_rate"] == std::vector<double>{0.1, 0.1, 0.1, 0.05, 0.05}));
  const auto rates = [](const char* name, const std::vector<double>& of, ReduceLROnPlateauOptions options) {
    options.monitor.value = name;
    options.factor = 0.5;
    options.patience = 0;
    return Small().fit({values(name, of), ReduceLROnPlateau(options)},
                       static_cast<std::int64_t>(of.size()))["learning_rate"];
  };
  using Rates = std::vector<double>;
  BOOST_TEST((rates("val_loss", {3, 3, 3, 3}, {}) == Rates{0.1, 0.05, 0.025, 0.0125}));
  BOOST_TEST((rates("val_loss", {3, 3, 3, 3, 3}, {.cooldown = 2}) == Rates{0.1, 0.05, 0.05, 0.05, 0.025}));
  BOOST_TEST((rates("val_loss", {3, 3, 3, 3}, {.least_rate = 0.03}) == Rates{0.1, 0.05, 0.03, 0.03}));
  BOOST_TEST((rates("val_accuracy", {0.1, 0.2, 0.1, 0.3}, {}) == Rates{0.1, 0.1, 0.05, 0.05}));
  BOOST_TEST((rates("val_loss", {3, 2.95, 2.8}, {.monitor = {.least_change = 0.1}}) == Rates{0.1, 0.05, 0.05}));
}

BOOST_AUTO_TEST_CASE(averages_stand_in_for_the_weights) {
  Small s;
  Tensor average, last;
  std::int64_t updates = 0;
  struct Follow final : Callback {
    Tensor* average;
    std::int64_t* updates;
    Tensor* last;
    std::string name() const override { return "follow"; }
    void on_batch_end(Training& t) override {
      const Tensor w = t.model().parameters()[0].peek();
      *average = average->defined() ? *average * 0.9F + w * 0.1F : w;
      ++*updates;
    }
    void on_validation_begin(Training& t) override {
      BOOST_TEST(support::within(t.model().parameters()[0].peek(), *average, 1e-6));
    }
    void on_validation_end(Training& t) override { *last = t.model().parameters()[0].peek() + 0; }
  } follow;
  follow.average = &average, follow.updates = &updates, follow.last = &last;
  (void)s.fit({Ema(s.net.parameters(), 0.9), &follow}, 2);
  BOOST_TEST(updates == 6);
  BOOST_TEST(support::within(s.net.parameters()[0].peek(), average, 1e-6));
  BOOST_TEST(!identical(s.net.parameters()[0].peek(), last));
  Small kept;
  average = Tensor();
  (void)kept.fit({Ema(kept.net.parameters(), 0.9, false), &follow}, 2);
  BOOST_TEST(identical(kept.net.parameters()[0].peek(), last));
}

BOOST_AUTO_TEST_CASE(values_are_written) {
  const TemporaryFolder folder;
  const support::CommaLocale locale;
  Small s;
  std::ostringstream plain, terminal;
  const History h =
      s.fit({values("rate", {0.5, NAN, 0.1}), CSVLogger(folder / "log.csv"), Curves(folder / "loss.svg", {}, "A < B"),
             ProgressBar(plain), ProgressBar(terminal, true, 200)});
  std::string wanted = "epoch,loss,val_loss,rate\n";
  for (std::size_t e = 0; e < 3; ++e) {
    std::istringstream in(text_of(folder / "log.csv"));
    in.imbue(std::locale::classic());
    std::string line;
    for (std::size_t skip = 0; skip <= e + 1; ++skip) std::getline(in, line);
    double loss = 0, val = 0;
    char comma = 0;
    std::istringstream fields(line.substr(2));
    fields.imbue(std::locale::classic());
    fields >> loss >> comma >> val;
    BOOST_TEST(line.substr(0, 2) == std::to_string(e + 1) + ",");
    BOOST_TEST(loss == h["loss"][e]);
    BOOST_TEST(val == h["val_loss"][e]);
    BOOST_TEST((line.back() == (e == 1 ? ',' : e == 0 ? '5' : '1')), line);
  }
  BOOST_TEST(text_of(folder / "log.csv").find(wanted) == 0U);
  const std::string svg = text_of(folder / "loss.svg");
  BOOST_TEST(svg.find("<svg") == 0U);
  BOOST_TEST(svg.find("val_loss") != std::string::npos);
  BOOST_TEST(svg.find("A &lt; B") != std::string::npos);
  const std::string lines = plain.str();
  BOOST_TEST(std::count(lines.begin(), lines.end(), '\n') == 3);
  BOOST_TEST(lines.find("epoch 1/3  loss 0.") == 0U, lines);
  BOOST_TEST(lines.find("samples/s  ETA 0:00\n") != std::string::npos, lines);
  BOOST_TEST(lines.find('\r') == std::string::npos);
  BOOST_TEST(terminal.str().find("\r\x1b[K") == 0U);
  BOOST_TEST(terminal.str().find("[########................]") != std::string::npos);  // one batch of three
  BOOST_TEST(terminal.str().back() == '\n');
}

BOOST_AUTO_TEST_CASE(event_files_of_training_and_validation) {
  const TemporaryFolder folder;
  Small s;
  (void)s.fit({TensorBoard(folder / "run", {.histograms = 2, .update_losses = true})});
  const auto events = [&](const char* part) {
    std::string all;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "run" / part)) all += text_of(entry.path());
    return all;
  };
  const auto count = [](const std::string& text, const std::string& of) {
    int n = 0;
    for (std::size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++n;
    return n;
  };
  const std::string training = events("train"), validation = events("validation");
  BOOST_TEST(count(training, "epoch/loss") == 3);
  BOOST_TEST(count(training, "update/loss") == 9);
  BOOST_TEST(count(training, "0/weight") == 1);
  BOOST_TEST(count(validation, "epoch/loss") == 3);
  BOOST_TEST(count(validation, "update/loss") == 0);
}

BOOST_AUTO_TEST_CASE(a_callback_stops_behind_a_batch) {
  Small s;
  LambdaCallback stop({.on_batch_end = [](Training& t) {
    if (t.step() == 4) t.stop("enough");
  }});
  const History h = s.fit({&stop}, 5);
  BOOST_TEST(h.epochs() == 1);
  BOOST_TEST(h.stopped() == "enough");
}

BOOST_AUTO_TEST_SUITE_END()
