#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "ferrite/compile/plan/body.h"
#include "ferrite/compile/scan/detail/sums.h"

namespace ferrite::detail {

/// A product of a step with weights that are the same in all steps.
struct PackableProduct {
  std::size_t call;  ///< of the step's plan
  ScanPlace weights;
  Shape shape, strides;
  std::int64_t offset;  ///< elements
  std::int64_t rows;
};
std::vector<PackableProduct> packable_products(const PlanBody& step, const ScanStage& stage);

/// A body made ready to run: planned once, then stepped through without shape rules, searches or allocations.
/// Immutable but for plans of further chunk lengths; may be run by several threads at once.
class ScanProgram {
 public:
  explicit ScanProgram(const ScanBody& body);
  ~ScanProgram();

  /// Runs all steps. Outputs are fresh, row-major tensors.
  void run(Inputs in, std::span<Tensor> out, std::int64_t steps, bool reverse) const;
  /// The same for some of the steps: the sums are not among what is filled, their terms are added to `sums`.
  void run(Inputs in, std::span<Tensor> out, std::int64_t steps, bool reverse, ScanSums& sums) const;
  const ScanParts& parts() const { return parts_; }
  /// Steps that `before` and `after` take at once.
  std::int64_t chunk() const { return chunk_; }
  const PlanReport& step_report() const { return step_->report; }

 private:
  friend class ScanRun;
  struct ChunkPlans {
    std::unique_ptr<const PlanBody> before, after;
  };
  const ChunkPlans& plans(std::int64_t steps) const;

  const ScanBody& body_;
  std::int64_t chunk_;
  ScanParts parts_;
  std::unique_ptr<const PlanBody> once_, step_;
  std::vector<PackableProduct> packable_;
  mutable std::mutex mutex_;
  mutable std::map<std::int64_t, ChunkPlans> plans_;
};

}  // namespace ferrite::detail
