/// Linear recurrences as a scan of one multiply-add.
#include "ferrite/compile/scan.h"
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/tensor/linear_scan.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::LinearScanAttrs;

Tensor times(const Tensor& x, const Tensor& y, bool complex) {
  if (!complex) return x * y;
  const Tensor a = select(x, -1, 0), b = select(x, -1, 1), c = select(y, -1, 0), d = select(y, -1, 1);
  return stack({a * c - b * d, a * d + b * c}, -1);
}

/// a, b, then h0, lengths and resets where there are such: told by dtype.
Tensors as_scan(const Tensors& in, bool reverse) {
  const Tensor &a = in[0], &b = in[1];
  const bool same = a.shape() != b.shape(), complex = b.rank() == 4;
  const std::int64_t T = b.shape()[1];
  Tensor h0, lengths, resets;
  for (std::size_t k = 2; k < in.size(); ++k)
    (in[k].dtype() == Dtype::i64 ? lengths : in[k].dtype() == Dtype::boolean ? resets : h0) = in[k];
  Shape state = b.shape();
  state.erase(1);
  if (!h0.defined()) h0 = zeros(state, b.dtype());
  Tensors xs{transpose(b, 0, 1)};
  if (!same) xs.push_back(transpose(a, 0, 1));
  if (resets.defined()) {
    Tensor now = transpose(resets, 0, 1);
    if (reverse && T > 0) now = concat({slice(now, 0, 1, T), full({1, state[0]}, false, Dtype::boolean)}, 0);
    if (reverse && lengths.defined())  // what stands behind a row's end is no reset of it
      now = now && unsqueeze(arange(T), 1) < unsqueeze(lengths - 1, 0);
    for (int k = 2; k < b.rank(); ++k) now = unsqueeze(now, -1);
    xs.push_back(now);
  }
  const auto step = [&](const Tensors& carry, const Tensors& x) -> ScanStep {
    const Tensor h = resets.defined() ? where(x[x.size() - 1], 0, carry[0]) : carry[0];
    const Tensor next = times(same ? a : x[1], h, complex) + x[0];
    return {{next}, {next}};
  };
  const ScanResult r = scan(step, {h0}, xs, {.reverse = reverse, .lengths = lengths, .by_steps = true});
  return {transpose(r.y[0], 0, 1)};
}

Tensors linear_scan(const Composed& c, const Tensors& in) {
  const bool reverse = c.attrs.as<LinearScanAttrs>().reverse;
  return as_scan(in, reverse);
}

}  // namespace

Compositions linear_scan_compositions() {
  static constexpr NamedComposition list[] = {{"linear_scan", linear_scan}};
  return list;
}

}  // namespace ferrite::exchange::detail
