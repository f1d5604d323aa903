// Training steps on several ranks, which print digests of their results for the tests to compare.
#include <csignal>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "ferrite/distributed/checkpoint.h"
#include "ferrite/distributed/data_parallel.h"
#include "ferrite/ferrite.h"
#include "ranks.h"

using namespace ferrite;

namespace {

/// A net with batch norm, dropout and layers whose parameters fill several small buckets.
struct Net : nn::Module {
  nn::Linear first{{.in_features = 6, .out_features = 24}};
  nn::BatchNorm1d norm{{.num_features = 24}};
  nn::Dropout dropout{0.3};
  nn::Linear second{{.in_features = 24, .out_features = 24}};
  nn::Linear head{{.in_features = 24, .out_features = 5}};

  explicit Net(std::uint64_t seed) : Module({.seed = seed}) {
    adopt("first", first), adopt("norm", norm), adopt("dropout", dropout), adopt("second", second), adopt("head", head);
  }
  Tensor forward(const Tensor& x, const nn::Context& context) const {
    const Tensor h = dropout(relu(norm(first(x), context)));
    return head(dropout(tanh(second(h))));
  }
};

}  // namespace

namespace ranks {

/// eager|compiled sync|local ROWS STEPS [adam|sharded [FILE [STEP]]]: with a file, resumes from it if it exists, and
/// saves after each step; with a step, the last rank is killed in it.
int train(const mpi::World& world, const Arguments& a) {
  const bool compiled = a.at(0) == "compiled", synchronised = a.at(1) == "sync";
  const bool sharded = a.size() > 4 && a[4] == "sharded";
  const std::int64_t rows = std::stoi(a.at(2)), steps = std::stoi(a.at(3)),
                     killed = a.size() > 6 ? std::stoi(a[6]) : -1;
  const std::string file = a.size() > 5 ? a[5] : "";
  const Net net(static_cast<std::uint64_t>(world.rank()));  // rank 0's parameters count
  const nn::AdamOptions options{.learning_rate = 1e-2};
  nn::Adam adam(net.parameters(), options);
  const mpi::ShardedOptimizer parts(world, net.parameters(), [&](std::vector<Parameter> p) {
    return std::make_unique<nn::Adam>(std::move(p), options);
  });
  const mpi::DataParallelOptions parallel{.bucket_bytes = 600, .clip_norm = 1};
  const mpi::DataParallel with_adam(world, net, adam, parallel), with_parts(world, net, parts, parallel);
  const mpi::DataParallel& dp = sharded ? with_parts : with_adam;
  train::Position position;
  if (!file.empty() && world.any(world.rank() == 0 && std::filesystem::exists(file)))
    position = sharded ? mpi::load_checkpoint(world, file, net, parts) : mpi::load_checkpoint(world, file, net, adam);
  const auto loss = [&](const mpi::ShardBatch& b) {
    const Tensor each =
        nn::cross_entropy(net.forward(b.x, synchronised ? b.context : nn::Context{}), b.y, nn::Reduction::none);
    const Tensor mask = gt(b.tensors[2], 0.2F);
    return mpi::Sum(sum(where(mask, each, 0)), sum(cast(mask, Dtype::f64)));
  };
  const auto step = [&](const Tensor& x, const Tensor& y, const Tensor& m) { return dp.step({x, y, m}, loss); };
  const auto program = compile(step);
  std::uint64_t h = 1;
  for (std::int64_t k = position.step; k < steps; ++k) {
    if (k == killed && world.rank() == world.size() - 1) std::raise(SIGKILL);
    const auto key = [&](std::uint64_t stream) {
      return RandomKey{.seed = 5, .stream = stream, .call = static_cast<std::uint64_t>(k)};
    };
    const std::int64_t n = rows + k % 2;
    const Tensor x = normal({n, 6}, key(1)), m = uniform({n}, key(3)), y = cast(uniform({n}, key(2), 0, 5), Dtype::i64);
    const Tensor mean = compiled ? program(x, y, m) : step(x, y, m);
    if (file.empty()) h = digest(mean, h);
    position.step = k + 1;
    if (!file.empty() && sharded) mpi::save_checkpoint(world, file, net, parts, position);
    if (!file.empty() && !sharded) mpi::save_checkpoint(world, file, net, adam, position);
  }
  net.eval();
  const Tensor x = normal({rows, 6}, {.seed = 9});
  const mpi::Sum all = dp.evaluate({x}, [&](const mpi::ShardBatch& b) {
    return mpi::Sum(sum(net.forward(b.x, b.context)), static_cast<double>(b.rows.size()));
  });
  h = digest(all.sum, digest(all.count, h));
  std::ostringstream text;
  text << "digest " << std::hex << (sharded ? digest_of(net, *parts.whole(), h) : digest_of(net, adam, h)) << std::dec
       << " buckets " << dp.buckets() << " early " << dp.buckets_sent_early();
  tell(world, text.str());
  if (compiled && world.size() > 1 && world.rank() == 0) {
    // Where the buckets are sent among the steps of the plan, and where its last product is.
    const PlanReport report = program.report();
    std::int64_t sent = 0, before = 0;
    for (const PlanReport::Step& s : report.steps) {
      if (s.what.find("mpi_start") != std::string::npos) ++sent;
      if (s.what.find("matmul") != std::string::npos) before = sent;
    }
    tell(world, "planned " + std::to_string(sent) + " before the last product " + std::to_string(before));
  }
  return 0;
}

}  // namespace ranks
