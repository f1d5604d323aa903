#pragma once
/// The nets of the examples.
#include <functional>
#include <string>
#include <vector>

#include "ferrite/exchange/onnx_export.h"

namespace onnx_test {

struct ExampleNet {
  std::string name;  ///< of the example, and of the net where it has several
  std::function<ferrite::Tensors(const ferrite::Tensors&)> f;
  ferrite::Tensors inputs;  ///< the first axis of each is the batch, which stays open
  /// Whether reading it again gives the bits; else it holds what ONNX has no operation for: a gelu, or a recurrence
  /// without a node of its own.
  bool exact = true;

  /// The rows of the inputs, again and again.
  ferrite::Tensors with_batch(std::int64_t batch) const;
};

/// Those of examples/, built as there, in evaluation.
std::vector<ExampleNet> example_nets();

/// A net as ONNX, its batch left open.
std::string written(const ExampleNet& net);

}  // namespace onnx_test
