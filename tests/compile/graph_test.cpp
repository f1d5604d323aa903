// Graphs: the tracer's output, the text form, validation, replay.
#include "ferrite/compile/graph.h"

#include <cmath>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/plan.h"
#include "ferrite/compile/tracer.h"
#include "programs.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

Graph traced(const std::function<Tensors(const Tensors&)>& f, std::initializer_list<Spec> specs) {
  return trace(f, std::span<const Spec>(specs.begin(), specs.size()));
}

std::size_t count(const Graph& g, std::string_view name) {
  std::size_t n = 0;
  for (const Graph::Node& node : g.nodes) n += node.op->name == name;
  return n;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(graphs)

BOOST_AUTO_TEST_CASE(a_trace_lists_what_was_applied) {
  const Tensor w = Tensor::from({1.5F, -0.0F}, {2});
  const Graph g = traced([&](const Tensors& x) { return Tensors{exp(x[0]) * w + 2}; }, {{{3, 2}, Dtype::f32}});
  g.validate();
  BOOST_TEST(g.str() ==
             "graph {\n"
             "  input %0: f32[3, 2]\n"
             "  constant %2: f32[2] = {0x1.8p+0, -0x0p+0}\n"
             "  %1: f32[3, 2] = exp(%0)\n"
             "  %3: f32[3, 2] = mul(%1, %2)\n"
             "  %4: f32[3, 2] = add(%3) b=~2\n"
             "  return %4\n"
             "}\n");
}

BOOST_AUTO_TEST_CASE(variables_are_inputs_and_outputs) {
  Parameter w("w", full({2}, 1.0));
  State count_variable("count", full({}, std::int64_t{3}, Dtype::i64));
  const Graph g = traced(
      [&](const Tensors& x) {
        count_variable.assign(count_variable.value() + 1);
        const Tensor after = count_variable.value();  // reads the value that was written
        w.assign(w.value() * x[0]);
        return Tensors{cast(after, Dtype::f32) + w.value()};
      },
      {{{2}, Dtype::f32}});
  g.validate();
  BOOST_TEST(g.reads.size() == 2U);
  BOOST_TEST(g.writes.size() == 2U);
  BOOST_TEST(identical(w.peek(), full({2}, 1.0)));  // tracing changed nothing
  const Plan plan(g);
  const Tensors out = plan.run({full({2}, 0.5)});
  BOOST_TEST(identical(out[0], full({2}, 4.5)));
  BOOST_TEST(identical(w.peek(), full({2}, 0.5)));
  BOOST_TEST(count_variable.peek().item<std::int64_t>() == 4);
  BOOST_TEST(identical(plan.run({full({2}, 2.0)})[0], full({2}, 6.0)));
}

BOOST_AUTO_TEST_CASE(a_variable_written_only_is_no_input) {
  State s("s", zeros({2}));
  const Graph g = traced(
      [&](const Tensors& x) {
        s.assign(x[0]);
        return Tensors{s.value() + 1};
      },
      {{{2}, Dtype::f32}});
  BOOST_TEST(g.reads.empty());
  (void)Plan(g).run({full({2}, 7.0)});
  BOOST_TEST(identical(s.peek(), full({2}, 7.0)));
}

BOOST_AUTO_TEST_CASE(a_tensor_of_another_trace_is_refused) {
  Tensor kept;
  (void)traced([&](const Tensors& x) { return Tensors{kept = exp(x[0])}; }, {{{2}, Dtype::f32}});
  BOOST_CHECK_EXCEPTION((void)traced([&](const Tensors& x) { return Tensors{x[0] + kept}; }, {{{2}, Dtype::f32}}),
                        TraceError, says("outside its trace"));
  BOOST_CHECK_EXCEPTION((void)traced([](const Tensors&) { return Tensors{Tensor()}; }, {}), TraceError,
                        says("undefined"));
}

BOOST_AUTO_TEST_CASE(constants_and_inputs_may_be_results) {
  const Tensor c = full({2}, 3.0);
  const Graph g = traced(
      [&](const Tensors& x) {
        return Tensors{x[0], c, transpose(x[0]), c};
      },
      {{{2, 3}, Dtype::f32}});
  const Tensor x = uniform({2, 3}, {1, 1, 1});
  const Tensors out = Plan(g).run({x});
  BOOST_TEST(identical(out[0], x));
  BOOST_TEST(identical(out[1], c));
  BOOST_TEST(identical(out[2], transpose(x)));
  BOOST_TEST(identical(out[3], c));
}

BOOST_AUTO_TEST_CASE(texts_parse_back) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const programs::Program f(seed);
    const Graph g = trace([&](const Tensors& x) { return f(x); }, {f.specs().data(), f.specs().size()});
    const std::string text = g.str();
    const Graph back = parse_graph(text);
    BOOST_TEST(back.str() == text);
    const Tensors in = f.inputs();
    const Tensors wanted = replay(g, {in.data(), in.size()});
    const Tensors got = replay(back, {in.data(), in.size()});
    for (std::size_t i = 0; i < wanted.size(); ++i) BOOST_TEST(identical(got[i], wanted[i]), "seed " << seed);
  }
}

