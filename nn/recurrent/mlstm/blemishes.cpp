/// Steps of a sequence that are not finite.
#include "ferrite/nn/recurrent/mlstm/blemishes.h"

#include <limits>

#include "ferrite/nn/recurrent/detail/xlstm.h"
#include "ferrite/tensor/math.h"

namespace ferrite::nn::detail {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A mask [B] as one of rows [B, ...].
Tensor of_rows(const Tensor& mask, const Tensor& rows) {
  Shape shape = Shape::filled(rows.rank(), 1);
  shape[0] = rows.shape()[0];
  return reshape(mask, shape);
}

}  // namespace

Blemishes::Blemishes(Tensor& x, Tensors& states, const Tensor& resets) {
  const Tensor bad = !isfinite(sum(x, {2}));
  x = where(unsqueeze(bad, 2), 0, x);
  Tensor before;
  for (const Tensor& s : states) {
    Shape row = s.shape();
    row[0] = 1;
    const Tensor of_s = !isfinite(sum(reshape(s, {s.shape()[0], row.numel()}), {1}));
    before = before.defined() ? before || of_s : of_s;
  }
  for (Tensor& s : states) s = where(of_rows(before, s), 0, s);
  const Tensor none = full({}, kNoReset - 1, Dtype::i64), start = full({}, kNoReset, Dtype::i64);
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  Tensor at = where(bad, arange(T), none);  // the last one up to each step: each round doubles what has been looked at
  for (std::int64_t n = 1; n < T; n *= 2) at = maximum(at, concat({expand(none, {B, n}), slice(at, 1, 0, T - n)}, 1));
  seen_ = ge(maximum(at, unsqueeze(where(before, start, none), 1)), resets.defined() ? resets : start);
}

Tensor Blemishes::in(const Tensor& y) const { return where(unsqueeze(seen_, 2), kNaN, y); }

Tensor Blemishes::at_end(const Tensor& state) const { return where(of_rows(select(seen_, 1, -1), state), kNaN, state); }

}  // namespace ferrite::nn::detail
