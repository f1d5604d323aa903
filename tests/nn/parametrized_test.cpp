// Weight norm and spectral norm: names, first values, errors, streams; and calls with other values of variables.
#include "ferrite/nn/layers/parametrized.h"

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/with_values.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

const nn::Init kSeed{.seed = 3, .prefix = "net", .dtype = Dtype::f64};

Tensor numbers(const Shape& shape, std::uint64_t seed = 1) { return uniform(shape, {seed}, -1, 1, Dtype::f64); }

std::unique_ptr<nn::Layer> linear(const nn::Init& init = kSeed) { return std::make_unique<nn::Linear>(3, 4, init); }
std::unique_ptr<nn::Layer> gru() { return std::make_unique<nn::Gru>(3, 4, nn::GruOptions{}, kSeed); }

std::vector<std::string> names_of(const nn::Module& m) {
  std::vector<std::string> names;
  for (const auto& p : m.named_parameters()) names.push_back(p.name);
  for (const auto& b : m.named_buffers()) names.push_back(b.name);
  return names;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(parametrized)

BOOST_AUTO_TEST_CASE(a_weight_norm_begins_as_the_layer_it_is_given) {
  const auto plain = linear();
  const nn::WeightNorm layer(plain->clone());
  const Tensor x = numbers({5, 3});
  BOOST_TEST(within(layer(x), (*plain)(x), 1e-14));
  const std::vector<std::string> wanted{"bias", "parametrizations.weight.original0",
                                        "parametrizations.weight.original1"};
  BOOST_TEST(names_of(layer) == wanted, boost::test_tools::per_element());
  BOOST_TEST((layer.length.shape() == Shape{1, 4}));
  BOOST_TEST((layer.length.layout() == FileLayout::transposed));
  BOOST_TEST(layer.kind() == "weight_norm(linear)");
  BOOST_TEST(layer.summary() == "weight_norm(linear(in_features=3, out_features=4))");
}

/// The lengths of the columns are g, whatever v is.
BOOST_AUTO_TEST_CASE(lengths_are_apart_from_directions) {
  const nn::WeightNorm layer(linear());
  layer.length.assign(Tensor::from<double>({1, 2, 3, -4}, {1, 4}));
  layer.direction.assign(numbers({3, 4}, 7) * 100);
  const auto plain = layer.plain();
  const Tensor w = plain->named_parameters()[0].variable.peek();
  BOOST_TEST(plain->named_parameters()[0].name == "weight");
  BOOST_TEST(within(norm(w, {.axes = {0}}), Tensor::from<double>({1, 2, 3, 4}), 1e-14));
  const Tensor x = numbers({2, 3});
  BOOST_TEST(identical((*plain)(x), layer(x)));
}

BOOST_AUTO_TEST_CASE(a_spectral_norm_is_the_largest_singular_value) {
  const nn::SpectralNorm layer(linear(), {.power_iterations = 200}, kSeed);
  (void)layer(numbers({2, 3}));
  layer.eval();
  const Tensor w = layer.plain()->named_parameters()[0].variable.peek();
  Tensor power = matmul(transpose(w, 0, 1), w);  // its largest eigenvalue is the square; of high powers 1 remains
  for (int i = 0; i < 14; ++i) power = matmul(power, power);
  BOOST_TEST(within(sum(diagonal(power)), full({}, 1, Dtype::f64), 1e-9));
}

/// Training improves the vectors, evaluation leaves them alone, and a gradient treats them as constants.
BOOST_AUTO_TEST_CASE(power_iterations_belong_to_training) {
  const nn::SpectralNorm layer(linear(), {}, kSeed);
  const Tensor before = layer.u.peek(), x = numbers({2, 3});
  layer.eval();
  (void)layer(x);
  BOOST_TEST(identical(layer.u.peek(), before));
  layer.train();
  (void)layer(x);
  BOOST_TEST(!identical(layer.u.peek(), before));
  const auto step = compile([&](const Tensor& in) { return layer(in); });
  const auto twin = layer.clone();
  BOOST_TEST(identical(step(x), (*twin)(x)));
  BOOST_TEST(identical(step(x), (*twin)(x)));
}

BOOST_AUTO_TEST_CASE(a_seed_draws_what_had_no_values) {
  const auto words = [](dsl::Builder b) {
    return b.weight_norm([](dsl::Builder& w) { w.linear(4); }, {}, "first")
        .spectral_norm([](dsl::Builder& w) { w.linear(2); })
        .build(5, Dtype::f64);
  };
  const auto a = words(dsl::features(3)), b = words(dsl::features(3));
  for (std::size_t i = 0; i < a.parameters().size(); ++i)
    BOOST_TEST(identical(a.parameters()[i].peek(), b.parameters()[i].peek()));
  for (std::size_t i = 0; i < a.named_buffers().size(); ++i)
    BOOST_TEST(identical(a.named_buffers()[i].variable.peek(), b.named_buffers()[i].variable.peek()));
  const auto value = [&](const std::string& name) {
    for (const auto& p : a.named_parameters())
      if (p.name == name) return p.variable.peek();
    throw std::runtime_error("no parameter " + name);
  };
  const std::string in = "first.parametrizations.weight.original";
  BOOST_TEST(within(value(in + "0"), norm(value(in + "1"), {.axes = {0}, .keepdim = true}), 1e-15));
  BOOST_TEST(within(norm(a.named_buffers()[0].variable.peek()), full({}, 1, Dtype::f64), 1e-14));
  BOOST_TEST(within(norm(a.named_buffers()[1].variable.peek()), full({}, 1, Dtype::f64), 1e-14));
  BOOST_TEST(!identical(a.named_buffers()[0].variable.peek(), a.named_buffers()[1].variable.peek()));
}

/// A recurrent matrix: the whole sequence, a stream, a carry and a refreshed stream all use the computed weight.
BOOST_AUTO_TEST_CASE(a_recurrent_weight_streams_as_the_whole) {
  const nn::WeightNorm layer(gru(), {.parameter = "weight_hh_l0"});
  layer.length.assign(layer.length.peek() * 1.5);
  const Tensor x = numbers({2, 6, 3});
  const auto streamed = [&](nn::Stream& stream) {
    std::vector<double> y(6 * 2 * 4);
    stream.steps(6, contiguous(transpose(x, 0, 1)).to_vector<double>(), y);
    return transpose(Tensor::from(y, {6, 2, 4}), 0, 1);
  };
  BOOST_TEST(within(layer(x), (*layer.plain())(x), 1e-15));
  nn::Stream stream = layer.stream(2);
  BOOST_TEST(stream.on_tensors() == 0U);
  BOOST_TEST(identical(streamed(stream), layer(x)));
  nn::Stream clone = stream.clone();
  layer.length.assign(layer.length.peek() * 0.5);
  clone.reset(), stream.reset();
  BOOST_TEST(!identical(streamed(clone), layer(x)));
  stream.refresh();
  BOOST_TEST(identical(streamed(stream), layer(x)));

  const nn::Carry carry(layer, 2);
  Tensors pieces;
  for (const Tensor& piece : nn::pieces(x, 4)) pieces.push_back(layer(piece, {.carry = &carry}));
  BOOST_TEST(identical(concat(pieces, 1), layer(x)));
}

BOOST_AUTO_TEST_CASE(refusals) {
  BOOST_CHECK_EXCEPTION(nn::WeightNorm(nullptr), ValueError, says("weight_norm: the layer is null"));
  BOOST_CHECK_EXCEPTION(nn::WeightNorm(linear(), {.parameter = "gain"}), ValueError,
                        says("weight_norm: linear has no parameter 'gain', it has: weight, bias"));
  BOOST_CHECK_EXCEPTION(nn::WeightNorm(linear(), {.axis = 2}), ValueError, says("f64[3, 4], it has no axis 2"));
  BOOST_CHECK_EXCEPTION(nn::SpectralNorm(linear(), {.axis = -3}), ValueError, says("it has no axis -3"));
  BOOST_CHECK_EXCEPTION(nn::SpectralNorm(linear(), {.power_iterations = 0}), ValueError, says("power iterations"));
  BOOST_CHECK_EXCEPTION(nn::SpectralNorm(linear(), {.epsilon = -1}), ValueError, says("spectral_norm: epsilon"));
  BOOST_CHECK_EXCEPTION(dsl::features(3).weight_norm([](dsl::Builder& b) { b.linear(2).relu(); }), ValueError,
                        says("weight_norm: takes the part of one word, got 2"));
}

// ---- calls with other values ---------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(a_call_sees_other_values_and_the_variables_keep_theirs) {
  const nn::Linear layer(3, 4, kSeed);
  const Tensor w = numbers({3, 4}, 9), x = numbers({2, 3}), before = layer(x);
  const nn::Linear other(3, 4, kSeed);
  other.weight.assign(w);
  const auto call = [&] { return with_values({{layer.weight, w}}, [&] { return layer(x); }); };
  BOOST_TEST(identical(call(), other(x)));
  BOOST_TEST(identical(layer(x), before));
  const Tensor inner = with_values({{layer.weight, w * 2}}, [&] { return call(); });
  BOOST_TEST(identical(inner, other(x)), "the inner value counts");
}

