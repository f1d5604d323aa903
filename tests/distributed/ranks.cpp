// Cases that tests run on several ranks, by name; the tests read the lines that they print.
#include <csignal>
#include <iostream>
#include <map>
#include <thread>

#include "ferrite/distributed/world.h"
#include "ferrite/ferrite.h"
#include "ranks.h"

using namespace ferrite;

namespace {

/// Checks each function of a world against known results.
int world_functions(const mpi::World& world, const ranks::Arguments&) {
  const int n = world.size(), r = world.rank();
  bool right = world.local_size() == n && world.local_rank() == r;
  world.barrier();
  const Tensor mine = full({3}, static_cast<double>(r), Dtype::f64);
  for (int root = 0; root < n; ++root) right &= ranks::same(world.broadcast(mine, root), full({3}, root, Dtype::f64));
  right &= world.sum(static_cast<double>(r + 1)) == n * (n + 1) / 2;
  const Tensor whole = world.sum(arange(7) * (r + 1));
  right &= ranks::same(whole, arange(7) * (n * (n + 1) / 2));
  right &= world.sum(zeros({0})).numel() == 0;
  right &= world.any(r == n - 1) && !world.any(false) && world.all(true) && (n == 1 || !world.all(r == 0));
  return right ? 0 : 1;
}

/// Ends or stops one rank at its own time while the others keep summing; they print the error and how long it took.
int rank_is_lost(const mpi::World& world, const ranks::Arguments& arguments) {
  const bool stops = arguments.at(0) == "stop";
  const int lost = world.size() - 1, after = std::stoi(arguments.at(1));
  std::chrono::steady_clock::time_point last;
  try {
    for (int i = 0;; ++i) {
      last = std::chrono::steady_clock::now();
      (void)world.sum(uniform({1000 + 7 * i}, {.seed = 1}));
      if (i == after && world.rank() == lost) std::raise(stops ? SIGSTOP : SIGKILL);
    }
  } catch (const mpi::RankError& e) {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - last);
    std::string text =
        "lost " + std::to_string(world.rank()) + " " + std::to_string(took.count()) + " " + e.operation();
    for (const int r : e.ranks()) text += " " + std::to_string(r);
    std::cout << text + "\n" + e.what() + "\n" << std::flush;
    throw;
  }
}

const std::map<std::string, ranks::Case> kCases = {
    {"world", world_functions},
    {"lost", rank_is_lost},
    {"train", ranks::train},
    {"refusals", ranks::refusals},
    {"sharded", ranks::sharded},
    {"plain_step", ranks::plain_step},
    {"fit", ranks::fit},
    {"fit_plainly", ranks::fit_plainly},
    {"fit_refusals", ranks::fit_refusals},
    {"fit_throws", ranks::fit_throws},
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const mpi::World world(argc, argv, {.timeout = std::chrono::milliseconds(ranks::timeout_ms())});
    const std::vector<std::string> arguments(argv + 2, argv + argc);
    return kCases.at(argv[1])(world, arguments);
  } catch (const std::exception& e) {
    std::cerr << "ranks: " << e.what() << '\n';
    return 3;
  }
}
