// Two threads compared with one, and with two processes of one thread each on the same two processors: how much of the
// machine the threads of a layer use. Answers lines "job kind H T B" with microseconds by one thread, by two and by one
// next to another process, and with the nanoseconds in which a cache line goes to the other processor and back: when a
// host moves one of the two to another chip, that time rises several times. Needs two processors that nothing else
// uses. bench/compare/threads.py asks.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/threads.h"
#include "jobs.h"
#include "timing.h"

namespace {

void stay_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(processor), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) throw std::runtime_error("bench_threads: no such processor");
}

/// Another process that does the same job on another processor during the lifetime of this object.
class Neighbour {
 public:
  Neighbour(const std::string& name, const bench::Cell& cell, int processor) : child_(fork()) {
    if (child_ != 0) return;
    stay_on(processor);
    const ferrite::FlushDenormals guard;
    const std::function<void()> f = bench::job(name, cell);
    for (;;) f();
  }
  ~Neighbour() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  pid_t child_;
};

struct Times {
  double one, two, beside;  ///< one thread, two threads, one thread next to another process
};

Times measure(const std::string& name, const bench::Cell& cell) {
  constexpr double kSeconds = 0.4;
  Times t{};
  {
    const Neighbour neighbour(name, cell, 0);
    const std::function<void()> f = bench::job(name, cell);
    usleep(100'000);
    t.beside = bench::interleaved_for({f}, kSeconds)[0];
  }
  const std::function<void()> f = bench::job(name, cell);
  t.one = bench::interleaved_for({f}, kSeconds)[0];
  ferrite::set_threads(2);
  t.two = bench::interleaved_for({f}, kSeconds)[0];
  ferrite::set_threads(1);
  return t;
}

/// Returns the least seconds in which a cache line goes to the other processor and back.
double round_trip() {
  constexpr int kSamples = 20;
  constexpr int kTurns = 100;
  std::atomic<int> ball{0};
  std::thread other([&] {
    stay_on(0);
    for (int i = 0; i < kSamples * kTurns; ++i) {
      while (ball.load(std::memory_order_acquire) == 0) {
      }
      ball.store(0, std::memory_order_release);
    }
  });
  double least = 1e30;
  for (int sample = 0; sample < kSamples; ++sample) {
    const double start = bench::now();
    for (int i = 0; i < kTurns; ++i) {
      ball.store(1, std::memory_order_release);
      while (ball.load(std::memory_order_acquire) != 0) {
      }
    }
    least = std::min(least, (bench::now() - start) / kTurns);
  }
  other.join();
  return least;
}

}  // namespace

int main() {
  const ferrite::FlushDenormals guard;
  stay_on(0);
  ferrite::set_threads(2);  // the second thread stays here, on its own processor
  ferrite::set_threads(1);
  stay_on(1);
  std::string name;
  bench::Cell c;
  while (std::cin >> name >> c.kind >> c.H >> c.T >> c.B) {
    const double before = round_trip();
    const Times t = measure(name, c);
    std::printf("%.3f %.3f %.3f %.0f\n", t.one * 1e6, t.two * 1e6, t.beside * 1e6,
                std::max(before, round_trip()) * 1e9);
    std::fflush(stdout);
  }
}
