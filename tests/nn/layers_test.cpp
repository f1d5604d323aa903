// Layers compared with closed forms and scalar loops; exchanged parameters must be noticed.
#include "ferrite/nn/layers/layers.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/recurrent/gru.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor draw(const Shape& s, std::uint64_t stream = 1, Dtype dtype = Dtype::f32) {
  return uniform(s, {9, stream, 0}, -1, 1, dtype);
}
const nn::Context none;

}  // namespace

BOOST_AUTO_TEST_SUITE(layers)

BOOST_AUTO_TEST_CASE(linear_is_a_product_and_a_sum) {
  const nn::Linear l(2, 3, {.seed = 0});
  l.weight.assign(Tensor::from({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3}));
  l.bias.assign(Tensor::from({10.0F, 20.0F, 30.0F}));
  BOOST_TEST(identical(l(Tensor::from({1.0F, -1.0F}, {1, 2})), Tensor::from({7.0F, 17.0F, 27.0F}, {1, 3})));
  BOOST_TEST(l(draw({4, 5, 2})).shape().str() == "[4, 5, 3]");
  BOOST_CHECK_EXCEPTION((void)l(draw({4, 3})), ShapeError, says("linear: expects 2 features, got [4, 3]"));
  BOOST_CHECK_EXCEPTION(nn::Linear(0, 3), ValueError, says("sizes must be positive"));
  BOOST_TEST(amax(abs(nn::Linear(100, 50, {.seed = 0}).weight.peek())).item() <= 0.1F);
}

BOOST_AUTO_TEST_CASE(embedding_picks_rows) {
  const nn::Embedding e(4, 2, {.seed = 0});
  const Tensor tokens = Tensor::from<std::int64_t>({3, 0, 3, 1}, {2, 2});
  BOOST_TEST(identical(select(select(e(tokens), 0, 1), 0, 0), select(e.weight.peek(), 0, 3)));
  BOOST_CHECK_EXCEPTION((void)e(Tensor::from<std::int64_t>({4})), ShapeError,
                        says("embedding: token 4 lies outside 0..3"));
  BOOST_CHECK_EXCEPTION((void)e(draw({2})), DtypeError, says("embedding: tokens must be i64"));
}

BOOST_AUTO_TEST_CASE(layer_norm_normalises) {
  const nn::LayerNorm n(4);
  const Tensor x = Tensor::from({1.0F, 2.0F, 3.0F, 4.0F}, {1, 4});
  const double s = std::sqrt(1.25 + 1e-5);
  const auto f = [&](double v) { return static_cast<float>((v - 2.5) / s); };
  BOOST_TEST(within(n(x), Tensor::from({f(1), f(2), f(3), f(4)}, {1, 4}), 1e-6));
  n.weight.assign(full({4}, 2));
  n.bias.assign(full({4}, 3));  // fails if weight and bias are exchanged
  BOOST_TEST(within(n(x), 2 * Tensor::from({f(1), f(2), f(3), f(4)}, {1, 4}) + 3, 1e-6));
}

BOOST_AUTO_TEST_CASE(dropout_draws_anew_only_in_training) {
  const nn::Dropout d(0.25, {.seed = 5});
  const Tensor x = ones({10000});
  const Tensor a = d(x);
  const Tensor b = d(x);
  BOOST_TEST(std::fabs(mean(a).item() - 1) < 0.02F);
  BOOST_TEST(amax(a).item() == static_cast<float>(1 / 0.75));
  BOOST_TEST(!identical(a, b));
  BOOST_TEST(d.calls.peek().item<std::int64_t>() == 2);
  const nn::Dropout again(0.25, {.seed = 5});
  BOOST_TEST(identical(again(x), a));  // same seed, same bits
  d.eval();
  BOOST_TEST(identical(d(x), x));
  BOOST_TEST(identical(nn::Dropout(1)(x), zeros({10000})));
  BOOST_CHECK_EXCEPTION(nn::Dropout(1.5), ValueError, says("must lie in [0, 1]"));
}

BOOST_AUTO_TEST_CASE(last_step_and_mean_over_time_honour_lengths) {
  const Tensor x = reshape(arange(0.0, 12.0, 1.0), {2, 3, 2});
  const nn::Context lengths{.lengths = Tensor::from<std::int64_t>({1, 3})};
  BOOST_TEST(identical(nn::LastStep().forward(x, lengths), Tensor::from({0.0F, 1.0F, 10.0F, 11.0F}, {2, 2})));
  BOOST_TEST(identical(nn::LastStep()(x), Tensor::from({4.0F, 5.0F, 10.0F, 11.0F}, {2, 2})));
  BOOST_TEST(identical(nn::MeanOverTime().forward(x, lengths), Tensor::from({0.0F, 1.0F, 8.0F, 9.0F}, {2, 2})));
  BOOST_TEST(identical(nn::MeanOverTime()(x), Tensor::from({2.0F, 3.0F, 8.0F, 9.0F}, {2, 2})));
  const nn::Context bad{.lengths = Tensor::from<std::int64_t>({0, 3})};
  BOOST_CHECK_EXCEPTION((void)nn::LastStep().forward(x, bad), ShapeError, says("a length of 0 lies outside 1..3"));
}

