/// The order of the frequencies of a Fourier transform, and what they are.
#include <cmath>

#include "ferrite/tensor/fft.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite {
namespace detail {
namespace {

struct RotateAttrs {
  Shape axes{};
  static constexpr auto fields = attr_list(attr("axes", &RotateAttrs::axes));
};

/// Every axis cut at half its extent, rounded up or down, and the halves exchanged.
template <bool up>
struct HalfRotation {
  using Attributes = RotateAttrs;
  static constexpr auto name = up ? "fftshift" : "ifftshift", onnx = "";
  static constexpr auto summary =
      up ? "axes rotated by half their extents: index 0 goes to n / 2" : "axes rotated back: index n / 2 goes to 0";

  static std::int64_t first(std::int64_t n) { return up ? (n + 1) / 2 : n / 2; }
  static Tensor parts(Inputs in, const Attributes& a) {
    Tensor y = in[0];
    for (const std::int64_t axis : a.axes) {
      const std::int64_t n = y.shape()[static_cast<int>(axis)];
      if (n > 1) y = concat({slice(y, axis, first(n)), slice(y, axis, 0, first(n))}, axis);
    }
    return y;
  }
};

Tensor frequencies(std::string_view where, std::int64_t n, double spacing, Dtype dtype, bool real) {
  if (n < 1) throw ValueError(std::string(where) + ": the number of points must be positive, got " + std::to_string(n));
  if (!std::isfinite(spacing) || spacing == 0)
    throw ValueError(std::string(where) + ": the spacing must be finite and not 0, got " + Scalar(spacing).str());
  if (!is_float(dtype)) throw_dtype(where, std::string(name_of(dtype)) + " is no float");
  const std::int64_t count = real ? n / 2 + 1 : n;
  const Tensor f = Tensor::build<double>({count}, [&](std::span<double> out) {
    for (std::int64_t k = 0; k < count; ++k)
      out[static_cast<std::size_t>(k)] =
          static_cast<double>(real || 2 * k < n ? k : k - n) / (static_cast<double>(n) * spacing);
  });
  return cast(f, dtype);
}

}  // namespace

Family composite_frequency_family() {
  static constexpr const Primitive* list[] = {&composite<HalfRotation<true>>, &composite<HalfRotation<false>>};
  return list;
}

}  // namespace detail

Tensor fftfreq(std::int64_t n, double spacing, Dtype dtype) {
  return detail::frequencies("fftfreq", n, spacing, dtype, false);
}
Tensor rfftfreq(std::int64_t n, double spacing, Dtype dtype) {
  return detail::frequencies("rfftfreq", n, spacing, dtype, true);
}

Tensor fftshift(const Tensor& x, const Shape& axes) {
  return detail::composed<detail::HalfRotation<true>>({{&x}}, {axes_of(axes, x.rank(), "fftshift")});
}
Tensor ifftshift(const Tensor& x, const Shape& axes) {
  return detail::composed<detail::HalfRotation<false>>({{&x}}, {axes_of(axes, x.rank(), "ifftshift")});
}

}  // namespace ferrite
