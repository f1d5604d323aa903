// A slot under load: while other threads put streams, the audio thread takes no memory from the system or the pool and
// no lock, and its output makes no jump. FERRITE_LONG: a million streams.
#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <vector>

#include "counted.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/stream/stream_slot.h"
#include "ferrite/tensor/denormals.h"

using namespace ferrite;

namespace {

/// A network whose output is a number, whatever its input and states.
dsl::Network gives(float number) {
  auto net = dsl::sequence(1).gru(4).linear(1).build(1);
  const auto parameters = net.named_parameters();
  for (std::size_t k = parameters.size() - 2; k < parameters.size(); ++k)
    parameters[k].variable.assign(full(parameters[k].variable.shape(), k + 1 == parameters.size() ? number : 0));
  return net;
}

struct Played {
  std::uint64_t asked = 0, pool = 0, locks = 0, steps = 0;
  float largest = 0;  ///< difference of neighbouring outputs
};

/// Plays blocks of changing sizes on this thread until `ended`, and as many again.
Played play(nn::StreamSlot& slot, const std::atomic<bool>& ended) {
  std::array<float, 24> x{}, y{};
  Played p;
  float last = 0;
  const std::uint64_t pool = pool_counts().requests, locks = counted::counts().locks;
  p.asked = counted::during([&] {
    for (std::size_t k = 0, behind = 0; behind < 100; ++k) {
      behind += ended.load();
      const std::size_t n = 1 + k * 7 % y.size();
      const FlushDenormals guard;
      slot.steps(static_cast<std::int64_t>(n), std::span<const float>(x).first(n), std::span(y).first(n));
      for (std::size_t t = 0; t < n; ++t) {
        if (p.steps++ > 0) p.largest = std::max(p.largest, std::fabs(y[t] - last));
        last = y[t];
      }
    }
  });
  p.pool = pool_counts().requests - pool;
  p.locks = counted::counts().locks - locks;
  return p;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_slot_alloc)

BOOST_AUTO_TEST_CASE(streams_are_replaced_under_load) {
  const int streams = std::getenv("FERRITE_LONG") ? 1'000'000 : 20'000;
  constexpr std::int64_t kCrossfade = 15;
  const std::array<dsl::Network, 3> nets{gives(-1), gives(0.25F), gives(1)};
  const std::array<nn::Stream, 3> made{nets[0].stream(), nets[1].stream(), nets[2].stream()};
  const std::array<double, 3> rates{48000, 44100, 0};
  nn::StreamSlot slot(nets[0].stream(), {.crossfade = kCrossfade, .rate = 48000});
  std::atomic<bool> ended = false;
  Played p;
  std::thread audio([&] { p = play(slot, ended); });
  std::thread collector([&] {
    while (!ended.load()) {
      slot.collect();
      (void)slot.settled();
      std::this_thread::yield();
    }
  });
  int heard = 0;
  for (int i = 0; i < streams; ++i) {
    const std::size_t k = static_cast<std::size_t>(i) % 3;
    slot.put(made[k].clone(), i % 1000 < 3 ? rates[k] : 0);  // tables of weights take their time
    if (i % 4 == 0)
      while (!slot.settled()) std::this_thread::yield();
    heard += i % 4 == 0;
  }
  ended = true;
  audio.join();
  collector.join();
  BOOST_TEST(slot.settled());
  BOOST_TEST(heard >= streams / 4);
  BOOST_TEST(p.asked == 0U);
  BOOST_TEST(p.pool == 0U);
  BOOST_TEST(p.locks == 0U);
  BOOST_TEST(p.steps > static_cast<std::uint64_t>(kCrossfade * heard));
  BOOST_TEST(p.largest <= 2.0F / (kCrossfade + 1) + 1e-6F);
  BOOST_TEST(p.largest > 0.75F / (kCrossfade + 1));  // changes were heard
}

BOOST_AUTO_TEST_SUITE_END()
