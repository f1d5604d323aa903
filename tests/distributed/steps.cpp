// Training steps on several ranks: what remains of them is printed as digests, which tests compare.
#include <iostream>
#include <sstream>

#include "ferrite/distributed/data_parallel.h"
#include "ferrite/ferrite.h"
#include "ranks.h"

using namespace ferrite;

namespace {

/// Batch norm, dropout and layers whose parameters fill several small buckets.
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

std::uint64_t digest_of(const nn::Module& net, const nn::Optimizer& optimizer, std::uint64_t h) {
  for (const auto& p : net.named_parameters()) h = ranks::digest(p.variable.peek(), h);
  for (const auto& b : net.named_buffers()) h = ranks::digest(b.variable.peek(), h);
  for (const auto& s : net.named_states()) h = ranks::digest(s.variable.peek(), h);
  for (const auto& s : optimizer.states()) h = ranks::digest(s.variable.peek(), h);
  return h;
}

void tell(const mpi::World& world, const std::string& what) {
  std::ostringstream line;
  line << "rank " << world.rank() << ": " << what << "\n";
  std::cout << line.str() << std::flush;
}

}  // namespace

namespace ranks {

/// eager|compiled sync|local ROWS STEPS
int train(const mpi::World& world, const Arguments& a) {
  const bool compiled = a.at(0) == "compiled", synchronised = a.at(1) == "sync";
  const std::int64_t rows = std::stoi(a.at(2)), steps = std::stoi(a.at(3));
  const Net net(static_cast<std::uint64_t>(world.rank()));  // rank 0's count
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
  const mpi::DataParallel dp(world, net, adam, {.bucket_bytes = 600, .clip_norm = 1});
  const auto loss = [&](const mpi::ShardBatch& b) {
    const Tensor each =
        nn::cross_entropy(net.forward(b.x, synchronised ? b.context : nn::Context{}), b.y, nn::Reduction::none);
    const Tensor mask = gt(b.tensors[2], 0.2F);
    return mpi::Sum(sum(where(mask, each, 0)), sum(cast(mask, Dtype::f64)));
  };
  const auto step = [&](const Tensor& x, const Tensor& y, const Tensor& m) { return dp.step({x, y, m}, loss); };
  const auto program = compile(step);
  std::uint64_t h = 1;
  for (std::int64_t k = 0; k < steps; ++k) {
    const auto key = [&](std::uint64_t stream) {
      return RandomKey{.seed = 5, .stream = stream, .call = static_cast<std::uint64_t>(k)};
    };
    const std::int64_t n = rows + k % 2;
    const Tensor x = normal({n, 6}, key(1)), m = uniform({n}, key(3)), y = cast(uniform({n}, key(2), 0, 5), Dtype::i64);
    const Tensor mean = compiled ? program(x, y, m) : step(x, y, m);
    h = digest(mean, h);
  }
  net.eval();
  const Tensor x = normal({rows, 6}, {.seed = 9});
  const mpi::Sum all = dp.evaluate({x}, [&](const mpi::ShardBatch& b) {
    return mpi::Sum(sum(net.forward(b.x, b.context)), static_cast<double>(b.rows.size()));
  });
  h = digest(all.sum, digest(all.count, h));
  std::ostringstream text;
  text << "digest " << std::hex << digest_of(net, adam, h) << std::dec << " buckets " << dp.buckets() << " early "
       << dp.buckets_sent_early();
  tell(world, text.str());
  if (compiled && world.size() > 1 && world.rank() == 0) {
    // Where the buckets leave among the steps of the plan, and where its last product is.
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
