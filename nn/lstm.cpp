#include "ferrite/nn/lstm.h"

#include "ferrite/nn/detail/recurrent_options.h"

namespace ferrite::nn {
namespace {

constexpr CellKind kLstm = {"lstm", 4, true, Lstm::step};

}  // namespace

RecurrentState Lstm::step(const Tensor& i, const RecurrentState& before, const RecurrentValues& w) {
  const Tensor sums = i + affine(before.h, w.weight_hh, w.bias_hh);
  const Tensors gates = split(sums, before.c.shape()[1], 1);  // i, f, g, o
  const Tensor c = sigmoid(gates[1]) * before.c + sigmoid(gates[0]) * tanh(gates[2]);
  const Tensor h = sigmoid(gates[3]) * tanh(c);
  return {w.weight_hr ? matmul(h, w.weight_hr) : h, c};
}

Lstm::Lstm(std::int64_t input_size, std::int64_t hidden_size, const LstmOptions& options, const Init& init)
    : Recurrent(kLstm, detail::sizes_of(input_size, hidden_size, options), init) {}

std::unique_ptr<Layer> Lstm::clone() const {
  const auto options = detail::options_of<LstmOptions>(sizes());
  return copy_to(std::make_unique<Lstm>(input_size(), hidden_size(), options, like()));
}

LstmCell::LstmCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init, bool bias)
    : RecurrentCell(kLstm, input_size, hidden_size, init, bias) {}

}  // namespace ferrite::nn
