// The path of the layer: the nodes of a traced program that carry it, through gradients and passes, and its readers.
#include <map>
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/scan_stages.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "nn/scoped_nets.h"
#include "support/compare.h"

using namespace ferrite;
using namespace scoped_nets;

namespace {

using Paths = std::set<std::string>;

void add_paths(const Graph& g, const std::string& outer, Paths& paths) {
  for (const Graph::Node& n : g.nodes) {
    const std::string own = n.scope.empty() ? outer : std::string(n.scope.path());
    paths.insert(own);
    if (n.attrs.body) add_paths(detail::Body::of(n.attrs).graph(), own, paths);
  }
}

/// Returns the paths of all nodes, including those in bodies; "" for a node without one.
Paths paths_of(const Graph& g) {
  Paths paths;
  add_paths(g, "", paths);
  return paths;
}

Graph simplified(Graph g) {
  passes::simplify(g);
  return g;
}

/// Traces the forward pass, or the loss and the gradients of all parameters.
Graph traced(const nn::Layer& net, const Spec& input) {
  return trace([&](const Tensors& x) { return Tensors{net(x[0])}; }, std::vector<Spec>{input});
}
Graph traced_gradient(const nn::Layer& net, const Spec& input) {
  return trace(
      [&](const Tensors& x) {
        Tape tape;
        const Tensor loss = net(x[0]);
        return tape.grad(loss, net.parameters());
      },
      std::vector<Spec>{input});
}

const Paths kAll{"encoder", "encoder.first", "encoder.rest", "encoder.rest.0", "encoder.rest.act", "head", "loss"};

/// Returns the forward pass, with gradients, and both as plans run them.
std::vector<Graph> programs_of(const nn::Layer& net, const Spec& input) {
  std::vector<Graph> all;
  for (const Graph& g : {traced(net, input), traced_gradient(net, input)}) {
    all.push_back(simplified(g));
    all.push_back(Plan(g).graph());
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scopes)

BOOST_AUTO_TEST_CASE(a_module_knows_its_path_in_the_outermost_one) {
  const Translator net(1);
  BOOST_TEST(net.path().empty());
  BOOST_TEST(net.encoder.path() == "encoder");
  BOOST_TEST(net.encoder.rest.path() == "encoder.rest");
  BOOST_TEST(net.head.path() == "head");
  nn::Sequential outer;
  outer.add("net", std::make_unique<Translator>(1));
  const auto& inner = dynamic_cast<const Translator&>(outer[0]);
  BOOST_TEST(inner.encoder.first.path() == "net.encoder.first");
  BOOST_TEST(outer.named_parameters()[0].name == inner.encoder.path() + ".scale");
  nn::Sequential moved = std::move(outer);
  BOOST_TEST(inner.encoder.first.path() == "net.encoder.first");
}

BOOST_AUTO_TEST_CASE(every_node_of_a_layer_carries_its_path_through_gradients_and_passes) {
  const Translator net(1);
  for (const Graph& g : programs_of(net, {{3, kIn}, Dtype::f32}))
    BOOST_TEST(paths_of(g) == kAll, boost::test_tools::per_element());
}

/// A pass moves picking the log-probabilities of a few classes before their computation.
BOOST_AUTO_TEST_CASE(what_passes_write_has_the_path_of_what_it_stands_for) {
  struct Loss final : nn::Layer {
    std::string kind() const override { return "loss"; }
    Tensor forward(const Tensor& x, const nn::Context&) const override {
      return nn::cross_entropy(x, Tensor::from({std::int64_t{0}, std::int64_t{15}, std::int64_t{2}}));
    }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Loss>(); }
  };
  nn::Sequential net({.seed = 1});
  net.add("head", std::make_unique<nn::Linear>(kIn, 16));
  net.add("loss", std::make_unique<Loss>());
  const Graph g = traced(net, {{3, kIn}, Dtype::f32});
  BOOST_TEST(simplified(g).str() != g.str());
  const Paths wanted{"head", "loss"};
  for (const Graph& p : programs_of(net, {{3, kIn}, Dtype::f32}))
    BOOST_TEST(paths_of(p) == wanted, boost::test_tools::per_element());
}

/// Operations of a layer that need no gradient carry its path, too, and so does the copy of a result that is a view.
BOOST_AUTO_TEST_CASE(frozen_parts_and_copies_of_results_have_their_path) {
  struct Centred final : nn::Layer {
    std::string kind() const override { return "centred"; }
    Tensor forward(const Tensor& x, const nn::Context&) const override {
      const auto largest = [&] {
        const NoTapes frame;
        return amax(x, {1}, true);
      };
      return transpose(x - largest());
    }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Centred>(); }
  };
  nn::Sequential net;
  net.add("centred", std::make_unique<Centred>());
  const Graph g = traced(net, {{3, kIn}, Dtype::f32});
  const Paths wanted{"centred"};
  BOOST_TEST(paths_of(g) == wanted, boost::test_tools::per_element());
  const Plan plan(g);
  BOOST_TEST((plan.graph().nodes.back().op == find_primitive("contiguous")));
  BOOST_TEST(paths_of(plan.graph()) == wanted, boost::test_tools::per_element());
}

