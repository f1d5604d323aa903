#pragma once
/// The selective scan of state-space models such as Mamba: a diagonal recurrence whose factors depend on the step.
#include "ferrite/tensor/ops.h"

namespace ferrite {

/// Optional operands of `selective_scan`.
struct SelectiveScanOptions {
  /// The state before the first step, [Bt, Dm, N]; zeros if undefined.
  Tensor state{};
  /// The number of steps of each row, i64 [Bt], 0 to T. Steps beyond give y = 0, leave the state unchanged and may hold
  /// anything: no gradient reaches them. Undefined: all T.
  Tensor lengths{};
  /// The steps that begin with a state of 0, bool [Bt, T]: no state and no gradient passes into a step where it is
  /// true. Undefined: none.
  Tensor resets{};
};

/// The results of `selective_scan_with_state`.
struct SelectiveScan {
  Tensor y;      ///< [Bt, T, Dm]
  Tensor state;  ///< the state after the last step of each row, [Bt, Dm, N]
};

/// Returns the outputs y of the recurrence, for every row and channel d, with h_(-1) = `options.state`,
///
///   h_t[n] = exp(delta_t A[n]) h_(t-1)[n] + (delta_t x_t) B_t[n]
///   y_t    = D x_t + sum of h_t[n] C_t[n] over n
///
/// x and delta [Bt, T, Dm], A [Dm, N], B and C [Bt, T, N], D [Dm] -> y [Bt, T, Dm]. An undefined D leaves out its term.
/// f32 or f64, all of one dtype. Source: arXiv 2312.00752, equations 2 and 3 with the discretisation of its code (delta
/// B in place of B-bar).
///
/// It is one operation: states stay in the cache, and the gradient recomputes them. The sum begins with D x, followed
/// by n ascending; D x and each addition are rounded once where the machine has such an instruction. A row has the same
/// bits alone, in a batch, and cut into pieces that pass the state on, for any number of threads. Exponentials of f32
/// are 0 below 2^-126.5 and infinite from 2^127.5 on, else within 2 ULP. Differentiable any number of times; from the
/// second time on step by step in operations.
///
/// Throws ShapeError for shapes that do not fit, extents T, Dm or N of 0 and, as part of the program, for lengths
/// outside 0..T; DtypeError for other dtypes.
Tensor selective_scan(const Tensor& x, const Tensor& delta, const Tensor& A, const Tensor& B, const Tensor& C,
                      const Tensor& D = {}, const SelectiveScanOptions& options = {});
/// Returns y of `selective_scan` with the last state, from which a following piece of the sequence can continue.
SelectiveScan selective_scan_with_state(const Tensor& x, const Tensor& delta, const Tensor& A, const Tensor& B,
                                        const Tensor& C, const Tensor& D = {},
                                        const SelectiveScanOptions& options = {});

}  // namespace ferrite
