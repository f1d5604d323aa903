// Two threads beside one, and beside two processes of one thread each on the same two processors: what the threads of a
// layer give of what the machine has. Needs two processors that nothing else uses.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>

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

/// Another process that does the same job on a processor of its own for as long as this lives.
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
  double one, two, beside;  ///< one thread, two threads, one thread beside another process
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

}  // namespace

int main() {
  const ferrite::FlushDenormals guard;
  stay_on(0);
  ferrite::set_threads(2);  // the second one stays here, on a processor of its own
  ferrite::set_threads(1);
  stay_on(1);
  std::printf("%-10s %-5s %5s %5s %5s %12s %10s %14s\n", "us", "net", "H", "T", "B", "one thread", "two: times",
              "of 2 processes");
  const auto row = [](const char* name, const bench::Cell& c) {
    const Times t = measure(name, c);
    std::printf("%-10s %-5s %5d %5d %5d %12.1f %10.2f %14.2f\n", name, c.kind.c_str(), static_cast<int>(c.H),
                static_cast<int>(c.T), static_cast<int>(c.B), t.one * 1e6, t.one / t.two, t.beside / 2 / t.two);
    std::fflush(stdout);
  };
  for (const char* const name : {"forward", "train"})
    for (const char* const kind : {"gru", "lstm", "rnn"})
      for (const bench::Cell& c : {bench::Cell{kind, 64, 50, 32}, bench::Cell{kind, 256, 50, 32},
                                   bench::Cell{kind, 256, 50, 128}, bench::Cell{kind, 512, 20, 64}})
        row(name, c);
  for (const std::int64_t batch : {32, 128}) row("train", {"mlp", 512, 1, batch});
  for (const std::int64_t batch : {1, 8}) row("train", {"gru", 16, 10, batch});  // too small to share
}
