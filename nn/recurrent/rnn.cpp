#include "ferrite/nn/recurrent/rnn.h"

#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/nn/recurrent/detail/recurrent_options.h"

namespace ferrite::nn {
namespace {

template <bool kRelu>
RecurrentState one_step(const Tensor& i, const RecurrentState& before, const SequenceWeights& w) {
  return {rnn_step(i, before.h, w.w_hh, w.b_hh, kRelu)};
}

template <bool kRelu>
Tensors all_steps(const Tensor& x, const RecurrentState& before, const SequenceWeights& w,
                  const SequenceOptions& options) {
  return rnn_sequence(x, w, before.h, kRelu, options);
}

constexpr CellKind kTanh = {"rnn", 1, false, one_step<false>, all_steps<false>, detail::CellType::rnn_tanh};
constexpr CellKind kRelu = {"rnn", 1, false, one_step<true>, all_steps<true>, detail::CellType::rnn_relu};

const CellKind& kind_of(Nonlinearity f) { return f == Nonlinearity::relu ? kRelu : kTanh; }

}  // namespace

Rnn::Rnn(std::int64_t input_size, std::int64_t hidden_size, const RnnOptions& options, const Init& init)
    : GatedRecurrent(kind_of(options.nonlinearity), detail::sizes_of(input_size, hidden_size, options), init),
      nonlinearity_(options.nonlinearity) {}

std::unique_ptr<Layer> Rnn::clone() const {
  auto options = detail::options_of<RnnOptions>(sizes());
  options.nonlinearity = nonlinearity_;
  return copy_to(std::make_unique<Rnn>(input_size(), hidden_size(), options, like()));
}

RnnCell::RnnCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init, bool bias,
                 Nonlinearity nonlinearity)
    : RecurrentCell(kind_of(nonlinearity), input_size, hidden_size, init, bias) {}

}  // namespace ferrite::nn
