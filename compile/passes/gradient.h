#pragma once
/// The gradient of a program as programs: how compiled functions, scans and checkpointed scans are differentiated.
#include <span>
#include <vector>

#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// A program traced together with its gradient and cut in two: what depends on cotangents is the backward pass, the
/// rest the forward pass. What the backward pass reads of the forward pass is a residual, unless it is an input that
/// the caller has anyway, or cheap to compute again.
class GraphGradient {
 public:
  /// `given`: by input, whether the backward pass has it. The first `results` outputs may have cotangents; the others
  /// are values that are written to variables.
  GraphGradient(const Graph& program, std::span<const char> given, std::size_t results);

  /// The program; after its outputs come the residuals.
  Graph forward() const;
  std::size_t residuals() const { return residuals_.size(); }

  /// Residuals, given inputs, then the cotangents of those results that can have one and that one arrives at -> the
  /// gradients of those inputs that can have one and are wanted. Where no cotangent arrives nothing is computed: no
  /// zeros stand for it. Flags are by result and by input.
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
  std::vector<char> again_;  ///< by value: computed in the backward pass, too
  std::vector<ValueId> residuals_;
};

}  // namespace ferrite::detail
