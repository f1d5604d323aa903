/// Checkpoints by rank 0 for all ranks.
#include "ferrite/distributed/checkpoint.h"

#include <functional>
#include <optional>

#include "ferrite/distributed/data_parallel.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::mpi {
namespace {

/// What rank 0 does with a file; where it fails, all ranks throw.
void on_root(const World& world, const std::filesystem::path& path, const std::function<void()>& f) {
  std::optional<IoError> error;
  if (world.rank() == 0) {
    try {
      f();
    } catch (const IoError& e) {
      error = e;
    }
  }
  const bool failed = world.any(error.has_value());
  if (error) throw *error;
  if (failed)
    throw IoError("mpi: checkpoint: rank 0 could not use the file: " + path.string() + "; its error says why");
}

train::Position shared(const World& world, const nn::Module& model, const nn::Optimizer& optimizer,
                       const train::Position& p) {
  std::vector<Variable> all;
  for (const auto& v : model.named_parameters()) all.push_back(v.variable);
  for (const auto& v : model.named_buffers()) all.push_back(v.variable);
  for (const auto& v : model.named_states()) all.push_back(v.variable);
  for (const auto& v : optimizer.states()) all.push_back(v.variable);
  broadcast(world, all);
  const Tensor numbers = world.broadcast(Tensor::from({p.epoch, p.batch, p.step, static_cast<std::int64_t>(p.seed)}));
  const std::vector<std::int64_t> n = numbers.to_vector<std::int64_t>();
  return {n[0], n[1], n[2], static_cast<std::uint64_t>(n[3])};
}

}  // namespace

void save_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                     const nn::Optimizer& optimizer, const train::Position& position) {
  on_root(world, path, [&] { train::save_checkpoint(path, model, optimizer, position); });
}

void save_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                     const ShardedOptimizer& optimizer, const train::Position& position) {
  save_checkpoint(world, path, model, *optimizer.whole(), position);
}

train::Position load_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                                const nn::Optimizer& optimizer) {
  train::Position position;
  on_root(world, path, [&] { position = train::load_checkpoint(path, model, optimizer); });
  return shared(world, model, optimizer, position);
}

train::Position load_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                                const ShardedOptimizer& optimizer) {
  const std::unique_ptr<nn::Optimizer> whole = optimizer.fresh();
  const train::Position position = load_checkpoint(world, path, model, *whole);
  optimizer.take(*whole);
  return position;
}

}  // namespace ferrite::mpi
