#pragma once
/// Linear recurrences over sequences, from which layers without a product in their loop are made: minGRU, S5, the LRU.
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite {

namespace detail {
/// The constants of `linear_scan`.
struct LinearScanAttrs {
  bool reverse = false;
  static constexpr auto fields = attr_list(attr("reverse", &LinearScanAttrs::reverse));
};
}  // namespace detail

/// Options of `linear_scan`: its direction, and where rows end or start over.
struct LinearScanOptions {
  bool reverse = false;  ///< runs from the last step to the first: h[t] = a[t] h[t+1] + b[t]
  Tensor lengths{};      ///< i64 [B], each in 0..T: h is 0 beyond, reversed rows begin at their ends; undefined: all T
  Tensor resets{};       ///< bool [B, T]: before these steps (reversed: after them) h counts as 0; undefined: never
};

/// Returns h[t] = a[t] h[t-1] + b[t] of every channel separately; h[-1] = h0, zeros where undefined.
///
/// Real: a and b [B, T, D], or a [D], the same in all steps; h0 [B, D] -> h [B, T, D]. Complex numbers are a last axis
/// of 2: a and b [B, T, D, 2], or a [D, 2]; h0 [B, D, 2] -> h [B, T, D, 2].
///
/// Each step is one multiply-add, of complex numbers re(a) h + (im(a) i h + b) in two. Cutting a sequence into pieces
/// whose h0 are the last h of the piece before, other rows in the batch, and the number of threads do not change the
/// bits. The gradient is the same recurrence run in the other direction: db[t] = dh[t] + conj(a[t+1]) db[t+1], da[t] =
/// db[t] conj(h[t-1]). Beyond the lengths a and b are not read and get no gradient; no gradient passes a reset.
///
/// Compare `linear_recurrence` (tensor/cumulative.h), which runs along any axis and carries f64 from step to step.
///
/// Throws DtypeError unless a, b and h0 are floats of one dtype, ShapeError for shapes that do not fit and, in compiled
/// programs too, for a length outside 0..T.
Tensor linear_scan(const Tensor& a, const Tensor& b, const Tensor& h0 = {}, const LinearScanOptions& options = {});

}  // namespace ferrite
