#pragma once
/// Scan bodies that are linear in their carries, element by element: all steps can be computed at once.
#include <optional>
#include <string>

#include "ferrite/compile/scan_body.h"

namespace ferrite::detail {

/// A body in which every carry becomes a c + b, where a and b depend on the xs and captures alone: a and b are computed
/// for all steps at once, carries by linear_scan, and ys from the stacks of these.
class LinearScanForm {
 public:
  /// Returns the linear form of a body; nullopt if it has none, and `why` then says what prevents it.
  static std::optional<LinearScanForm> of(const ScanBody& body, std::string& why);

  /// Runs at least one step. Takes the operands of the scan; returns the last carries, then stacks of the ys.
  Tensors run(const Tensors& init, const Tensors& xs, const Tensors& captures, std::int64_t steps, bool reverse) const;

 private:
  /// The coefficients of a carry, by index among the outputs of `coefficients_`.
  struct Carry {
    std::optional<std::size_t> a, b, resets;  ///< without a: 1; without b: 0; without resets: never
  };
  Graph coefficients_;  ///< xs, captures -> a, b and masks of resets
  Graph results_;       ///< carries before a step, carries after it, xs, captures -> ys
  std::vector<Carry> carries_;
  std::vector<Spec> specs_;  ///< types of the carries
  std::size_t xs_ = 0;
};

}  // namespace ferrite::detail