BOOST_AUTO_TEST_CASE(padding_may_hold_anything) {
  const nn::Gru gru(2, 3, {.seed = 1, .dtype = Dtype::f64});
  const Tensor clean = draw({2, 4, 2}, 3, Dtype::f64);
  const Tensor lengths = Tensor::from<std::int64_t>({2, 4});
  const Tensor valid = lt(reshape(arange(4), {1, 4, 1}), reshape(lengths, {2, 1, 1}));
  const Tensor dirty = where(valid, clean, NAN);
  const auto loss = [&](const Tensor& x) { return sum(square(gru.run(x, {.lengths = lengths}).output)); };
  BOOST_TEST(identical(loss(dirty), loss(clean)));
  Tape tape;
  const Tensor x = tape.watch(dirty);
  const Tensor g = tape.grad(loss(x), {x})[0];
  BOOST_TEST(identical(where(valid, 0, g), zeros({2, 4, 2}, Dtype::f64)));  // exactly 0 in the padding
  const nn::RecurrentResult r = gru.run(clean, {.lengths = lengths});
  BOOST_TEST(identical(select(r.state, 0, 0), select(select(r.output, 0, 0), 0, 1)));
  BOOST_TEST(identical(slice(select(r.output, 0, 0), 0, 2), zeros({2, 3}, Dtype::f64)));
}

BOOST_AUTO_TEST_CASE(a_row_alone_equals_the_row_in_a_batch) {
  const nn::Gru gru(7, 33, {.seed = 2});
  const Tensor batch = draw({6, 9, 7});
  const auto run = [&](const Tensor& x0) {
    Tape tape;
    const Tensor x = tape.watch(x0);
    const nn::RecurrentResult r = gru.run(x);
    return Tensors{r.output, r.state, tape.grad(sum(square(r.output)), {x})[0]};
  };
  const Tensors all = run(batch);
  for (const std::int64_t b : {0, 3, 5}) {
    const Tensors one = run(slice(batch, 0, b, b + 1));
    for (std::size_t k = 0; k < 3; ++k) BOOST_TEST(identical(one[k], slice(all[k], 0, b, b + 1)));
  }
}

BOOST_AUTO_TEST_CASE(a_sequence_cut_into_chunks_gives_the_same_bits) {
  const nn::Gru gru(5, 20, {.seed = 2});
  const Tensor x = draw({3, 11, 5});
  const nn::RecurrentResult whole = gru.run(x);
  const nn::RecurrentResult first = gru.run(slice(x, 1, 0, 4));
  const nn::RecurrentResult rest = gru.run(slice(x, 1, 4), {.state = first.state});
  BOOST_TEST(identical(concat({first.output, rest.output}, 1), whole.output));
  BOOST_TEST(identical(rest.state, whole.state));
}

BOOST_AUTO_TEST_CASE(gru_errors) {
  const nn::Gru gru(2, 3, {}, {.seed = 0});
  BOOST_CHECK_EXCEPTION((void)gru(draw({4, 5, 3})), ShapeError, says("gru: expects input [B, T, 2], got [4, 5, 3]"));
  BOOST_CHECK_EXCEPTION((void)gru(draw({4, 0, 2})), ShapeError, says("no steps"));
  BOOST_CHECK_EXCEPTION((void)gru(draw({4, 5, 2}, 1, Dtype::f64)), DtypeError, says("the weights are f32"));
  BOOST_CHECK_EXCEPTION((void)gru.run(draw({4, 5, 2}), {.state = zeros({4, 4})}), ShapeError,
                        says("expects a state [4, 3]"));
  BOOST_TEST(gru(draw({0, 5, 2})).shape().str() == "[0, 5, 3]");
}

BOOST_AUTO_TEST_CASE(clones_are_independent) {
  const nn::Gru gru(2, 3, {.seed = 1});
  const auto copy = gru.clone();
  const Tensor x = draw({1, 4, 2});
  BOOST_TEST(identical((*copy)(x), gru(x)));
  copy->parameters()[0].assign(zeros({2, 9}));
  BOOST_TEST(!identical((*copy)(x), gru(x)));
}

