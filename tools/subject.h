#pragma once
/// The net that a command works on.
#include <filesystem>
#include <memory>
#include <string>

#include "ferrite/dsl/network.h"

namespace ferrite::tools {

/// A net and an input x of random numbers to call it with.
struct Subject {
  std::shared_ptr<nn::Layer> net;
  Tensor x;
  std::int64_t steps = 1;  ///< number of steps in x
};

/// Returns a net given in words (train/words.h), or as a file that holds a whole net (train/net_file.h). Throws what
/// reading the file throws, and ValueError for words that do not describe a net.
Subject subject_of(const std::string& net, std::int64_t batch, std::int64_t steps);

}  // namespace ferrite::tools
