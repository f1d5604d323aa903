// The causal convolution apart from its values, which tests/golden compares with PyTorch.
#include "ferrite/nn/layers/causal_conv1d.h"

#include <cmath>

#include "ferrite/autograd/gradcheck.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/symbols.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

nn::CausalConv1dOptions sizes(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t dilation = 1,
                              std::int64_t groups = 1) {
  return {.in_channels = in, .out_channels = out, .kernel_size = kernel, .dilation = dilation, .groups = groups};
}

/// Options: plain, wide enough for sums of several blocks, in groups, by channel, with one tap.
const std::vector<nn::CausalConv1dOptions> kAll = {sizes(3, 5, 3, 2),       sizes(130, 7, 3),     sizes(6, 4, 2, 3, 2),
                                                   sizes(40, 40, 5, 1, 40), sizes(3, 6, 3, 1, 3), sizes(4, 2, 1)};

}  // namespace

BOOST_AUTO_TEST_SUITE(causal_conv1d)

/// The expected values are loops over the definition; fails if taps, channels or groups are exchanged.
BOOST_AUTO_TEST_CASE(is_the_sum_of_its_definition) {
  for (const auto& o : kAll) {
    const nn::CausalConv1d layer(o, {.seed = 1, .dtype = Dtype::f64});
    const std::int64_t B = 2, T = 7, I = o.in_channels / o.groups, per_group = o.out_channels / o.groups;
    const Tensor x = uniform({B, T, o.in_channels}, {.seed = 2}, -1, 1, Dtype::f64);
    const std::vector<double> in = x.to_vector<double>(), w = layer.weight.peek().to_vector<double>(),
                              bias = layer.bias.peek().to_vector<double>();
    const auto at = [](const std::vector<double>& v, std::int64_t i) { return v[static_cast<std::size_t>(i)]; };
    std::vector<double> wanted;
    for (std::int64_t b = 0; b < B; ++b)
      for (std::int64_t t = 0; t < T; ++t)
        for (std::int64_t n = 0; n < o.out_channels; ++n) {
          double y = at(bias, n);
          for (std::int64_t k = 0; k < o.kernel_size; ++k)
            for (std::int64_t i = 0; i < I; ++i) {
              const std::int64_t from = t - (o.kernel_size - 1 - k) * o.dilation;
              if (from < 0) continue;
              y += at(w, (n * I + i) * o.kernel_size + k) *
                   at(in, (b * T + from) * o.in_channels + n / per_group * I + i);
            }
          wanted.push_back(y);
        }
    BOOST_TEST(within(layer(x), Tensor::from(wanted, {B, T, o.out_channels}), 1e-13), layer.summary());
  }
}

BOOST_AUTO_TEST_CASE(begins_as_pytorchs_does) {
  const nn::CausalConv1d layer(sizes(8, 64, 3, 1, 2), {.seed = 3});
  const double bound = 1 / std::sqrt(4.0 * 3.0);
  for (const Parameter& p : layer.parameters()) {
    const double most = amax(abs(p.peek())).item();
    BOOST_TEST(most <= bound);
    BOOST_TEST(most > 0.9 * bound);
  }
  BOOST_TEST(layer.weight.shape().str() == "[64, 4, 3]");
  BOOST_TEST(layer.bias.shape().str() == "[64]");
  BOOST_TEST(layer.parameter_count() == 64 * 4 * 3 + 64);
  nn::CausalConv1dOptions without = sizes(8, 64, 3);
  without.bias = false;
  BOOST_TEST(nn::CausalConv1d(without).parameters().size() == 1U);
}

BOOST_AUTO_TEST_CASE(streams_have_the_bits_of_the_whole_for_sums_of_several_blocks) {
  for (const auto& o : kAll) {
    const nn::CausalConv1d layer(o, {.seed = 1});
    const Tensor x = uniform({1, 9, o.in_channels}, {.seed = 2}, -1, 1);
    const std::vector<float> in = x.to_vector<float>();
    std::vector<float> out(static_cast<std::size_t>(9 * o.out_channels));
    nn::Stream stream = layer.stream();
    stream.steps(9, in, out);
    BOOST_TEST(stream.on_tensors() == 0U);
    BOOST_TEST(identical(Tensor::from(out, {1, 9, o.out_channels}), layer(x)), layer.summary());
  }
}

