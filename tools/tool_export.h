#pragma once
/// What `ferrite export` does.
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>

namespace ferrite::tools {

struct ExportChoice {
  std::int64_t batch = 0;  ///< 0: left open
  std::int64_t steps = 0;  ///< 0: left open
  bool step = false;       ///< one step of a stream, with its states as inputs and outputs
};

/// Writes a net for other runtimes, as an ONNX model (.onnx) or as StableHLO (.mlir): a net in words or in a file
/// (subject.h), or an ONNX model, whose extents without a number stay open. Throws what reading and exporting throw,
/// ValueError for another ending, for a step of an ONNX model and for one whose inputs have no shapes.
void export_net(const std::string& net, const std::filesystem::path& to, const ExportChoice& choice, std::ostream& out);

}  // namespace ferrite::tools
