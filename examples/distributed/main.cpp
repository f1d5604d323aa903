// Ranks of MPI train a classifier, save it, and resume from the file: mpirun -np 4 train_on_ranks [FOLDER [EPOCHS]]
#include <ferrite/distributed/ranks.h>
#include <ferrite/ferrite.h>

#include <filesystem>
#include <iostream>
#include <string>

using namespace ferrite;

int main(int argc, char** argv) try {
  const mpi::World world(argc, argv, {.timeout = std::chrono::seconds(60)});  // one line for ranks, and

  // Rising and falling sequences with noise; the same on every rank.
  const Tensor slope = uniform({1200, 1, 1}, {.seed = 1}, -1, 1);
  const Tensor x = slope * reshape(linspace(0, 1, 10), {1, 10, 1}) + normal({1200, 10, 1}, {.seed = 2}) * 0.05;
  const train::Dataset all({x, cast(gt(reshape(slope, {-1}), 0), Dtype::i64)});
  const std::vector<train::Dataset> parts = train::split(all, {0.8, 0.2}, {.seed = 3});
  const train::DataLoader data(parts[0], {.batch_size = 96, .seed = 1}), validation(parts[1], {.batch_size = 100});

  const auto net = dsl::sequence(1).gru(16).last_step().dropout(0.1).linear(2).build(/*seed=*/0);
  nn::Adam adam(net.parameters(), {.learning_rate = 1e-2});
  const train::History history =
      train::fit(net, data,
                 {.loss = "cross_entropy",
                  .optimizer = &adam,
                  .epochs = argc > 2 ? std::stoi(argv[2]) : 3,
                  .validation = &validation,
                  .metrics = {"accuracy"},
                  .callbacks = {train::ProgressBar(std::cout)},
                  .clip_norm = 1,
                  .checkpoint = std::filesystem::path(argc > 1 ? argv[1] : ".") / "ranks.safetensors",
                  .parallel = mpi::ranks(world)});  // one option: mpirun -np 4 has the bits of one process
  if (world.rank() == 0) std::cout << 100 * history["val_accuracy"].back() << " % right\n";
  return 0;
} catch (const std::exception& e) {
  std::cerr << "train_on_ranks: " << e.what() << '\n';
  return 1;
}
