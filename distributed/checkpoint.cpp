/// Checkpoints for all ranks, written and read by rank 0.
#include "ferrite/distributed/checkpoint.h"

#include <functional>
#include <optional>

#include "ferrite/distributed/detail/link.h"
#include "ferrite/io/safetensors.h"

namespace ferrite::mpi {
namespace {

/// Calls f on every rank. When it throws on one rank, all throw.
void together(const World& world, const std::function<void()>& f) {
  std::exception_ptr error;
  std::string text;
  try {
    f();
  } catch (const RankError&) {
    throw;
  } catch (const Error& e) {
    error = std::current_exception();
    text = e.what();
  }
  const std::string first = detail::first_text(world, text);
  if (error) std::rethrow_exception(error);
  if (!first.empty()) throw IoError(first);
}

/// Returns the tensors and metadata of a file as the bytes of a safetensors file.
std::vector<std::byte> bytes_of(const io::TensorFile& file) {
  std::vector<io::NamedTensor> tensors;
  for (const std::string_view name : file.names())
    tensors.push_back({std::string(name), file.tensor(name, io::Elements::as_stored)});
  return io::serialize_safetensors(tensors, file.metadata());
}

train::TrainingParts with_first(train::TrainingParts parts, const nn::Optimizer& optimizer) {
  parts.optimizers.insert(parts.optimizers.begin(), &optimizer);
  return parts;
}

train::TrainingParts parts_of(const nn::Module& model, const nn::Optimizer* optimizer,
                              const nn::WeightAverage* average) {
  train::TrainingParts parts{.model = model};
  if (optimizer) parts.optimizers = {optimizer};
  if (average) parts.averages = {average};
  return parts;
}

}  // namespace

void save_checkpoint(const World& world, const std::filesystem::path& path, const train::TrainingParts& parts,
                     const train::Checkpoint& checkpoint) {
  together(world, [&] {
    if (world.rank() == 0) train::save_checkpoint(path, parts, checkpoint);
  });
}

void save_checkpoint(const World& world, const std::filesystem::path& path, const train::TrainingParts& parts,
                     const ShardedOptimizer& optimizer, const train::Checkpoint& checkpoint) {
  save_checkpoint(world, path, with_first(parts, *optimizer.whole()), checkpoint);
}

void save_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                     const nn::Optimizer& optimizer, const train::Position& position, const nn::Schedule* schedule,
                     const nn::WeightAverage* average) {
  together(world, [&] {
    if (world.rank() == 0) train::save_checkpoint(path, model, optimizer, position, schedule, {}, average);
  });
}

void save_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                     const ShardedOptimizer& optimizer, const train::Position& position,
                     const nn::WeightAverage* average) {
  save_checkpoint(world, path, parts_of(model, nullptr, average), optimizer, {.position = position});
}

/// All ranks parse the same bytes, so they find the same faults.
train::Checkpoint load_checkpoint(const World& world, const std::filesystem::path& path,
                                  const train::TrainingParts& parts) {
  std::vector<std::byte> bytes;
  together(world, [&] {
    if (world.rank() == 0) bytes = bytes_of(io::read_safetensors(path));
  });
  detail::broadcast_bytes(world, bytes);
  train::Checkpoint checkpoint;
  together(world,
           [&] { checkpoint = train::load_checkpoint(io::parse_safetensors(std::move(bytes), path.string()), parts); });
  return checkpoint;
}

train::Checkpoint load_checkpoint(const World& world, const std::filesystem::path& path,
                                  const train::TrainingParts& parts, const ShardedOptimizer& optimizer) {
  const std::unique_ptr<nn::Optimizer> whole = optimizer.fresh();
  const train::Checkpoint checkpoint = load_checkpoint(world, path, with_first(parts, *whole));
  optimizer.take(*whole);
  return checkpoint;
}

train::Position load_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                                const nn::Optimizer& optimizer, nn::Schedule* schedule,
                                const nn::WeightAverage* average) {
  train::TrainingParts parts = parts_of(model, &optimizer, average);
  if (schedule) parts.schedules = {schedule};
  return load_checkpoint(world, path, parts).position;
}

train::Position load_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                                const ShardedOptimizer& optimizer, const nn::WeightAverage* average) {
  return load_checkpoint(world, path, parts_of(model, nullptr, average), optimizer).position;
}

}  // namespace ferrite::mpi
