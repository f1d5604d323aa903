// Recurrent layers where PyTorch has no counterpart, or a fixture cannot show the result: resets, the other GRU,
// carries.
#include <cmath>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f32) {
  return uniform(shape, {11, stream, 0}, -1, 1, dtype);
}

Tensor mask_of(const std::vector<std::vector<int>>& rows) {
  std::vector<std::int64_t> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  const Shape shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())};
  return cast(Tensor::from(flat, shape), Dtype::boolean);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(recurrent)

/// The expected values are a loop over numbers, with the reset before the product (arXiv 1406.1078v1).
BOOST_AUTO_TEST_CASE(the_other_gru_equals_a_scalar_loop) {
  const std::int64_t D = 3, H = 4, T = 5;
  const nn::Gru gru(D, H, {.reset_after = false}, {.seed = 3, .dtype = Dtype::f64});
  const Tensor x = draw({1, T, D}, 1, Dtype::f64);
  const auto w_ih = gru.weights().weight_ih.peek().to_vector<double>();
  const auto w_hh = gru.weights().weight_hh.peek().to_vector<double>();
  const auto b_ih = gru.weights().bias_ih.peek().to_vector<double>();
  const auto b_hh = gru.weights().bias_hh.peek().to_vector<double>();
  const auto v = x.to_vector<double>();
  std::vector<double> h(H, 0), next(H);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const auto sum_of = [&](std::int64_t t, std::int64_t column, const std::vector<double>& state) {
    double s = b_ih[at(column)] + b_hh[at(column)];
    for (std::int64_t d = 0; d < D; ++d) s += v[at(t * D + d)] * w_ih[at(d * 3 * H + column)];
    for (std::int64_t k = 0; k < H; ++k) s += state[at(k)] * w_hh[at(k * 3 * H + column)];
    return s;
  };
  const auto logistic = [](double a) { return 1 / (1 + std::exp(-a)); };
  for (std::int64_t t = 0; t < T; ++t) {
    std::vector<double> damped(H);
    for (std::int64_t j = 0; j < H; ++j) damped[at(j)] = logistic(sum_of(t, j, h)) * h[at(j)];
    for (std::int64_t j = 0; j < H; ++j) {
      const double z = logistic(sum_of(t, H + j, h));
      next[at(j)] = (1 - z) * std::tanh(sum_of(t, 2 * H + j, damped)) + z * h[at(j)];
    }
    h = next;
  }
  BOOST_TEST(within(gru.run(x).state, Tensor::from(h, {1, H}), 1e-13));
  const nn::Gru usual(D, H, {.seed = 3, .dtype = Dtype::f64});
  BOOST_TEST(!within(usual.run(x).state, Tensor::from(h, {1, H}), 1e-3));
}

/// A reset cuts a sequence into two independent ones, in both directions.
BOOST_AUTO_TEST_CASE(a_reset_begins_a_new_sequence) {
  const nn::Lstm lstm(2, 3, {.layers = 2, .bidirectional = true}, {.seed = 0});
  const Tensor x = draw({2, 7, 2}, 2);
  const Tensor h0 = draw({4, 2, 3}, 3);
  const Tensor c0 = draw({4, 2, 3}, 4);
  const Tensor mask = mask_of({{0, 0, 0, 1, 0, 0, 0}, {0, 0, 0, 1, 0, 0, 0}});
  const nn::RecurrentResult whole = lstm.run(x, {.reset_mask = mask, .state = h0, .cell = c0});
  // Each direction starts with its own initial state and meets zeros at the border.
  const Tensor forward = mask_of({{1}, {0}, {1}, {0}});
  const Tensor rows = reshape(forward, {4, 1, 1});
  const auto only = [&](bool ahead, const Tensor& s) { return ahead ? where(rows, s, 0) : where(rows, 0, s); };
  const nn::RecurrentResult first = lstm.run(slice(x, 1, 0, 3), {.state = only(true, h0), .cell = only(true, c0)});
  const nn::RecurrentResult second = lstm.run(slice(x, 1, 3, 7), {.state = only(false, h0), .cell = only(false, c0)});
  BOOST_TEST(identical(whole.output, concat({first.output, second.output}, 1)));
  BOOST_TEST(identical(whole.state, where(rows, second.state, first.state)));
  BOOST_TEST(identical(whole.cell, where(rows, second.cell, first.cell)));
}

