#pragma once
/// Training checkpoints: model, optimiser, position and schedule in one file.
#include <filesystem>

#include "ferrite/io/module_file.h"
#include "ferrite/nn/optim/schedule.h"
#include "ferrite/nn/optim/weight_average.h"

namespace ferrite::train {

/// Where training stands in its data.
struct Position {
  std::int64_t epoch = 0;  ///< finished ones
  std::int64_t batch = 0;  ///< finished ones of the running epoch
  std::int64_t step = 0;   ///< updates in all
  std::uint64_t seed = 0;  ///< of the order of the batches

  bool operator==(const Position&) const = default;
};

/// Writes all that training needs to go on as if it had never stopped: parameters, buffers and states of the model
/// (random counters among them), the optimiser's state and averages of weights, where the schedule and the data stand.
/// One safetensors file with a checksum, replaced as a whole or not at all: a process killed at any moment leaves the
/// old one or the new one. `io::load` reads its weights too. `metadata` is kept beside; keys beginning with "training."
/// are taken. Throws IoError, and ValueError while the averages are exchanged with the parameters.
void save_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                     const Position& position, const nn::Schedule* schedule = nullptr,
                     const io::Metadata& metadata = {}, const nn::WeightAverage* average = nullptr);

/// Puts a model, an optimiser, a schedule and averages that were built alike where they stood. Throws IoError when
/// anything is missing, does not fit or does not have the checksum; nothing is changed then.
Position load_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                         nn::Schedule* schedule = nullptr, const nn::WeightAverage* average = nullptr);

}  // namespace ferrite::train
