#pragma once
/// What `ferrite train`, `ferrite run` and `ferrite summary` do.
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace ferrite::tools {

/// How `train` treats a checkpoint that it finds.
struct TrainingChoice {
  bool restart = false;                ///< starts over, without the checkpoint
  std::vector<std::string> changed{};  ///< what may differ from the checkpoint's training: "learning_rate", "data"
};

/// Trains a net as a TOML file says (docs/command.md) and writes "net.safetensors", which `run` reads, the values of
/// all epochs and their curves into its output folder. A run that was stopped resumes from its checkpoint; one that has
/// nothing left to do says so and writes nothing. Paths in the file are relative to it. Throws IoError and ValueError
/// for what it cannot do, before anything is written where that can be known, and train::OtherTrainingError for a
/// checkpoint of another training.
void train(const std::filesystem::path& config, const TrainingChoice& choice, std::ostream& out, bool terminal);

/// Runs a net that `train` has written on an array: .npy, or a tensor "x" of .npz or .safetensors, rows of numbers of
/// .csv; the result goes to .npy, or is printed where `output` is empty.
void run(const std::filesystem::path& net, const std::filesystem::path& input, const std::filesystem::path& output,
         std::ostream& out);

/// The layers of a net in words, or of a file that `train` has written.
void summary(const std::string& net, std::ostream& out);

}  // namespace ferrite::tools
