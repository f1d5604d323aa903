// Lengths and resets of a batch after layers that change the number of steps: each row has the values of a row alone.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

constexpr std::int64_t kSteps = 13;

std::vector<dsl::Builder> nets() {
  const auto words = [] { return dsl::sequence(3); };
  constexpr auto same = ConvolutionPadding::same;
  return {
      words().conv1d(4, 3, {.padding = same}),
      words().conv1d(4, 4, {.padding = same, .dilation = {2}}).gru(3),
      words().conv1d(4, 3, {.stride = {2}, .padding = {1}}).gru(2),
      words().conv1d(4, 3, {.stride = {2}, .padding = {3}}).conv1d(2, 2, {.padding = {1}}),
      words().conv1d(4, 2, {.stride = {3}}).lstm(2).last_step(),
      words().conv1d(4, 3, {.padding = ConvolutionPadding::causal}).mean_over_time(),
      words().causal_conv1d(4, 3, {.dilation = 2, .stride = 2}).gru(3).last_step(),
      words().max_pool1d(3, {.stride = {2}, .padding = {1}}).gru(2),
      words().linear(4).max_pool1d(2).mean_over_time(),
      words().avg_pool1d(4, {.stride = {1}, .padding = {2}}).gru(2),
      words().stft(4, {.hop_length = 2, .padding = StftPadding::constant}).gru(2),
      words().stft(4, {.center = false}).inverse_stft(4, {.hop_length = 2, .center = false}).mean_over_time(),
      words().lp_pool1d(2, 3, {.stride = {2}}).gru(2, {.bidirectional = true}),
      words().linear(4).stage("part", [](dsl::Builder& b) { b.max_pool1d(2).conv1d(4, 3, {.padding = {1}}); }).gru(2),
      words().conv1d(3, 2, {.stride = {2}}).residual([](dsl::Builder& b) {
        b.conv1d(3, 3, {.padding = ConvolutionPadding::same}).gru(3);
      }),
      words().linear(4).attention(2).conv1d(2, 3, {.padding = {1}})};
}

/// Returns nets whose first layer leaves the padding out: layers that act on each step by itself compute on the padding
/// (docs/tutorial.md).
std::vector<dsl::Builder> nets_that_leave_the_padding_out() {
  const auto words = [] { return dsl::sequence(8); };
  constexpr auto same = ConvolutionPadding::same;
  return {words().attention(2),
          words().attention(4, {.kv_heads = 2, .causal = true, .positions = nn::Positions::rotary}),
          words().transformer(2, {.dim_feedforward = 5}),
          words().transformer(2, {.dim_feedforward = 5, .norm_first = true, .causal = true}),
          words().gru(3),
          words().gru(3, {.layers = 2, .bidirectional = true}),
          words().gru(3, {.reset_after = false}),
          words().gru(3, {.zoneout = 0.25}),
          words().lstm(3, {.layers = 2, .proj_size = 2}),
          words().rnn(3),
          words().recurrent<nn::LayerNormGruCell>(3),
          words().add(nn::PeepholeLstm(8, 3, {}, {.seed = 1})),
          words().min_gru(3),
          words().min_lstm(3),
          words().lru(3),
          words().s5(4, {.blocks = 2}),
          words().rg_lru(2),
          words().mamba({.state = 3}),
          words().mlstm({.num_heads = 2, .round_up_to = 4, .chunk = 2}),
          words().slstm({.num_heads = 2}),
          words().conv1d(4, 3, {.padding = same}),
          words().conv1d(4, 3, {.stride = {2}, .padding = {1}}).gru(2),
          words().max_pool1d(3, {.stride = {2}, .padding = {1}}).linear(2),
          words().avg_pool1d(4, {.stride = {1}, .padding = {2}}).linear(2),
          words().lp_pool1d(2, 3, {.stride = {2}}).gru(2),
          words().stft(4, {.hop_length = 2, .padding = StftPadding::constant}).gru(2),
          words().group_norm(2).linear(2),
          words().last_step().linear(2),
          words().mean_over_time().linear(2),
          words().weight_norm([](dsl::Builder& b) { b.gru(3); }, {.parameter = "weight_hh_l0"}),
          words().residual([](dsl::Builder& b) { b.gru(8); }).gru(2),
          words().concat({[](dsl::Builder& b) { b.gru(2); }, [](dsl::Builder& b) { b.attention(2); }}).linear(2)};
}
/// Returns the gradients of all parameters by a loss of the steps that count.
Tensors gradients(const dsl::Network& net, const Tensor& x, const Tensor& lengths) {
  Tape tape;
  Tensor y = net(x, {.lengths = lengths});
  if (y.rank() == 3) y = where(unsqueeze(lt(arange(y.shape()[1]), unsqueeze(net.lengths_after(lengths), 1)), 2), y, 0);
  return tape.grad(sum(square(y)), net.parameters());
}

