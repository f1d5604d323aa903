// Composites that are kept as one node of a graph.
#include "ferrite/compile/plan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/define.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

const Parameter gain("gain", full({}, 3.0));

/// A composite that is no function of its operands alone.
struct Scaled {
  static constexpr auto name = "scaled", onnx = "", summary = "x times a variable";
  static Tensor parts(Inputs in, const NoAttrs&) { return in[0] * gain.value(); }
  static void oracle(std::span<const detail::Dense>, std::span<detail::Dense>, const NoAttrs&) {}
  static std::vector<detail::Sample> samples() { return {}; }
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

/// Their parts believe what the public functions have checked.
BOOST_AUTO_TEST_CASE(texts_name_them_only_where_they_are_given) {
  const Spec type{{2, 3}};
  const auto f = [](const Tensors& in) { return Tensors{softmax(in[0]), chunk(in[0], 2)[1]}; };
  const Graph g = trace(f, {&type, 1}, Tracer::Composites::whole);
  BOOST_TEST(g.nodes.size() == 2U);
  BOOST_CHECK_EXCEPTION((void)parse_graph(g.str()), TraceError, says("unknown operation"));
  BOOST_TEST(parse_graph(g.str(), {.operations = composites()}).str() == g.str());
}

BOOST_AUTO_TEST_SUITE_END()
