// Training that is stopped and resumed, compared bit for bit with training that never stopped.
#include <fstream>

#include "ferrite/io/checksum.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/nn/optim/cyclic_schedule.h"
#include "ferrite/nn/optim/plateau_schedule.h"
#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/sgd.h"
#include "io/temporary_folder.h"
#include "support/compare.h"
#include "train/checkpointed.h"

using namespace ferrite;
using io_test::TemporaryFolder;
using support::identical;
using support::says;
using namespace train_test;

BOOST_AUTO_TEST_SUITE(checkpoint)

BOOST_AUTO_TEST_CASE(resumed_training_has_the_bits_of_training_that_never_stopped) {
  const TemporaryFolder folder;
  Training whole(1);
  whole.run_to(17);
  for (const std::int64_t stop : {0, 1, 4, 10}) {
    Training first(1);
    first.run_to(stop);
    first.save(folder / "training.safetensors");
    Training second(77);  // other weights, another rate
    second.adam.set_learning_rate(1);
    second.load(folder / "training.safetensors");
    BOOST_TEST((second.at == first.at));
    second.run_to(17);
    BOOST_TEST(equal(second.net, whole.net), "stopped after " << stop);
    BOOST_TEST(second.adam.learning_rate() == whole.adam.learning_rate());
  }
}

// Resuming keeps a rate set by hand after the schedule's last advance: the schedule does not overwrite it.
BOOST_AUTO_TEST_CASE(a_rate_set_by_hand_beside_a_schedule_is_resumed) {
  const TemporaryFolder folder;
  Training first(1);
  first.run_to(3);
  first.adam.set_learning_rate(0.123);
  first.save(folder / "training.safetensors");
  Training second(77);
  second.load(folder / "training.safetensors");
  BOOST_TEST(second.adam.learning_rate() == 0.123);
  BOOST_TEST(second.schedule.steps() == 3);
}

BOOST_AUTO_TEST_CASE(rmsprop_resumed_in_mid_run_has_the_bits_of_training_that_never_stopped) {
  const TemporaryFolder folder;
  struct Run {
    explicit Run(std::uint64_t seed) : net(dsl::features(3).linear(5).tanh().linear(1).build(seed)) {}
    void step(std::int64_t i) {
      Tape tape;
      const Tensor x = uniform({8, 3}, {.seed = 4, .call = static_cast<std::uint64_t>(i)}, -1, 1);
      rmsprop.step(tape.grad(mean(square(net(x) - sum(x, {1}, true))), net.parameters()));
    }
    dsl::Network net;
    nn::RmsProp rmsprop{net.parameters(), {.weight_decay = 1e-3, .momentum = 0.9, .centered = true}};
  };
  Run whole(1);
  for (std::int64_t i = 0; i < 12; ++i) whole.step(i);
  Run first(1), second(7);  // other weights
  for (std::int64_t i = 0; i < 5; ++i) first.step(i);
  train::save_checkpoint(folder / "a.safetensors", first.net, first.rmsprop, {.step = 5});
  second.step(0);
  const train::Position at = train::load_checkpoint(folder / "a.safetensors", second.net, second.rmsprop);
  for (std::int64_t i = at.step; i < 12; ++i) second.step(i);
  BOOST_TEST(equal(second.net, whole.net));
  const nn::RmsProp plain(second.net.parameters());  // has other states
  BOOST_CHECK_THROW((void)train::load_checkpoint(folder / "a.safetensors", second.net, plain), IoError);
}

BOOST_AUTO_TEST_CASE(its_weights_can_be_loaded_alone) {
  const TemporaryFolder folder;
  Training t(1);
  t.run_to(2);
  t.save(folder / "a.safetensors");
  const dsl::Network other = network(2);
  io::load(other, folder / "a.safetensors");
  BOOST_TEST(equal(other, t.net));
}