/// Returns x with NaN after the end of each row.
Tensor ragged(const Tensor& x, const Tensor& lengths) {
  return where(unsqueeze(lt(arange(x.shape()[1]), unsqueeze(lengths, 1)), 2), x,
               std::numeric_limits<double>::quiet_NaN());
}

/// A user's layer that drops every other step without declaring it.
struct Half final : nn::Layer {
  std::string kind() const override { return "half"; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return slice(x, 1, 0, x.shape()[1], 2); }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Half>(); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(lengths)

BOOST_AUTO_TEST_CASE(each_row_is_what_it_is_alone) {
  const std::vector<std::int64_t> each = {kSteps, 8, 11, 7};
  const Tensor lengths = Tensor::from(each, {4});
  const Tensor x = ragged(uniform({4, kSteps, 3}, {7, 1, 0}, -1, 1), lengths);
  std::size_t k = 0;
  for (const dsl::Builder& words : nets()) {
    const dsl::Network net = words.build(1);
    net.eval();
    const Tensor y = net(x, {.lengths = lengths});
    const std::vector<std::int64_t> left = net.lengths_after(lengths).to_vector<std::int64_t>();
    for (std::size_t b = 0; b < each.size(); ++b) {
      const auto row = static_cast<std::int64_t>(b);
      const Tensor alone = net(slice(slice(x, 0, row, row + 1), 1, 0, each[b]));
      Tensor of_batch = slice(y, 0, row, row + 1);
      if (y.rank() == 3) {
        BOOST_TEST(alone.shape()[1] == left[b], "net " << k << ", row " << b);
        of_batch = slice(of_batch, 1, 0, left[b]);
      }
      BOOST_TEST(identical(contiguous(of_batch), alone), "net " << k << ", row " << b);
    }
    const auto planned = compile([&](const Tensor& in, const Tensor& n) { return net(in, {.lengths = n}); });
    BOOST_TEST(identical(planned(x, lengths), y), "net " << k << ", compiled");
    ++k;
  }
}

/// Whatever the padding holds, gradients have the bits that they have with zeros there.
BOOST_AUTO_TEST_CASE(padding_reaches_no_gradient_of_a_parameter) {
  const Tensor lengths = Tensor::from<std::int64_t>({kSteps, 8, 5});
  const Tensor inside = unsqueeze(lt(arange(kSteps), unsqueeze(lengths, 1)), 2);
  const Tensor x = uniform({3, kSteps, 8}, {7, 3, 0}, -1, 1);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const dsl::Builder& words : nets_that_leave_the_padding_out()) {
    const dsl::Network net = words.build(1);
    net.eval();
    const auto planned = compile([&](const Tensor& in, const Tensor& n) { return gradients(net, in, n); });
    const Tensors eager = gradients(net, where(inside, x, 0), lengths), plan = planned(where(inside, x, 0), lengths);
    for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
      const Tensor poisoned = where(inside, x, bad);
      const Tensors got = gradients(net, poisoned, lengths), in_a_plan = planned(poisoned, lengths);
      for (std::size_t i = 0; i < got.size(); ++i) {
        BOOST_TEST_CONTEXT(net[0].summary() << ", " << bad << " as padding, parameter " << i) {
          BOOST_TEST(std::isfinite(sum(abs(eager[i])).item()));
          BOOST_TEST(identical(got[i], eager[i]));
          BOOST_TEST(identical(in_a_plan[i], plan[i]));
          BOOST_TEST(support::within(plan[i], eager[i], 1e-4));
        }
      }
    }
  }
}

/// The expected lengths follow PyTorch's formula, and are 0 for a row that no window fits.
BOOST_AUTO_TEST_CASE(lengths_after_a_layer_are_those_of_the_formula) {
  const auto net =
      dsl::sequence(3).conv1d(4, 3, {.stride = {2}, .padding = {1}, .dilation = {2}}).max_pool1d(2).build(1);
  std::vector<std::int64_t> all, wanted;
  for (std::int64_t L = 1; L < 20; ++L) {
    all.push_back(L);
    const std::int64_t conv = L + 2 - 2 * 2 - 1 < 0 ? 0 : (L + 2 - 2 * 2 - 1) / 2 + 1;
    wanted.push_back(conv < 2 ? 0 : (conv - 2) / 2 + 1);
  }
  const Tensor lengths = Tensor::from(all, {19});
  BOOST_TEST(identical(net.lengths_after(lengths), Tensor::from(wanted, {19})));
  const auto even = dsl::sequence(3).gru(4).linear(2).build(1);
  BOOST_TEST(identical(even.lengths_after(lengths), lengths));
}

