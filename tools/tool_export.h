#pragma once
/// The command `ferrite export`: writes nets for other runtimes.
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>

namespace ferrite::tools {

/// The options of `ferrite export`.
struct ExportChoice {
  std::int64_t batch = 0;  ///< extent of the batch; 0 leaves it open
  std::int64_t steps = 0;  ///< number of steps; 0 leaves it open
  bool step = false;       ///< export one step of a stream, with its states as inputs and outputs
};

/// Writes a net for other runtimes, as an ONNX model (.onnx) or as StableHLO (.mlir). `net` is a net in words or in a
/// file (subject.h), or an ONNX model, whose extents without a number stay open. Throws what reading and exporting
/// throw, and ValueError for another ending, for a step of an ONNX model and for a model whose inputs have no shapes.
void export_net(const std::string& net, const std::filesystem::path& to, const ExportChoice& choice, std::ostream& out);

}  // namespace ferrite::tools
