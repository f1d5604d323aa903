#pragma once
/// The gradient of a program as programs: how compiled functions, scans and checkpointed scans are differentiated.
#include <span>
#include <vector>

#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// A program traced together with its gradient and cut in two: whatever depends on cotangents is the backward pass, the
/// rest the forward pass. A value of the forward pass that the backward pass reads is a residual, unless it is an input
/// that the caller has anyway, or is cheap to compute again.
class GraphGradient {
 public:
  /// Differentiates `program`. `given`, by input: whether the backward pass has it. The first `results` outputs may
  /// have cotangents; the others are values written to variables.
  GraphGradient(const Graph& program, std::span<const char> given, std::size_t results);

  /// Returns the forward pass: the program, with the residuals after its outputs.
  Graph forward() const;
  std::size_t residuals() const { return residuals_.size(); }

  /// Returns the backward pass: residuals, given inputs, cotangents -> gradients. The cotangents are those of the
  /// results that can have one and have their flag set in `arriving`; the gradients those of the inputs that can have
  /// one and have it set in `wanted`. Where no cotangent arrives, nothing is computed, not even zeros.
  Graph backward(std::span<const char> arriving, std::span<const char> wanted) const;

 private:
  void trace(const Graph& program);
  void find_late();
  void choose_residuals();
  bool is_worth_repeating(const Graph::Node& n, const std::vector<char>& read, const std::vector<char>& there) const;

  std::vector<char> given_;
  std::size_t inputs_, outputs_;
  std::size_t results_;
  Graph joint_;              ///< inputs, cotangents -> outputs, gradients of all inputs that have them
  std::vector<char> late_;   ///< by value: depends on a cotangent
  std::vector<char> again_;  ///< by value: also computed in the backward pass
  std::vector<ValueId> residuals_;
};

}  // namespace ferrite::detail