/// After a reset no earlier input is seen, and states restart with the first output that sees an input after it.
BOOST_AUTO_TEST_CASE(resets_pass_a_stride) {
  const auto net = dsl::sequence(3).causal_conv1d(4, 3, {.stride = 2}).gru(3).build(1);
  const Tensor x = uniform({1, kSteps, 3}, {7, 2, 0}, -1, 1);
  for (const std::int64_t at : {1, 4, 5, 12}) {
    const Tensor mask = reshape(eq(arange(kSteps), at), {1, kSteps});
    const Tensor y = net(x, {.reset_mask = mask});
    const std::int64_t first = (at + 1) / 2;
    BOOST_TEST(identical(contiguous(slice(y, 1, 0, first)), contiguous(slice(net(x), 1, 0, first))), "before " << at);
    const Tensor later = where(unsqueeze(lt(arange(kSteps), at), 1), 0, x);
    if (first < y.shape()[1])
      BOOST_TEST(identical(contiguous(slice(y, 1, first)), net[1](slice(net[0](later), 1, first))), "from " << at);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_honoured_is_refused) {
  const nn::Context lengths{.lengths = Tensor::from<std::int64_t>({5, 9})};
  const nn::Context resets{.reset_mask = full({2, 9}, 0, Dtype::boolean)};
  const Tensor x = uniform({2, 9, 3}, {.seed = 4}, -1, 1);
  const auto refused = [&](const dsl::Builder& words, const nn::Context& context, const char* text) {
    BOOST_CHECK_EXCEPTION((void)words.build(1)(x, context), ValueError, says(text));
  };
  const auto words = [] { return dsl::sequence(3); };
  refused(words().max_pool1d(2, {.ceil_mode = true}), lengths, "max_pool1d: takes no lengths and reset masks");
  refused(words().avg_pool1d(3, {.stride = {1}, .padding = {1}, .count_include_pad = false}), lengths,
          "avg_pool1d: takes no lengths with this padding");
  refused(words().conv1d(3, 3, {.padding = {1}, .padding_mode = PaddingMode::reflect}), lengths,
          "conv1d: takes no lengths with this padding");
  refused(words().stft(4), lengths, "stft: takes no lengths with this padding");
  refused(words().linear(6).inverse_stft(4), lengths, "inverse_stft: takes no lengths and reset masks with center");
  refused(words().linear(6).inverse_stft(4), resets, "inverse_stft: takes no lengths and reset masks with center");
  for (const dsl::Builder& b : {words().max_pool1d(2), words().conv1d(3, 3, {.padding = ConvolutionPadding::causal}),
                                words().conv1d(3, 1, {.stride = {2}}), words().stft(4, {.center = false}),
                                words().linear(6).inverse_stft(4, {.center = false})})
    refused(b, resets, "takes no reset mask: its windows reach over resets; causal_conv1d looks back to the last one");
  BOOST_TEST(identical(words().conv1d(3, 1).build(1)(x, resets), words().conv1d(3, 1).build(1)(x)));
  const nn::ConvTranspose1d up({.in_channels = 3, .out_channels = 3, .kernel_size = {2}, .channels_last = true},
                               {.seed = 1});
  BOOST_CHECK_EXCEPTION((void)up(x, lengths), ValueError, says("conv_transpose1d: takes no lengths"));
  const nn::AdaptiveAvgPool1d pool({.size = {3}, .channels_last = true});
  BOOST_CHECK_EXCEPTION((void)pool(x, lengths), ValueError, says("adaptive_avg_pool1d: takes no lengths"));
  refused(words().linear(3).add(Half(), "half"), lengths,
          "sequential: the layer 'half' (half) gives [2, 5, 3] for [2, 9, 3], another number");
  refused(words().linear(3).add(Half(), "half"), resets,
          "another number of steps than the context's lengths or resets");
  const auto strided = words().causal_conv1d(4, 3, {.stride = 3}).gru(2).build(1);
  const nn::Carry carry(strided, 2);
  const auto pooled = dsl::sequence(3).linear(4).max_pool1d(3).gru(2).build(1);
  const nn::Carry other(pooled, 2);
  const auto is_refused = says("has a stride of 3, and a row that ends or begins again within it cannot be carried on");
  BOOST_CHECK_EXCEPTION((void)strided(x, {.reset_mask = resets.reset_mask, .carry = &carry}), ValueError, is_refused);
  BOOST_CHECK_EXCEPTION((void)pooled(x, {.lengths = lengths.lengths, .carry = &other}), ValueError, is_refused);
  BOOST_CHECK_THROW((void)words().max_pool1d(6).gru(2).build(1)(x, lengths), ShapeError);  // a row has no steps left
}

BOOST_AUTO_TEST_SUITE_END()
