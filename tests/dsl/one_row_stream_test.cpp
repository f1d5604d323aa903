// Streams of one row of small recurrent layers, which carry their product with the state from step to step. They have
// the bits of the whole sequence, also with a layer of one output that was fused into them.
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/operations.h"
#include "support/compare.h"
#include "support/in_blocks.h"

using namespace ferrite;
using support::check;
using support::Dice;
using support::InBlocks;
using support::sequence_of;

namespace {

constexpr std::int64_t kLength = 200;

void add_recurrent(dsl::Builder& b, std::int64_t width, std::int64_t kind, std::int64_t units, std::int64_t layers,
                   const nn::Init& init) {
  if (kind == 0) b.gru(units, {.layers = layers});
  if (kind == 1) b.lstm(units, {.layers = layers});
  if (kind == 2) b.rnn(units, {.layers = layers});
  if (kind == 3) b.add(nn::PeepholeLstm(width, units, {.layers = layers}, init));
  if (kind == 4) b.gru(units, {.layers = layers, .bias = false});
}

dsl::Network random_net(Dice& dice, std::int64_t width, Dtype dtype, std::uint64_t seed) {
  dsl::Builder b = dsl::sequence(width);
  if (dice.once_in(3)) b.linear(width = dice.between(1, 3));
  constexpr std::int64_t kUnits[] = {1, 2, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 40, 48};
  const nn::Init init{.seed = seed, .dtype = dtype};
  const std::int64_t units = kUnits[dice.between(0, 15)];
  add_recurrent(b, width, dice.between(0, 4), units, dice.between(1, 3), init);
  const std::int64_t behind = dice.between(0, 6);
  if (behind == 0 || behind == 2 || behind == 3) b.linear(1);
  if (behind == 1) b.add(nn::Linear({.in_features = units, .out_features = 1, .bias = false}, init));
  if (behind == 2) b.tanh();
  if (behind == 3) b.relu().linear(3);
  if (behind == 4) b.linear(2).linear(1);
  if (behind == 5) b.residual([units](dsl::Builder& inner) { inner.linear(1).linear(units); });
  return b.build(seed, dtype);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(one_row_stream)

BOOST_AUTO_TEST_CASE(random_nets_have_the_bits_of_the_whole_sequence) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      Dice dice(seed);
      const Dtype dtype = dice.once_in(4) ? Dtype::f64 : Dtype::f32;
      const std::int64_t width = dice.once_in(2) ? 1 : dice.between(2, 20);
      const dsl::Network net = random_net(dice, width, dtype, seed);
      const Tensor x = sequence_of(kLength, width, dtype, seed);
      dtype == Dtype::f64 ? check<double>(net, x, dice) : check<float>(net, x, dice);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_layer_of_one_output_becomes_a_part_of_the_step_and_stays_in_the_report) {
  const dsl::Network net = dsl::sequence(1).gru(16).linear(1).tanh().build(1);
  const nn::StreamReport report = net.stream().report();
  BOOST_REQUIRE(report.layers.size() == 2U);
  BOOST_TEST(report.layers[0].kind == "gru");
  BOOST_TEST(report.layers[1].kind == "linear");
  BOOST_TEST(dsl::sequence(1).gru(16).linear(2).build(1).stream().report().layers.size() == 2U);
}

BOOST_AUTO_TEST_CASE(states_that_change_take_the_product_with_them) {
  struct Size {
    std::int64_t units, layers;
  };
  for (const auto& [units, layers] : {Size{12, 1}, Size{12, 2}, Size{20, 1}, Size{20, 2}}) {  // one packet, two
    const dsl::Network net = dsl::sequence(1).lstm(units, {.layers = layers}).linear(1).build(2);
    const Tensor x = sequence_of(kLength, 1, Dtype::f32, 1), whole = net(x);
    nn::Stream stream = net.stream();
    const auto from_here = [&](nn::Stream& s, std::int64_t first) {
      const Tensor rest = contiguous(slice(x, 1, first, kLength));
      InBlocks<float> blocks(s, rest, 1);
      Dice dice(3);
      blocks.run_all(dice);
      return support::identical(blocks.y(), contiguous(slice(whole, 1, first, kLength)));
    };
    InBlocks<float> begun(stream, x, 1);
    begun.run(1), begun.run(32), begun.run(1);
    const std::vector<Tensor> states = stream.save();
    nn::Stream copy = stream.clone();
    BOOST_TEST(from_here(stream, 34));
    BOOST_TEST(from_here(copy, 34));
    stream.restore(states);
    BOOST_TEST(from_here(stream, 34));
    stream.reset();
    BOOST_TEST(from_here(stream, 0));
    stream.reset(0);
    BOOST_TEST(from_here(stream, 0));
    nn::Stream moved = std::move(copy);
    moved.restore(states);
    BOOST_TEST(from_here(moved, 34));
  }
}

BOOST_AUTO_TEST_CASE(new_weights_are_taken_in_the_middle) {
  const dsl::Network net = dsl::sequence(1).gru(20).linear(1).build(4);
  const dsl::Network other = dsl::sequence(1).gru(20).linear(1).build(5);
  const Tensor x = sequence_of(kLength, 1, Dtype::f32, 2);
  nn::Stream stream = net.stream(), wanted = other.stream();
  InBlocks<float> blocks(stream, x, 1);
  blocks.run(41);
  wanted.restore(stream.save());
  const auto given = other.named_parameters();
  for (std::size_t k = 0; k < given.size(); ++k) net.named_parameters()[k].variable.assign(given[k].variable.peek());
  stream.refresh();
  const Tensor rest = contiguous(slice(x, 1, 41, kLength));
  InBlocks<float> now(stream, rest, 1), as_wanted(wanted, rest, 1);
  Dice dice(1), same(1);
  now.run_all(dice), as_wanted.run_all(same);
  BOOST_TEST(support::identical(now.y(), as_wanted.y()));
}

BOOST_AUTO_TEST_SUITE_END()
