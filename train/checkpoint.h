#pragma once
/// Checkpoints of a training: model, optimisers, schedules, averages and position in one file.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ferrite/io/module_file.h"
#include "ferrite/nn/optim/schedule.h"
#include "ferrite/nn/optim/weight_average.h"
#include "ferrite/train/fingerprint.h"

namespace ferrite::train {

/// The position of a training in its data.
struct Position {
  std::int64_t epoch = 0;  ///< number of finished epochs
  std::int64_t batch = 0;  ///< number of finished batches of the running epoch
  std::int64_t step = 0;   ///< number of updates so far
  std::uint64_t seed = 0;  ///< seed of the order of the batches

  bool operator==(const Position&) const = default;
};

/// The parts of a training, without its data, that a checkpoint holds, in the order in which they are listed.
struct TrainingParts {
  const nn::Module& model;
  std::vector<const nn::Optimizer*> optimizers{};
  std::vector<nn::Schedule*> schedules{};
  std::vector<const nn::WeightAverage*> averages{};
  std::vector<nn::Named<State>> states{};  ///< other states, with names that no other part uses
  /// Anything else that decides the numbers of this training, which loading compares: {{"loss", "focal, gamma 2"},
  /// {"data", data.fingerprint()}}. Empty: such entries of a file are not compared.
  Fingerprint also{};
  /// Names of fingerprint entries that may differ from the file, because that is intended: names as OtherTrainingError
  /// lists them, or their first parts.
  std::vector<std::string> changed{};
};

/// Numbers by name, which a checkpoint keeps to the last bit: the state of callbacks, sums of metrics.
using Numbers = std::map<std::string, std::vector<double>>;

/// The contents of a checkpoint other than the parts of the training.
struct Checkpoint {
  Position position{};
  Numbers numbers{};
  io::Metadata metadata{};        ///< the caller's strings; keys "checksum" and "training.*" are reserved
  std::vector<Change> changes{};  ///< differences that TrainingParts::changed allowed, set by `load_checkpoint`
};

/// Saves everything that training needs to resume as if it had never stopped: parameters, buffers and states of the
/// model (random counters among them), the states of optimisers and averages, the positions of schedules and data, and
/// the caller's numbers. The file is one safetensors file with a checksum, replaced as a whole or not at all: a process
/// killed at any moment leaves the old file or the new one. `io::load` can read its weights, too. The file also holds a
/// fingerprint: the layers of the net, optimisers and schedules with their options, and TrainingParts::also. Throws
/// IoError when it cannot be written or uses a reserved metadata key, and ValueError for a null part or while averages
/// are exchanged with the parameters.
void save_checkpoint(const std::filesystem::path& path, const TrainingParts& parts, const Checkpoint& checkpoint);
/// Saves a checkpoint of a training with one optimiser; `metadata` holds the caller's strings.
void save_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                     const Position& position, const nn::Schedule* schedule = nullptr,
                     const io::Metadata& metadata = {}, const nn::WeightAverage* average = nullptr);

/// Restores the parts, which must be built as they were when saved, and returns what was saved with them. Throws
/// IoError when anything is missing, does not fit or does not match the checksum. Throws OtherTrainingError when the
/// fingerprint of the file differs from that of the parts, unless TrainingParts::changed allows the difference, and
/// ValueError for a name in `changed` that neither has. Nothing has changed when it throws.
///
/// The optimisers get the rates of the file. When "learning_rate" or "schedule" are changed on purpose, they keep the
/// rates of the parts, and a schedule continues from the file's step. Files of version 0.1 have no fingerprint and are
/// not compared.
Checkpoint load_checkpoint(const std::filesystem::path& path, const TrainingParts& parts);
/// Restores the parts from a file that io::read_safetensors or io::parse_safetensors has read.
Checkpoint load_checkpoint(const io::TensorFile& file, const TrainingParts& parts);
/// Restores a training with one optimiser and returns its position.
Position load_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                         nn::Schedule* schedule = nullptr, const nn::WeightAverage* average = nullptr);

}  // namespace ferrite::train
