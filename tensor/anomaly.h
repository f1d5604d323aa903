#pragma once
/// Anomaly detection: which operation, of which layer, gave the first NaN or infinity, in forward or backward pass.
#include <span>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/profiled.h"

namespace ferrite {

/// A NaN or an infinity that DetectAnomaly found.
class AnomalyError : public Error {
 public:
  using Error::Error;
};

struct AnomalyOptions {
  bool infinities = true;  ///< false: only NaN is an anomaly
};

/// While it lives, every operation that runs on this thread is followed by a look at its results, and the first that
/// holds a NaN, or an infinity where no operand and no constant of the operation holds one (masks with -inf pass),
/// throws AnomalyError, which names the layer, the operation, the element and the shapes; in a backward pass also the
/// operation of the forward pass whose gradient it was:
///
///   in encoder.0: gradient of sqrt: div gave inf: element [1] of f32[3], operands f32[3], f32[3]; sqrt is of f32[3]
///
/// Layers are known where the guard was made before the forward pass. Compiled functions run as the functions that they
/// were compiled from; a scan and a recurrent layer are named as one operation. Guards nest, the inner one rules.
/// Several times slower than without; costs nothing where no guard lives. As torch.autograd.detect_anomaly, which looks
/// at the backward pass alone.
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

/// Whether a DetectAnomaly lives on this thread. Asked where `profiling()` says that somebody watches.
bool detecting_anomalies() noexcept;
/// Throws AnomalyError for results that hold an anomaly; nothing where nobody detects.
void check_for_anomalies(const Primitive& op, Inputs in, std::span<const Tensor> out, const Attrs& attrs);

/// Says of which application the gradient is computed while it lives: one load where nobody watches.
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

/// Somebody but a profile begins (1) or ends (-1) to watch operations: `profiling()` says so. Of
/// tensor/profiler.cpp.
void count_watchers(int change);

}  // namespace detail
}  // namespace ferrite
