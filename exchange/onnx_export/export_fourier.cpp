/// How Fourier transforms are written: DFT on rows of complex numbers.
#include "ferrite/exchange/onnx_export/export_lowering.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::onnx::detail {
namespace {

/// x [rows, n, 1 or 2] -> [rows, n (or n / 2 + 1), 2].
ExportValue transform(GraphBuilder& b, const ExportValue& x, bool inverse, bool one_sided) {
  Spec out = x.spec;
  out.shape[2] = 2;
  if (one_sided) out.shape[1] = x.shape()[1] / 2 + 1;
  return b.node("DFT", {x}, out,
                {{"axis", std::int64_t{1}}, {"inverse", std::int64_t{inverse}}, {"onesided", std::int64_t{one_sided}}});
}

/// The rows of a tensor whose last axes are these.
Shape rows_of(const Shape& s, const Shape& last) {
  return {s.numel() / std::max<std::int64_t>(last.numel(), 1), last[0], last[1]};
}

/// Factors [m, 1] of the frequencies of n real points.
ExportValue weights(GraphBuilder& b, const ExportValue& x, std::int64_t n, double scale, double inner) {
  const std::int64_t m = n / 2 + 1;
  std::vector<double> w;
  for (std::int64_t k = 0; k < m; ++k) w.push_back(k == 0 || 2 * k == n ? scale : scale * inner);
  const NewFrame frame;
  const Tensor all = Tensor::from(w, {m, 1});
  return b.convert(b.constant(all), x.dtype());
}

ExportValues rfft(GraphBuilder& b, const ExportCall& c) {
  const Shape& s = c.in[0].shape();
  const std::int64_t n = s[-1];
  const ExportValue x = b.reshape(c.in[0], rows_of(s, {n, 1}));
  const ExportValue y = transform(b, x, false, true);
  const ExportValue scaled = b.multiply(y, weights(b, y, n, c.named("scale", 1.0), c.named("inner", 1.0)));
  return {b.reshape(scaled, c.out[0].shape)};
}

/// The real part of the inverse of all n frequencies, of which the upper half is zero.
ExportValues irfft(GraphBuilder& b, const ExportCall& c) {
  const Shape& s = c.in[0].shape();
  const std::int64_t n = c.out[0].shape[-1], m = n / 2 + 1;
  const ExportValue x = b.slice(b.reshape(c.in[0], rows_of(s, {s[-2], 2})), 1, 0, m);
  const double scale = c.named("scale", 1.0) * static_cast<double>(n);  // DFT divides by n
  ExportValue y = b.multiply(x, weights(b, x, n, scale, c.named("inner", 2.0)));
  Spec all = y.spec;
  all.shape[1] = n;
  if (n > m) y = b.node("Pad", {y, b.integers({0, 0, 0, 0, n - m, 0}), b.scalar_like(0, y)}, all);
  return {b.reshape(b.slice(transform(b, y, true, false), 2, 0, 1), c.out[0].shape)};
}

ExportValues fft(GraphBuilder& b, const ExportCall& c) {
  const Shape& s = c.in[0].shape();
  const bool inverse = c.named("inverse", false);
  const ExportValue y = transform(b, b.reshape(c.in[0], rows_of(s, {s[-2], 2})), inverse, false);
  const double scale = c.named("scale", 1.0) * (inverse ? static_cast<double>(s[-2]) : 1);
  return {b.reshape(scale == 1 ? y : b.multiply(y, b.scalar_like(scale, y)), c.out[0].shape)};
}

}  // namespace

ExportFamily export_fourier() {
  static constexpr NamedExportLowering list[] = {{"rfft", rfft}, {"irfft", irfft}, {"fft", fft}};
  return list;
}

}  // namespace ferrite::onnx::detail
