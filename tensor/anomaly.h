#pragma once
/// Anomaly detection: which operation of which layer produced the first NaN or infinity, in the forward or backward
/// pass.
#include <span>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/profiled.h"

namespace ferrite {

/// Thrown when DetectAnomaly finds a NaN or an infinity.
class AnomalyError : public Error {
 public:
  using Error::Error;
};

/// Options of `DetectAnomaly`: which values it throws for.
struct AnomalyOptions {
  bool infinities = true;  ///< whether an infinity is an anomaly too, not only a NaN
};

/// Checks the results of every operation that runs on this thread while the guard lives. The first result that holds a
/// NaN, or an infinity where no operand and no constant of the operation holds one (masks with -inf pass), throws
/// AnomalyError. The message names the layer, the operation, the element and the shapes; in a backward pass also the
/// operation of the forward pass whose gradient it was:
///
///   in encoder.0: gradient of sqrt: div gave inf: element [1] of f32[3], operands f32[3], f32[3]; sqrt is of f32[3]
///
/// Layers are known where the guard was made before the forward pass. Compiled functions run as the functions that they
/// were compiled from; a scan and a recurrent layer are named as one operation. Guards nest: the inner one decides.
/// Several times slower than running without; costs nothing where no guard lives. Like torch.autograd.detect_anomaly,
/// which checks the backward pass only.
class [[nodiscard]] DetectAnomaly {
 public:
  explicit DetectAnomaly(const AnomalyOptions& options = {});
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  const AnomalyOptions* before_;
  AnomalyOptions options_;
};

namespace detail {

/// Returns whether a DetectAnomaly lives on this thread. Ask `profiling()` first, which is cheaper: where it is false,
/// this is false, too.
bool detecting_anomalies() noexcept;
/// Throws AnomalyError if a result of an operation holds a NaN or an infinity that the DetectAnomaly living on this
/// thread does not let pass; does nothing where none lives.
void check_for_anomalies(const Primitive& op, Inputs in, std::span<const Tensor> out, const Attrs& attrs);

/// Names the application whose gradient is being computed while it lives. Costs one load where no one is watching.
class GradientOf {
 public:
  GradientOf(const Primitive& op, std::span<const Spec* const> in) : op_(&op), in_(in) {
    if (profiling()) [[unlikely]]
      enter();
  }
  ~GradientOf() {
    if (entered_) [[unlikely]]
      leave();
  }
  GradientOf(const GradientOf&) = delete;
  GradientOf& operator=(const GradientOf&) = delete;

  const Primitive& op() const { return *op_; }
  std::span<const Spec* const> in() const { return in_; }

 private:
  void enter() noexcept;
  void leave() noexcept;

  const Primitive* op_;
  std::span<const Spec* const> in_;
  const GradientOf* outer_ = nullptr;
  bool entered_ = false;
};

/// Counts a watcher of operations other than a profile: change is 1 when it begins, -1 when it ends. `profiling()` is
/// true while there is one. Defined in tensor/profiler.cpp.
void count_watchers(int change);

}  // namespace detail
}  // namespace ferrite
