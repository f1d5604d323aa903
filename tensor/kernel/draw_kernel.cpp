/// Random words and uniform numbers, in loops that compilers vectorise.
#include "ferrite/tensor/kernel/kernels.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

void words(const DrawFrom& from, Drawn& to) {
  set_counters(from, to.words);
  philox_rounds(to.words, from.key[0], from.key[1]);
}

void uniform_f32(const Drawn& drawn, const UniformNumbers<float>& u, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float unit = static_cast<float>(static_cast<std::int32_t>(drawn.words[0][i] >> 8)) * 0x1p-24F;
    const auto v = static_cast<float>(u.low + u.width * static_cast<double>(unit));
    to[i] = v >= u.end ? u.last : v;
  }
}

void uniform_f64(const Drawn& drawn, const UniformNumbers<double>& u, double* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t bits = (std::uint64_t{drawn.words[1][i]} << 32 | drawn.words[0][i]) >> 11;
    const double v = u.low + u.width * (static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-53);
    to[i] = v >= u.end ? u.last : v;
  }
}

}  // namespace

constinit const DrawKernels draw_kernels = {words, uniform_f32, uniform_f64};

}  // namespace ferrite::detail::FERRITE_LEVEL