BOOST_AUTO_TEST_CASE(every_kind_of_constant_parses_back) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor special = Tensor::from({inf, -inf, std::nanf("5"), 1e-45F, -0.0F, 0.1F}, {6});
  const Tensor doubles = Tensor::from({0.1, -1e300, 5e-324}, {3});
  const Tensor large = uniform({100}, {1, 1, 1});
  Parameter w("the \"w\"", zeros({6}));
  const Graph g = traced(
      [&](const Tensors& x) {
        const Tensor flags = Tensor::from({true, false, true}, {3});
        const Tensor draw = uniform({2}, {1, 2, 3}, -0.5, 2);
        w.assign(w.value() + special);
        return Tensors{x[0] + special, cast(where(flags, doubles, 0.25), Dtype::f32), large + 1,
                       pad(draw, {1}, {0}, 3)};
      },
      {{{6}, Dtype::f32}});
  const std::string text = g.str();
  const Tensor given[] = {large};
  ParseOptions options;
  options.constants = given;
  options.variable = [&](std::string_view name) { return name == "the \"w\"" ? static_cast<Variable>(w) : Variable(); };
  const Graph back = parse_graph(text, options);
  BOOST_TEST(back.str() == text);
  BOOST_TEST((back.variables[0] == w));
  const Tensor x = zeros({6});
  const Tensors wanted = Plan(g).run({x});
  const Tensors got = Plan(back).run({x});
  for (std::size_t i = 0; i < wanted.size(); ++i) BOOST_TEST(identical(got[i], wanted[i]));
}

BOOST_AUTO_TEST_CASE(bad_texts_name_their_line) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "line 0"},
      {"graph {\n  input %0: f32[2]\n", "too early"},
      {"graph {\n  %1: f32[2] = nonsense(%0)\n}\n", "unknown operation 'nonsense'"},
      {"graph {\n  input %0: f12[2]\n}\n", "line 2: not a dtype 'f12'"},
      {"graph {\n  input %0: f32[2]\n  %1: f32[3] = exp(%0)\n  return %1\n}\n", "exp gives f32[2]"},
      {"graph {\n  %1: f32[2] = exp(%0)\n}\n", "used before it is defined"},
      {"graph {\n  input %0: f32[2]\n  input %0: f32[2]\n}\n", "defined twice"},
      {"graph {\n  constant %0: f32[2] = {0x1p+0}\n}\n", "wrong number of elements"},
      {"graph {\n  constant %0: f32[2] = #3\n}\n", "no constant #3"},
      {"graph {\n  return %4\n}\n", "used before it is defined"},
      {"graph {\n  input %0: f32[2] left\n}\n", "left over"},
      {"graph {\n  input %99999999999: f32[2]\n}\n", "not a number"}};
  for (const auto& [text, message] : cases) BOOST_CHECK_EXCEPTION(parse_graph(text), Error, says(message));
}

