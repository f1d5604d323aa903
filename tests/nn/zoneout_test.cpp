// Zoneout (arXiv 1606.01305) compared with the formula by hand, with the masks of the layer's own draws, in all forms;
// evaluation, streams, lengths and random numbers.
#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "ferrite/tensor/random.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

constexpr std::int64_t kBatch = 3, kSteps = 6, kIn = 2, kUnits = 4;
const nn::Init kDoubles{.seed = 3, .dtype = Dtype::f64};

Tensor input() { return uniform({kBatch, kSteps, kIn}, {.seed = 5}, -1, 1, Dtype::f64); }

State state_of(const nn::Module& m, const std::string& name) {
  for (const auto& s : m.named_states())
    if (s.name == name) return s.variable;
  BOOST_FAIL("no state " << name);
  return {};
}

/// Returns bool [B, T, H]: the units that the next call keeps, from the key and the number of the call that the layer
/// reports.
Tensor kept(const nn::Module& layer, const std::string& of, double rate, std::int64_t width) {
  const Tensor ones_kept = bernoulli({kBatch, kSteps, width}, state_of(layer, of + ".key").peek(),
                                     state_of(layer, of + ".calls").peek(), 1 - rate, Dtype::f64);
  return eq(ones_kept, 0.0);
}

struct Kept {
  Tensor h, c;  ///< undefined: no unit
};
/// Runs the steps of an LSTM, blended by masks, or by rates if there are none.
RecurrentState lstm_by_hand(const nn::Lstm& lstm, const Tensor& x, const Kept& masks, double rate_h, double rate_c,
                            Tensors& outputs) {
  const RecurrentWeights<Tensor> w = nn::values_of(lstm.weights());
  const auto blend = [](const Tensor& mask, std::int64_t t, double rate, const Tensor& was, const Tensor& is) {
    return mask.defined() ? where(select(mask, 1, t), was, is) : rate * was + (1 - rate) * is;
  };
  RecurrentState s{zeros({kBatch, lstm.sizes().state_size()}, Dtype::f64), zeros({kBatch, kUnits}, Dtype::f64)};
  for (std::int64_t t = 0; t < kSteps; ++t) {
    const RecurrentState next =
        nn::lstm_step(affine(select(x, 1, t), w.weight_ih, w.bias_ih), s, w.weight_hh, w.bias_hh, w.weight_hr);
    s = {blend(masks.h, t, rate_h, s.h, next.h), blend(masks.c, t, rate_c, s.c, next.c)};
    outputs.push_back(s.h);
  }
  return s;
}

nn::Lstm lstm_of(nn::Form form, double rate_h = 0.3, double rate_c = 0.6, std::int64_t proj = 3) {
  return {kIn, kUnits, {.form = form, .proj_size = proj, .zoneout = rate_h, .zoneout_cell = rate_c}, kDoubles};
}

/// Returns values, gradients of input and parameters, and their gradients along fixed directions.
Tensors all_of(const nn::Module& layer, const Tensor& in, const std::function<Tensor(const Tensor& x)>& f) {
  Tape tape;
  const Tensor x = tape.watch(in), y = f(x);
  const Tensor loss = sum(square(y) * uniform(y.shape(), {.seed = 9}, -1, 1, Dtype::f64));
  Tensors g = tape.grad({{loss}}, {x}, {.create_graph = true});
  for (const Tensor& t : tape.grad({{loss}}, layer.parameters(), {.create_graph = true})) g.push_back(t);
  Tensor total = zeros({}, Dtype::f64);
  for (std::size_t i = 0; i < g.size(); ++i)
    total = total + sum(g[i] * uniform(g[i].shape(), {9, i, 1}, -1, 1, Dtype::f64));
  Tensors all{y};
  for (const Tensor& t : g) all.push_back(detach(t));
  for (const Tensor& t : tape.grad({{total}}, {x}, {.retain = true})) all.push_back(t);
  for (const Tensor& t : tape.grad({{total}}, layer.parameters())) all.push_back(t);
  return all;
}

