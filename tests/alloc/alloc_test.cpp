// Repeated calls allocate no memory: streams none once they are made, calls and training steps none from the third on.
#include <boost/test/unit_test.hpp>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "counted.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/threads.h"

using namespace ferrite;

namespace {

/// Returns a network around one recurrent layer: "gru", "lstm", "lstm_projected", "rnn", "gru_both_ways".
dsl::Network network(const std::string& kind, std::int64_t H, bool last) {
  auto b = dsl::sequence(12);
  if (kind == "gru") b.gru(H, {.layers = 2});
  if (kind == "gru_reset_before") b.gru(H, {.reset_after = false});
  if (kind == "gru_both_ways") b.gru(H, {.bidirectional = true});
  if (kind == "lstm") b.lstm(H);
  if (kind == "lstm_projected") b.lstm(H, {.proj_size = H / 2});
  if (kind == "rnn") b.rnn(H);
  if (last) b.last_step();
  return b.linear(10).build(1);
}

const std::vector<std::string> kCausal = {"gru", "gru_reset_before", "lstm", "lstm_projected", "rnn"};
const std::vector<std::string> kAll = {"gru", "gru_reset_before", "gru_both_ways", "lstm", "lstm_projected", "rnn"};
const std::vector<std::int64_t> kSizes = {4, 17, 64, 512};

}  // namespace

BOOST_AUTO_TEST_SUITE(alloc)

BOOST_AUTO_TEST_CASE(the_counter_counts) {
  BOOST_TEST(counted::during([] { std::vector<int>(1000).swap(*new std::vector<int>); }) >= 2);
  BOOST_TEST(counted::during([] { (void)zeros({3, 1 << 20}); }) >= 1);  // a miss of the pool
  BOOST_TEST(counted::during([] {}) == 0);
}

BOOST_AUTO_TEST_CASE(a_step_of_a_stream_allocates_nothing) {
  for (const std::string& kind : kCausal)
    for (const std::int64_t H : kSizes)
      for (const std::int64_t batch : {1, 3}) {
        const auto net = network(kind, H, false);
        nn::Stream stream = net.stream(batch);
        std::vector<float> x(static_cast<std::size_t>(12 * batch), 0.5F), y(static_cast<std::size_t>(10 * batch));
        std::vector<float> three(3 * x.size()), results(3 * y.size());
        const auto requests = pool_counts().requests;
        BOOST_TEST(counted::during([&] { stream.step(x, y); }) == 0, kind << " H " << H << ", first step");
        BOOST_TEST(counted::during([&] {
                     for (int i = 0; i < 100; ++i) stream.step(x, y);
                     stream.reset();
                     stream.steps(3, three, results);
                   }) == 0,
                   kind << " H " << H);
        BOOST_TEST(pool_counts().requests == requests, "a step asked the pool");
        BOOST_TEST(stream.on_tensors() == 0U);
      }
}

/// A layer that reads values has no program.
BOOST_AUTO_TEST_CASE(layers_that_run_on_tensors_miss_no_pool) {
  struct Looking final : nn::Layer {
    std::string kind() const override { return "looking"; }
    bool causal() const override { return true; }
    Tensor forward(const Tensor& x, const nn::Context&) const override { return sum(x).item() > 0 ? x : -x; }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Looking>(); }
  };
  nn::Sequential net({.seed = 0});
  net.add("gru", std::make_unique<nn::Gru>(8, 16));
  net.add("looking", std::make_unique<Looking>());
  net.add("softmax", std::make_unique<nn::Activation>("softmax", nn::activation("softmax")));
  net.add("again", std::make_unique<Looking>());
  net.add("linear", std::make_unique<nn::Linear>(16, 3));
  nn::Stream stream = net.stream();
  std::vector<float> x(8, 0.5F), y(3);
  BOOST_TEST(stream.on_tensors() == 2U);
  for (int i = 0; i < 3; ++i) stream.step(x, y);
  BOOST_TEST(counted::during([&] {
               for (int i = 0; i < 100; ++i) stream.step(x, y);
             }) == 0);
}

BOOST_AUTO_TEST_CASE(a_call_allocates_nothing_from_the_third_on) {
  for (const std::string& kind : kAll)
    for (const std::int64_t H : kSizes) {
      const auto net = network(kind, H, true);
      const Tensor x = uniform({3, 20, 12}, {1, 2, 3}, -1, 1);
      const auto call = [&] { (void)net(x); };
      call(), call();
      BOOST_TEST(counted::during(call) == 0, kind << " H " << H);
      BOOST_TEST(counted::during(call) == 0, kind << " H " << H);
    }
}

BOOST_AUTO_TEST_CASE(a_training_step_allocates_nothing_from_the_third_on) {
  for (const std::string& kind : kAll)
    for (const std::int64_t H : kSizes) {
      const auto net = network(kind, H, true);
      const auto parameters = net.parameters();
      nn::Adam adam(parameters);
      const Tensor x = uniform({3, 20, 12}, {1, 2, 3}, -1, 1);
      const Tensor lengths = Tensor::from<std::int64_t>({20, 3, 11});
      const Tensor labels = Tensor::from<std::int64_t>({1, 0, 7});
      const auto step = [&] {
        Tape tape;
        const Tensor loss = nn::cross_entropy(net(x, {.lengths = lengths}), labels);
        adam.step(tape.grad(loss, parameters));
      };
      step(), step();
      BOOST_TEST(counted::during(step) == 0, kind << " H " << H << ", third step");
      BOOST_TEST(counted::during(step) == 0, kind << " H " << H << ", fourth step");
    }
}

/// scripts/digests compares the number of locks as it compares that of allocations.
BOOST_AUTO_TEST_CASE(locks_are_counted) {
  std::mutex one;
  std::shared_mutex shared;
  const std::uint64_t before = counted::counts().locks;
  {
    const std::lock_guard lock(one);
    const std::shared_lock reads(shared);
  }
  shared.lock();
  shared.unlock();
  BOOST_TEST(one.try_lock());
  one.unlock();
  BOOST_TEST(counted::counts().locks - before == 4U);
}

BOOST_AUTO_TEST_SUITE_END()
