#pragma once
/// A body planned: what runs once, what runs for a chunk of steps, what runs in each step.
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

/// Memory whose elements change: nothing that stands there may be packed.
inline Tensor rewritten_tensor(const Spec& s) {
  Tensor t = Tensor::empty(s);
  t.impl()->storage->rewritten = true;
  return t;
}

/// The results of the stage that runs once, by the indices of their places. `at` gives the tensor of a place.
template <class At>
InlineVector<Tensor, 16> run_once(const PlanBody& plan, const ScanStage& stage, const At& at) {
  const Borrowed w(plan);
  for (std::size_t i = 0; i < stage.in.size(); ++i) w->arguments[i] = &at(stage.in[i]);
  w->run(false);
  InlineVector<Tensor, 16> computed(stage.out.size());
  for (std::size_t i = 0; i < stage.out.size(); ++i) computed[stage.out[i].index] = w->results[plan.ends.of[i]];
  return computed;
}

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
