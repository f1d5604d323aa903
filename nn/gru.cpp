#include "ferrite/nn/gru.h"

#include "ferrite/nn/detail/recurrent_options.h"

namespace ferrite::nn {
namespace {

template <Tensor (*kStep)(const Tensor&, const Tensor&, const Tensor&, const Tensor&)>
RecurrentState one_step(const Tensor& i, const RecurrentState& before, const RecurrentValues& w) {
  return {kStep(i, before.h, w.weight_hh, w.bias_hh)};
}

Tensors all_steps(const Tensor& i, const RecurrentState& before, const RecurrentValues& w,
                  const SequenceOptions& options) {
  return gru_sequence(i, before.h, w.weight_hh, w.bias_hh, options);
}

constexpr CellKind kGru = {"gru", 3, false, one_step<gru_step>, all_steps};
constexpr CellKind kGruResetBefore = {"gru", 3, false, one_step<Gru::step_reset_before>, nullptr};

}  // namespace

Tensor Gru::step_reset_before(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh) {
  const std::int64_t H = h.shape()[1];
  const auto part = [&](const Tensor& t, std::int64_t from, std::int64_t to) {
    return t ? slice(t, -1, from * H, to * H) : t;
  };
  const Tensors from_x = split(i, H, 1);  // r, z, n
  const Tensors from_h = split(affine(h, part(w_hh, 0, 2), part(b_hh, 0, 2)), H, 1);
  const Tensor r = sigmoid(from_x[0] + from_h[0]);
  const Tensor z = sigmoid(from_x[1] + from_h[1]);
  const Tensor n = tanh(from_x[2] + affine(r * h, part(w_hh, 2, 3), part(b_hh, 2, 3)));
  return n + z * (h - n);
}

Gru::Gru(std::int64_t input_size, std::int64_t hidden_size, const GruOptions& options, const Init& init)
    : Recurrent(options.reset_after ? kGru : kGruResetBefore, detail::sizes_of(input_size, hidden_size, options), init),
      reset_after_(options.reset_after) {}

std::unique_ptr<Layer> Gru::clone() const {
  auto options = detail::options_of<GruOptions>(sizes());
  options.reset_after = reset_after_;
  return copy_to(std::make_unique<Gru>(input_size(), hidden_size(), options, like()));
}

GruCell::GruCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init, bool bias)
    : RecurrentCell(kGru, input_size, hidden_size, init, bias) {}

}  // namespace ferrite::nn