BOOST_AUTO_TEST_CASE(no_gradient_crosses_a_reset) {
  const nn::Gru gru(2, 3, {.layers = 2}, {.seed = 0});
  Tape tape;
  const Tensor x = tape.watch(draw({2, 6, 2}, 5));
  const Tensor h0 = tape.watch(draw({2, 2, 3}, 6));
  const Tensor mask = mask_of({{0, 0, 0, 0, 1, 0}, {1, 0, 0, 0, 0, 0}});
  const Tensor late = slice(gru.run(x, {.reset_mask = mask, .state = h0}).output, 1, 4);
  const Tensors g = tape.grad(sum(square(late)), {x, h0});
  BOOST_TEST(identical(slice(select(g[0], 0, 0), 0, 0, 4), zeros({4, 2})));
  BOOST_TEST((amax(abs(slice(select(g[0], 0, 0), 0, 4))).item() > 0));
  BOOST_TEST((amax(abs(slice(select(g[0], 0, 1), 0, 0, 4))).item() > 0));  // the other row has no border there
  BOOST_TEST(identical(g[1], zeros({2, 2, 3})));                           // and no gradient reaches the initial states
}

BOOST_AUTO_TEST_CASE(a_reset_in_the_padding_does_nothing) {
  const nn::Gru gru(2, 3, {.bidirectional = true}, {.seed = 0});
  const Tensor x = draw({2, 5, 2}, 7);
  const Tensor h0 = draw({2, 2, 3}, 8);
  const Tensor lengths = Tensor::from(std::vector<std::int64_t>{3, 5}, {2});
  const Tensor in_padding = mask_of({{0, 0, 0, 1, 1}, {0, 0, 0, 0, 0}});
  const nn::RecurrentResult plain = gru.run(x, {.lengths = lengths, .state = h0});
  const nn::RecurrentResult masked = gru.run(x, {.lengths = lengths, .reset_mask = in_padding, .state = h0});
  BOOST_TEST(identical(plain.output, masked.output));
  BOOST_TEST(identical(plain.state, masked.state));
}

BOOST_AUTO_TEST_CASE(cut_anywhere_gives_the_same_bits) {
  const nn::Lstm lstm(3, 5, {.layers = 2}, {.seed = 0});
  const Tensor x = draw({3, 9, 3}, 9);
  const nn::RecurrentResult whole = lstm.run(x);
  for (std::int64_t cut = 1; cut < 9; ++cut) {
    const nn::RecurrentResult head = lstm.run(slice(x, 1, 0, cut));
    const nn::RecurrentResult tail = lstm.run(slice(x, 1, cut), {.state = head.state, .cell = head.cell});
    BOOST_TEST(identical(concat({head.output, tail.output}, 1), whole.output));
    BOOST_TEST(identical(tail.state, whole.state));
    BOOST_TEST(identical(tail.cell, whole.cell));
  }
}

/// The carry equals detaching by hand: the same losses and gradients, to the bit.
BOOST_AUTO_TEST_CASE(truncated_back_propagation_equals_detaching_by_hand) {
  const nn::Gru gru(2, 4, {.layers = 2}, {.seed = 0});
  const Tensor x = draw({3, 10, 2}, 12);
  const nn::Carry carry(gru, 3);
  Tensor by_hand;
  int count = 0;
  for (const Tensor& piece : nn::pieces(x, 4)) {
    Tensors g;
    Tensor loss;
    {
      Tape tape;
      loss = sum(square(gru(piece, {.carry = &carry})));
      g = tape.grad(loss, gru.parameters());
    }
    Tape tape;
    const nn::RecurrentResult r = gru.run(piece, {.state = by_hand});
    const Tensor same = sum(square(r.output));
    const Tensors wanted = tape.grad(same, gru.parameters());
    by_hand = detach(r.state);
    BOOST_TEST(identical(loss, same));
    for (std::size_t i = 0; i < g.size(); ++i) BOOST_TEST(identical(g[i], wanted[i]));
    ++count;
  }
  BOOST_TEST(count == 3);
  BOOST_TEST(identical(carry.save()[0], by_hand));
  carry.reset();
  BOOST_TEST(identical(carry.save()[0], zeros({2, 3, 4})));
}

