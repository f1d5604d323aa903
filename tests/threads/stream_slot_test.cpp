// A slot between threads, for ThreadSanitizer: several threads put streams while one plays.
#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>
#include <vector>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/stream/stream_slot.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(stream_slot_threads)

/// After all threads have ended, one of their streams is heard alone, with the bits that it has by itself.
BOOST_AUTO_TEST_CASE(threads_put_streams_at_once) {
  constexpr int kThreads = 3, kStreams = 300;
  std::vector<dsl::Network> nets;
  for (std::uint64_t seed = 0; seed < kThreads; ++seed) nets.push_back(dsl::sequence(1).gru(4).linear(1).build(seed));
  nn::StreamSlot slot(nets[0].stream(), {.crossfade = 8, .rate = 48000});
  std::atomic<int> putting = kThreads;
  std::vector<std::thread> others;
  for (int k = 0; k < kThreads; ++k)
    others.emplace_back([&, k] {
      for (int i = 0; i < kStreams; ++i) {
        slot.put(nets[static_cast<std::size_t>(k)].stream(), i % 50 == 1 ? 44100 : 48000);
        if (i % 10 == 0) slot.collect();
        (void)slot.settled();
        (void)slot.latency();
      }
      --putting;
    });
  std::array<float, 16> x{}, y{};
  while (putting.load() > 0) slot.steps(16, x, y);
  for (std::thread& t : others) t.join();
  while (!slot.settled()) slot.steps(16, x, y);
  slot.reset();
  x[0] = 1;
  slot.steps(16, x, y);
  bool known = false;
  for (const dsl::Network& net : nets) {
    std::array<float, 16> alone{};
    net.stream().steps(16, x, alone);
    known = known || alone == y;
  }
  BOOST_TEST(slot.latency() == 0);
  BOOST_TEST(known);
}

BOOST_AUTO_TEST_SUITE_END()