BOOST_AUTO_TEST_CASE(texts_with_wrong_attributes_are_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"slice(%0) axis=0 begin=0 count=2", "line 3: slice: attribute 'step' is missing"},
      {"slice(%0) axis=0 begin=0 count=2 step=1 stride=1",
       "slice: attribute 'stride' is unknown; there are: axis, begin, count, step"},
      {"slice(%0) axis=0 begin=0 count=2 step=1 step=1", "slice: attribute 'step' is given twice"},
      {"slice(%0) axis=0.0 begin=0 count=2 step=1", "slice: attribute 'axis' must be an integer, got a float"},
      {"slice(%0) axis=9999999999 begin=0 count=2 step=1",
       "slice: attribute 'axis' must be an integer of 32 bits, got 9999999999"},
      {"cast(%0) dtype=\"f32\"", "cast: attribute 'dtype' must be a dtype, got a text"},
      {"reshape(%0)", "reshape: attribute 'shape' is missing"},
      {"sum(%0) axes=[0] keepdim=~1", "sum: attribute 'keepdim' must be true or false, got a literal"},
      {"contiguous(%0) axis=0", "contiguous: attribute 'axis' is unknown; there are: none"},
      {"exp(%0) d=~1", "exp: attribute 'd' is unknown; there are: a, b, c"},
      {"add(%0) b=1", "add: attribute 'b' must be a literal, got an integer"},
      {"add(%0) =1", "a word is missing"},
      {"add(%0)", "add takes 2 operands, got 1 tensors and 0 literals"},
      {"add(%0, %0) b=~1", "add takes 2 operands, got 2 tensors and 1 literals"},
      {"exp(%0) c=~1", "exp takes 1 operands, got 1 tensors and 1 literals"},
      {"add() a=~1 b=~2", "add takes 2 operands, got 0 tensors and 2 literals"},
      {"scan(%0) steps=2 reverse=false {\n    return\n  }", "scan: attribute 'parts' is missing"}};
  for (const auto& [application, message] : cases) {
    const std::string text = std::string("graph {\n  input %0: f32[2]\n  %1: f32[2] = ") + application + "\n}\n";
    BOOST_CHECK_EXCEPTION(parse_graph(text), TraceError, says(message));
  }
}

/// Functions resolve axes and bounds before an operation gets them; a parsed text does not.
BOOST_AUTO_TEST_CASE(attributes_of_a_text_that_no_function_gives_are_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"slice(%0) axis=2 begin=0 count=2 step=1", "slice: axis 2 is out of range for rank 2"},
      {"slice(%0) axis=-1 begin=0 count=2 step=1", "slice: axis -1 is out of range for rank 2"},
      {"slice(%0) axis=100000 begin=0 count=2 step=1", "slice: axis 100000 is out of range for rank 2"},
      {"slice(%0) axis=0 begin=1 count=2 step=1", "slice: 2 elements from 1, 1 apart, are not on axis 0 of [2, 3]"},
      {"slice(%0) axis=1 begin=0 count=3 step=2", "slice: 3 elements from 0, 2 apart"},
      {"slice(%0) axis=1 begin=0 count=2 step=-1", "slice: 2 elements from 0, -1 apart"},
      {"slice(%0) axis=1 begin=2 count=2 step=-9223372036854775808", "slice: 2 elements from 2"},
      {"slice(%0) axis=1 begin=0 count=9223372036854775807 step=9223372036854775807", "slice: 9223372036854775807"},
      {"slice(%0) axis=1 begin=0 count=-1 step=1", "slice: -1 elements"},
      {"slice(%0) axis=1 begin=-9223372036854775808 count=0 step=1", "slice: 0 elements"},
      {"slice(%0) axis=1 begin=0 count=1 step=0", "slice: 1 elements"},
      {"select(%0) axis=0 index=2", "select: index 2 is out of range for axis 0 of [2, 3]"},
      {"select(%0) axis=0 index=-1", "select: index -1 is out of range"},
      {"select(%0) axis=2 index=0", "select: axis 2 is out of range"},
      {"unbind(%0) axis=8", "unbind: axis 8 is out of range"},
      {"split(%0) axis=5 size=1", "split: axis 5 is out of range"},
      {"split(%0) axis=0 size=0", "split: the size of a piece must be positive, got 0"},
      {"concat(%0, %0) axis=2", "concat: axis 2 is out of range"},
      {"concat() axis=0", "concat: nothing to join"},
      {"stack(%0, %0) axis=3", "stack: axis 3 is out of range for rank 3"},
      {"stack() axis=0", "stack: nothing to join"},
      {"pad(%0) before=[1] after=[1] value=~0",
       "pad: before [1] and after [1] need one amount for each axis of [2, 3]"},
      {"permute(%0) order=[0]", "permute: order [0] does not fit shape [2, 3]"},
      {"permute(%0) order=[0, 9]", "permute: axis 9 is out of range"},
      {"permute(%0) order=[1, 1]", "permute: axis 1 is given twice"},
      {"expand(%0) shape=[3]", "expand: [2, 3] does not broadcast to [3]"},
      {"expand(%0) shape=[4, 3]", "expand: [2, 3] does not broadcast to [4, 3]"},
      {"sum(%0) axes=[2] keepdim=false", "sum: axis 2 is out of range"},
      {"prod(%0) axes=[-1] keepdim=false", "prod: axis -1 is out of range"},
      {"amax(%0) axes=[1, 1] keepdim=true", "amax: axis 1 is given twice"},
      {"argmax(%0) axis=4 keepdim=true", "argmax: axis 4 is out of range"},
      {"prod_others(%0) axes=[7]", "prod_others: axis 7 is out of range"},
      {"index_select(%0, %9) axis=2", "index_select: axis 2 is out of range"},
      {"gather(%0, %9) axis=-3", "gather: axis -3 is out of range"},
      {"full() shape=[2] value=~1.5 dtype=i64", "full: float literal 1.5"},
      {"uniform() shape=[2] dtype=bool seed=1 stream=1 call=1 low=0.0 high=1.0", "uniform: dtype must be a float"}};
  for (const auto& [application, message] : cases) {
    const std::string text =
        std::string("graph {\n  input %0: f32[2, 3]\n  input %9: i64[2]\n  %1: f32[2] = ") + application + "\n}\n";
    BOOST_TEST_CONTEXT(application) BOOST_CHECK_EXCEPTION(parse_graph(text), Error, says(message));
  }
}