BOOST_AUTO_TEST_CASE(pieces_have_the_bits_of_the_whole) {
  const auto net =
      dsl::sequence(3).causal_conv1d(4, 3, {.dilation = 2}).gru(4).causal_conv1d(2, 2, {.groups = 2}).build(1);
  const Tensor x = uniform({3, 12, 3}, {.seed = 2}, -1, 1), y = net(x);
  for (const std::int64_t length : {1, 2, 5, 12}) {  // also shorter than the carried steps
    const nn::Carry carry(net, 3);
    const auto planned = compile([&](const Tensor& piece) { return net(piece, {.carry = &carry}); });
    for (const bool compiled : {false, true}) {
      carry.reset();
      Tensors parts;
      for (const Tensor& piece : nn::pieces(x, length))
        parts.push_back(compiled ? planned(piece) : net(piece, {.carry = &carry}));
      BOOST_TEST(identical(concat(std::span<const Tensor>(parts.data(), parts.size()), 1), y), "pieces of " << length);
    }
  }
  const nn::Carry carry(net, 3);
  BOOST_TEST(carry.save().size() == 3U);
  BOOST_TEST(carry.save()[0].shape().str() == "[4, 3, 3]");
  (void)net(x, {.carry = &carry});
  carry.reset(1);
  const Tensor again = net(x, {.carry = &carry});
  BOOST_TEST(identical(slice(again, 0, 1, 2), slice(y, 0, 1, 2)));
  BOOST_TEST(!identical(slice(again, 0, 0, 1), slice(y, 0, 0, 1)));
}

BOOST_AUTO_TEST_CASE(a_reset_begins_a_sequence) {
  for (const auto& o : kAll) {
    const nn::CausalConv1d layer(o, {.seed = 1, .dtype = Dtype::f64});
    const Tensor x = uniform({2, 17, o.in_channels}, {.seed = 2}, -1, 1, Dtype::f64);
    for (const std::vector<std::int64_t>& at : {std::vector<std::int64_t>{}, {0}, {1, 2}, {5, 11, 12, 16}}) {
      std::vector<std::int64_t> marks(34, 0), begins{0};
      for (const std::int64_t t : at) {
        marks[static_cast<std::size_t>(17 + t)] = 1;  // in the second row
        if (t > 0) begins.push_back(t);
      }
      begins.push_back(17);
      Tensors parts;
      for (std::size_t i = 0; i + 1 < begins.size(); ++i)
        parts.push_back(layer(slice(slice(x, 0, 1, 2), 1, begins[i], begins[i + 1])));
      const Tensor mask = cast(Tensor::from(marks, {2, 17}), Dtype::boolean);
      const Tensor y = layer(x, {.reset_mask = mask});
      BOOST_TEST(identical(slice(y, 0, 1, 2), concat(std::span<const Tensor>(parts.data(), parts.size()), 1)));
      BOOST_TEST(identical(slice(y, 0, 0, 1), layer(slice(x, 0, 0, 1))));
      if (o.past() == 0) continue;
      const nn::Carry carry(layer, 2);
      Tensors pieces;
      for (std::int64_t t = 0; t < 17; t += 3)
        pieces.push_back(layer(slice(x, 1, t, t + 3), {.reset_mask = slice(mask, 1, t, t + 3), .carry = &carry}));
      BOOST_TEST(identical(concat(std::span<const Tensor>(pieces.data(), pieces.size()), 1), y), layer.summary());
    }
  }
}

/// After a padded piece each row continues from its last valid step.
BOOST_AUTO_TEST_CASE(rows_of_different_lengths_are_carried_on_from_their_ends) {
  const nn::CausalConv1d layer(sizes(3, 4, 3, 2), {.seed = 1});
  const Tensor x = uniform({3, 9, 3}, {.seed = 2}, -1, 1);
  const std::vector<std::int64_t> lengths = {5, 1, 3};
  const nn::Carry carry(layer, 3);
  Tensors first, rest;
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t n = lengths[static_cast<std::size_t>(b)];
    const Tensor row = slice(x, 0, b, b + 1);
    first.push_back(concat({slice(row, 1, 0, n), full({1, 5 - n, 3}, NAN)}, 1));
    rest.push_back(slice(row, 1, n, n + 4));
  }
  (void)layer(concat(std::span<const Tensor>(first.data(), 3), 0),
              {.lengths = Tensor::from(lengths, {3}), .carry = &carry});
  const Tensor y = layer(concat(std::span<const Tensor>(rest.data(), 3), 0), {.carry = &carry}), whole = layer(x);
  for (std::int64_t b = 0; b < 3; ++b) {
    const std::int64_t n = lengths[static_cast<std::size_t>(b)];
    BOOST_TEST(identical(slice(y, 0, b, b + 1), slice(slice(whole, 0, b, b + 1), 1, n, n + 4)), "row " << b);
  }
}