BOOST_AUTO_TEST_CASE(a_carry_refuses_what_it_cannot_do) {
  const nn::Gru both_ways(2, 3, {.bidirectional = true}, {.seed = 1}), gru(2, 3, {}, {.seed = 1});
  const nn::Carry nothing(both_ways, 1), carry(gru, 1);
  BOOST_TEST(nothing.variables().empty());
  const Tensor x = draw({1, 2, 2}, 1);
  BOOST_CHECK_EXCEPTION(both_ways(x, {.carry = &nothing}), ValueError,
                        says("gru: a backward direction cannot be carried on"));
  BOOST_CHECK_EXCEPTION(gru(x, {.state = zeros({1, 3}), .carry = &carry}), ValueError,
                        says("both an initial state and a carry"));
  (void)gru(x, {.carry = &carry});
  BOOST_CHECK_EXCEPTION(gru(draw({2, 2, 2}, 1), {.carry = &carry}), ShapeError,
                        says("carry: was made for a batch of 1, got 2; make a carry for each size of batch"));
  const auto copy = gru.clone();
  BOOST_CHECK_EXCEPTION((*copy)(x, {.carry = &carry}), ValueError, says("was made for another model"));
  BOOST_CHECK_EXCEPTION(nn::Carry(gru, -1), ValueError, says("the batch must not be negative"));
  const std::vector<Tensor> before = carry.save();
  BOOST_CHECK_EXCEPTION(carry.restore({}), ValueError, says("carry: the model has 1 states, got 0"));
  BOOST_CHECK_EXCEPTION(carry.restore(std::vector<Tensor>{ones({1, 2, 3})}), ShapeError,
                        says("carry: 'h' is f32[1, 1, 3], got f32[1, 2, 3]"));
  BOOST_TEST(identical(carry.save()[0], before[0]));
  BOOST_CHECK_EXCEPTION((void)nn::pieces(zeros({1, 4, 2}), 0), ValueError, says("pieces: the length must be positive"));
}

BOOST_AUTO_TEST_CASE(dropout_lies_between_the_layers_only) {
  const nn::Gru gru(2, 8, {.layers = 2, .dropout = 0.5}, {.seed = 1});
  const Tensor x = draw({2, 3, 2}, 13);
  const Tensor a = gru(x);
  const Tensor b = gru(x);
  BOOST_TEST(!identical(a, b));         // new draws at each call
  BOOST_TEST(amin(abs(a)).item() > 0);  // none after the last layer
  const auto copy = gru.clone();
  BOOST_TEST(identical((*copy)(x), gru(x)));  // a clone makes the draws that the original would make
  gru.eval();
  BOOST_TEST(identical(gru(x), gru(x)));
  BOOST_TEST(gru.named_states()[0].name == "dropout_l0.calls");
}

