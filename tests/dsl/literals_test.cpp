// Every word and option that may be written with 0, false, "" or {}, as users write them. The test is that g++ 12 and
// clang 14 find one meaning for each.
#include <type_traits>

#include "ferrite/dsl/builder.h"
#include "ferrite/train/loss.h"
#include "support/compare.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(literals)

BOOST_AUTO_TEST_CASE(an_option_of_0_is_an_option) {
  const auto net = dsl::tokens(7).embedding(16, {.padding_idx = 0}).build(1);
  BOOST_TEST(net[0].summary() == "embedding(vocabulary=7, features=16, padding_idx=0)");
  const auto none = dsl::tokens(7).embedding(16, {.padding_idx = {}}).build(1);
  BOOST_TEST(none[0].summary() == "embedding(vocabulary=7, features=16)");
  BOOST_TEST(dsl::tokens(7).embedding(16, {}).build(1).name(0) == "0");
  BOOST_TEST(dsl::tokens(7).embedding(16, "table").build(1).name(0) == "table");
  BOOST_TEST(dsl::tokens(7).embedding(16, "").build(1).name(0) == "0");
  BOOST_TEST(dsl::tokens(7).embedding(16, {.padding_idx = 0}, "table").build(1).name(0) == "table");
  BOOST_TEST(dsl::tokens(7).embedding_bag(4, {.padding_idx = 0}).build(1).size() == 1U);
}

BOOST_AUTO_TEST_CASE(words_with_nothing_in_their_braces) {
  const auto steps = [] { return dsl::sequence(4); };
  const auto made = [](const dsl::Builder& b) { BOOST_TEST(b.build(1).size() == 1U); };
  made(steps().linear(2, ""));
  made(steps().linear(2, {}));
  made(steps().causal_conv1d(2, 3, {}));
  made(steps().causal_conv1d(2, 3, {.bias = false}, ""));
  made(steps().conv1d(2, 3, {.padding = {0}, .bias = false}));
  made(steps().conv1d(2, {3}, {}));
  made(steps().max_pool1d(2, {.padding = {0}, .ceil_mode = false}));
  made(steps().avg_pool1d(2, {.padding = {0}, .count_include_pad = false}));
  made(steps().lp_pool1d(2, 2, {}));
  made(steps().stft(4, {.center = false}));
  made(steps().gru(2, {}));
  made(steps().gru(2, ""));
  made(steps().gru(2, {.dropout = 0, .bias = false, .reset_after = false}));
  made(steps().lstm(2, {.proj_size = 0, .zoneout = 0, .zoneout_cell = 0}));
  made(steps().lstm(2, {}, ""));
  made(steps().rnn(2, {.bidirectional = false}));
  made(steps().min_gru(2, {.proj_size = 0, .bias = false}));
  made(steps().min_lstm(2, {}));
  made(steps().lru(2, {.r_min = 0}));
  made(steps().s5(2, {.bidirectional = false, .bilinear = false}));
  made(steps().rg_lru(2, ""));
  made(steps().mamba({.dt_rank = 0, .bias = false, .conv_bias = false}));
  made(steps().mamba({}));
  made(steps().slstm({.conv1d_kernel_size = 0, .group_norm_weight = false, .dropout = 0}));
  made(steps().mlstm({.round_up_to = 4, .bias = false, .dropout = 0}));
  made(steps().positions());
  made(steps().positions(""));
  made(steps().standardize(""));
  made(steps().layer_norm(""));
  made(steps().batch_norm({.epsilon = 0, .momentum = 0, .affine = false}));
  made(steps().batch_norm({.momentum = {}}));
  made(steps().batch_norm({}));
  made(steps().rms_norm({.affine = false}));
  made(steps().attention(2, {.bias = false, .dropout = 0, .causal = false}));
  made(steps().transformer(2, {.dim_feedforward = 3, .dropout = 0, .norm_first = false}));
  made(steps().dropout(0));
  made(steps().dropout(0, ""));
  made(steps().elu(0));
  made(steps().leaky_relu(0));
  made(steps().prelu(false));
  made(steps().prelu(false, ""));
  made(steps().glu(""));
  made(steps().last_step(""));
  made(steps().activation("relu", ""));
  made(steps().weight_norm([](dsl::Builder& b) { b.linear(2); }, {.axis = 0}));
  made(steps().weight_norm([](dsl::Builder& b) { b.linear(2); }, {.axis = {}}));
  made(dsl::image(2, 4, 4).conv2d(2, {1, 1}, {.padding = {0}, .bias = false}));
  made(dsl::image(2, 4, 4).group_norm(1, {.epsilon = 0, .affine = false}));
}

/// A text is not a bool and 0 is not a name: neither is silently converted to the other.
template <class T>
concept PreluOf = requires(dsl::Builder b, T t) {
  b.prelu(t);
};
static_assert(PreluOf<bool> && !PreluOf<const char*>);
static_assert(std::is_constructible_v<train::Loss, const char*> &&
              !std::is_constructible_v<train::Loss, std::nullptr_t>);

BOOST_AUTO_TEST_SUITE_END()