/// The outputs with a stride are those of stride 1 at its multiples: whole, in pieces, and after resets.
BOOST_AUTO_TEST_CASE(a_stride_leaves_every_so_manieth_output) {
  for (nn::CausalConv1dOptions o : kAll) {
    const nn::CausalConv1d every(o, {.seed = 1});
    const Tensor x = uniform({2, 12, o.in_channels}, {.seed = 2}, -1, 1);
    std::vector<std::int64_t> marks(24, 0);
    marks[3] = marks[12 + 4] = marks[12 + 11] = 1;
    const Tensor mask = cast(Tensor::from(marks, {2, 12}), Dtype::boolean);
    for (const std::int64_t s : {2, 3, 5}) {
      o.stride = s;
      const nn::CausalConv1d layer(o, {.seed = 1});
      const auto left = [&](const Tensor& y) { return contiguous(slice(y, 1, 0, 12, s)); };
      BOOST_TEST(identical(layer(x), left(every(x))), layer.summary());
      BOOST_TEST(identical(layer(x, {.reset_mask = mask}), left(every(x, {.reset_mask = mask}))), layer.summary());
      if (s == 5) continue;
      const nn::Carry carry(layer, 2);
      Tensors parts;
      for (std::int64_t t = 0; t < 12; t += 6)
        parts.push_back(layer(slice(x, 1, t, t + 6), {.reset_mask = slice(mask, 1, t, t + 6), .carry = &carry}));
      BOOST_TEST(identical(concat(std::span<const Tensor>(parts.data(), parts.size()), 1),
                           left(every(x, {.reset_mask = mask}))),
                 layer.summary());
    }
  }
  const nn::CausalConv1d layer({.in_channels = 3, .out_channels = 2, .kernel_size = 3, .stride = 2}, {.seed = 1});
  const nn::Carry carry(layer, 1);
  BOOST_CHECK_EXCEPTION((void)layer(zeros({1, 5, 3}), {.carry = &carry}), ValueError,
                        says("causal_conv1d: pieces of 5 steps end within a stride of 2; cut at its multiples"));
  BOOST_CHECK_EXCEPTION((void)layer(zeros({1, 4, 3}), {.lengths = Tensor::from<std::int64_t>({4}), .carry = &carry}),
                        ValueError, says("rows of one length together"));
  BOOST_CHECK_EXCEPTION((void)layer.advance(zeros({1, 3}), {}), nn::PaceError,
                        says("causal_conv1d: 2 steps give one, the first one 0 later"));
}

/// A user's layer that holds a convolution and has no step runs on tensors, and must keep its state. What inputs
/// contribute to later outputs is summed as they come. Fails if that is taken from before a block of steps, from other
/// weights or a new sequence, or if an activation after the sums is lost.
BOOST_AUTO_TEST_CASE(streams_go_on_behind_blocks_other_weights_and_a_new_sequence) {
  for (const char* activation : {"relu", "tanh"}) {
    const auto act = [&](dsl::Builder b) { return activation == std::string("relu") ? b.relu() : b.tanh(); };
    auto net = act(act(dsl::sequence(3).causal_conv1d(5, 3, {.dilation = 2})).causal_conv1d(4, 2)).build(1);
    net.eval();
    const Tensor x = uniform({1, 24, 3}, {.seed = 5}, -1, 1);
    std::vector<float> in = contiguous(x).to_vector<float>(), out(24 * 4);
    nn::Stream stream = net.stream();
    const auto go = [&](std::int64_t from, std::int64_t to, bool block) {
      const auto span_of = [&](std::vector<float>& v, std::int64_t width, std::int64_t begin, std::int64_t end) {
        return std::span(v).subspan(static_cast<std::size_t>(begin * width),
                                    static_cast<std::size_t>((end - begin) * width));
      };
      for (std::int64_t t = from; t < to; t += block ? to - from : 1) {
        const std::int64_t end = block ? to : t + 1;
        stream.steps(end - t, std::span<const float>(span_of(in, 3, t, end)), span_of(out, 4, t, end));
      }
    };
    const auto given = [&](std::int64_t from, std::int64_t to) {
      return slice(Tensor::from(out, {1, 24, 4}), 1, from, to);
    };
    go(0, 5, false), go(5, 12, true), go(12, 15, false), go(15, 18, true), go(18, 24, false);
    BOOST_TEST(identical(given(0, 24), net(x)), activation << ", blocks and single steps");

    stream.reset();
    go(0, 8, false);
    for (const auto& p : net.named_parameters()) p.variable.assign(p.variable.peek() * 1.5);
    stream.refresh();
    go(8, 24, false);
    // At step 8 the second layer still sees an output that the first one made with the former weights.
    BOOST_TEST(!identical(given(8, 9), slice(net(x), 1, 8, 9)));
    BOOST_TEST(identical(given(9, 24), slice(net(x), 1, 9, 24)), activation << ", behind other weights");

    stream.reset(0);
    go(0, 24, false);
    BOOST_TEST(identical(given(0, 24), net(x)), activation << ", a new sequence");
  }
}

