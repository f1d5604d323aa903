#include "ferrite/nn/recurrent/lstm.h"

#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/nn/recurrent/detail/recurrent_options.h"

namespace ferrite::nn {
namespace {

RecurrentState one_step(const Tensor& i, const RecurrentState& before, const SequenceWeights& w) {
  return lstm_step(i, before, w.w_hh, w.b_hh, w.w_hr);
}

Tensors all_steps(const Tensor& x, const RecurrentState& before, const SequenceWeights& w,
                  const SequenceOptions& options) {
  return lstm_sequence(x, w, before, options);
}

constexpr CellKind kLstm = {"lstm", 4, true, one_step, all_steps, detail::CellType::lstm};

}  // namespace

Lstm::Lstm(std::int64_t input_size, std::int64_t hidden_size, const LstmOptions& options, const Init& init)
    : GatedRecurrent(kLstm, detail::sizes_of(input_size, hidden_size, options), init) {}

std::unique_ptr<Layer> Lstm::clone() const {
  const auto options = detail::options_of<LstmOptions>(sizes());
  return copy_to(std::make_unique<Lstm>(input_size(), hidden_size(), options, like()));
}

LstmCell::LstmCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init, bool bias)
    : RecurrentCell(kLstm, input_size, hidden_size, init, bias) {}

}  // namespace ferrite::nn
