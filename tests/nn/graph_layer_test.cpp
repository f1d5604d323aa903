// Traced programs as layers: variables by their names, compiled, trained, copied and streamed.
#include "ferrite/nn/graph_layer.h"

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {31, stream, 0}, -1, 1); }

nn::GraphLayer layer_of(const std::function<Tensors(const Tensors&)>& f, const std::vector<Spec>& in,
                        nn::GraphOptions options = {}) {
  options.graph = std::make_shared<Graph>(trace(f, in));
  return nn::GraphLayer(options);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(graph_layer)

BOOST_AUTO_TEST_CASE(a_traced_network_is_a_layer_with_its_parameters) {
  const auto net = dsl::sequence(3).gru(4).layer_norm().linear(2).build(1);
  const Tensor x = draw({2, 5, 3}, 1);
  const nn::GraphLayer layer = layer_of([&](const Tensors& in) { return Tensors{net(in[0])}; }, {x.spec()});
  BOOST_REQUIRE(layer.named_parameters().size() == net.named_parameters().size());
  for (const auto& p : net.named_parameters()) {
    const auto& all = layer.named_parameters();
    const auto own = std::find_if(all.begin(), all.end(), [&](const auto& q) { return q.name == p.name; });
    BOOST_REQUIRE(own != all.end());
    BOOST_TEST(identical(own->variable.peek(), p.variable.peek()), p.name);
    BOOST_TEST(own->variable.identity() != p.variable.identity());
  }
  const Tensor y = net(x);
  BOOST_TEST(identical(layer(x), y));

  const auto gradients = [&](const nn::Layer& l) {
    std::map<std::string, Tensor> all;
    Tape tape;
    const Tensor loss = sum(square(l(x)));
    const Tensors g = tape.grad(loss, l.parameters());
    for (std::size_t i = 0; i < g.size(); ++i) all[l.parameters()[i].name()] = g[i];
    return all;
  };
  const auto wanted = gradients(net);
  for (const auto& [name, g] : gradients(layer)) BOOST_TEST(identical(g, wanted.at(name)), name);

  const std::unique_ptr<nn::Layer> copy = layer.clone();
  for (const Parameter& p : layer.parameters()) p.assign(zeros(p.shape()));
  BOOST_TEST(identical((*copy)(x), y));
  BOOST_TEST(identical(net(x), y));
  BOOST_TEST(!identical(layer(x), y));
}

BOOST_AUTO_TEST_CASE(constants_become_variables_where_they_are_named) {
  const Tensor w = draw({3, 2}, 2), b = draw({2}, 3), x = draw({4, 3}, 4);
  const auto f = [&](const Tensors& in) { return Tensors{matmul(in[0], w) + b}; };
  const nn::GraphLayer frozen = layer_of(f, {x.spec()});
  BOOST_TEST(frozen.named_parameters().empty());
  const nn::GraphLayer layer = layer_of(
      f, {x.spec()}, {.variables = {{0, "head.weight"}, {1, "offset", VariableKind::buffer}}, .kind = "affine"});
  BOOST_TEST(layer.summary() == "affine");
  BOOST_REQUIRE(layer.named_parameters().size() == 1U);
  BOOST_REQUIRE(layer.named_buffers().size() == 1U);
  BOOST_TEST(layer.named_parameters()[0].name == "head.weight");
  BOOST_TEST(identical(layer(x), f({x})[0]));
  BOOST_TEST(identical(frozen(x), f({x})[0]));
  Tape tape;
  const Tensors g = tape.grad(sum(layer(x)), layer.parameters());
  BOOST_TEST(identical(g[0], matmul(transpose(x), ones({4, 2}))));
}

BOOST_AUTO_TEST_CASE(what_a_program_writes_is_a_state_of_the_layer) {
  const State calls("calls", full({}, 0, Dtype::i64));
  const nn::GraphLayer layer = layer_of(
      [&](const Tensors& in) {
        const Tensor n = calls.value();
        calls.assign(n + 1);
        return Tensors{in[0] * cast(n, Dtype::f32)};
      },
      {{{3}, Dtype::f32}});
  const Tensor x = draw({3}, 5);
  for (const float n : {0.F, 1.F, 2.F}) BOOST_TEST(identical(layer(x), x * n));
  BOOST_TEST(calls.peek().item<std::int64_t>() == 0);
  BOOST_TEST(layer.named_states()[0].variable.peek().item<std::int64_t>() == 3);
}

/// A step as a graph is a layer over time, and a stream.
BOOST_AUTO_TEST_CASE(a_graph_of_a_step_is_a_causal_layer) {
  const nn::Gru gru(3, 4, {}, {.seed = 2});
  const nn::Linear head(4, 2, {.seed = 3, .prefix = "head"});
  const auto step = [&](const Tensors& in) {
    const nn::StepResult r = gru.advance(in[0], {in[1]});
    return Tensors{tanh(head(r.y)), r.states[0], in[0] + in[2]};
  };
  const std::int64_t B = 3, T = 6;
  const nn::GraphLayer layer = layer_of(step, {{{B, 3}}, {{1, B, 4}}, {{B, 3}}}, {.states = {{"h", 1}, {"total"}}});
  BOOST_TEST(layer.causal());
  const Tensor x = draw({B, T, 3}, 6), y = layer(x);
  BOOST_TEST(identical(y, tanh(head(gru(x)))));
  BOOST_CHECK_EXCEPTION((void)layer.stream(1), ShapeError, says("the state 'h' of graph must have 1 rows on axis 1"));
  nn::Stream stream = layer.stream(B);
  BOOST_TEST(stream.on_tensors() == 0U);
  for (std::int64_t t = 0; t < T; ++t) {
    std::vector<float> out(static_cast<std::size_t>(2 * B));
    stream.step(contiguous(select(x, 1, t)).to_vector<float>(), out);
    BOOST_TEST(identical(Tensor::from(out, {B, 2}), select(y, 1, t)));
  }
  Tape tape;
  const Tensors g = tape.grad(sum(layer(x)), layer.parameters());
  for (const Tensor& one : g) BOOST_TEST(one.defined());
}

BOOST_AUTO_TEST_CASE(mistakes_of_graphs) {
  const auto f = [](const Tensors& in) { return Tensors{in[0] + in[1]}; };
  const std::vector<Spec> in = {{{2, 3}}, {{2, 3}}};
  const nn::GraphLayer layer = layer_of(f, in);
  BOOST_CHECK_EXCEPTION((void)layer(ones({2, 3})), ValueError, says("graph: takes 2 inputs, got 1"));
  BOOST_CHECK_EXCEPTION((void)layer.run({ones({2, 3}), ones({3})}), ShapeError,
                        says("graph: input 1 must be f32[2, 3], got f32[3]"));
  BOOST_CHECK_EXCEPTION((void)layer.run({ones({2, 3}), ones({2, 3}, Dtype::f64)}), DtypeError, says("got f64[2, 3]"));
  BOOST_CHECK_EXCEPTION((void)nn::GraphLayer(nn::GraphOptions{}), ValueError, says("graph: there is none"));
  BOOST_CHECK_EXCEPTION((void)layer_of(f, in, {.variables = {{0, "w"}}}), ValueError, says("there is no constant 0"));
  BOOST_CHECK_EXCEPTION((void)layer_of(f, in, {.states = {{"s"}}}), ValueError,
                        says("a step with 1 states takes and gives one more"));
  const auto two = [](const Tensors& x) { return Tensors{x[0], sum(x[1], {1})}; };
  BOOST_CHECK_EXCEPTION((void)layer_of(two, in, {.states = {{"s"}}}), ShapeError,
                        says("the state 's' goes into the step as f32[2, 3] and comes out as f32[2]"));
  const Tensor w = draw({3}, 7);
  const auto with_constant = [&](const Tensors& x) { return Tensors{x[0] * w}; };
  BOOST_CHECK_EXCEPTION((void)layer_of(with_constant, {in[0]}, {.variables = {{0, "a"}, {0, "b"}}}), ValueError,
                        says("has two names, 'b' is the second"));
}

BOOST_AUTO_TEST_SUITE_END()
