#pragma once
/// The results whose bits are recorded in tests/data/bits.txt.
#include <functional>
#include <string>
#include <vector>

#include "ferrite/tensor/ops.h"

namespace bits {

/// Something that is computed, with a name without blanks.
struct Result {
  std::string name;
  std::function<ferrite::Tensors()> compute;
};

std::vector<Result> operation_results();  ///< every operation on the operands of tests/conformance, and its gradients
std::vector<Result> large_results();      ///< operations and layers on operands of many packets
std::vector<Result> layer_results();      ///< a layer of every kind: outputs and gradients
std::vector<Result> training_results();   ///< steps of every optimiser
std::vector<Result> program_results();    ///< random programs

/// Returns all of them.
std::vector<Result> all_results();

}  // namespace bits
