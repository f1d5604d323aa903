#pragma once
/// Files that hold a whole net: its layers and its weights.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/dsl/network.h"
#include "ferrite/io/tensor_file.h"

namespace ferrite::train {

/// A net as a file describes it, in evaluation mode.
struct NetFile {
  std::unique_ptr<nn::Layer> net;
  /// "ferrite", "nam", "rtneural" or "guitarml".
  std::string format;
  /// Steps per second for which the net was trained, in Hz; empty where the file does not say.
  std::optional<double> rate{};
};

/// Parses the bytes of a file that holds a whole net: one that `save_net` or `ferrite train` has written, a `.nam` file
/// (io/nam.h), or the JSON of RTNeural or GuitarML. The format is recognised by the contents. No tensor of the net is
/// made that has more elements than the file has bytes and more than 2^22. Throws IoError, its message beginning with
/// `where`, for other and damaged files.
NetFile parse_net(std::span<const std::byte> bytes, std::string_view where = "net");
/// Reads a file that holds a whole net. Throws as parse_net, and IoError for a file that cannot be read.
NetFile read_net(const std::filesystem::path& path);
/// Reads a file that `save_net` or `ferrite train` has written. Throws as read_net, and IoError for other files.
dsl::Network read_network(const std::filesystem::path& path);

/// Options for writing a net.
struct SaveNetOptions {
  std::optional<double> rate{};  ///< steps per second for which the net was trained, in Hz
  io::Metadata metadata{};       ///< further texts of the file, by keys that do not begin with "ferrite."
};

/// Writes a net with the words that describe it (train/words.h) as a safetensors file, from which `read_net` makes it
/// again. The words are the metadata `ferrite.net`, the rate is `ferrite.rate`.
///
///   const std::string words = "sequence(1).lstm(16).linear(1)";
///   const dsl::Network net = train::parse_words(words).build(0);
///   train::save_net(net, words, "amp.safetensors", {.rate = 48000});
///
/// Throws ValueError unless the words give a net of f32 with the same summary, parameters, buffers and settings
/// (Module::settings), for a rate that is not positive, and for metadata under keys of its own; IoError where the file
/// cannot be written.
void save_net(const dsl::Network& net, const std::string& words, const std::filesystem::path& path,
              const SaveNetOptions& options = {});

}  // namespace ferrite::train
