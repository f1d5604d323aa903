#include "ferrite/nn/recurrent/gru.h"

#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/nn/recurrent/detail/recurrent_options.h"

namespace ferrite::nn {
namespace {

template <Tensor (*kStep)(const Tensor&, const Tensor&, const Tensor&, const Tensor&)>
RecurrentState one_step(const Tensor& i, const RecurrentState& before, const SequenceWeights& w) {
  return {kStep(i, before.h, w.w_hh, w.b_hh)};
}

template <bool kResetAfter>
Tensors all_steps(const Tensor& x, const RecurrentState& before, const SequenceWeights& w,
                  const SequenceOptions& options) {
  return gru_sequence(x, w, before.h, options, kResetAfter);
}

constexpr CellKind kGru = {"gru", 3, false, one_step<gru_step>, all_steps<true>, detail::CellType::gru};
constexpr CellKind kGruResetBefore = {
    "gru", 3, false, one_step<gru_step_reset_before>, all_steps<false>, detail::CellType::gru_reset_before};

}  // namespace

Gru::Gru(std::int64_t input_size, std::int64_t hidden_size, const GruOptions& options, const Init& init)
    : GatedRecurrent(options.reset_after ? kGru : kGruResetBefore, detail::sizes_of(input_size, hidden_size, options),
                     init),
      reset_after_(options.reset_after) {}

std::unique_ptr<Layer> Gru::clone() const {
  auto options = detail::options_of<GruOptions>(sizes());
  options.reset_after = reset_after_;
  return copy_to(std::make_unique<Gru>(input_size(), hidden_size(), options, like()));
}

GruCell::GruCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init, bool bias)
    : RecurrentCell(kGru, input_size, hidden_size, init, bias) {}

}  // namespace ferrite::nn
