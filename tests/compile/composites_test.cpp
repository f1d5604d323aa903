// Composites that are kept as one node of a graph.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/plan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/define.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

const Parameter gain("gain", full({}, 3.0));

/// A composite that is not a function of its operands alone.
struct Scaled {
  static constexpr auto name = "scaled", onnx = "", summary = "x times a variable";
  static Tensor parts(Inputs in, const NoAttrs&) { return in[0] * gain.value(); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(composites_as_one)

BOOST_AUTO_TEST_CASE(a_variable_is_no_part_of_one_node) {
  const Spec type{{2}};
  const auto f = [](const Tensors& in) { return Tensors{define::composed<Scaled>({{&in[0]}})}; };
  const Tensor x = Tensor::from({1.0F, 2.0F}, {2});
  BOOST_TEST(identical(Plan(trace(f, {&type, 1})).run({&x, 1})[0], x * 3));
  BOOST_CHECK_EXCEPTION((void)trace(f, {&type, 1}, Tracer::Composites::whole), TraceError,
                        says("kept as one node reads the variable 'gain'"));
}

/// The parts of composites rely on the checks of the public functions.
BOOST_AUTO_TEST_CASE(texts_name_them_only_where_they_are_given) {
  const Spec type{{2, 3}};
  const auto f = [](const Tensors& in) { return Tensors{softmin(in[0]), chunk(in[0], 2)[1]}; };
  const Graph g = trace(f, {&type, 1}, Tracer::Composites::whole);
  BOOST_TEST(g.nodes.size() == 2U);
  BOOST_CHECK_EXCEPTION((void)parse_graph(g.str()), TraceError, says("unknown operation"));
  BOOST_TEST(parse_graph(g.str(), {.operations = composites()}).str() == g.str());
}

/// Composites with a gradient stay one node, so a program that is differentiated later has the gradient of eager
/// execution.
BOOST_AUTO_TEST_CASE(those_with_a_gradient_are_one_node_until_they_are_planned) {
  const Spec type{{2, 3}};
  const Tensor x = uniform({2, 3}, {.seed = 5}, -1, 1), c = uniform({2, 3}, {.seed = 6}, -1, 1);
  const auto f = [](const Tensor& in) { return layer_norm(log_softmax(softmax(in))); };
  const Graph g = trace([&](const Tensors& in) { return Tensors{f(in[0])}; }, {&type, 1});
  BOOST_TEST(g.nodes.size() == 3U);
  BOOST_TEST(parse_graph(g.str()).str() == g.str());
  BOOST_TEST(Plan(g).graph().nodes.size() > 3U);
  const auto gradient = [&](const std::function<Tensor(const Tensor&)>& of) {
    Tape tape;
    const Tensor in = tape.watch(x);
    return tape.grad(of(in), {in}, {}, c)[0];
  };
  const Tensor eager = gradient(f);
  BOOST_TEST(identical(gradient([&](const Tensor& in) { return replay(g, {&in, 1})[0]; }), eager));
  const Graph traced = trace(
      [&](const Tensors& in) {
        Tape tape;
        const Tensor v = tape.watch(in[0]);
        return tape.grad(f(v), {v}, {}, c);
      },
      {&type, 1});
  BOOST_TEST(identical(Plan(traced).run({&x, 1})[0], eager));
}

BOOST_AUTO_TEST_CASE(texts_with_wrong_axes_are_refused) {
  const Spec type{{2, 3}};
  const auto text_of = [&](auto f) {
    return trace([&](const Tensors& in) { return Tensors{f(in[0])}; }, {&type, 1}).str();
  };
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    BOOST_REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  const std::string soft = text_of([](const Tensor& x) { return softmax(x); });
  const std::string norm = text_of([](const Tensor& x) { return layer_norm(x); });
  BOOST_CHECK_THROW((void)parse_graph(with(soft, "axis=1", "axis=2")), Error);
  BOOST_CHECK_THROW((void)parse_graph(with(soft, "axis=1", "axis=-1")), Error);
  BOOST_CHECK_THROW((void)parse_graph(with(norm, "axes=1", "axes=3")), Error);
  BOOST_CHECK_THROW((void)parse_graph(with(norm, "axes=1", "axes=0")), Error);
}

BOOST_AUTO_TEST_SUITE_END()
