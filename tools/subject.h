#pragma once
/// The net that a command is about.
#include <filesystem>
#include <memory>
#include <string>

#include "ferrite/dsl/network.h"

namespace ferrite::tools {

/// A net, and what it is called with: random numbers.
struct Subject {
  std::shared_ptr<nn::Layer> net;
  Tensor x;
  std::int64_t steps = 1;  ///< in x
};

/// The words of a net, in the metadata of its file.
constexpr const char* kNet = "ferrite.net";

/// A net that `ferrite train` has written, in evaluation.
dsl::Network trained(const std::filesystem::path& path);

/// A net in words (words.h), or a file: of RTNeural (.json), of the Neural Amp Modeler (.nam), or of `ferrite train`
/// (.safetensors). Throws what reading throws, ValueError for words that make no net.
Subject subject_of(const std::string& net, std::int64_t batch, std::int64_t steps);

}  // namespace ferrite::tools