BOOST_AUTO_TEST_CASE(a_layer_that_holds_one_streams_with_the_bits_of_the_whole) {
  struct Holder final : nn::Layer {
    nn::CausalConv1d conv{sizes(3, 3, 2, 2), {.seed = 1}};
    Holder() { adopt("conv", conv); }
    std::string kind() const override { return "holder"; }
    bool causal() const override { return true; }
    nn::StepInput step_input() const override { return conv.step_input(); }
    Tensor forward(const Tensor& x, const nn::Context& c) const override { return x + conv(x, c); }
    std::unique_ptr<nn::Layer> clone() const override {
      auto copy = std::make_unique<Holder>();
      nn::copy_values(*this, *copy);
      return copy;
    }
  };
  const Holder layer;
  const Tensor x = uniform({1, 9, 3}, {.seed = 2}, -1, 1);
  const std::vector<float> in = x.to_vector<float>();
  std::vector<float> out(27);
  nn::Stream stream = layer.stream();
  stream.steps(9, in, out);
  BOOST_TEST(stream.on_tensors() == 0U);
  BOOST_TEST(identical(Tensor::from(out, {1, 9, 3}), layer(x)));
}

BOOST_AUTO_TEST_CASE(later_steps_change_nothing) {
  const nn::CausalConv1d layer(sizes(3, 5, 3, 2), {.seed = 1});
  const Tensor x = uniform({2, 9, 3}, {.seed = 2}, -1, 1);
  for (const std::int64_t t : {1, 4, 8})
    BOOST_TEST(identical(contiguous(slice(layer(x), 1, 0, t)), layer(contiguous(slice(x, 1, 0, t)))));
}

BOOST_AUTO_TEST_CASE(a_row_alone_has_the_bits_of_the_row_in_a_batch) {
  for (const auto& o : kAll) {
    const nn::CausalConv1d layer(o, {.seed = 1});
    const Tensor x = uniform({4, 6, o.in_channels}, {.seed = 2}, -1, 1), y = layer(x);
    for (const std::int64_t b : {0, 3})
      BOOST_TEST(identical(layer(slice(x, 0, b, b + 1)), slice(y, 0, b, b + 1)), layer.summary());
  }
}

BOOST_AUTO_TEST_CASE(compiled_training_has_the_bits_of_eager_training) {
  for (const auto& o : kAll) {
    const nn::CausalConv1d layer(o, {.seed = 1});
    const auto f = [&](const Tensor& x) {
      Tape tape;
      const Tensor watched = tape.watch(x), loss = sum(square(layer(watched)));
      Tensors all = tape.grad(loss, layer.parameters(), {.retain = true});
      all.push_back(tape.grad(loss, {watched})[0]);
      return all;
    };
    const auto planned = compile(f);
    const Tensor x = uniform({2, 6, o.in_channels}, {.seed = 2}, -1, 1);
    const Tensors a = f(x), b = planned(x);
    BOOST_TEST_REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(identical(a[i], b[i]), layer.summary() << " " << i);
  }
}

BOOST_AUTO_TEST_CASE(second_derivatives) {
  for (const auto& o : {sizes(3, 2, 2, 2), sizes(4, 4, 3, 1, 2)}) {
    const nn::CausalConv1d layer(o, {.seed = 1, .dtype = Dtype::f64});
    const Tensor x = uniform({2, 4, o.in_channels}, {.seed = 2}, -1, 1, Dtype::f64);
    const auto f = [&](const Tensors& in) { return tanh(layer(in[0])); };
    const GradcheckReport report = gradcheck(f, {x}, {.order = 2});
    BOOST_TEST(report.ok, report.str());
  }
}

BOOST_AUTO_TEST_CASE(one_program_for_every_batch_and_number_of_steps) {
  const SymbolicNumber B = SymbolicNumber::symbol(0), T = SymbolicNumber::symbol(1);
  for (const auto& o : kAll) {
    const nn::CausalConv1d layer(o, {.seed = 1});
    const auto f = [&](const Tensors& in) { return Tensors{layer(in[0])}; };
    const SymbolicGraph g = trace_symbolic(f, {"B", "T"}, {{{B, T, o.in_channels}}}, {2, 16});
    const Tensor x = uniform({3, 20, o.in_channels}, {.seed = 2}, -1, 1);
    BOOST_TEST(g.spec_of(g.graph().outputs[0]).shape_str(g.symbols()) ==
               "[B, T, " + std::to_string(o.out_channels) + "]");
  }
}

