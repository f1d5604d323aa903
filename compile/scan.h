#pragma once
/// Scans: a step applied repeatedly, as one operation that can be differentiated.
#include <functional>
#include <string>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// Options of `scan`: direction, lengths, and what is kept for the gradient.
struct ScanOptions {
  bool reverse = false;  ///< run from the last step to the first; y[t] still belongs to x[t]
  /// Number of valid steps of each row, i64 [B], each in 0..T; rows are axis 0 of the carries and of one step of the
  /// xs. After these steps a row's carries stay, its ys are 0, and no gradient reaches its xs, whatever they hold. With
  /// `reverse`, a row begins at its last valid step.
  Tensor lengths{};
  /// What is kept for the gradient. 0: of every step, all that the gradient reads. k: only the carries of every k-th
  /// step, from which the gradient computes the steps between again: memory for T / k + k steps instead of T, about one
  /// more forward pass, the same bits.
  std::int64_t checkpoint_every = 0;
  std::int64_t steps = -1;  ///< number of steps T; needed only without xs, which otherwise give it
  bool by_steps = false;    ///< run step by step even if the body is linear in its carries (see `scan`)
};

/// The results of one step: the next carries and the slices of the ys.
struct ScanStep {
  Tensors carry;  ///< of the same types as the carries passed in
  Tensors y{};    ///< values to be stacked over all steps
};

/// The results of a scan: the last carries and the stacked ys.
struct ScanResult {
  Tensors carry;  ///< carries after the last step
  Tensors y;      ///< stacks [T, ...] of the steps' ys
};

/// The body of a scan: computes one step from the carries and one step of every x, without its axis of time.
using ScanBodyFunction = std::function<ScanStep(const Tensors& carry, const Tensors& x)>;

/// Applies a step repeatedly, each time to the carries of the step before:
///
///   carry[0] = init;  carry[t + 1], y[t] = body(carry[t], x[t]);  -> carry[T], stack(y)
///
/// `init` holds the first carries, `xs` stacks [T, ...] whose slices the steps take one by one. The body is called
/// once, with abstract tensors; whatever it refers to from outside (tensors, parameters) is the same in all steps and
/// gets its gradient. T = 0 gives `init` and empty stacks.
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
/// program that allocates nothing. Under a Tape a scan is one entry (a linear one, see below, a few). It can be
/// differentiated again, traced, and used in the body of another scan. Equal bodies share their plans, wherever they
/// are called.
///
/// A body in which every carry becomes a c + b, element by element, with a and b that do not depend on carries, runs as
/// `linear_scan` (tensor/linear_scan.h) instead: a, b and the ys are computed for all steps at once. Carries may pass
/// additions, products and divisions by such values, `where` between such values of the same carry and, once, a reset:
/// where(mask [B, 1, ...], 0, c). Values agree with the body's within rounding. `Scan::report` says whether a body is
/// linear. With `checkpoint_every` or `by_steps` it runs step by step.
///
/// Throws ShapeError for xs of different lengths, for a step whose carries change their types and for lengths that fit
/// no carry; ValueError for a null body, a negative `checkpoint_every`, and where neither xs nor `steps` give T;
/// TraceError where the body reads values of a tensor made inside or writes a variable (a module that draws random
/// numbers does): make it a carry; and whatever the body throws.
ScanResult scan(const ScanBodyFunction& body, const Tensors& init, const Tensors& xs, const ScanOptions& options = {});

/// A scan that is called repeatedly with equal types: its body is traced once for each combination of types. Parameters
/// are used as in `scan`; a body that captures tensors is traced again in every call. Copies share what was traced.
/// Several threads may call it.
class Scan {
 public:
  /// Makes a scan of a body. Nothing is traced until the scan is called. Throws ValueError for a null body.
  explicit Scan(ScanBodyFunction body);
  /// Runs the scan. Takes the arguments and throws the errors of `scan`.
  ScanResult operator()(const Tensors& init, const Tensors& xs, const ScanOptions& options = {}) const;
  /// Returns whether the body runs as `linear_scan` for operands of these types.
  bool is_linear(const Tensors& init, const Tensors& xs) const;
  /// Says how the body runs for operands of these types, and why: "linear in its carries: runs as linear_scan", "runs
  /// step by step: a carry goes through tanh".
  std::string report(const Tensors& init, const Tensors& xs) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ferrite
