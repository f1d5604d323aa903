// Layers of user-defined cells: the plain GRU compared with the built-in one, everything a layer can do, streams.
#include "../examples/custom_cell/cells.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f64) {
  return uniform(shape, {23, stream, 0}, -1, 1, dtype);
}

/// Returns the built-in GRU with the weights of a plain one.
nn::Gru built_in(const nn::Custom& layer, Dtype dtype) {
  const nn::RecurrentSizes& s = layer.sizes();
  nn::Gru gru(s.input_size, s.hidden_size, {.layers = s.layers, .bidirectional = s.bidirectional}, {0, {}, dtype});
  for (std::int64_t k = 0; k < s.layers; ++k)
    for (const bool reverse : {false, true}) {
      if (reverse && !s.bidirectional) continue;
      const auto& cell = dynamic_cast<const cells::PlainGru&>(layer.cell(k, reverse));
      const nn::RecurrentWeights<Parameter>& w = gru.weights(k, reverse);
      w.weight_ih.assign(cell.w_x.peek());
      w.weight_hh.assign(cell.w_h.peek());
      w.bias_ih.assign(cell.b_x.peek());
      w.bias_hh.assign(cell.b_h.peek());
    }
  return gru;
}

/// Returns output, states and gradients of x, of the states and of all parameters.
Tensors everything(const nn::Recurrent& layer, const nn::Context& given, const Tensor& x_values) {
  Tape tape;
  nn::Context context = given;
  const Tensor x = tape.watch(x_values);
  context.state = tape.watch(given.state);
  const nn::RecurrentResult r = layer.run(x, context);
  const Tensor loss = sum(r.output * r.output) + sum(r.state * 0.5);
  Tensors all = {r.output, r.state};
  for (const Tensor& g : tape.grad(loss, {x, context.state}, {.retain = true})) all.push_back(g);
  for (const Tensor& g : tape.grad(loss, layer.parameters())) all.push_back(g);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(custom)

BOOST_AUTO_TEST_CASE(a_plain_gru_is_the_built_in_one) {
  const std::int64_t B = 4, T = 7, D = 3, H = 5;
  for (const std::int64_t layers : {1, 2})
    for (const bool both : {false, true})
      for (const bool ragged : {false, true})
        for (const bool resets : {false, true})
          BOOST_TEST_CONTEXT("layers " << layers << (both ? ", both ways" : "") << (ragged ? ", lengths" : "")
                                       << (resets ? ", resets" : "")) {
            const nn::Custom layer =
                nn::custom<cells::PlainGru>(D, H, {.layers = layers, .bidirectional = both}, {3, {}, Dtype::f64});
            const nn::Gru gru = built_in(layer, Dtype::f64);
            nn::Context context;
            context.state = draw({layers * (both ? 2 : 1), B, H}, 2);
            if (ragged) context.lengths = Tensor::from<std::int64_t>({7, 1, 4, 6});
            if (resets) context.reset_mask = lt(draw({B, T}, 3), -0.5);
            const Tensors a = everything(layer, context, draw({B, T, D}, 1)),
                          b = everything(gru, context, draw({B, T, D}, 1));
            BOOST_REQUIRE_EQUAL(a.size(), b.size());
            for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(within(a[i], b[i], 1e-13), "result " << i);
          }
}

BOOST_AUTO_TEST_CASE(unrolled_it_is_the_same) {
  const auto compare = [](const nn::Custom& scanned, const nn::Custom& unrolled) {
    nn::Context context;
    context.state = draw({1, 3, 17}, 2, Dtype::f32);
    const Tensor x = draw({3, 9, 6}, 1, Dtype::f32);
    const Tensors a = everything(scanned, context, x), b = everything(unrolled, context, x);
    for (std::size_t i = 0; i < 2; ++i) BOOST_TEST(identical(a[i], b[i]), scanned.kind() << ", result " << i);
    for (std::size_t i = 2; i < a.size(); ++i) BOOST_TEST(within(a[i], b[i], 1e-6), scanned.kind() << ", result " << i);
  };
  const nn::CustomOptions unrolled{.form = nn::Form::unrolled};
  compare(nn::custom<cells::PeepholeLstm>(6, 17, {}, {.seed = 0}),
          nn::custom<cells::PeepholeLstm>(6, 17, unrolled, {.seed = 0}));
  compare(nn::custom<cells::MinimalGated>(6, 17, {}, {.seed = 0}),
          nn::custom<cells::MinimalGated>(6, 17, unrolled, {.seed = 0}));
  compare(nn::custom<nn::LayerNormGruCell>(6, 17, {}, {.seed = 0}),
          nn::custom<nn::LayerNormGruCell>(6, 17, unrolled, {.seed = 0}));
}

BOOST_AUTO_TEST_CASE(a_copy_is_independent) {
  const nn::Custom layer = nn::custom<cells::MinimalGated>(3, 4, {.layers = 2}, {5});
  const Tensor x = draw({2, 6, 3}, 1, Dtype::f32);
  const Tensor before = layer(x);
  const std::unique_ptr<nn::Layer> copy = layer.clone();
  BOOST_TEST(identical((*copy)(x), before));
  for (const Parameter& p : layer.parameters()) p.assign(zeros(p.shape()));
  BOOST_TEST(!identical(layer(x), before));
  BOOST_TEST(identical((*copy)(x), before));
}

BOOST_AUTO_TEST_CASE(a_stream_gives_the_sequence) {
  const auto net = dsl::sequence(3).recurrent<cells::PeepholeLstm>(6, {.layers = 2}, "memory").linear(2).build(4);
  const Tensor x = draw({1, 5, 3}, 1, Dtype::f32);
  const std::vector<float> wanted = net(x).to_vector<float>(), in = x.to_vector<float>();
  nn::Stream stream = net.stream();
  for (std::size_t t = 0; t < 5; ++t) {
    std::vector<float> y(2);
    stream.step(std::span(in).subspan(3 * t, 3), y);
    BOOST_TEST(y[0] == wanted[2 * t]);
    BOOST_TEST(y[1] == wanted[2 * t + 1]);
  }
  const std::string summary = net.summary();
  BOOST_TEST(summary.find("peephole_lstm") != std::string::npos, summary);
  // There are two layers of 4 gates: 3 features and 6 units, then 6 and 6, and the last layer's 6 by 2.
  BOOST_TEST(summary.find(std::to_string((3 + 6) * 24 + (6 + 6) * 24)) != std::string::npos, summary);
  BOOST_TEST(net.parameters()[0].name() == "memory.cell_l0.w_x");
}

BOOST_AUTO_TEST_CASE(one_mask_for_all_steps) {
  // All weights are set so that h' = x times the mask of x: the kept elements are the same in all steps.
  struct Through final : nn::CustomCell {
    Through(std::int64_t, std::int64_t, const nn::Init&) {}
    std::string kind() const override { return "through"; }
    RecurrentState step(const Tensor& x, const RecurrentState& s) const override { return {x + 0 * s.h}; }
  };
  const nn::Custom layer = nn::custom<Through>(64, 64, {.variational_dropout = 0.5}, {8});
  const Tensor x = ones({3, 10, 64});
  const Tensor y = layer(x), again = layer(x);
  BOOST_TEST(identical(y, expand(slice(y, 1, 0, 1), {3, 10, 64})));
  const double kept = mean(cast(gt(y, 0), Dtype::f64)).item<double>();
  BOOST_TEST((kept > 0.3 && kept < 0.7));
  BOOST_TEST(amax(y, {0, 1, 2}).item() == 2);
  BOOST_TEST(!identical(y, again));  // drawn again for every sequence
  layer.eval();
  BOOST_TEST(identical(layer(x), x));
}

BOOST_AUTO_TEST_CASE(layer_norm_gru_by_its_formula) {
  const nn::Custom layer = nn::custom<nn::LayerNormGruCell>(2, 3, {}, {9, {}, Dtype::f64});
  const Tensor x = draw({1, 2}, 1), h = draw({1, 3}, 2);
  const auto p = [&](const char* name) {
    for (const Parameter& q : layer.parameters())
      if (q.name() == std::string("cell_l0.") + name) return q.peek();
    BOOST_FAIL("no parameter " << name);
    return Tensor();
  };
  const auto normal = [](const Tensor& sums, std::int64_t gate) {
    const std::vector<double> v = slice(sums, 1, 3 * gate, 3 * gate + 3).to_vector<double>();
    const double m = (v[0] + v[1] + v[2]) / 3;
    const double var = ((v[0] - m) * (v[0] - m) + (v[1] - m) * (v[1] - m) + (v[2] - m) * (v[2] - m)) / 3;
    return std::vector<double>{(v[0] - m) / std::sqrt(var + 1e-5), (v[1] - m) / std::sqrt(var + 1e-5),
                               (v[2] - m) / std::sqrt(var + 1e-5)};
  };
  const Tensor i = matmul(x, p("weight_ih")), g = matmul(h, p("weight_hh"));
  nn::Context context;
  context.state = reshape(h, {1, 1, 3});
  const std::vector<double> y = layer(reshape(x, {1, 1, 2}), context).to_vector<double>();
  for (std::size_t k = 0; k < 3; ++k) {
    const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
    const double r = logistic(normal(i, 0)[k] + normal(g, 0)[k]), z = logistic(normal(i, 1)[k] + normal(g, 1)[k]);
    const double n = std::tanh(normal(i, 2)[k] + r * normal(g, 2)[k]);
    BOOST_TEST(y[k] == n + z * (h.to_vector<double>()[k] - n), boost::test_tools::tolerance(1e-12));
  }
}

BOOST_AUTO_TEST_CASE(mistakes) {
  BOOST_CHECK_THROW(nn::custom<cells::PlainGru>(2, 3, {.form = nn::Form::fused}), ValueError);
  BOOST_CHECK_THROW(nn::custom<cells::PlainGru>(2, 3, {.layers = 0}), ValueError);
  const nn::Custom layer = nn::custom<cells::PlainGru>(2, 3);
  BOOST_CHECK_THROW(layer.cell(1), ValueError);
  BOOST_CHECK_THROW(layer(zeros({1, 4, 5})), ShapeError);
  BOOST_CHECK_THROW(layer(zeros({1, 4, 2}, Dtype::f64)), DtypeError);
}

BOOST_AUTO_TEST_SUITE_END()