BOOST_AUTO_TEST_CASE(the_builder_has_a_word_for_it) {
  const auto net =
      dsl::sequence(6).causal_conv1d(8, 3, {.dilation = 4, .groups = 2}).relu().causal_conv1d(2, 1).build(1);
  BOOST_TEST(net[0].summary() == "causal_conv1d(in_channels=6, out_channels=8, kernel_size=3, dilation=4, groups=2)");
  BOOST_TEST(net[2].summary() == "causal_conv1d(in_channels=8, out_channels=2, kernel_size=1)");
  BOOST_TEST(net.named_parameters()[0].name == "0.weight");
  const std::string s = net.summary();
  BOOST_TEST(s.find("0      causal_conv1d  [B, T, 8]") != std::string::npos, s);
  BOOST_TEST(s.find("72") != std::string::npos, s);  // 8 * 3 * 3 multiply-adds a step
}

BOOST_AUTO_TEST_CASE(what_it_refuses) {
  for (const auto& o : {sizes(0, 1, 1), sizes(1, 0, 1), sizes(1, 1, 0), sizes(1, 1, 1, 0), sizes(1, 1, 1, 1, 0)})
    BOOST_CHECK_EXCEPTION(nn::CausalConv1d{o}, ValueError, says("kernel_size, dilation and groups must be positive"));
  BOOST_CHECK_EXCEPTION(nn::CausalConv1d(sizes(4, 6, 1, 1, 4)), ValueError,
                        says("groups must divide the numbers of channels, got 4 groups of 4 to 6"));
  BOOST_CHECK_EXCEPTION(nn::CausalConv1d(sizes(1, 1, std::int64_t{1} << 40, std::int64_t{1} << 40)), ValueError,
                        says("must be less than 2^31 steps back"));
  const nn::CausalConv1d layer(sizes(3, 5, 3), {.seed = 1});
  BOOST_CHECK_EXCEPTION((void)layer(ones({2, 4, 2})), ShapeError, says("expects [B, T, 3], got [2, 4, 2]"));
  BOOST_CHECK_EXCEPTION((void)layer(ones({4, 3})), ShapeError, says("expects [B, T, 3], got [4, 3]"));
  BOOST_CHECK_EXCEPTION((void)layer(ones({2, 0, 3})), ShapeError, says("the sequence has no steps: [2, 0, 3]"));
  BOOST_CHECK_EXCEPTION((void)layer(ones({2, 4, 3}, Dtype::f64)), DtypeError,
                        says("the weights are f32, got f64[2, 4"));
  BOOST_CHECK_EXCEPTION((void)layer(ones({2, 4, 3}), {.reset_mask = ones({2, 3}, Dtype::boolean)}), ShapeError,
                        says("causal_conv1d: expects a reset mask bool[2, 4], got bool[2, 3]"));
  const nn::Gru gru(3, 4);
  const nn::Carry carry(layer, 2), other(gru, 2);
  BOOST_CHECK_EXCEPTION((void)layer(ones({3, 4, 3}), {.carry = &carry}), ShapeError, says("a batch of 2, got 3"));
  BOOST_CHECK_EXCEPTION((void)layer(ones({2, 4, 3}), {.carry = &other}), ValueError, says("made for another model"));
  const nn::Context too_long{.lengths = Tensor::from<std::int64_t>({4, 5}), .carry = &carry};
  BOOST_CHECK_EXCEPTION((void)layer(ones({2, 4, 3}), too_long), ShapeError, says("a length of 5 lies outside 1..4"));
  BOOST_TEST(identical(carry.save()[0], zeros({2, 2, 3})));
  BOOST_TEST(layer(ones({0, 4, 3})).shape().str() == "[0, 4, 5]");
  BOOST_CHECK_EXCEPTION(dsl::sequence(3).causal_conv1d(4, 2, {.in_channels = 3}), ValueError,
                        says("causal_conv1d: the options give sizes"));
  BOOST_CHECK_EXCEPTION(dsl::features(3).causal_conv1d(4, 2).build(1), ShapeError, says("expects [B, T, 3]"));
  BOOST_CHECK_EXCEPTION(dsl::sequence(3).causal_conv1d(4, 2, {.groups = 2}).build(1), ValueError,
                        says("layer 0 (causal_conv1d \"0\"): causal_conv1d: groups must divide"));
}

BOOST_AUTO_TEST_SUITE_END()