/// Programs made from the call read the other values: compiled inside and outside, a scan, a checkpoint.
BOOST_AUTO_TEST_CASE(programs_see_other_values) {
  const auto net = nn::custom<nn::LayerNormGruCell>(3, 4, {}, kSeed);
  const Parameter p = net.parameters()[0];
  const Tensor x = numbers({2, 5, 3}), w = p.peek() * 0.5;
  const auto twin = net.clone();
  twin->parameters()[0].assign(w);
  const Tensor wanted = (*twin)(x);
  BOOST_TEST(identical(with_values({{p, w}}, [&] { return net(x); }), wanted), "a scan");
  const auto compiled = net.compiled();
  BOOST_TEST(identical(compiled(x), net(x)));
  BOOST_TEST(identical(with_values({{p, w}}, [&] { return compiled(x); }), wanted), "compiled before");
  BOOST_TEST(identical(compiled(x), net(x)), "and after");
  const auto fresh = net.compiled();
  BOOST_TEST(identical(with_values({{p, w}}, [&] { return fresh(x); }), wanted), "compiled inside");
  BOOST_TEST(identical(fresh(x), net(x)), "and used outside");
  const auto around = compile([&](const Tensor& in, const Tensor& value) {
    return with_values({{p, value}}, [&] { return net(in); });
  });
  BOOST_TEST(identical(around(x, w), wanted), "compiled around");
  BOOST_TEST(identical(around(x, p.peek()), net(x)));
}

