#pragma once
/// Scans: a step applied again and again, as one operation that can be differentiated.
#include <functional>
#include <string>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

struct ScanOptions {
  bool reverse = false;  ///< from the last step to the first; stacks keep their order
  /// i64 [B], each in 0..T: row b (axis 0 of carries and of one step of the xs) has so many steps. After these its
  /// carries stay, its ys are 0, and no gradient reaches its xs, whatever they hold. Reverse begins at its last step.
  Tensor lengths{};
  /// 0: what the gradient reads of every step is kept. k: the carries of every k-th step alone, the steps between are
  /// computed again: memory for T / k + k steps instead of T, about one more forward pass, the same bits.
  std::int64_t checkpoint_every = 0;
  std::int64_t steps = -1;  ///< T, where there are no xs to tell it
  bool by_steps = false;    ///< a body that is linear in its carries (see `scan`) runs step by step, too
};

/// What one step gives.
struct ScanStep {
  Tensors carry;  ///< of the types of the carries that came in
  Tensors y{};    ///< what is stacked
};

struct ScanResult {
  Tensors carry;  ///< after the last step
  Tensors y;      ///< [T, ...] each
};

/// A step: carries and one step of every x, without its axis of time.
using ScanBodyFunction = std::function<ScanStep(const Tensors& carry, const Tensors& x)>;

/// Applies a step again and again, each time to the carries that the last one gave:
///
///   carry[0] = init;  carry[t + 1], y[t] = body(carry[t], x[t]);  -> carry[T], stack(y)
///
/// `init` are the first carries, `xs` stacks [T, ...] whose slices the steps take one by one. The body is called once,
/// with abstract tensors; what it refers to from outside (tensors, parameters) is the same in all steps and gets its
/// gradient. T = 0 gives `init` and empty stacks.
///
///   const auto [carry, y] = scan(
///       [&](const Tensors& carry, const Tensors& x) -> ScanStep {
///         const Tensor h = tanh(matmul(x[0], w_x) + matmul(carry[0], w_h) + b);
///         return {{h}, {h}};
///       },
///       {h0}, {xs});
///
/// The steps run as one operation: products with the xs become one product for many steps, weight gradients one over
/// all steps, products with weights that all steps share read packed copies, and what is left of a step is one planned
/// program that allocates nothing. Under a Tape a scan is one entry (a linear one, see below, a few); it may be
/// differentiated again, stand in the body of another one, and be traced. Equal bodies share their plans, wherever they
/// are called.
///
/// A body whose every carry becomes a c + b, element by element, with a and b that do not depend on carries, runs as
/// `linear_scan` (tensor/linear_scan.h) instead: a, b and the ys are computed for all steps at once. Carries may pass
/// additions, products and divisions by such values, `where` between such values of the same carry and, once, a reset:
/// where(mask [B, 1, ...], 0, c). Values agree with the body's within rounding. `Scan::report` tells; with
/// `checkpoint_every` or `by_steps` it runs step by step.
///
/// Throws ShapeError for xs of different lengths, for a step whose carries change their types and for lengths that fit
/// no carry; TraceError where the body reads values of a tensor made inside or writes a variable (a module that draws
/// random numbers does): make it a carry; what the body throws.
ScanResult scan(const ScanBodyFunction& body, const Tensors& init, const Tensors& xs, const ScanOptions& options = {});

/// The same for a function that is called with equal types again and again: traced once for each of them. Refers to
/// parameters as `scan` does; captured tensors are traced again in every call. Copies share what was traced. May be
/// called by several threads.
class Scan {
 public:
  explicit Scan(ScanBodyFunction body);
  ScanResult operator()(const Tensors& init, const Tensors& xs, const ScanOptions& options = {}) const;
  /// Whether it runs as `linear_scan` for operands of these types.
  bool is_linear(const Tensors& init, const Tensors& xs) const;
  /// How it runs for operands of these types, and why: "linear in its carries: runs as linear_scan", "runs step by
  /// step: a carry goes through tanh".
  std::string report(const Tensors& init, const Tensors& xs) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ferrite