BOOST_AUTO_TEST_CASE(sequential_and_residual_names) {
  nn::Sequential s;
  s.add("first", std::make_unique<nn::Linear>(2, 2, nn::Init{.seed = 0}));
  auto r = std::make_unique<nn::Residual>();
  r->add("0", std::make_unique<nn::Linear>(2, 2, nn::Init{.seed = 0}));
  s.add("skip", std::move(r));
  BOOST_TEST(s.named_parameters()[2].name == "skip.0.weight");
  BOOST_CHECK_EXCEPTION(s.add("first", std::make_unique<nn::LastStep>()), ValueError, says("'first' is taken"));
  const Tensor x = draw({3, 2});
  const Tensor y = s[0](x);
  BOOST_TEST(identical(s(x), y + dynamic_cast<const nn::Residual&>(s[1])[0](y)));
}

BOOST_AUTO_TEST_CASE(adding_a_layer_leaves_the_other_weights_alone) {
  const nn::Init init{.seed = 3};
  BOOST_TEST(
      identical(nn::Linear(3, 2, init.child("a")).weight.peek(), nn::Linear(3, 2, init.child("a")).weight.peek()));
  BOOST_TEST(
      !identical(nn::Linear(3, 2, init.child("a")).weight.peek(), nn::Linear(3, 2, init.child("b")).weight.peek()));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(losses)

BOOST_AUTO_TEST_CASE(closed_forms) {
  const Tensor logits = zeros({2, 4}, Dtype::f64);
  const Tensor targets = Tensor::from<std::int64_t>({0, 3});
  BOOST_TEST(within(nn::cross_entropy(logits, targets), full({}, std::log(4.0), Dtype::f64), 1e-15));
  BOOST_TEST(nn::mse_loss(Tensor::from({1.0, 2.0}), Tensor::from({0.0, 4.0})).item<double>() == 2.5);
  BOOST_TEST(nn::l1_loss(Tensor::from({1.0, 2.0}), Tensor::from({0.0, 4.0})).item<double>() == 1.5);
  BOOST_TEST(nn::bce_with_logits(Tensor::from({800.0, -800.0}), Tensor::from({1.0, 0.0})).item<double>() == 0.0);
  BOOST_TEST(nn::bce_with_logits(Tensor::from({-800.0}), Tensor::from({1.0})).item<double>() == 800.0);
  BOOST_TEST(nn::accuracy(Tensor::from({1.0, 2.0, 5.0, 0.0}, {2, 2}), Tensor::from<std::int64_t>({1, 1})) == 0.5);
}

BOOST_AUTO_TEST_CASE(errors) {
  BOOST_CHECK_EXCEPTION((void)nn::cross_entropy(zeros({2, 4}), Tensor::from<std::int64_t>({0, 4})), ShapeError,
                        says("target 4 lies outside 0..3"));
  BOOST_CHECK_EXCEPTION((void)nn::cross_entropy(zeros({2, 4}), zeros({2})), DtypeError, says("targets must be i64"));
  BOOST_CHECK_EXCEPTION((void)nn::cross_entropy(zeros({2, 4}), Tensor::from<std::int64_t>({0})), ShapeError,
                        says("got [2, 4] and [1]"));
  BOOST_CHECK_EXCEPTION((void)nn::mse_loss(zeros({2}), zeros({3})), ShapeError, says("shapes differ: [2] and [3]"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(initialisers)

BOOST_AUTO_TEST_CASE(spreads) {
  const RandomKey key{1, 2, 3};
  const Shape s{60, 40};
  const auto deviation = [&](const nn::Fill& f) { return std::sqrt(var(f(s, key, Dtype::f64)).item<double>()); };
  BOOST_TEST(std::fabs(deviation(nn::init::xavier_normal()) - std::sqrt(0.02)) < 0.005);
  BOOST_TEST(std::fabs(deviation(nn::init::xavier_uniform()) - std::sqrt(0.02)) < 0.005);
  BOOST_TEST(std::fabs(deviation(nn::init::kaiming_normal()) - std::sqrt(2.0 / 60)) < 0.006);
  BOOST_TEST(std::fabs(deviation(nn::init::kaiming_uniform()) - std::sqrt(2.0 / 60)) < 0.006);
  BOOST_TEST(deviation(nn::init::constant(4)) == 0.0);
}

BOOST_AUTO_TEST_CASE(orthogonal_is_orthogonal) {
  for (const Shape& s : {Shape{5, 9}, Shape{9, 5}, Shape{6, 6}}) {
    const Tensor q = nn::init::orthogonal(2)(s, {1, 2, 3}, Dtype::f64);
    const Tensor gram = s[0] <= s[1] ? matmul(q, transpose(q)) : matmul(transpose(q), q);
    BOOST_TEST(within(gram, 4 * eye(std::min(s[0], s[1]), -1, Dtype::f64), 1e-13));
  }
  BOOST_CHECK_THROW((void)nn::init::orthogonal()({3}, {1, 2, 3}, Dtype::f32), ShapeError);
}

BOOST_AUTO_TEST_SUITE_END()