/// The gradients of two slices become one concatenation.
BOOST_AUTO_TEST_CASE(joined_gradients_of_slices_have_their_path) {
  struct Halves final : nn::Layer {
    Parameter scale = parameter("scale", {kIn}, nn::init::constant(2), {});
    std::string kind() const override { return "halves"; }
    Tensor forward(const Tensor& x, const nn::Context&) const override {
      const Tensor h = x * scale.value();
      return concat({exp(slice(h, 1, 0, kIn / 2)), sin(slice(h, 1, kIn / 2, kIn))}, 1);
    }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Halves>(); }
  };
  const Graph g = simplified(traced_gradient(chain("halves", std::make_unique<Halves>()), {{3, kIn}, Dtype::f32}));
  const Paths wanted{"halves", "loss"};
  BOOST_TEST(paths_of(g) == wanted, boost::test_tools::per_element());
  const auto joins = [](const Graph::Node& n) { return n.op->name == "concat"; };
  BOOST_TEST(std::count_if(g.nodes.begin(), g.nodes.end(), joins) == 2);  // the layer's own, and that of its gradient
}

/// In the stages of a scan, operations act on many steps at once.
BOOST_AUTO_TEST_CASE(the_stages_of_a_scan_have_the_paths_of_its_body) {
  struct Apart final : nn::CustomCell {
    nn::Linear in, back;
    Apart(std::int64_t features, std::int64_t units, const nn::Init& init)
        : in(features, units, init.child("in")), back(units, units, init.child("back")) {
      adopt("in", in), adopt("back", back);
    }
    std::string kind() const override { return "apart"; }
    RecurrentState step(const Tensor& x, const RecurrentState& before) const override {
      return {in(x) + back(before.h)};
    }
  };
  const nn::Sequential net = chain("own", std::make_unique<nn::Custom>(nn::custom<Apart>(kIn, kUnits)));
  std::size_t scans = 0;
  for (const Graph::Node& n : traced(net, kSequence).nodes) {
    if (!n.attrs.body) continue;
    ++scans;
    const detail::ScanParts parts = detail::take_apart(detail::ScanBody::of(n.attrs), 4);
    const Paths hoisted{"own.cell_l0.in"};
    BOOST_TEST(paths_of(parts.before.graph) == hoisted, boost::test_tools::per_element());
    BOOST_TEST(paths_of(parts.step.graph).contains("own.cell_l0.back"));
  }
  BOOST_TEST(scans == 1U);
}

/// There is one product of a layer and two of its gradient.
BOOST_AUTO_TEST_CASE(the_gradient_of_a_layer_runs_under_its_path) {
  const Translator net(1);
  const Graph g = simplified(traced_gradient(net, {{3, kIn}, Dtype::f32}));
  std::map<std::string, int> products;
  for (const Graph::Node& n : g.nodes) products[std::string(n.scope.path())] += n.op->name == "matmul";
  BOOST_TEST(products["head"] == 3);
  BOOST_TEST(products["encoder.rest.0"] == 3);
  BOOST_TEST(products["encoder.first"] == 2);  // the gradient of the input is not requested
}

BOOST_AUTO_TEST_CASE(recurrent_layers_carry_their_path_in_every_form) {
  const Paths wanted{"loss", "rnn"};
  for (const nn::Form form : {nn::Form::fused, nn::Form::unrolled, nn::Form::scan})
    for (const bool both : {false, true}) {
      std::vector<std::unique_ptr<nn::Layer>> layers;
      layers.push_back(
          std::make_unique<nn::Gru>(kIn, kUnits, nn::GruOptions{.layers = 2, .bidirectional = both, .form = form}));
      layers.push_back(std::make_unique<nn::Lstm>(kIn, kUnits, nn::LstmOptions{.bidirectional = both, .form = form}));
      layers.push_back(std::make_unique<nn::Rnn>(kIn, kUnits, nn::RnnOptions{.bidirectional = both, .form = form}));
      for (const auto& layer : layers)
        for (const Spec& input : {kSequence, kOneStep})
          for (const Graph& g : programs_of(chain("rnn", layer->clone()), input))
            BOOST_TEST(paths_of(g) == wanted, boost::test_tools::per_element());
    }
}

