#pragma once
/// The nets of the examples, for tests of export.
#include <functional>
#include <string>
#include <vector>

#include "ferrite/exchange/onnx_export.h"

namespace onnx_test {

struct ExampleNet {
  std::string name;  ///< name of the example, and of the net if it has several
  std::function<ferrite::Tensors(const ferrite::Tensors&)> f;
  ferrite::Tensors inputs;  ///< the first axis of each is the batch, which stays open
  /// Whether reading the file again has the same bits; else the net holds what ONNX has no operation for: a gelu, or a
  /// recurrence without its own node.
  bool exact = true;

  /// Returns inputs with another batch, by repeating their rows.
  ferrite::Tensors with_batch(std::int64_t batch) const;
};

/// Returns the nets of examples/, built as there, in evaluation.
std::vector<ExampleNet> example_nets();

/// Returns a net as ONNX with its batch left open.
std::string written(const ExampleNet& net);

}  // namespace onnx_test
