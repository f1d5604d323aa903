// Ranks of MPI train one classifier together, save it, and go on from the file: mpirun -np 4 train_on_ranks FOLDER
#include <ferrite/distributed/checkpoint.h>
#include <ferrite/distributed/data_parallel.h>
#include <ferrite/ferrite.h>

#include <filesystem>
#include <iostream>

using namespace ferrite;

int main(int argc, char** argv) try {
  const mpi::World world(argc, argv, {.timeout = std::chrono::seconds(60)});
  const std::filesystem::path file = std::filesystem::path(argc > 1 ? argv[1] : ".") / "ranks.safetensors";

  // Rising and falling sequences with noise; the same on every rank.
  const std::int64_t rows = 1000;
  const Tensor slope = uniform({rows, 1, 1}, {.seed = 1}, -1, 1);
  const Tensor x = slope * reshape(linspace(0, 1, 10), {1, 10, 1}) + normal({rows, 10, 1}, {.seed = 2}) * 0.05;
  const Tensor y = cast(gt(reshape(slope, {rows}), 0), Dtype::i64);

  const auto net = dsl::sequence(1).gru(16).last_step().dropout(0.1).linear(2).build(/*seed=*/0);
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
  const mpi::DataParallel dp(world, net, adam, {.clip_norm = 1});
  train::Position at;
  if (world.any(world.rank() == 0 && std::filesystem::exists(file))) at = mpi::load_checkpoint(world, file, net, adam);

  const auto loss = [&](const mpi::ShardBatch& b) {
    return mpi::Sum(nn::cross_entropy(net(b.x, b.context), b.y, nn::Reduction::sum),
                    static_cast<double>(b.rows.size()));
  };
  for (const std::int64_t last = at.epoch + 3; at.epoch < last; ++at.epoch) {
    const mpi::Epoch order(rows, {.batch_rows = 96, .shards = dp.shards(), .seed = 1}, at.epoch);
    Tensor mean;
    for (std::int64_t k = 0; k < order.steps(); ++k, ++at.step) {
      const std::vector<std::int64_t> own = order.rows(k, world.rank(), world.size());
      const Tensor i = Tensor::from(own, {static_cast<std::int64_t>(own.size())});
      mean = dp.step(mpi::OwnRows{{index_select(x, 0, i), index_select(y, 0, i)}, order.rows_in(k)}, loss);
    }
    net.eval();
    const mpi::Sum right = dp.evaluate({x, y}, [&](const mpi::ShardBatch& b) {
      return mpi::Sum(sum(cast(eq(argmax(net(b.x), 1), b.y), Dtype::f64)), static_cast<double>(b.rows.size()));
    });
    net.train();
    if (world.rank() == 0)
      std::cout << "epoch " << at.epoch + 1 << ": loss " << mean.item() << ", "
                << 100 * right.sum.item<double>() / right.count.item<double>() << " % right\n";
  }
  mpi::save_checkpoint(world, file, net, adam, at);
  return 0;
} catch (const std::exception& e) {
  std::cerr << "train_on_ranks: " << e.what() << '\n';
  return 1;
}
