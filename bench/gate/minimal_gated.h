#pragma once
/// A recurrent cell that no built-in layer computes, for scripts/bench-gate and scripts/digests: one gate forgets and
/// resets, as in docs/custom-cells.md.
#include "ferrite/ferrite.h"

namespace gate {

using namespace ferrite;

struct MinimalGated final : nn::CustomCell {
  std::int64_t H;
  Parameter w_x, w_h, b;
  MinimalGated(std::int64_t D, std::int64_t units, const nn::Init& i) : H(units) {
    const nn::Fill fill = nn::init::xavier_uniform();
    w_x = parameter("weight_x", {D, 2 * H}, fill, i);
    w_h = parameter("weight_h", {H, 2 * H}, fill, i);
    b = parameter("bias", {2 * H}, nn::init::constant(0.1), i);
  }
  std::string kind() const override { return "minimal_gated"; }
  RecurrentState step(const Tensor& x, const RecurrentState& s) const override {
    const Tensor i = matmul(x, w_x) + b, g = matmul(s.h, w_h);
    const Tensor f = sigmoid(slice(i, 1, 0, H) + slice(g, 1, 0, H));
    const Tensor n = tanh(slice(i, 1, H, 2 * H) + f * slice(g, 1, H, 2 * H));
    return {n + f * (s.h - n)};
  }
};

}  // namespace gate
