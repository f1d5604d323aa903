// Steps and exchanges of ranks: mpirun -np 2 bench_mpi. Every rank has the same number of rows (weak scaling), so the
// ratio of the times of one rank and of several is the efficiency.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "ferrite/distributed/data_parallel.h"
#include "ferrite/ferrite.h"

using namespace ferrite;

namespace {

constexpr std::int64_t kRows = 96;  // rows of a rank
constexpr int kShards = 4;          // shards of a rank

/// Returns the median seconds of a call that all ranks begin together.
template <class F>
double seconds(const mpi::World& world, int calls, F&& f) {
  std::vector<double> all;
  for (int i = 0; i < calls; ++i) {
    world.barrier();
    const auto begin = std::chrono::steady_clock::now();
    f();
    all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

template <class Net>
void steps(const mpi::World& world, const char* name, const Net& net, const Shape& row) {
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-3});
  const mpi::DataParallel dp(world, net, adam, {.shards = kShards * world.size()});
  Shape shape{kRows};
  for (const std::int64_t n : row) shape.push_back(n);
  const Tensor x = normal(shape, {.seed = static_cast<std::uint64_t>(world.rank())}),
               y = cast(uniform({kRows}, {.seed = 1}, 0, 9), Dtype::i64);
  const auto step = compile([&](const Tensor& a, const Tensor& b) {
    return dp.step(mpi::OwnRows{{a, b}, kRows * world.size()}, [&](const mpi::ShardBatch& s) {
      return mpi::Sum(nn::cross_entropy(net(s.x, s.context), s.y, nn::Reduction::sum),
                      static_cast<double>(s.rows.size()));
    });
  });
  for (int i = 0; i < 5; ++i) (void)step(x, y);
  const auto before = world.traffic();
  const double s = seconds(world, 60, [&] { (void)step(x, y); });
  const auto after = world.traffic();
  if (world.rank() == 0)
    std::printf("%-28s %d ranks %8.2f ms a step, %.0f parameters, %.0f bytes sent and %.1f exchanges a step\n", name,
                world.size(), s * 1e3, static_cast<double>(net.parameter_count()),
                static_cast<double>(after.bytes_sent - before.bytes_sent) / 60,
                static_cast<double>(after.exchanges - before.exchanges) / 60);
}

}  // namespace

int main(int argc, char** argv) {
  const mpi::World world(argc, argv, {.timeout = std::chrono::seconds(60)});
  steps(world, "gru(128), 50 steps of 40", dsl::sequence(40).gru(128).last_step().linear(9).build(0), {50, 40});
  steps(world, "linear 512-1024-1024-9", dsl::features(512).linear(1024).relu().linear(1024).relu().linear(9).build(0),
        {512});
  for (const std::int64_t n : {2, 1 << 10, 1 << 14, 1 << 18, 1 << 20}) {
    const Tensor x = zeros({n});
    const double s = seconds(world, 100, [&] { (void)world.sum(x); });
    if (world.rank() == 0)
      std::printf("sum of %8lld bytes           %d ranks %8.1f us\n", static_cast<long long>(4 * n), world.size(),
                  s * 1e6);
  }
}
