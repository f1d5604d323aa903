// Attention apart from its values, which tests/golden compares with PyTorch: errors, first weights, padding, pieces,
// dropout, files, long streams.
#include "ferrite/nn/layers/attention.h"

#include <cmath>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/torch.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/norms.h"
#include "support/compare.h"
#include "support/wrong_calls.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

using Options = nn::MultiheadAttentionOptions;
using nn::MultiheadAttention;

const nn::Init kSeed{.seed = 3};
constexpr double kHidden = -std::numeric_limits<double>::infinity();

Tensor draw(const Shape& shape, std::uint64_t stream = 1) {
  return uniform(shape, {.seed = 8, .stream = stream}, -1, 1);
}

/// Returns the outputs of a stream of one row for x [1, T, D].
Tensor streamed(nn::Stream& stream, const Tensor& x) {
  std::vector<float> out(static_cast<std::size_t>(x.numel()));
  stream.steps(x.shape()[1], x.to_vector<float>(), out);
  return Tensor::from(out, x.shape());
}

/// Options with every kind of positions, shared heads and first keys.
const std::vector<Options> kCausal = {
    {.embed_dim = 8, .num_heads = 2, .causal = true},
    {.embed_dim = 8, .num_heads = 4, .kv_heads = 2, .causal = true, .positions = nn::Positions::rotary},
    {.embed_dim = 12, .num_heads = 6, .kv_heads = 1, .causal = true, .positions = nn::Positions::alibi},
    {.embed_dim = 8, .num_heads = 2, .bias = false, .add_bias_kv = true, .add_zero_attn = true, .causal = true}};

