// Layers of tokens and of transformers apart from their values, which tests/golden compares with PyTorch: errors, first
// weights, padding, pieces, dropout.
#include <cmath>

#include "ferrite/autograd/tape.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/layers/tokens.h"
#include "ferrite/nn/layers/transformer.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"
#include "support/wrong_calls.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

const nn::Init kSeed{.seed = 3};

Tensor draw(const Shape& shape, std::uint64_t stream = 1) {
  return uniform(shape, {.seed = 8, .stream = stream}, -1, 1);
}
Tensor tokens(const std::vector<std::int64_t>& of, const Shape& shape) { return Tensor::from(of, shape); }

nn::TransformerLayerOptions small(bool causal = false) {
  return {.d_model = 4, .nhead = 2, .dim_feedforward = 5, .causal = causal, .capacity = 8};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(token_layers)

BOOST_AUTO_TEST_CASE(wrong_options_say_what_is_wrong) {
  using nn::Embedding, nn::EmbeddingBag, nn::LearnedPositions, nn::SinusoidalPositions;
  using nn::TransformerEncoderLayer, nn::TransformerDecoderLayer;
  support::check_refused<ValueError>({
      {[] { Embedding layer(nn::EmbeddingOptions{.vocabulary = 4, .features = 2, .padding_idx = 4}); },
       "embedding: padding_idx 4 is no token of 4"},
      {[] { EmbeddingBag layer({.vocabulary = 4, .features = 2, .padding_idx = -5}); },
       "embedding_bag: padding_idx -5 is no token of 4"},
      {[] { EmbeddingBag layer({.vocabulary = 4}); }, "embedding_bag: sizes must be positive, got 4 and 0"},
      {[] {
         (void)EmbeddingBag({.vocabulary = 4, .features = 2}, kSeed).weighted(zeros({1, 2}, Dtype::i64), ones({1, 2}));
       },
       "embedding_bag: only sums have weights of their tokens"},
      {[] { SinusoidalPositions layer({}); }, "sinusoidal_positions: there must be features, got 0"},
      {[] { SinusoidalPositions layer({.features = 2, .base = -1}); },
       "sinusoidal_positions: the base must be positive, got -1.0"},
      {[] { LearnedPositions layer({.features = 2}); },
       "learned_positions: sizes must be positive, got 0 steps of 2 features"},
      {[] { TransformerEncoderLayer layer({}); },
       "transformer_encoder_layer: d_model and dim_feedforward must be positive, got 0 and 2048"},
      {[] { TransformerEncoderLayer layer({.d_model = 4, .activation = "wavy"}); },
       "transformer_encoder_layer: unknown activation 'wavy'; nn::activation_names() lists them"},
      {[] { TransformerDecoderLayer layer({.d_model = 4, .dropout = -1}); },
       "transformer_decoder_layer: dropout must lie in [0, 1], got -1.0"},
      {[] { TransformerDecoderLayer layer({.d_model = 4, .nhead = 3}); },
       "multihead_attention: num_heads must divide embed_dim, got 3 heads of 4"},
      {[] {
         (void)TransformerDecoderLayer(small(), kSeed)(draw({1, 2, 4}));
       },
       "transformer_decoder_layer: reads a memory beside x; call decode(x, memory)"},
      {[] { (void)dsl::tokens(4).embedding(2, {.vocabulary = 4}); },
       "embedding: the options give sizes, which the word infers and gives"},
      {[] { (void)dsl::tokens(4).embedding_bag(2, {.features = 4}); },
       "embedding_bag: the options give sizes, which the word infers and gives"},
      {[] { (void)dsl::sequence(4).transformer(2, {.nhead = 2}); },
       "transformer: the options give d_model or nhead, which the word infers and gives"},
  });
}

BOOST_AUTO_TEST_CASE(wrong_calls_say_what_is_wrong) {
  static const nn::EmbeddingBag bag({.vocabulary = 4, .features = 2, .mode = nn::BagMode::sum}, kSeed);
  static const nn::EmbeddingBag ends(
      {.vocabulary = 4, .features = 2, .mode = nn::BagMode::sum, .include_last_offset = true}, kSeed);
  static const nn::LearnedPositions learned({.features = 3, .capacity = 4}, kSeed);
  const Tensor three = zeros({3}, Dtype::i64);
  const auto at = [](const std::vector<std::int64_t>& offsets) {
    return Tensor::from(offsets, {static_cast<std::int64_t>(offsets.size())});
  };
  support::check_refused<ShapeError>({
      {[&] { (void)bag(three); }, "embedding_bag: expects tokens [B, N], got [3]"},
      {[&] {
         (void)bag(full({1, 2}, 4, Dtype::i64));
       },
       "embedding_bag: token 4 lies outside 0..3"},
      {[&] {
         (void)bag.weighted(zeros({1, 2}, Dtype::i64), ones({2}));
       },
       "embedding_bag: expects weights f32[1, 2], got f32[2]"},
      {[&] { (void)ends.bags(three, at({0})); },
       "embedding_bag: expects tokens [M] and offsets i64 of 2 or more, got i64[3] and i64[1]"},
      {[&] {
         (void)bag.bags(three, at({1, 2}));
       },
       "embedding_bag: the first offset 1 lies outside 0..0"},
      {[&] {
         (void)bag.bags(three, at({0, 2, 1}));
       },
       "embedding_bag: the size of a bag -1 lies outside 0..3"},
      {[&] {
         (void)bag.bags(three, at({0, 4}));
       },
       "embedding_bag: the size of a bag 4 lies outside 0..3"},
      {[&] {
         (void)ends.bags(three, at({0, 2}));
       },
       "embedding_bag: the last offset 2 lies outside 3..3"},
      {[&] {
         (void)learned(draw({1, 5, 3}));
       },
       "learned_positions: step 4 lies outside 0..3"},
      {[&] {
         (void)learned(draw({1, 3, 2}));
       },
       "learned_positions: expects [B, T, 3], got [1, 3, 2]"},
      {[&] {
         (void)nn::SinusoidalPositions({.features = 3})(draw({1, 0, 3}));
       },
       "sinusoidal_positions: the sequence has no steps: [1, 0, 3]"},
      {[&] {
         (void)learned(draw({1, 3, 3}), {.reset_mask = zeros({1, 2}, Dtype::boolean)});
       },
       "learned_positions: expects a reset mask bool[1, 3], got bool[1, 2]"},
  });
  support::check_refused<DtypeError>({
      {[&] {
         (void)bag(draw({1, 2}));
       },
       "embedding_bag: tokens must be i64 or i32, got f32[1, 2]"},
      {[&] {
         (void)learned(cast(draw({1, 2, 3}), Dtype::f64));
       },
       "learned_positions: the weights are f32, got f64[1, 2, 3]; cast the input"},
  });
}

/// The row of padding starts as 0, does not change in training, and is read as it is.
BOOST_AUTO_TEST_CASE(padding_has_no_gradient) {
  const nn::Embedding table(nn::EmbeddingOptions{.vocabulary = 5, .features = 3, .padding_idx = 2}, kSeed);
  const nn::Embedding plain(5, 3, kSeed);
  BOOST_TEST(identical(slice(table.weight.peek(), 0, 2, 3), zeros({1, 3})));
  BOOST_TEST(identical(slice(table.weight.peek(), 0, 3), slice(plain.weight.peek(), 0, 3)));
  table.weight.assign(ones({5, 3}));
  const Tensor t = tokens({2, 4, 2, 0}, {2, 2});
  Tape tape;
  const Tensor y = table(t);
  BOOST_TEST(identical(y, ones({2, 2, 3})));
  const Tensor g = tape.grad({{sum(y)}}, table.parameters())[0];
  BOOST_TEST(identical(sum(g, {1}), Tensor::from<float>({3, 0, 0, 0, 3})));
}

/// Bags as padded rows, as offsets and as separate rows are the same; a bag without tokens is 0.
BOOST_AUTO_TEST_CASE(bags_are_the_same_however_they_are_given) {
  for (const nn::BagMode mode : {nn::BagMode::sum, nn::BagMode::mean, nn::BagMode::max}) {
    const nn::EmbeddingBag bag({.vocabulary = 6, .features = 4, .mode = mode, .padding_idx = 5}, kSeed);
    const Tensor by_length = bag(tokens({1, 2, 3, 0, 4, 4}, {2, 3}), {.lengths = Tensor::from<std::int64_t>({3, 1})});
    const Tensor padded = bag(tokens({1, 2, 3, 0, 5, 5}, {2, 3}));
    BOOST_TEST(identical(by_length, padded));
    const Tensor flat = tokens({1, 2, 3, 0, 5}, {5});
    const Tensor by_offset = bag.bags(flat, Tensor::from<std::int64_t>({0, 3, 4, 5}));
    BOOST_TEST(within(slice(by_offset, 0, 0, 2), padded, 1e-6));
    BOOST_TEST(identical(slice(by_offset, 0, 2), zeros({2, 4})));
    BOOST_TEST(identical(bag(zeros({2, 0}, Dtype::i64)), zeros({2, 4})));
    BOOST_TEST(identical(bag(full({2, 3}, 5, Dtype::i64)), zeros({2, 4})));
  }
  const nn::EmbeddingBag sums({.vocabulary = 6, .features = 4, .mode = nn::BagMode::sum}, kSeed);
  const Tensor t = tokens({1, 2, 3, 0}, {4}), w = draw({4});
  BOOST_TEST(within(sums.bags(t, Tensor::from<std::int64_t>({0, 2}), w),
                    sums.weighted(reshape(t, {2, 2}), reshape(w, {2, 2})), 1e-6));
}

/// Positions continue in a carry, and restart at a reset.
BOOST_AUTO_TEST_CASE(positions_in_pieces_are_those_of_the_whole) {
  const auto sines = dsl::sequence(3).positions().build(1), rows = dsl::sequence(3).positions(12).build(1);
  const Tensor x = draw({2, 12, 3});
  const Tensor resets = reshape(eq(arange(24), 5) || eq(arange(24), 19), {2, 12});
  for (const dsl::Network* net : {&sines, &rows}) {
    const Tensor y = (*net)(x), table = y - x;
    const Tensor anew = (*net)(x, {.reset_mask = resets}) - x;
    BOOST_TEST(within(select(slice(anew, 1, 5), 0, 0), select(slice(table, 1, 0, 7), 0, 0), 1e-6));
    BOOST_TEST(within(select(slice(anew, 1, 0, 7), 0, 1), select(slice(table, 1, 0, 7), 0, 1), 1e-6));
    BOOST_TEST(within(select(slice(anew, 1, 7), 0, 1), select(slice(table, 1, 0, 5), 0, 1), 1e-6));
    for (const std::int64_t length : {1, 5, 12}) {
      const nn::Carry carry(*net, 2);
      Tensors parts;
      for (const Tensor& piece : nn::pieces(x, length)) parts.push_back((*net)(piece, {.carry = &carry}));
      BOOST_TEST(identical(concat(std::span<const Tensor>(parts.data(), parts.size()), 1), y), "pieces of " << length);
    }
    const nn::Carry carry(*net, 2);
    (void)(*net)(slice(x, 1, 0, 4), {.lengths = Tensor::from<std::int64_t>({4, 2}), .carry = &carry});
    const Tensor next = (*net)(slice(x, 1, 4, 5), {.carry = &carry});
    BOOST_TEST(identical(select(next, 0, 0), select(slice(y, 1, 4, 5), 0, 0)));
    BOOST_TEST(within(select(next - slice(x, 1, 4, 5), 0, 1), select(slice(table, 1, 2, 3), 0, 1), 1e-6));
  }
}

BOOST_AUTO_TEST_CASE(a_stream_beyond_learned_positions_throws) {
  const auto net = dsl::sequence(3).positions(2, "places").build(1);
  nn::Stream stream = net.stream();
  std::vector<float> x(3), y(3);
  stream.step(x, y), stream.step(x, y);
  BOOST_CHECK_EXCEPTION(stream.step(x, y), ShapeError,
                        support::says("in places: learned_positions: step 2 lies outside 0..1"));
}

/// Padding may hold anything, and reaches neither results nor gradients.
BOOST_AUTO_TEST_CASE(a_row_of_a_batch_is_the_row_alone) {
  for (const bool first : {false, true})
    for (const bool causal : {false, true}) {
      nn::TransformerLayerOptions o = small(causal);
      o.norm_first = first;
      const nn::TransformerEncoderLayer layer(o, kSeed);
      layer.eval();
      const Tensor x = draw({2, 5, 4}), lengths = Tensor::from<std::int64_t>({3, 5});
      const Tensor inside = lt(reshape(arange(5), {5, 1}), reshape(lengths, {2, 1, 1}));
      Tape tape;
      const Tensor y = layer(where(inside, x, std::nan("")), {.lengths = lengths});
      BOOST_TEST(identical(slice(slice(y, 0, 0, 1), 1, 0, 3), layer(slice(slice(x, 0, 0, 1), 1, 0, 3))));
      BOOST_TEST(identical(slice(y, 0, 1), layer(slice(x, 0, 1))));
      for (const Tensor& g : tape.grad({{sum(where(inside, y, 0))}}, layer.parameters()))
        BOOST_TEST(std::isfinite(sum(g).item()));
    }
}

/// Each of the dropouts draws: with any one of them at 1 instead of 0 the output would differ.
BOOST_AUTO_TEST_CASE(dropouts_draw_while_training) {
  nn::TransformerLayerOptions o = small();
  o.dropout = 0.5;
  const nn::TransformerEncoderLayer encoder(o, kSeed);
  const nn::TransformerDecoderLayer decoder(o, kSeed);
  BOOST_TEST(encoder.named_states().size() == 2U * 4);
  BOOST_TEST(decoder.named_states().size() == 2U * 6);
  const Tensor x = draw({2, 3, 4});
  BOOST_TEST(!identical(encoder(x), encoder(x)));
  BOOST_TEST(!identical(decoder.decode(x, x), decoder.decode(x, x)));
  encoder.eval(), decoder.eval();
  BOOST_TEST(identical(encoder(x), encoder(x)));
  BOOST_TEST(identical(decoder.decode(x, x), decoder.decode(x, x)));
  o.dropout = 1;  // all branches are dropped: the norms of x alone
  const nn::TransformerEncoderLayer gone(o, kSeed);
  BOOST_TEST(within(gone(x), layer_norm(layer_norm(x)), 1e-5));
}

BOOST_AUTO_TEST_CASE(a_language_model_is_a_chain) {
  const auto net = dsl::tokens(11)
                       .embedding(8)
                       .positions()
                       .repeat(2, [](dsl::Builder& b) { b.transformer(2, {.dim_feedforward = 16, .causal = true}); })
                       .layer_norm()
                       .linear(11)
                       .build(1);
  BOOST_TEST(net.parameter_count() == 11 * 8 + 2 * (4 * 8 * 8 + 4 * 8 + 2 * 8 * 16 + 16 + 8 + 4 * 8) + 16 + 99);
  BOOST_TEST(net.summary().find("transformer_encoder_layer") != std::string::npos);
  BOOST_TEST(net(zeros({2, 5}, Dtype::i64)).shape() == (Shape{2, 5, 11}));
}

BOOST_AUTO_TEST_SUITE_END()
