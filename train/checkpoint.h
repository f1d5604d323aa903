#pragma once
/// Training checkpoints: model, optimisers, schedules, averages and position in one file.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ferrite/io/module_file.h"
#include "ferrite/nn/optim/schedule.h"
#include "ferrite/nn/optim/weight_average.h"
#include "ferrite/train/fingerprint.h"

namespace ferrite::train {

/// Where training stands in its data.
struct Position {
  std::int64_t epoch = 0;  ///< finished ones
  std::int64_t batch = 0;  ///< finished ones of the running epoch
  std::int64_t step = 0;   ///< updates in all
  std::uint64_t seed = 0;  ///< of the order of the batches

  bool operator==(const Position&) const = default;
};

/// What a training is made of besides its data: what a checkpoint holds, in the order in which it was listed.
struct TrainingParts {
  const nn::Module& model;
  std::vector<const nn::Optimizer*> optimizers{};
  std::vector<nn::Schedule*> schedules{};
  std::vector<const nn::WeightAverage*> averages{};
  std::vector<nn::Named<State>> states{};  ///< others, of names that none of the parts has
  /// What else decides the numbers of this training, which loading compares: {{"loss", "focal, gamma 2"},
  /// {"data", data.fingerprint()}}. Empty: what a file has of this kind is not compared.
  Fingerprint also{};
  /// What loading may find changed, because that is intended: names that OtherTrainingError tells, or their first
  /// parts.
  std::vector<std::string> changed{};
};

/// Numbers under names, which a checkpoint keeps to the last bit: what callbacks remember, sums of metrics.
using Numbers = std::map<std::string, std::vector<double>>;

/// Where a training stands, besides its parts.
struct Checkpoint {
  Position position{};
  Numbers numbers{};
  io::Metadata metadata{};        ///< strings of the caller's; keys beginning with "training." are taken
  std::vector<Change> changes{};  ///< by `load_checkpoint`: what differs, and TrainingParts::changed allows
};

/// Writes all that training needs to go on as if it had never stopped: parameters, buffers and states of the model
/// (random counters among them), the states of optimisers and averages of weights, where schedules and the data stand,
/// and numbers of the caller's. One safetensors file with a checksum, replaced as a whole or not at all: a process
/// killed at any moment leaves the old one or the new one. `io::load` reads its weights too. With it goes a fingerprint
/// of the parts, the layers of the net, optimisers and schedules with their options, and of TrainingParts::also. Throws
/// IoError, and ValueError for a null part and while averages are exchanged with the parameters.
void save_checkpoint(const std::filesystem::path& path, const TrainingParts& parts, const Checkpoint& checkpoint);
/// The same of one optimiser; `metadata` are strings of the caller's.
void save_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                     const Position& position, const nn::Schedule* schedule = nullptr,
                     const io::Metadata& metadata = {}, const nn::WeightAverage* average = nullptr);

/// Puts parts that were built alike where they stood, and gives what was saved with them. Throws IoError
/// when anything is missing, does not fit or does not have the checksum, and OtherTrainingError where the fingerprint
/// of the file is not that of the parts, unless TrainingParts::changed allows the difference; ValueError for a name in
/// `changed` that neither has. Nothing is changed then.
///
/// The rates of the optimisers are those of the file. Where "learning_rate" or "schedule" are changed on purpose, they
/// are those of the parts: a schedule goes on from the file's steps. Files of 0.1 have no fingerprint, and are
/// believed.
Checkpoint load_checkpoint(const std::filesystem::path& path, const TrainingParts& parts);
/// The same of a file that has been read, io::read_safetensors or io::parse_safetensors.
Checkpoint load_checkpoint(const io::TensorFile& file, const TrainingParts& parts);
/// The same of one optimiser.
Position load_checkpoint(const std::filesystem::path& path, const nn::Module& model, const nn::Optimizer& optimizer,
                         nn::Schedule* schedule = nullptr, const nn::WeightAverage* average = nullptr);

}  // namespace ferrite::train
