#pragma once
/// Fingerprints: everything that decides the numbers of a training, so that a checkpoint resumes only the same one.
#include <map>
#include <string>
#include <vector>

#include "ferrite/tensor/error.h"

namespace ferrite::train {

/// Everything that decides the numbers of a training, as text by name: {"loss", "mse"}, {"learning_rate", "0.01"}.
/// Names may have parts: "optimizer.betas" belongs to "optimizer".
using Fingerprint = std::map<std::string, std::string>;

/// One entry in which the fingerprint of a file (`before`) differs from that of a training (`now`); "none" where one
/// lacks the entry.
struct Change {
  std::string name, before, now;

  bool operator==(const Change&) const = default;
};

/// Thrown when a checkpoint belongs to another training than the one that would resume from it. The message names
/// every difference: "run.safetensors: is of another training: learning_rate was 0.01, is now 0.1; ...".
class OtherTrainingError : public IoError {
 public:
  /// Lists the changes in the message, which `what_to_do` ends.
  OtherTrainingError(std::string file, std::vector<Change> changes, const std::string& what_to_do);
  const std::string& file() const { return file_; }
  const std::vector<Change>& changes() const { return changes_; }

 private:
  std::string file_;
  std::vector<Change> changes_;
};

}  // namespace ferrite::train