/// The layers inside a cell have their own paths, also in the bodies of scans and of their gradients.
BOOST_AUTO_TEST_CASE(layers_inside_a_cell_have_paths_of_their_own) {
  const Paths wanted{"loss", "own", "own.cell_l0.gates"};
  for (const nn::Form form : {nn::Form::unrolled, nn::Form::scan}) {
    const nn::Sequential net =
        chain("own", std::make_unique<nn::Custom>(nn::custom<OwnCell>(kIn, kUnits, {.form = form})));
    for (const Graph& g : programs_of(net, kSequence))
      BOOST_TEST(paths_of(g) == wanted, boost::test_tools::per_element());
  }
}

/// Equal cells of two layers share what is made from them, unless layers inside them have paths.
BOOST_AUTO_TEST_CASE(two_equal_recurrent_layers_keep_apart_in_one_program) {
  nn::Sequential net({.seed = 3});
  for (const char* name : {"a", "b"}) net.add(name, std::make_unique<nn::Custom>(nn::custom<OwnCell>(kIn, kIn)));
  net.add("loss", std::make_unique<Squares>());
  const Paths wanted{"a", "a.cell_l0.gates", "b", "b.cell_l0.gates", "loss"};
  for (const Graph& g : programs_of(net, kSequence))
    BOOST_TEST(paths_of(g) == wanted, boost::test_tools::per_element());
}

/// The values that a tape saves of a compiled function have paths, and so has its gradient.
BOOST_AUTO_TEST_CASE(a_compiled_function_has_the_paths_of_what_it_calls) {
  const Translator net(1);
  const auto f = compile([&](const Tensor& x) { return net(x); });
  const auto step = compile([&](const Tensor& x) {
    Tape tape;
    return tape.grad(f(x), net.parameters());
  });
  (void)step(ones({3, kIn}));
  (void)f(ones({3, kIn}));
  BOOST_TEST(paths_of(f.graph()) == kAll, boost::test_tools::per_element());
  BOOST_TEST(paths_of(simplified(step.graph())) == kAll, boost::test_tools::per_element());
  Paths reported;
  for (const PlanReport::Step& s : step.report().steps)
    for (const Scope layer : s.layers) reported.insert(std::string(layer.path()));
  BOOST_TEST(reported.contains("encoder.rest.0"));
  BOOST_TEST(reported.contains("head"));
  BOOST_TEST(step.report().str(true).find("in head") != std::string::npos);
  BOOST_TEST(step.report().str().find("head") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(replaying_a_program_gives_its_paths_again) {
  const Translator net(1);
  const Graph g = traced_gradient(net, {{3, kIn}, Dtype::f32});
  const Graph again = trace(
      [&](const Tensors& x) {
        std::vector<Tensor> all{x[0]};
        for (const Graph::VariableValue& r : g.reads) all.push_back(g.variables[r.variable].value());
        return replay(g, all);
      },
      std::vector<Spec>{{{3, kIn}, Dtype::f32}});
  const auto steps = [](const Graph& graph) {
    std::vector<std::string> list;
    for (const Graph::Node& n : graph.nodes)
      list.push_back(std::string(n.scope.path()) + " " + std::string(n.op->name));
    return list;
  };
  BOOST_TEST(steps(again) == steps(g), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_text_holds_paths_on_demand_and_reads_them_back) {
  const nn::Sequential net = chain("own", std::make_unique<nn::Custom>(nn::custom<OwnCell>(kIn, kUnits)));
  const Graph g = traced_gradient(net, kSequence);
  BOOST_TEST(g.str().find("scope=") == std::string::npos);
  const std::string text = g.str(1 << 20, true);
  BOOST_TEST(text.find("scope=\"own.cell_l0.gates\"") != std::string::npos);
  const Graph back = parse_graph(text);
  BOOST_TEST(back.str(1 << 20, true) == text);
  BOOST_TEST(back.str(1 << 20) == g.str(1 << 20));
  BOOST_TEST(paths_of(back) == paths_of(g), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(costs_by_layer_add_up_to_the_whole) {
  const Translator net(1);
  const Graph g = traced(net, {{3, kIn}, Dtype::f32});
  Cost sum;
  std::map<std::string, std::int64_t> products;
  for (const LayerCost& l : cost_by_layer(g)) {
    sum += l.cost;
    products[std::string(l.scope.path())] = l.cost.multiply_adds;
  }
  BOOST_TEST(sum.multiply_adds == cost_of(g).multiply_adds);
  BOOST_TEST(sum.bytes == cost_of(g).bytes);
  BOOST_TEST(products["encoder.first"] == 3 * kIn * kUnits);
  BOOST_TEST(products["encoder.rest.0"] == 3 * kUnits * kUnits);
  BOOST_TEST(products["head"] == 3 * kUnits * 2);
  BOOST_TEST(products["loss"] == 0);
  const std::string table = cost_table(g);
  for (const std::string& path : kAll) BOOST_TEST(table.find("\n" + path + " ") != std::string::npos, path);
  BOOST_TEST(table.find("total") != std::string::npos);
  BOOST_TEST(cost_by_layer(Graph()).empty());
}

BOOST_AUTO_TEST_SUITE_END()
