// If, Loop, Scan, functions and initialisers of ONNX: results in closed form, eager and compiled.
#include <boost/test/unit_test.hpp>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "support/compare.h"
#include "support/wrong_calls.h"
#include "wire.h"

using namespace ferrite;
using namespace wire;
using support::identical;
using support::says;

namespace {

constexpr std::size_t kFloat = 1;
constexpr std::size_t kInt64 = 7;
constexpr std::size_t kBool = 9;

/// Checks that a model has the wanted results, eager and compiled.
void gives(const onnx::Model& model, const Tensors& in, const Tensors& wanted) {
  const Tensors eager = model.run(in);
  const auto compiled = compile([&](const Tensors& x) { return model.run(x); });
  const Tensors planned = compiled(in);
  BOOST_REQUIRE_EQUAL(eager.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    BOOST_TEST(identical(eager[i], wanted[i]));
    BOOST_TEST(identical(planned[i], wanted[i]));
  }
}

Tensor floats(std::initializer_list<float> values) {
  return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size())});
}

std::string chosen() {
  return graph_attribute("then_branch", graph(node("Relu", "x", "a"), {}, {"a"})) +
         graph_attribute("else_branch", graph(node_of("Add", {"x", "x"}, {"b"}), {}, {"b"}));
}

/// Returns the body state + x[i], where "xs" is from outside and y is the state.
std::string sums_body() {
  return graph(node_of("Gather", {"xs", "i"}, {"v"}) + node_of("Add", {"s", "v"}, {"s2"}) +
                   node("Identity", "c", "c2") + node("Identity", "s2", "y"),
               {"i", "c", "s"}, {"c2", "s2", "y"});
}

std::string sums_model(std::int64_t trips) {
  return model_of(graph(initialiser(tensor<std::int64_t>("n", kInt64, {}, {trips})) +
                            node_of("Loop", {"n", "", "x"}, {"last", "all"}, graph_attribute("body", sums_body())),
                        {"x", "xs"}, {"last", "all"}));
}

/// Returns a model that doubles the state while it is below 20.
std::string doubling_model(bool with_count) {
  const std::string body = graph(node_of("Add", {"s", "s"}, {"s2"}) + node_of("Less", {"s2", "limit"}, {"c2"}),
                                 {"i", "c", "s"}, {"c2", "s2"});
  return model_of(graph(initialiser(tensor<std::int64_t>("n", kInt64, {}, {10})) +
                            initialiser(tensor<float>("limit", kFloat, {}, {20})) +
                            initialiser(tensor<char>("yes", kBool, {}, {1})) +
                            node_of("Loop", {with_count ? "n" : "", "yes", "x"}, {"y"}, graph_attribute("body", body)),
                        {"x"}, {"y"}));
}

/// Returns a model of running sums of two inputs with axes and directions.
std::string scan_model(const std::string& more) {
  const std::string body =
      graph(node_of("Add", {"s", "v"}, {"s2"}) + node("Identity", "s2", "y"), {"s", "v"}, {"s2", "y"});
  return model_of(graph(node_of("Scan", {"s0", "v0"}, {"last", "all"},
                                graph_attribute("body", body) + int_attribute("num_scan_inputs", 1) + more),
                        {"s0", "v0"}, {"last", "all"}));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_control)