BOOST_AUTO_TEST_CASE(mistakes_are_named) {
  const nn::Lstm lstm(2, 3, {.layers = 2, .bidirectional = true}, {.seed = 0});
  const Tensor x = draw({4, 5, 2}, 14);
  BOOST_CHECK_EXCEPTION((void)lstm.run(draw({4, 5, 3}, 1)), ShapeError,
                        says("lstm: expects input [B, T, 2], got [4, 5, 3]"));
  BOOST_CHECK_EXCEPTION((void)lstm.run(draw({4, 0, 2}, 1)), ShapeError, says("lstm: the sequence has no steps"));
  BOOST_CHECK_EXCEPTION((void)lstm.run(x, {.state = zeros({2, 4, 3})}), ShapeError,
                        says("lstm: expects a state [4, 4, 3], got [2, 4, 3]"));
  BOOST_CHECK_EXCEPTION((void)lstm.run(cast(x, Dtype::f64)), DtypeError, says("lstm: the weights are f32, got input"));
  BOOST_CHECK_EXCEPTION((void)lstm.run(x, {.state = zeros({4, 4, 3}, Dtype::f64)}), DtypeError, says("got a state"));
  for (const std::int64_t bad : {0, -1, 6})
    BOOST_CHECK_EXCEPTION((void)lstm.run(x, {.lengths = Tensor::from(std::vector<std::int64_t>{5, 1, bad, 2}, {4})}),
                          ShapeError, says("a length of " + std::to_string(bad) + " lies outside 1..5"));
  BOOST_CHECK_EXCEPTION((void)lstm.run(x, {.reset_mask = zeros({4, 5})}), ShapeError,
                        says("expects a reset mask bool[4, 5], got f32[4, 5]"));
  BOOST_CHECK_EXCEPTION(nn::Lstm(2, 3, {.proj_size = 3}), ValueError, says("lstm: proj_size must lie in 0..2, got 3"));
  BOOST_CHECK_EXCEPTION(nn::Gru(2, 3, {.layers = 0}), ValueError, says("gru: needs at least one layer, got 0"));
  BOOST_CHECK_EXCEPTION(nn::Rnn(2, 3, {.dropout = 1.5}), ValueError, says("rnn: dropout must lie in [0, 1]"));
  BOOST_CHECK_EXCEPTION((void)lstm.weights(2), ValueError, says("lstm: has no weights_l2"));
  BOOST_CHECK_EXCEPTION((void)nn::Gru(2, 3).weights(0, true), ValueError, says("gru: has no weights_l0_reverse"));
  const nn::GruCell cell(2, 3, {.seed = 0});
  BOOST_CHECK_EXCEPTION((void)cell(zeros({4, 3})), ShapeError, says("gru cell: expects input [B, 2], got [4, 3]"));
  BOOST_CHECK_EXCEPTION((void)cell(zeros({4, 2}), zeros({3, 3})), ShapeError,
                        says("gru cell: expects a state [4, 3], got [3, 3]"));
}

/// There are tiles with every number of rows, and two of them.
BOOST_AUTO_TEST_CASE(rows_of_batches_of_every_size_are_those_alone) {
  const std::int64_t D = 5, T = 3, most = 19;
  for (const std::int64_t H : {7, 33, 130}) {
    const nn::Init init{.seed = 2, .prefix = "r"};
    std::vector<std::unique_ptr<nn::Layer>> layers;
    layers.push_back(std::make_unique<nn::Gru>(D, H, init));
    layers.push_back(std::make_unique<nn::Gru>(D, H, nn::GruOptions{.reset_after = false}, init));
    layers.push_back(std::make_unique<nn::Lstm>(D, H, init));
    layers.push_back(std::make_unique<nn::Lstm>(D, H, nn::LstmOptions{.proj_size = 4}, init));
    layers.push_back(std::make_unique<nn::Rnn>(D, H, init));
    const Tensor x = draw({most, T, D}, 4);
    for (const auto& layer : layers) {
      Tensors alone;
      for (std::int64_t b = 0; b < most; ++b) alone.push_back((*layer)(slice(x, 0, b, b + 1)));
      for (std::int64_t B = 1; B <= most; ++B) {
        BOOST_TEST_CONTEXT(layer->kind() << " of " << H << ", " << B << " rows") {
          const Tensor rows = concat(std::span<const Tensor>(alone.data(), static_cast<std::size_t>(B)), 0);
          BOOST_TEST(identical((*layer)(slice(x, 0, 0, B)), rows));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