/// A user's layer that holds attention: its step is the program of attention's operations.
struct Holder final : nn::Layer {
  MultiheadAttention inner;
  explicit Holder(const Options& o) : inner(o, kSeed) { adopt("inner", inner); }
  std::string kind() const override { return "holder"; }
  bool causal() const override { return true; }
  nn::StepInput step_input() const override { return inner.step_input(); }
  Tensor forward(const Tensor& x, const nn::Context& context) const override { return inner(x, context) - x; }
  std::vector<nn::StepState> states(const nn::StepRows& in) const override { return inner.states(in); }
  nn::StepResult step(const Tensor& x, const Tensors& states) const override {
    nn::StepResult r = inner.advance(x, states);
    return {r.y - x, r.states};
  }
  std::unique_ptr<nn::Layer> clone() const override {
    auto copy = std::make_unique<Holder>(inner.options());
    nn::copy_values(*this, *copy);
    return copy;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(attention)

BOOST_AUTO_TEST_CASE(wrong_options_say_what_is_wrong) {
  support::check_refused<ValueError>({
      {[] { MultiheadAttention layer({}); },
       "multihead_attention: embed_dim, num_heads and capacity must be positive, kv_heads, kdim and vdim not negative, "
       "got 0, 1, 1024, 0, 0 and 0"},
      {[] { MultiheadAttention layer({.embed_dim = 8, .capacity = 0}); },
       "multihead_attention: embed_dim, num_heads and capacity must be positive, kv_heads, kdim and vdim not negative, "
       "got 8, 1, 0, 0, 0 and 0"},
      {[] { MultiheadAttention layer({.embed_dim = 8, .num_heads = 3}); },
       "multihead_attention: num_heads must divide embed_dim, got 3 heads of 8"},
      {[] { MultiheadAttention layer({.embed_dim = 8, .num_heads = 4, .kv_heads = 3}); },
       "multihead_attention: kv_heads must divide num_heads, got 3 and 4"},
      {[] { MultiheadAttention layer({.embed_dim = 6, .num_heads = 2, .positions = nn::Positions::rotary}); },
       "multihead_attention: rotary positions need heads of even width, got 3"},
      {[] { MultiheadAttention layer({.embed_dim = 6, .dropout = 1.5}); },
       "multihead_attention: dropout must lie in [0, 1], got 1.5"},
      {[] {
         (void)scaled_dot_product_attention(draw({2, 4}), draw({3, 4}), draw({3, 4}), {.scale = kHidden});
       },
       "scaled_dot_product_attention: the scale must be finite, got -inf"},
      {[] {
         (void)rotary_embedding(draw({2, 4}), arange(2), {.base = 0});
       },
       "rotary_embedding: the base must be positive, got 0.0"},
      {[] { (void)dsl::sequence(4).attention(2, {.embed_dim = 4}); },
       "attention: the options give embed_dim or num_heads, which the word infers and gives"},
  });
}

BOOST_AUTO_TEST_CASE(wrong_calls_say_what_is_wrong) {
  static const MultiheadAttention layer({.embed_dim = 8, .num_heads = 2}, kSeed);
  static const MultiheadAttention other({.embed_dim = 8, .num_heads = 2, .kdim = 3, .causal = true}, kSeed);
  const Tensor x = draw({2, 5, 8}), q = draw({2, 4, 3, 5}), k = draw({2, 3, 6, 5}), v = draw({2, 3, 6, 2});
  const Tensor no = zeros({2, 4}, Dtype::boolean);
  support::check_refused<ShapeError>({
      {[&] {
         (void)layer(draw({5, 8}));
       },
       "multihead_attention: expects x [B, T, 8], got [5, 8]"},
      {[&] {
         (void)layer(draw({2, 0, 8}));
       },
       "multihead_attention: the x has no steps: [2, 0, 8]"},
      {[&] { (void)other(x); },
       "multihead_attention: keys and values of 3 and 8 features are not those of its queries, 8; call attend"},
      {[&] {
         (void)layer.attend(x, x, draw({2, 4, 8}));
       },
       "multihead_attention: query [2, 5, 8], key [2, 5, 8] and value [2, 4, 8] must have one batch, key and value as "
       "many steps"},
      {[&] {
         (void)layer.attend(x, x, x, {.attn_mask = zeros({4, 5}, Dtype::boolean)});
       },
       "multihead_attention: expects attn_mask [5, 5], [4, 5, 5] or [2, 2, 5, 5], got [4, 5]"},
      {[&] { (void)layer.attend(x, x, x, {.key_padding_mask = no}); },
       "multihead_attention: expects key_padding_mask [2, 5], got [2, 4]"},
      {[&] {
         (void)layer.weights(x, draw({1, 5, 8}));
       },
       "multihead_attention: query [2, 5, 8] and key [1, 5, 8] must have one batch"},
      {[&] { (void)layer(x, {.reset_mask = no}); },
       "multihead_attention: expects a reset mask bool[2, 5], got bool[2, 4]"},
      {[&] { (void)scaled_dot_product_attention(q, k, v, {.enable_gqa = true}); },
       "scaled_dot_product_attention: the heads of the keys and values must divide those of the queries: q f32[2, 4, "
       "3, 5], k f32[2, 3, 6, 5], v f32[2, 3, 6, 2]"},
      {[&] {
         (void)scaled_dot_product_attention(k, k, draw({2, 3, 5, 2}));
       },
       "scaled_dot_product_attention: q and k must have the same width, k and v the same number of rows: q f32[2, 3, "
       "6, 5], k f32[2, 3, 6, 5], v f32[2, 3, 5, 2]"},
      {[&] {
         (void)attention_weights(k, draw({2, 3, 6, 4}));
       },
       "attention_weights: q and k must have the same width: q f32[2, 3, 6, 5], k f32[2, 3, 6, 4]"},
      {[&] {
         (void)attention_weights(draw({5}), draw({3, 5}));
       },
       "attention_weights: operands need at least 2 axes: q f32[5], k f32[3, 5]"},
      {[&] {
         (void)attention_weights(k, k, {.mask = zeros({4, 1, 6, 6})});
       },
       "attention_weights: the mask [4, 1, 6, 6] does not broadcast to the scores [2, 3, 6, 6]"},
      {[&] {
         (void)rotary_embedding(draw({2, 3}), arange(2));
       },
       "rotary_embedding: expects [..., T, D] with an even D, got [2, 3]"},
      {[&] {
         (void)rotary_embedding(draw({2, 4}), zeros({3, 2}, Dtype::i64));
       },
       "rotary_embedding: positions [3, 2] do not broadcast to [2]"},
  });
  support::check_refused<DtypeError>({
      {[&] { (void)layer(cast(x, Dtype::f64)); },
       "multihead_attention: the weights are f32, got x f64[2, 5, 8]; cast the input"},
      {[&] {
         (void)layer.attend(x, x, x, {.attn_mask = zeros({5, 5}, Dtype::i64)});
       },
       "multihead_attention: masks must be bool or f32, got i64[5, 5]"},
      {[&] { (void)attention_weights(k, cast(k, Dtype::f64)); },
       "attention_weights: dtypes differ: q f32[2, 3, 6, 5], k f64[2, 3, 6, 5]; cast them to one"},
      {[&] {
         (void)attention_weights(k, k, {.mask = zeros({6, 6}, Dtype::i64)});
       },
       "attention_weights: the mask must be bool or of the queries' dtype: q f32[2, 3, 6, 5], k f32[2, 3, 6, 5], mask "
       "i64[6, 6]"},
      {[&] {
         (void)rotary_embedding(draw({2, 4}), draw({2}));
       },
       "rotary_embedding: positions must be i64 or i32, got f32[2]"},
  });
  BOOST_TEST(!other.causal());
}

BOOST_AUTO_TEST_CASE(begins_as_pytorchs_does) {
  const MultiheadAttention layer({.embed_dim = 32, .num_heads = 4, .kv_heads = 2, .add_bias_kv = true}, kSeed);
  const auto most = [](const Parameter& p) { return amax(abs(p.peek())).item(); };
  const auto is_uniform = [&](const Parameter& p, double bound) {
    BOOST_TEST(most(p) <= bound);
    BOOST_TEST(most(p) > 0.9 * bound);
  };
  is_uniform(layer.in_proj_weight, std::sqrt(6.0 / (32 + 64)));
  is_uniform(layer.out_proj_weight, 1 / std::sqrt(32.0));
  BOOST_TEST(most(layer.in_proj_bias) == 0);
  BOOST_TEST(most(layer.out_proj_bias) == 0);
  BOOST_TEST(stddev(layer.bias_k.peek(), {}, false, 0).item() > 0.1);
  BOOST_TEST(layer.parameter_count() == 32 * 64 + 64 + 2 * 16 + 32 * 32 + 32);
}

/// Files hold the matrices as [out, in], and exchanging two of them is noticed.
BOOST_AUTO_TEST_CASE(files_hold_the_weights_as_pytorch_does) {
  const Options o{.embed_dim = 6, .num_heads = 2, .kdim = 6, .vdim = 4};
  const MultiheadAttention from(o, kSeed), to(o);
  const io::TensorFile file = io::parse_torch(io::serialize_torch(io::contents(from).tensors));
  BOOST_TEST(file.tensor("v_proj_weight").shape() == (Shape{6, 4}));
  BOOST_TEST(file.contains("out_proj.weight"));
  BOOST_TEST(identical(file.tensor("k_proj_weight"), transpose(from.k_proj_weight.peek())));
  io::load(to, file);
  const Tensor q = draw({2, 3, 6}), v = draw({2, 3, 4}, 2);
  const Tensor y = to.attend(q, q, v);
  BOOST_TEST(identical(y, from.attend(q, q, v)));
  const Tensor weight = to.q_proj_weight.peek();
  to.q_proj_weight.assign(to.k_proj_weight.peek());
  to.k_proj_weight.assign(weight * 2);
  BOOST_TEST(!within(to.attend(q, q, v), y, 1e-3));
}

/// Padding may hold anything without changing a bit.
BOOST_AUTO_TEST_CASE(a_row_of_a_batch_is_the_row_alone) {
  std::vector<Options> all = kCausal;
  for (Options o : kCausal) {
    o.causal = false;
    all.push_back(o);
  }
  for (const Options& o : all) {
    const MultiheadAttention layer(o, kSeed);
    const Tensor x = draw({3, 7, o.embed_dim});
    const Tensor lengths = Tensor::from<std::int64_t>({4, 7, 1});
    const Tensor inside = lt(reshape(arange(7), {7, 1}), reshape(lengths, {3, 1, 1}));
    const Tensor y = layer(where(inside, x, std::nan("")), {.lengths = lengths});
    const std::vector<std::int64_t> steps = lengths.to_vector<std::int64_t>();
    for (std::int64_t b = 0; b < 3; ++b) {
      const std::int64_t n = steps[static_cast<std::size_t>(b)];
      const auto row = [&](const Tensor& t) { return slice(slice(t, 0, b, b + 1), 1, 0, n); };
      BOOST_TEST(identical(row(y), layer(row(x))), layer.summary() << " row " << b);
    }
  }
}

/// A loss of the steps that count has bit for bit the gradients that it has with zeros as padding, and none in the
/// padding.
BOOST_AUTO_TEST_CASE(padding_reaches_no_gradient) {
  std::vector<Options> all = kCausal;
  for (Options o : kCausal) {
    o.causal = false;
    all.push_back(o);
  }
  const Tensor lengths = Tensor::from<std::int64_t>({4, 7, 1});
  const Tensor inside = lt(reshape(arange(7), {7, 1}), reshape(lengths, {3, 1, 1}));
  for (const Options& o : all) {
    const MultiheadAttention layer(o, kSeed);
    const auto gradients = [&](const Tensor& given, const Tensor& n) {
      Tape tape;
      const Tensor x = tape.watch(given), loss = sum(square(where(inside, layer(x, {.lengths = n}), 0)));
      Tensors g = tape.grad(loss, layer.parameters(), {.retain = true});
      g.push_back(tape.grad(loss, {x})[0]);
      return g;
    };
    const auto compiled = compile(gradients);
    const Tensor x = draw({3, 7, o.embed_dim}), zeros_there = where(inside, x, 0);
    const Tensors eager = gradients(zeros_there, lengths), planned = compiled(zeros_there, lengths);
    for (const double bad : {std::nan(""), kHidden, -kHidden}) {
      const Tensor poisoned = where(inside, x, bad);
      const Tensors got = gradients(poisoned, lengths), in_a_plan = compiled(poisoned, lengths);
      for (std::size_t i = 0; i < got.size(); ++i) {
        BOOST_TEST(std::isfinite(sum(abs(eager[i])).item()), layer.summary());
        BOOST_TEST(identical(got[i], eager[i]), layer.summary() << ", " << bad << ", gradient " << i);
        BOOST_TEST(identical(in_a_plan[i], planned[i]), layer.summary() << ", " << bad << ", compiled gradient " << i);
      }
      BOOST_TEST(sum(abs(where(inside, 0, got[got.size() - 1]))).item() == 0, layer.summary());
    }
    for (std::size_t i = 0; i < eager.size(); ++i) BOOST_TEST(within(planned[i], eager[i], 1e-5), layer.summary());
  }
}

/// No step sees another across a reset; distances are the same in every piece.
BOOST_AUTO_TEST_CASE(a_reset_begins_a_sequence) {
  for (Options o : kCausal)
    for (const bool causal : {true, false}) {
      o.causal = causal;
      const MultiheadAttention layer(o, {.seed = 3, .dtype = Dtype::f64});
      const Tensor x = uniform({2, 7, o.embed_dim}, {.seed = 2}, -1, 1, Dtype::f64);
      const Tensor resets = reshape(eq(arange(14), 3) || eq(arange(14), 12), {2, 7});
      const Tensor y = layer(x, {.reset_mask = resets});
      const auto piece = [&](const Tensor& t, std::int64_t b, std::int64_t from, std::int64_t to) {
        return slice(slice(t, 0, b, b + 1), 1, from, to);
      };
      for (const auto& [b, from, to] :
           {std::tuple(0, 0, 3), std::tuple(0, 3, 7), std::tuple(1, 0, 5), std::tuple(1, 5, 7)})
        BOOST_TEST(within(piece(y, b, from, to), layer(piece(x, b, from, to)), 1e-13), layer.summary());
    }
}

BOOST_AUTO_TEST_CASE(a_causal_layer_sees_no_later_step) {
  for (const Options& o : kCausal) {
    const MultiheadAttention layer(o, kSeed);
    const Tensor x = draw({2, 6, o.embed_dim}), later = where(lt(reshape(arange(6), {6, 1}), 4), x, x + 1);
    BOOST_TEST(identical(slice(layer(x), 1, 0, 4), slice(layer(later), 1, 0, 4)));
    BOOST_TEST(!identical(layer(x), layer(later)));
  }
}

BOOST_AUTO_TEST_CASE(weights_are_those_that_attend_applies) {
  const MultiheadAttention layer({.embed_dim = 6, .num_heads = 2, .add_zero_attn = true}, kSeed);
  const Tensor q = draw({2, 3, 6}), k = draw({2, 4, 6}, 2);
  const Tensor hides = Tensor::from<bool>({false, true, false, false, false, false, false, true});
  const Tensor w = layer.weights(q, k, {.key_padding_mask = reshape(hides, {2, 4})});
  BOOST_TEST(w.shape() == (Shape{2, 2, 3, 5}));
  BOOST_TEST(within(sum(w, {3}), ones({2, 2, 3}), 1e-6));
  BOOST_TEST(amax(select(select(w, 0, 0), 2, 2)).item() == 0);  // the zero key comes first
  BOOST_TEST(amax(select(select(w, 0, 1), 2, 4)).item() == 0);
  BOOST_TEST(amin(select(select(w, 0, 1), 2, 2)).item() > 0);
}

/// Dropout of nothing has the bits of no dropout; dropout of everything leaves the bias of out_proj.
BOOST_AUTO_TEST_CASE(weights_are_dropped_while_training) {
  const auto layer = [](double p) {
    return MultiheadAttention({.embed_dim = 8, .num_heads = 4, .kv_heads = 2, .dropout = p, .causal = true}, kSeed);
  };
  const Tensor x = draw({2, 5, 8});
  const MultiheadAttention none = layer(0), hardly = layer(1e-300), half = layer(0.5), all = layer(1);
  BOOST_TEST(identical(hardly(x), none(x)));
  const Tensor first = half(x);
  BOOST_TEST(!identical(first, none(x)));
  BOOST_TEST(!identical(first, half(x)));
  BOOST_TEST(identical(all(x), zeros({2, 5, 8})));
  half.eval();
  BOOST_TEST(identical(half(x), none(x)));
}

/// The stream has more steps than a block of a product, and than a block of a softmax's sum.
BOOST_AUTO_TEST_CASE(long_streams_have_the_bits_of_the_whole) {
  for (Options o : kCausal) {
    o.capacity = 1100;
    const MultiheadAttention layer(o, kSeed);
    const Tensor x = draw({1, 1060, o.embed_dim});
    nn::Stream stream = layer.stream();
    BOOST_TEST(stream.on_tensors() == 0U);
    BOOST_TEST(identical(streamed(stream, x), layer(x)), layer.summary());
  }
}

/// A step as a program also has these bits, and each accepts the other's states.
BOOST_AUTO_TEST_CASE(layers_that_hold_attention_stream) {
  for (Options o : kCausal) {
    o.capacity = 12;
    const Holder holder(o);
    const Tensor x = draw({1, 12, o.embed_dim}), y = holder(x);
    nn::Stream program = holder.stream(), by_hand = holder.inner.stream();
    BOOST_TEST(program.on_tensors() == 0U);
    BOOST_TEST(identical(streamed(program, slice(x, 1, 0, 7)), slice(y, 1, 0, 7)), holder.inner.summary());
    by_hand.restore(program.save());
    BOOST_TEST(identical(streamed(by_hand, slice(x, 1, 7)), slice(holder.inner(x), 1, 7)));
    by_hand.reset();
    (void)streamed(by_hand, slice(x, 1, 0, 3));
    program.restore(by_hand.save());
    BOOST_TEST(identical(streamed(program, slice(x, 1, 3)), slice(y, 1, 3)));
  }
}

/// States that do not fit change nothing.
BOOST_AUTO_TEST_CASE(states_that_do_not_fit_are_refused) {
  const MultiheadAttention layer({.embed_dim = 8, .num_heads = 2, .causal = true, .capacity = 4}, kSeed);
  nn::Stream stream = layer.stream();
  const Tensor x = draw({1, 4, 8}), y = layer(x);
  (void)streamed(stream, slice(x, 1, 0, 2));
  std::vector<Tensor> states = stream.save();
  BOOST_TEST(states.size() == 3U);
  BOOST_TEST(states[0].shape() == (Shape{1, 4, 8}));
  states[2] = Tensor::from<std::int64_t>({5});
  BOOST_CHECK_EXCEPTION(stream.restore(states), ValueError, says("'steps' of a row cannot be 5"));
  states[2] = Tensor::from<std::int64_t>({1});
  states[1] = zeros({1, 3, 8});
  BOOST_CHECK_EXCEPTION(stream.restore(states), ShapeError, says("holds a state f32[1, 4, 8], got f32[1, 3, 8]"));
  BOOST_TEST(identical(streamed(stream, slice(x, 1, 2)), slice(y, 1, 2)));
}

BOOST_AUTO_TEST_CASE(a_stream_that_is_full_says_so) {
  const auto net = dsl::sequence(8).attention(2, {.causal = true, .capacity = 3}, "attend").build(1);
  nn::Stream stream = net.stream();
  const Tensor x = draw({1, 3, 8});
  BOOST_TEST(identical(streamed(stream, x), net(x)));
  std::vector<float> y(8);
  const auto is_full = says(
      "in attend: stream: 'keys' of multihead_attention is full: row 0 has made 3 steps; reset it, or declare a larger "
      "capacity");
  for (int again = 0; again < 2; ++again) BOOST_CHECK_EXCEPTION(stream.step(y, y), nn::CapacityError, is_full);
  stream.reset();
  BOOST_TEST(identical(streamed(stream, x), net(x)));
}

/// Each piece of a sequence would start over, so pieces are refused.
BOOST_AUTO_TEST_CASE(pieces_are_refused) {
  const auto net = dsl::sequence(8).attention(2, {.causal = true}).build(1);
  const nn::Carry carry(net, 1);
  BOOST_CHECK_THROW((void)net(draw({1, 3, 8}), {.carry = &carry}), ValueError);
}

BOOST_AUTO_TEST_SUITE_END()