BOOST_AUTO_TEST_CASE(attributes_of_a_text_come_into_the_order_of_their_operation) {
  const auto text = [](const char* attributes) {
    return std::string("graph {\n  input %0: f32[4]\n  %1: f32[2] = slice(%0) ") + attributes + "\n  return %1\n}\n";
  };
  BOOST_TEST(parse_graph(text("step=2 count=2 begin=0 axis=0")).str() == text("axis=0 begin=0 count=2 step=2"));
}

BOOST_AUTO_TEST_CASE(validation_finds_wrong_types) {
  Graph g = traced([](const Tensors& x) { return Tensors{exp(x[0])}; }, {{{2}, Dtype::f32}});
  Graph wrong = g;
  wrong.values[1].shape = {3};
  BOOST_CHECK_EXCEPTION(wrong.validate(), TraceError, says("exp gives f32[2]"));
  wrong = g;
  wrong.outputs[0] = 9;
  BOOST_CHECK_EXCEPTION(wrong.validate(), TraceError, says("%9"));
}

BOOST_AUTO_TEST_CASE(drawings_name_operations_and_variables) {
  Parameter w("weight", zeros({2}));
  const Graph g = traced([&](const Tensors& x) { return Tensors{x[0] * w}; }, {{{2}, Dtype::f32}});
  const std::string drawing = g.graphviz();
  for (const char* part : {"digraph", "mul", "weight", "v0 -> v2", "output 0"})
    BOOST_TEST(drawing.find(part) != std::string::npos, part);
}

BOOST_AUTO_TEST_CASE(a_gradient_is_part_of_the_trace) {
  Parameter w("w", full({2}, 2.0));
  const Graph g = traced(
      [&](const Tensors& x) {
        Tape tape;
        return Tensors{tape.grad(sum(square(x[0] * w)), std::vector<Parameter>{w})[0]};
      },
      {{{2}, Dtype::f32}});
  const Tensors out = Plan(g).run({full({2}, 3.0)});
  BOOST_TEST(identical(out[0], full({2}, 36.0)));  // 2 x^2 w
  BOOST_TEST(count(g, "mul") >= 2U);
}

BOOST_AUTO_TEST_SUITE_END()