BOOST_AUTO_TEST_CASE(a_condition_that_is_known_takes_one_branch) {
  for (const char yes : {char(0), char(1)}) {
    const onnx::Model m = parsed(model_of(
        graph(initialiser(tensor<char>("c", kBool, {}, {yes})) + node("If", "c", "y", chosen()), {"x"}, {"y"})));
    gives(m, {floats({-1, 2})}, {yes ? floats({0, 2}) : floats({-2, 4})});
    BOOST_TEST(m.report().find(yes ? "then_branch alone" : "else_branch alone") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_condition_that_depends_on_data_chooses) {
  const onnx::Model m = parsed(model_of(graph(node("If", "c", "y", chosen()), {"c", "x"}, {"y"})));
  const auto compiled = compile([&](const Tensors& in) { return m.run(in); });
  for (const bool yes : {true, false}) {
    const Tensors in{full({}, yes, Dtype::boolean), floats({-1, 2})};
    const Tensor wanted = yes ? floats({0, 2}) : floats({-2, 4});
    BOOST_TEST(identical(m.run(in)[0], wanted));
    BOOST_TEST(identical(compiled(in)[0], wanted));
  }
  BOOST_TEST(compiled.plans() == 1U);
}

BOOST_AUTO_TEST_CASE(a_branch_that_is_never_taken_does_no_harm) {
  // The other branch drops an axis: torch.squeeze in a script makes such a model.
  const std::string branches = graph_attribute("then_branch", graph(node("Relu", "x", "a"), {}, {"a"})) +
                               graph_attribute("else_branch", graph(node("Flatten", "missing_axis", "b"), {}, {"b"}));
  const std::string bytes = model_of(graph(initialiser(tensor<std::int64_t>("one", kInt64, {1}, {2})) +
                                               node("Shape", "x", "shape") + node_of("Equal", {"shape", "one"}, {"c"}) +
                                               node("Identity", "x", "missing_axis") + node("If", "c", "y", branches),
                                           {"x"}, {"y"}));
  gives(parsed(bytes), {floats({-1, 2})}, {floats({0, 2})});
}

BOOST_AUTO_TEST_CASE(a_loop_with_a_count) {
  const Tensor xs = Tensor::from<float>({1, 10, 2, 20, 3, 30}, {3, 2});
  gives(parsed(sums_model(3)), {floats({0, 5}), xs},
        {floats({6, 65}), Tensor::from<float>({1, 15, 3, 35, 6, 65}, {3, 2})});
  gives(parsed(sums_model(1)), {floats({0, 5}), xs}, {floats({1, 15}), Tensor::from<float>({1, 15}, {1, 2})});
}

BOOST_AUTO_TEST_CASE(a_loop_that_makes_no_trip_stacks_nothing) {
  const Tensor xs = Tensor::from<float>({1, 10, 2, 20, 3, 30}, {3, 2});
  gives(parsed(sums_model(0)), {floats({0, 5}), xs}, {floats({0, 5}), zeros({0, 2})});
  // A loop whose condition is false from the beginning makes no trip either; an input that it would read is missing.
  const std::string bytes =
      model_of(graph(initialiser(tensor<char>("no", kBool, {}, {0})) +
                         node_of("Loop", {"", "no", "x"}, {"last", "all"}, graph_attribute("body", sums_body())),
                     {"x", "xs"}, {"last", "all"}));
  gives(parsed(bytes), {floats({0, 5}), xs}, {floats({0, 5}), zeros({0, 2})});
}

BOOST_AUTO_TEST_CASE(a_long_loop_is_a_scan) {
  const onnx::Model m = parsed(sums_model(40));
  std::vector<float> sums;
  for (int i = 1; i <= 40; ++i) sums.push_back(static_cast<float>(i * (i + 1) / 2));
  const Tensor xs = reshape(arange(1.0, 41.0, 1.0, Dtype::f32), {40, 1});
  gives(m, {floats({0}), xs}, {floats({820}), Tensor::from<float>(sums, {40, 1})});
  BOOST_TEST(m.report().find("scan of 40 trips") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_loop_whose_condition_ends_it) {
  gives(parsed(doubling_model(true)), {floats({3})}, {floats({24})});
  const onnx::Model without = parsed(doubling_model(false));
  BOOST_TEST(identical(without.run({floats({3})})[0], floats({24})));
  const auto compiled = compile([&](const Tensors& in) { return without.run(in); });
  BOOST_CHECK_EXCEPTION((void)compiled(Tensors{floats({3})}), Error, says("depends on data"));
  const onnx::Model few = parsed(doubling_model(false), {.most_trips = 2});
  BOOST_CHECK_EXCEPTION((void)few.run({floats({3})}), onnx::OnnxError, says("more than 2 trips"));
}

BOOST_AUTO_TEST_CASE(scans_with_axes_and_directions) {
  const Tensor v = Tensor::from<float>({1, 2, 3, 10, 20, 30}, {2, 3});
  gives(parsed(scan_model({})), {floats({0, 0, 0}), v},
        {floats({11, 22, 33}), Tensor::from<float>({1, 2, 3, 11, 22, 33}, {2, 3})});
  gives(parsed(scan_model(ints_attribute("scan_input_axes", {1}))), {floats({0, 0}), v},
        {floats({6, 60}), Tensor::from<float>({1, 10, 3, 30, 6, 60}, {3, 2})});
  gives(parsed(scan_model(ints_attribute("scan_input_axes", {1}) + ints_attribute("scan_output_axes", {1}))),
        {floats({0, 0}), v}, {floats({6, 60}), Tensor::from<float>({1, 3, 6, 10, 30, 60}, {2, 3})});
  gives(parsed(scan_model(ints_attribute("scan_input_directions", {1}))), {floats({0, 0, 0}), v},
        {floats({11, 22, 33}), Tensor::from<float>({10, 20, 30, 11, 22, 33}, {2, 3})});
  gives(parsed(scan_model(ints_attribute("scan_output_directions", {1}))), {floats({0, 0, 0}), v},
        {floats({11, 22, 33}), Tensor::from<float>({11, 22, 33, 1, 2, 3}, {2, 3})});
}

BOOST_AUTO_TEST_CASE(names_of_all_graphs_around_are_seen) {
  const auto choice = [](const std::string& branch) {
    return node_of("If", {"c"}, {"y"}, graph_attribute("then_branch", branch) + graph_attribute("else_branch", branch));
  };
  const std::string inner = graph(node_of("Sub", {"x", "a"}, {"y"}), {}, {"y"});
  const std::string middle = graph(node_of("Mul", {"x", "x"}, {"a"}) + choice(inner), {}, {"y"});
  const std::string whole = graph(initialiser(tensor<char>("c", 9, {}, {1})) + choice(middle), {"x"}, {"y"});
  gives(parsed(model_of(whole)), {floats({3, 4})}, {floats({-6, -12})});
}

BOOST_AUTO_TEST_CASE(functions_with_attributes) {
  // outer(x; slope = 0.5) calls inner with its slope; inner is a LeakyRelu.
  const std::string inner =
      function("inner", {"x"}, {"y"}, {node("LeakyRelu", "x", "y", reference_attribute("alpha", 1, "steep"))},
               field(6, "steep"));
  const std::string standard = field(1, "slope") + number(20, 1) + varint(2U << 3 | 5) + std::string("\0\0\0\x3f", 4);
  const std::string outer =
      function("outer", {"a"}, {"b"}, {node("inner", "a", "b", own(reference_attribute("steep", 1, "slope")))},
               field(11, standard));
  const auto model = [&](const std::string& more) {
    return parsed(model_of(graph(node("outer", "x", "y", own(more)), {"x"}, {"y"}), 17,
                           field(8, field(1, "own") + number(2, 1)) + inner + outer));
  };
  gives(model({}), {floats({-4, 4})}, {floats({-2, 4})});
  gives(model(float_attribute("slope", 0.25F)), {floats({-4, 4})}, {floats({-1, 4})});
  BOOST_CHECK_EXCEPTION((void)model(float_attribute("slop", 0.25F)).run({floats({1})}), onnx::OnnxError, says("slop"));
}

/// Returns nodes that call a function from within `depth` nested branches.
std::string within_branches(int depth, const std::string& function_name) {
  std::string nodes = node(function_name, "x", "y", own());
  for (int i = 0; i < depth; ++i)
    nodes = node("If", "yes", "y",
                 graph_attribute("then_branch", graph(nodes, {}, {"y"})) +
                     graph_attribute("else_branch", graph(node("Identity", "x", "y"), {}, {"y"})));
  return nodes;
}

/// The main graph does not count.
BOOST_AUTO_TEST_CASE(graphs_and_functions_nest_63_deep) {
  const std::string yes =
      node_of("Constant", {}, {"yes"},
              field(5, field(1, "value") + number(20, 4) + field(5, tensor<char>("", kBool, {}, {1}))));
  const auto model = [&](int functions, int graphs, int around) {
    std::string all = field(8, field(1, "own") + number(2, 1));
    for (int i = 0; i < functions; ++i) {
      const std::string name = "f" + std::to_string(i), next = "f" + std::to_string(i + 1);
      const std::string nodes =
          graphs > 0 && i + 1 < functions ? within_branches(graphs, next) : node("Relu", "x", "y");
      all += function(name, {"x"}, {"y"}, {yes, nodes});
    }
    // The function is called at the top first, so it has been read when it is called at depth.
    return model_of(graph(yes + node("f0", "x", "y0", own()) + within_branches(around, "f0"), {"x"}, {"y"}), 17, all);
  };
  gives(parsed(model(16, 3, 2)), {floats({-1, 2})}, {floats({0, 2})});  // 16 functions, 45 graphs in them, 2 around
  BOOST_CHECK_EXCEPTION((void)parsed(model(16, 3, 3)), onnx::OnnxError, says("both together"));
  BOOST_CHECK_EXCEPTION((void)parsed(model(17, 3, 0)), onnx::OnnxError, says("both together"));
}

BOOST_AUTO_TEST_CASE(initialisers_are_parameters_that_learn) {
  const std::string bytes =
      model_of(graph(initialiser(tensor<float>("w", kFloat, {2}, {2, 3})) +
                         initialiser(tensor<std::int64_t>("shape", kInt64, {2}, {2, 1})) +
                         node_of("Mul", {"x", "w"}, {"p"}) + node_of("Reshape", {"p", "shape"}, {"y"}),
                     {"x"}, {"y"}));
  const onnx::Model m = parsed(bytes);
  BOOST_REQUIRE_EQUAL(m.named_parameters().size(), 1U);
  BOOST_TEST(m.named_parameters()[0].name == "w");
  Tape tape;
  const auto gradients = tape.grad(sum(square(m(floats({1, 2})))), m.parameters());
  BOOST_TEST(identical(gradients[0], floats({4, 24})));  // 2 w x^2
  const auto copy = m.clone();
  m.named_parameters()[0].variable.assign(floats({0, 0}));
  BOOST_TEST(identical((*copy)(floats({1, 2})), Tensor::from<float>({2, 6}, {2, 1})));
  BOOST_TEST(parsed(bytes, {.frozen = true}).named_parameters().empty());
}

BOOST_AUTO_TEST_CASE(initialisers_that_decide_on_shapes_are_constants_however_far_away) {
  for (const int nodes : {0, 1, 61, 62, 63, 64, 65, 126, 127, 128, 200}) {
    std::string content = initialiser(tensor<float>("w", kFloat, {1}, {3})) +
                          initialiser(tensor<float>("extents", kFloat, {2}, {2, 1})) +
                          node("Cast", "extents", "shape0", int_attribute("to", kInt64));
    for (int i = 0; i < nodes; ++i)
      content += node("Identity", "shape" + std::to_string(i), "shape" + std::to_string(i + 1));
    content += node_of("Mul", {"x", "w"}, {"p"}) + node_of("Reshape", {"p", "shape" + std::to_string(nodes)}, {"y"});
    const onnx::Model m = parsed(model_of(graph(content, {"x"}, {"y"})));
    BOOST_REQUIRE_EQUAL(m.named_parameters().size(), 1U);
    BOOST_TEST(m.named_parameters()[0].name == "w");
    gives(m, {floats({1, 2})}, {Tensor::from<float>({3, 6}, {2, 1})});
  }
}

/// The name "shape" in a branch is that of the outer graph until a node gives the name to another value.
BOOST_AUTO_TEST_CASE(a_name_that_is_given_again_later_decides_on_nothing) {
  const std::string branch =
      graph(initialiser(tensor<float>("w", kFloat, {2}, {2, 3})) + node_of("Mul", {"x", "w"}, {"p"}) +
                node_of("Reshape", {"p", "shape"}, {"y"}) + node("Cast", "w", "shape", int_attribute("to", kInt64)),
            {}, {"y"});
  const onnx::Model m = parsed(model_of(
      graph(initialiser(tensor<char>("yes", kBool, {}, {1})) +
                initialiser(tensor<std::int64_t>("shape", kInt64, {2}, {2, 1})) +
                node("If", "yes", "z", graph_attribute("then_branch", branch) + graph_attribute("else_branch", branch)),
            {"x"}, {"z"})));
  BOOST_TEST(m.named_parameters().size() == 2U);
  gives(m, {floats({1, 2})}, {Tensor::from<float>({2, 6}, {2, 1})});
}

BOOST_AUTO_TEST_CASE(parameters_with_one_name_are_numbered) {
  std::string nodes;
  for (int i = 0; i < 4; ++i) {
    const std::string name = i == 2 ? "w_2" : "w";
    const std::string branch =
        graph(initialiser(tensor<float>(name, kFloat, {1}, {1})) + node_of("Mul", {"x", name}, {"p"}), {}, {"p"});
    nodes += node("If", "yes", "y" + std::to_string(i),
                  graph_attribute("then_branch", branch) +
                      graph_attribute("else_branch", graph(node("Identity", "x", "p"), {}, {"p"})));
  }
  const onnx::Model m = parsed(
      model_of(graph(initialiser(tensor<char>("yes", kBool, {}, {1})) + nodes, {"x"}, {"y0", "y1", "y2", "y3"})));
  std::vector<std::string> names;
  for (const auto& p : m.named_parameters()) names.push_back(p.name);
  BOOST_TEST(names == (std::vector<std::string>{"w", "w_2", "w_2_2", "w_3"}), boost::test_tools::per_element());
}

/// `most_elements` limits what a node makes.
BOOST_AUTO_TEST_CASE(constants_of_a_branch_may_be_larger_than_what_a_node_makes) {
  for (const std::size_t n : {100U, 300U, 3000U}) {
    const std::string branch =
        graph(initialiser(tensor<char>("w", 3, {n}, std::vector<char>(n))) + node("Shape", "w", "n"), {}, {"n"});
    const onnx::Model m = parsed(
        model_of(graph(
            initialiser(tensor<char>("yes", kBool, {}, {1})) + node("Identity", "x", "same") +
                node("If", "yes", "y", graph_attribute("then_branch", branch) + graph_attribute("else_branch", branch)),
            {"x"}, {"y", "same"})),
        {.most_elements = 20});
    BOOST_TEST(m.run({floats({1})})[0].item<std::int64_t>() == static_cast<std::int64_t>(n));
  }
}

BOOST_AUTO_TEST_CASE(inputs_that_are_constants) {
  const std::string bytes = model_of(graph(node_of("Reshape", {"x", "shape"}, {"y"}), {"x", "shape"}, {"y"}));
  const Tensor x = floats({1, 2, 3, 4});
  const Tensor shape = Tensor::from<std::int64_t>({2, 2}, {2});
  const onnx::Model free = parsed(bytes);
  BOOST_TEST(free.run({x, shape})[0].shape() == (Shape{2, 2}));
  const auto compiled = compile([&](const Tensors& in) { return free.run(in); });
  BOOST_CHECK_EXCEPTION((void)compiled(Tensors{x, shape}), Error, says("depends on data"));
  const onnx::Model fixed = parsed(bytes, {.constants = {{"shape", shape}}});
  BOOST_TEST(fixed.inputs().size() == 1U);
  gives(fixed, {x}, {reshape(x, {2, 2})});
  BOOST_CHECK_THROW((void)parsed(bytes, {.constants = {{"no_input", shape}}}), ValueError);
}

BOOST_AUTO_TEST_SUITE_END()
