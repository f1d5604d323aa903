#pragma once
/// Linear recurrences over sequences, which layers without a product in their loop are made of: minGRU, S5, the LRU.
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite {

namespace detail {
/// The constants of the operation.
struct LinearScanAttrs {
  bool reverse = false;
  static constexpr auto fields = attr_list(attr("reverse", &LinearScanAttrs::reverse));
};
}  // namespace detail

/// How a linear recurrence walks its steps.
struct LinearScanOptions {
  bool reverse = false;  ///< from the last step to the first: h[t] = a[t] h[t+1] + b[t]
  Tensor lengths{};      ///< i64 [B], each in 0..T: h is 0 beyond, reversed rows begin at their ends; undefined: all T
  Tensor resets{};       ///< bool [B, T]: before these steps (reversed: after them) h counts as 0; undefined: never
};

/// h[t] = a[t] h[t-1] + b[t], of every channel by itself; h[-1] = h0, zeros where undefined.
///
/// Real: a and b [B, T, D], or a [D], the same in all steps; h0 [B, D] -> h [B, T, D]. Complex numbers are a last axis
/// of 2: a and b [B, T, D, 2], or a [D, 2]; h0 [B, D, 2] -> h [B, T, D, 2].
///
/// One multiply-add a step, of a complex number re(a) h + (im(a) i h + b) in two: a sequence cut into pieces, whose h0
/// are the last h before, a batch of other rows and any number of threads give the same bits. Its gradient is the same
/// recurrence run the other way: db[t] = dh[t] + conj(a[t+1]) db[t+1], da[t] = db[t] conj(h[t-1]). Beyond the lengths a
/// and b are not read and get no gradient; across a reset no gradient passes.
///
/// `linear_recurrence` (tensor/cumulative.h) runs along any axis and carries f64 from step to step.
///
/// Throws DtypeError unless a, b and h0 are floats of one dtype, ShapeError for shapes that do not fit and, in compiled
/// programs too, for a length outside 0..T.
Tensor linear_scan(const Tensor& a, const Tensor& b, const Tensor& h0 = {}, const LinearScanOptions& options = {});

}  // namespace ferrite
