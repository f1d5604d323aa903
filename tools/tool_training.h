#pragma once
/// The commands `ferrite train`, `ferrite run` and `ferrite summary`.
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace ferrite::tools {

/// The way in which `train` treats a checkpoint that it finds.
struct TrainingChoice {
  bool restart = false;                ///< starts over, ignoring the checkpoint
  std::vector<std::string> changed{};  ///< settings that may differ from the checkpoint's: "learning_rate", "data"
};

/// Trains a net as a TOML file says (docs/command.md) and writes "net.safetensors", which `run` reads, the values of
/// all epochs and their curves into its output folder. A run that was stopped resumes from its checkpoint; a run that
/// has nothing left to do says so and writes nothing. Paths in the file are relative to it. Throws IoError and
/// ValueError for what it cannot do, if possible before anything is written, and train::OtherTrainingError for a
/// checkpoint of another training.
void train(const std::filesystem::path& config, const TrainingChoice& choice, std::ostream& out, bool terminal);

/// Runs a net that `train` has written on an array: .npy, a tensor "x" of .npz or .safetensors, or rows of numbers of
/// .csv. The result is written to .npy, or printed if `output` is empty.
void run(const std::filesystem::path& net, const std::filesystem::path& input, const std::filesystem::path& output,
         std::ostream& out);

/// Prints the layers of a net, given in words or as a file that `train` has written.
void summary(const std::string& net, std::ostream& out);

}  // namespace ferrite::tools
