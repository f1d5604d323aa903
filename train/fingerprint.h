#pragma once
/// Fingerprints: what decides the numbers of a training, by name, so that a file continues only the same work.
#include <map>
#include <string>
#include <vector>

#include "ferrite/tensor/error.h"

namespace ferrite::train {

/// Everything that decides the numbers of a training, as text under names: {"loss", "mse"}, {"learning_rate", "0.01"}.
/// Names may have parts: "optimizer.betas" belongs to "optimizer".
using Fingerprint = std::map<std::string, std::string>;

/// One entry of a fingerprint that a file has otherwise; "none" where one of the two has no such entry.
struct Change {
  std::string name, before, now;

  bool operator==(const Change&) const = default;
};

/// Thrown where a checkpoint is of another training than the one that would continue from it. The message names every
/// difference: "run.safetensors: is of another training: learning_rate was 0.01, is now 0.1; ...".
class OtherTrainingError : public IoError {
 public:
  /// `what_to_do` ends the message.
  OtherTrainingError(std::string file, std::vector<Change> changes, const std::string& what_to_do);
  const std::string& file() const { return file_; }
  const std::vector<Change>& changes() const { return changes_; }

 private:
  std::string file_;
  std::vector<Change> changes_;
};

}  // namespace ferrite::train
