// Oracles and samples of tensor/ops/linear_scan.cpp.
#include <algorithm>
#include <complex>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/linear_scan.h"

namespace oracles::linear_scan {
namespace {

using DenseList = std::span<const Dense>;
OptionalOperands<DenseList> optional_of(DenseList in, std::size_t begin) {
  return {in, begin, [](const Dense& x) { return x.dtype; }};
}

using Complex = std::complex<double>;

/// A view of numbers as an array [B, T, D] or [B, T, D, 2], also if the leading axes are missing.
class Numbers {
 public:
  Numbers(const Dense& x, bool complex) : x_(&x), complex_(complex) {}
  Complex operator[](std::int64_t k) const {
    const auto at = static_cast<std::size_t>(complex_ ? 2 * k : k);
    return {x_->values[at], complex_ ? x_->values[at + 1] : 0};
  }

 private:
  const Dense* x_;
  bool complex_;
};

void add_to(Dense& x, std::int64_t k, bool complex, Complex v) {
  const auto at = static_cast<std::size_t>(complex ? 2 * k : k);
  x.values[at] += v.real();
  if (complex) x.values[at + 1] += v.imag();
}

/// Calls f(b, d, the steps in order as positions of [B, T, D], whether h counts as 0 before each) for all channels.
template <class F>
void each_channel(const Shape& shape, bool reverse, const OptionalOperands<DenseList>& o, F&& f) {
  const std::int64_t B = shape[0], T = shape[1], D = shape[2];
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t d = 0; d < D; ++d) {
      const std::int64_t n = o.lengths ? static_cast<std::int64_t>(o.lengths->values[static_cast<std::size_t>(b)]) : T;
      std::vector<std::int64_t> at;
      std::vector<bool> fresh;
      for (std::int64_t s = 0; s < std::min(n, T); ++s) {
        const std::int64_t t = reverse ? std::min(n, T) - 1 - s : s, boundary = reverse ? t + 1 : t;
        at.push_back((b * T + t) * D + d);
        fresh.push_back(o.resets && (!reverse || s > 0) &&
                        o.resets->values[static_cast<std::size_t>(b * T + boundary)] != 0);
      }
      f(b, d, at, fresh);
    }
}

/// Returns corner cases: real and complex, one a for all steps, one step, none, widths around packets, optional
/// operands.
std::vector<Sample> samples_of_scan(bool gradient) {
  std::vector<Sample> list;
  const auto add = [&](const Shape& b, bool same, bool h0, bool lengths, bool resets, bool reverse) {
    Sample s{.inputs = {{same ? step_of(b) : b}, {b}},
             .attrs = gradient ? Attrs(LinearScanGradAttrs{reverse, true}) : Attrs(LinearScanAttrs{reverse}),
             .range = {-1.5, 1.5},
             .indices = {2, 1, 0}};
    if (gradient) s.inputs.push_back({b});
    if (h0) s.inputs.push_back({state_of(b)});
    if (lengths) s.inputs.push_back({{b[0]}, Dtype::i64});
    if (resets) s.inputs.push_back({{b[0], b[1]}, Dtype::boolean});
    list.push_back(s);
  };
  add({2, 3, 4}, false, false, false, false, false);
  add({2, 3, 4}, true, true, false, false, true);
  add({3, 2, 3}, false, true, true, false, false);
  add({3, 2, 3}, false, true, true, true, true);
  add({3, 4, 2}, true, true, false, true, false);
  add({1, 1, 1}, false, true, false, false, false);
  add({2, 0, 3}, false, true, false, false, false);
  add({0, 2, 3}, true, false, false, false, true);
  add({2, 3, 2, 2}, false, true, false, true, false);
  add({3, 2, 1, 2}, true, true, true, false, true);
  add({1, 2, 19}, false, true, false, false, true);
  add({1, 3, 19}, true, false, false, false, false);
  add({1, 2, 9, 2}, true, true, false, false, false);
  return list;
}

struct LinearScanGrad {
  using Attributes = LinearScanGradAttrs;
  static constexpr auto name = "linear_scan_grad";
  static constexpr std::size_t kOptional = 3;
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const auto o = optional_of(in, kOptional);
    const Shape& shape = in[1].shape;
    const bool complex = is_complex(shape), same = in[0].shape != shape;
    const std::int64_t D = shape[2];
    const Numbers a(in[0], complex), h(in[1], complex), dh(in[2], complex);
    Dense& db = out[attrs.of_a ? 1 : 0];
    each_channel(shape, attrs.reverse, o, [&](auto row, auto d, const auto& at, const auto& fresh) {
      Complex g = 0;
      for (std::size_t s = at.size(); s-- > 0;) {
        g += dh[at[s]];
        add_to(db, at[s], complex, g);
        const Complex first = o.h0 ? Numbers(*o.h0, complex)[row * D + d] : Complex();
        const Complex before = fresh[s] ? Complex() : s == 0 ? first : h[at[s - 1]];
        if (attrs.of_a) add_to(out[0], same ? row * D + d : at[s], complex, g * std::conj(before));
        g = fresh[s] ? Complex() : g * std::conj(a[same ? d : at[s]]);
      }
      if (o.h0 && !at.empty()) add_to(out[attrs.of_a ? 2 : 1], row * D + d, complex, g);
    });
  }
  static std::vector<Sample> samples() { return samples_of_scan(true); }
};

struct LinearScan {
  using Attributes = LinearScanAttrs;
  static constexpr auto name = "linear_scan";
  static constexpr std::size_t kOptional = 2;
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const auto o = optional_of(in, kOptional);
    const bool complex = is_complex(in[1].shape), same = in[0].shape != in[1].shape;
    const std::int64_t D = in[1].shape[2];
    const Numbers a(in[0], complex), b(in[1], complex);
    each_channel(in[1].shape, attrs.reverse, o, [&](auto row, auto d, const auto& at, const auto& fresh) {
      Complex h = o.h0 ? Numbers(*o.h0, complex)[row * D + d] : Complex();
      for (std::size_t s = 0; s < at.size(); ++s) {
        if (fresh[s]) h = 0;
        h = a[same ? d : at[s]] * h + b[at[s]];
        add_to(out[0], at[s], complex, h);
      }
    });
  }
  static std::vector<Sample> samples() { return samples_of_scan(false); }
};

const Added added = add<LinearScan, LinearScanGrad>();

}  // namespace
}  // namespace oracles::linear_scan
