#pragma once
/// What `ferrite train`, `ferrite run` and `ferrite summary` do.
#include <filesystem>
#include <iosfwd>
#include <string>

namespace ferrite::tools {

/// Trains a net as a TOML file says (docs/command.md) and writes "net.safetensors", which `run` reads, the values of
/// all epochs and their curves into its output folder. A run that was stopped goes on where its checkpoint stands.
/// Paths in the file are relative to it. Throws IoError and ValueError for what it cannot do, before anything is
/// written where that can be known.
void train(const std::filesystem::path& config, std::ostream& out, bool terminal);

/// Runs a net that `train` has written on an array: .npy, or a tensor "x" of .npz or .safetensors, rows of numbers of
/// .csv; the result goes to .npy, or is printed where `output` is empty.
void run(const std::filesystem::path& net, const std::filesystem::path& input, const std::filesystem::path& output,
         std::ostream& out);

/// The layers of a net in words, or of a file that `train` has written.
void summary(const std::string& net, std::ostream& out);

}  // namespace ferrite::tools