void check_same(const Tensors& a, const Tensors& b) {
  BOOST_REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(within(a[i], b[i], 1e-12), "tensor " << i);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(zoneout)

/// Training uses the masks that the layer draws, evaluation their expectation: outputs, last states, gradients and
/// their gradients are compared, in both forms.
BOOST_AUTO_TEST_CASE(an_lstm_is_the_formula_by_hand) {
  for (const nn::Form form : {nn::Form::fused, nn::Form::scan, nn::Form::unrolled})
    for (const bool training : {true, false}) {
      const nn::Lstm lstm = lstm_of(form);
      lstm.train(training);
      Kept masks;
      if (training) masks = {kept(lstm, "zoneout_l0", 0.3, 3), kept(lstm, "zoneout_cell_l0", 0.6, kUnits)};
      Tensors outputs;
      const RecurrentState last = lstm_by_hand(lstm, input(), masks, 0.3, 0.6, outputs);
      const Tensors wanted = all_of(lstm, input(), [&](const Tensor& x) {
        Tensors steps;
        (void)lstm_by_hand(lstm, x, masks, 0.3, 0.6, steps);
        return stack(std::span<const Tensor>(steps.data(), steps.size()), 1);
      });
      nn::RecurrentResult r;
      const Tensors got = all_of(lstm, input(), [&](const Tensor& x) {
        r = lstm.run(x);
        return r.output;
      });
      check_same(got, wanted);
      BOOST_TEST(within(r.state, last.h, 1e-12));
      BOOST_TEST(within(r.cell, last.c, 1e-12));
    }
}

/// GRU and RNN run one step at a time from the states before the step.
BOOST_AUTO_TEST_CASE(gates_without_a_memory) {
  for (const nn::Form form : {nn::Form::scan, nn::Form::unrolled}) {
    const nn::Gru gru(kIn, kUnits, {.form = form, .zoneout = 0.4}, kDoubles);
    const nn::Rnn rnn(kIn, kUnits, {.form = form, .zoneout = 0.4}, kDoubles);
    for (const nn::GatedRecurrent* layer :
         {static_cast<const nn::GatedRecurrent*>(&gru), static_cast<const nn::GatedRecurrent*>(&rnn)})
      for (const bool training : {true, false}) {
        layer->train(training);
        const Tensor mask = training ? kept(*layer, "zoneout_l0", 0.4, kUnits) : Tensor();
        const RecurrentWeights<Tensor> w = nn::values_of(layer->weights());
        Tensor h = zeros({kBatch, kUnits}, Dtype::f64);
        Tensors steps;
        for (std::int64_t t = 0; t < kSteps; ++t) {
          const Tensor i = affine(select(input(), 1, t), w.weight_ih, w.bias_ih);
          const Tensor next =
              layer == &gru ? nn::gru_step(i, h, w.weight_hh, w.bias_hh) : nn::rnn_step(i, h, w.weight_hh, w.bias_hh);
          h = training ? where(select(mask, 1, t), h, next) : 0.4 * h + 0.6 * next;
          steps.push_back(h);
        }
        BOOST_TEST(within((*layer)(input()), stack(std::span<const Tensor>(steps.data(), steps.size()), 1), 1e-12));
      }
  }
}

BOOST_AUTO_TEST_CASE(rate_0_is_the_plain_layer_and_rate_1_keeps_the_first_state) {
  const nn::Lstm plain(kIn, kUnits, nn::LstmOptions{}, kDoubles), none(kIn, kUnits, {.zoneout = 0}, kDoubles);
  BOOST_TEST(identical(plain(input()), none(input())));
  BOOST_TEST(none.named_states().empty());
  BOOST_TEST(none.summary() == plain.summary());
  const Tensor h0 = uniform({kBatch, 3}, {.seed = 6}, -1, 1, Dtype::f64);
  const Tensor c0 = uniform({kBatch, kUnits}, {.seed = 7}, -1, 1, Dtype::f64);
  for (const nn::Form form : {nn::Form::scan, nn::Form::unrolled})
    for (const bool training : {true, false}) {
      const nn::Lstm all = lstm_of(form, 1, 1);
      all.train(training);
      const nn::RecurrentResult r = all.run(input(), {.state = h0, .cell = c0});
      BOOST_TEST(identical(r.output, contiguous(expand(unsqueeze(h0, 1), {kBatch, kSteps, 3}))));
      BOOST_TEST(identical(r.state, h0));
      BOOST_TEST(identical(r.cell, c0));
      BOOST_TEST(!identical(lstm_of(form, 1, 0).run(input(), {.state = h0, .cell = c0}).cell, c0));
    }
}

/// Each call makes other draws; one seed makes the same ones, compiled, in a copy, and for any number of threads.
BOOST_AUTO_TEST_CASE(draws_are_a_function_of_seed_name_and_call) {
  const auto net = [] { return dsl::sequence(kIn).gru(kUnits, {.layers = 2, .zoneout = 0.5}).build(4); };
  const Tensor x = uniform({kBatch, kSteps, kIn}, {.seed = 5}, -1, 1);
  const auto a = net(), b = net(), c = net();
  const Tensor first = a(x), second = a(x);
  BOOST_TEST(!identical(first, second));
  const std::unique_ptr<nn::Layer> copy = b.clone();
  const auto compiled = b.compiled();
  BOOST_TEST(identical(compiled(x), first));
  BOOST_TEST(identical(compiled(x), second));
  BOOST_TEST(identical((*copy)(x), first));
  set_threads(3);
  BOOST_TEST(identical(c(x), first));
  set_threads(1);
  BOOST_TEST(!identical(dsl::sequence(kIn).gru(kUnits, {.layers = 2, .zoneout = 0.5}).build(5)(x), first));
}

/// The rate is the share of units that stay, within four deviations over 40,000 draws.
BOOST_AUTO_TEST_CASE(the_rate_is_the_share_that_stays) {
  const nn::Rnn rnn(1, 20, {.zoneout = 0.2}, {.seed = 8});
  const Tensor y = rnn(uniform({20, 101, 1}, {.seed = 2}, -1, 1));
  const Tensor same = eq(slice(y, 1, 1), slice(y, 1, 0, 100));
  const double share = mean(cast(same, Dtype::f64)).item<double>();
  BOOST_TEST(std::abs(share - 0.2) < 4 * std::sqrt(0.2 * 0.8 / 40000));
}

/// Rows of a batch with lengths have, in evaluation, the results of a row alone, cut at resets, and in pieces.
BOOST_AUTO_TEST_CASE(lengths_resets_and_pieces_in_evaluation) {
  for (const nn::Form form : {nn::Form::scan, nn::Form::unrolled}) {
    const nn::Lstm lstm = lstm_of(form);
    lstm.eval();
    const Tensor x = input(), lengths = Tensor::from<std::int64_t>({6, 2, 4});
    const nn::RecurrentResult r = lstm.run(x, {.lengths = lengths});
    const std::vector<std::int64_t> each = {6, 2, 4};
    for (std::int64_t b = 0; b < kBatch; ++b) {
      const std::int64_t n = each[static_cast<std::size_t>(b)];
      const nn::RecurrentResult alone = lstm.run(slice(slice(x, 0, b, b + 1), 1, 0, n));
      const Tensor row = slice(r.output, 0, b, b + 1);
      BOOST_TEST(identical(contiguous(slice(row, 1, 0, n)), alone.output));
      BOOST_TEST(identical(contiguous(slice(row, 1, n)), zeros({1, kSteps - n, 3}, Dtype::f64)));
      BOOST_TEST(identical(contiguous(slice(r.state, 0, b, b + 1)), alone.state));
      BOOST_TEST(identical(contiguous(slice(r.cell, 0, b, b + 1)), alone.cell));
    }
    const Tensor resets = expand(reshape(eq(arange(kSteps), 4), {1, kSteps}), {kBatch, kSteps});
    const Tensor cut = lstm(x, {.reset_mask = contiguous(resets)});
    BOOST_TEST(identical(cut, concat({lstm(slice(x, 1, 0, 4)), lstm(slice(x, 1, 4))}, 1)));
    const nn::Carry carry(lstm, kBatch);
    const Tensor pieces =
        concat({lstm(slice(x, 1, 0, 2), {.carry = &carry}), lstm(slice(x, 1, 2), {.carry = &carry})}, 1);
    BOOST_TEST(identical(pieces, lstm(x)));
  }
}

/// Training keeps and sees nothing after the ends of rows, and each direction has its own masks.
BOOST_AUTO_TEST_CASE(lengths_in_training) {
  for (const nn::Form form : {nn::Form::scan, nn::Form::unrolled}) {
    const auto make = [&] {
      return nn::Gru(kIn, kUnits, {.bidirectional = true, .form = form, .zoneout = 0.5}, kDoubles);
    };
    const Tensor lengths = Tensor::from<std::int64_t>({6, 2, 4});
    const Tensor valid = unsqueeze(lt(arange(kSteps), unsqueeze(lengths, 1)), 2);
    const Tensor nan = where(valid, input(), std::numeric_limits<double>::quiet_NaN());
    const nn::RecurrentResult a = make().run(nan, {.lengths = lengths}), b = make().run(input(), {.lengths = lengths});
    BOOST_TEST(identical(a.output, b.output));
    BOOST_TEST(identical(a.state, b.state));
    BOOST_TEST(identical(where(valid, 0, a.output), zeros(a.output.shape(), Dtype::f64)));
    const Tensor whole = make()(input());
    BOOST_TEST(identical(contiguous(slice(slice(a.output, 0, 0, 1), 1, 0)), contiguous(slice(whole, 0, 0, 1))));
  }
}

BOOST_AUTO_TEST_CASE(cells_of_ones_own) {
  const auto make = [](nn::Form form) {
    return nn::custom<nn::LayerNormGruCell>(kIn, kUnits, {.layers = 2, .form = form, .zoneout = 0.3}, kDoubles);
  };
  const nn::Custom scanned = make(nn::Form::scan), unrolled = make(nn::Form::unrolled);
  check_same(all_of(scanned, input(), [&](const Tensor& x) { return scanned(x); }),
             all_of(unrolled, input(), [&](const Tensor& x) { return unrolled(x); }));
  BOOST_TEST(scanned.summary() == "layer_norm_gru(input_size=2, hidden_size=4, layers=2, zoneout=0.3)");
  // Masks of a sequence and of units together.
  const nn::Custom both =
      nn::custom<nn::LayerNormGruCell>(kIn, kUnits, {.variational_dropout = 0.5, .zoneout = 1}, kDoubles);
  BOOST_TEST(identical(both(input()), zeros({kBatch, kSteps, kUnits}, Dtype::f64)));
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  BOOST_CHECK_EXCEPTION(nn::Gru(kIn, kUnits, {.zoneout = 1.5}), ValueError, says("gru: zoneout must lie in [0, 1]"));
  BOOST_CHECK_EXCEPTION(nn::Lstm(kIn, kUnits, {.zoneout_cell = -0.5}), ValueError,
                        says("lstm: zoneout must lie in [0, 1], got 0.0 and -0.5"));
  BOOST_CHECK_EXCEPTION(nn::custom<nn::LayerNormGruCell>(kIn, kUnits, {.zoneout_cell = 0.5}, kDoubles), ValueError,
                        says("layer_norm_gru: zoneout_cell is of a memory, which this cell has not"));
  BOOST_TEST(nn::PeepholeLstm(kIn, kUnits, {.zoneout = 0.1, .zoneout_cell = 0.2}).summary() ==
             "peephole_lstm(input_size=2, hidden_size=4, zoneout=0.1, zoneout_cell=0.2)");
}

BOOST_AUTO_TEST_SUITE_END()
