// Oracles and samples of tensor/ops/fourier.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::frequencies {
namespace {

struct RotateAttrs {
  Shape axes{};
  static constexpr auto fields = attr_list(attr("axes", &RotateAttrs::axes));
};

/// Cuts every axis at half its extent, rounded up or down, and exchanges the halves.
template <bool up>
struct HalfRotation {
  using Attributes = RotateAttrs;
  static constexpr auto name = up ? "fftshift" : "ifftshift";
  static std::int64_t first(std::int64_t n) { return up ? (n + 1) / 2 : n / 2; }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      for (const std::int64_t axis : a.axes) {
        const std::int64_t n = in[0].shape[static_cast<int>(axis)];
        from[static_cast<int>(axis)] = (i[static_cast<int>(axis)] + first(n)) % n;
      }
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{5}}}, .attrs = RotateAttrs{{0}}},
            {.inputs = {{{4, 3}}}, .attrs = RotateAttrs{{0, 1}}},
            {.inputs = {{{2, 0, 1}, Dtype::i64}}, .attrs = RotateAttrs{{1, 2}}, .indices = {1}}};
  }
};

const Added added = add<HalfRotation<true>, HalfRotation<false>>();

}  // namespace
}  // namespace oracles::frequencies