BOOST_AUTO_TEST_CASE(damage_and_other_files_are_refused_and_change_nothing) {
  const TemporaryFolder folder;
  Training t(1);
  t.run_to(3);
  t.save(folder / "a.safetensors");
  Training other(2);
  const Training untouched(2);
  {
    std::fstream file(folder / "a.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-5, std::ios::end);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(-5, std::ios::end);
    file.put(byte);
  }
  BOOST_CHECK_EXCEPTION(other.load(folder / "a.safetensors"), IoError,
                        says("a.safetensors: is damaged: its checksum is"));
  io::save(t.net, folder / "weights.safetensors");
  BOOST_CHECK_EXCEPTION(other.load(folder / "weights.safetensors"), IoError, says("is not a checkpoint"));
  BOOST_CHECK_EXCEPTION(train::save_checkpoint(folder / "b", t.net, t.adam, {}, nullptr, {{"training.step", "1"}}),
                        IoError, says("the metadata key 'training.step' is taken"));
  BOOST_TEST(equal(other.net, untouched.net));
}

/// The file is whole and has a valid checksum, but its numbers make training impossible.
BOOST_AUTO_TEST_CASE(numbers_out_of_range_are_refused_and_change_nothing) {
  const TemporaryFolder folder;
  Training t(1);
  t.run_to(3);
  t.save(folder / "good.safetensors");
  const io::TensorFile good = io::read_safetensors(folder / "good.safetensors");
  const auto refused = [&](const std::string& key, const std::string& text, const Tensor& value = {}) {
    io::Metadata metadata = good.metadata();
    metadata.erase("checksum");
    if (!value.defined()) metadata[key] = text;
    std::vector<io::NamedTensor> tensors;
    for (const std::string_view name : good.names())
      tensors.push_back({std::string(name), name == key ? value : good.tensor(name)});
    metadata["checksum"] = io::checksum(tensors, metadata);
    io::write_safetensors(folder / "bad.safetensors", tensors, metadata);
    Training other(2);
    const Training untouched(2);
    other.run_to(2);
    Training before(2);
    before.run_to(2);
    BOOST_CHECK_EXCEPTION(other.load(folder / "bad.safetensors"), IoError, says("bad.safetensors: '" + key + "' "));
    BOOST_TEST(equal(other.net, before.net), key << " " << text);
    BOOST_TEST((other.at == before.at));
    BOOST_TEST(other.schedule.base() == before.schedule.base());
    BOOST_TEST(other.schedule.steps() == before.schedule.steps());
    for (std::size_t i = 0; i < before.adam.states().size(); ++i)
      BOOST_TEST(identical(other.adam.states()[i].variable.peek(), before.adam.states()[i].variable.peek()));
  };
  for (const char* text : {"nan", "-1", "inf", "-inf", "1e999", "", "0.1x"}) refused("training.schedule_base", text);
  for (const char* key : {"training.schedule_steps", "training.epoch", "training.batch", "training.step"})
    for (const char* text : {"-1", "9223372036854775808", "1.5", "nan"}) refused(key, text);
  for (const double rate : {std::nan(""), -1.0, HUGE_VAL})
    refused("optimizer.learning_rate", std::to_string(rate), full({}, rate, Dtype::f64));
  for (const double steps : {std::nan(""), -3.0, 1.5, HUGE_VAL})
    refused("optimizer.step", std::to_string(steps), full({}, steps, Dtype::f64));
}

/// Groups, a plateau's memory, a cycled momentum and averages of weights, resumed to the bit.
BOOST_AUTO_TEST_CASE(groups_schedules_and_averages_are_resumed) {
  struct Loop {
    dsl::Network net = dsl::sequence(3).linear(4).linear(2).build(0);
    nn::Sgd sgd{{net.parameters()[0], net.parameters()[1]}, {.learning_rate = 0.1, .momentum = 0.5}};
    nn::WeightAverage average{net.parameters(), {.decay = 0.8}};
    std::unique_ptr<nn::Schedule> schedule;
    explicit Loop(bool plateau) {
      sgd.add_group({net.parameters()[2], net.parameters()[3]}, {.learning_rate = 0.02, .momentum = 0.9});
      if (plateau) {
        schedule = std::make_unique<nn::PlateauSchedule>(sgd, nn::PlateauOptions{.factor = 0.5, .patience = 1});
      } else {
        schedule = std::make_unique<nn::OneCycleSchedule>(
            sgd, nn::OneCycleOptions{.max_learning_rate = {0.2, 0.1}, .total_steps = 20});
      }
    }
    void run(int first, int end) {
      for (int t = first; t < end; ++t) {
        Tape tape;
        const Tensor x = uniform({5, 3}, {9, static_cast<std::uint64_t>(t), 0}, -1, 1);
        const Tensor loss = mean(square(net(x)));
        sgd.step(tape.grad(loss, sgd.parameters()));
        average.update();
        if (auto* p = dynamic_cast<nn::PlateauSchedule*>(schedule.get())) {
          p->advance(1 + t % 3);
        } else {
          schedule->advance();
        }
      }
    }
  };
  for (const bool plateau : {false, true}) {
    const TemporaryFolder folder;
    Loop whole(plateau), stopped(plateau), resumed(plateau);
    whole.run(0, 12);
    stopped.run(0, 7);
    const auto path = folder / "c.safetensors";
    train::save_checkpoint(path, stopped.net, stopped.sgd, {.step = 7}, stopped.schedule.get(), {}, &stopped.average);
    (void)train::load_checkpoint(path, resumed.net, resumed.sgd, resumed.schedule.get(), &resumed.average);
    BOOST_TEST(resumed.average.count() == 7);
    resumed.run(7, 12);
    for (std::size_t i = 0; i < 4; ++i)
      BOOST_TEST(identical(whole.net.parameters()[i].peek(), resumed.net.parameters()[i].peek()), plateau);
    for (std::size_t group = 0; group < 2; ++group) {
      BOOST_TEST(whole.sgd.learning_rate(group) == resumed.sgd.learning_rate(group));
      BOOST_TEST(whole.sgd.momentum(group) == resumed.sgd.momentum(group));
    }
    whole.average.swap();
    resumed.average.swap();
    BOOST_TEST(identical(whole.net.parameters()[0].peek(), resumed.net.parameters()[0].peek()));
    BOOST_CHECK_THROW(train::save_checkpoint(path, whole.net, whole.sgd, {}, whole.schedule.get(), {}, &whole.average),
                      ValueError);
  }
}

BOOST_AUTO_TEST_CASE(layers_of_equal_names_keep_their_own_moments) {
  struct Pair : nn::Module {
    nn::Linear a{2, 2, {.seed = 0}};
    nn::Linear b{2, 2, {.seed = 0}};
    Pair() { adopt("a", a), adopt("b", b); }
  };
  const Pair pair;
  nn::Adam adam(pair.parameters());
  adam.step({ones({2, 2}), ones({2}), 2 * ones({2, 2}), ones({2})});
  const TemporaryFolder folder;
  train::save_checkpoint(folder / "a", pair, adam, {.step = 1});
  const Pair other;
  nn::Adam resumed(other.parameters());
  BOOST_TEST(train::load_checkpoint(folder / "a", other, resumed).step == 1);
  for (std::size_t i = 0; i < adam.states().size(); ++i)
    BOOST_TEST(identical(resumed.states()[i].variable.peek(), adam.states()[i].variable.peek()));
}

BOOST_AUTO_TEST_SUITE_END()