/// A loss contains one step of gradient descent; the gradient through it is compared with central differences.
BOOST_AUTO_TEST_CASE(gradients_flow_through_other_values) {
  const nn::Linear layer(3, 4, kSeed);
  const Tensor x = numbers({2, 3});
  const auto loss = [&](const Tensor& y) { return sum(square(tanh(y))); };
  const auto meta = [&] {
    Tape tape;
    const Tensor g = tape.grad(loss(layer(x)), {layer.weight}, {.create_graph = true})[0];
    const Tensor after = with_values({{layer.weight, layer.weight - 0.3 * g}}, [&] { return loss(layer(x)); });
    return std::pair(after, tape.grad(after, {layer.weight})[0]);
  };
  const Tensor gradient = meta().second, w = layer.weight.peek();
  constexpr double kStep = 1e-5;
  for (std::int64_t i = 0; i < 12; ++i) {
    const Tensor unit = reshape(one_hot(Tensor::from<std::int64_t>({i}), 12, Dtype::f64), {3, 4});
    layer.weight.assign(w + unit * kStep);
    const double above = meta().first.item<double>();
    layer.weight.assign(w - unit * kStep);
    const double below = meta().first.item<double>();
    layer.weight.assign(w);
    BOOST_TEST(gradient.to_vector<double>()[static_cast<std::size_t>(i)] == (above - below) / (2 * kStep),
               boost::test_tools::tolerance(1e-6));
  }
}

BOOST_AUTO_TEST_CASE(wrong_values_are_refused) {
  const nn::Linear layer(3, 4, kSeed);
  const auto none = [] { return 0; };
  BOOST_CHECK_EXCEPTION(with_values({{layer.weight, numbers({4, 3})}}, none), ShapeError,
                        says("with_values: 'net.weight' is f64[3, 4], its other value f64[4, 3]"));
  BOOST_CHECK_EXCEPTION(with_values({{layer.weight, zeros({3, 4})}}, none), DtypeError, says("its other value f32"));
  BOOST_CHECK_EXCEPTION(with_values({{layer.weight, Tensor()}}, none), Error, says("is undefined"));
  BOOST_CHECK_THROW(with_values({{Parameter(), numbers({3})}}, none), Error);
  const Tensor before = layer.weight.peek();
  BOOST_CHECK_EXCEPTION(with_values({{layer.weight, before * 2}},
                                    [&] {
                                      layer.weight.assign(before * 3);
                                      return 0;
                                    }),
                        ValueError, says("leave it out, or give the call a copy of the model"));
  BOOST_TEST(identical(layer.weight.peek(), before));
}

BOOST_AUTO_TEST_SUITE_END()
