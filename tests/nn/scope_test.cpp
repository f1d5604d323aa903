// The path of the layer: which nodes of a traced program carry it, through gradients and passes, and what reads it.
#include <map>
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/nn/stream/stream.h"
#include "support/compare.h"

using namespace ferrite;
using support::says;

namespace {

using Paths = std::set<std::string>;

void add_paths(const Graph& g, const std::string& outer, Paths& paths) {
  for (const Graph::Node& n : g.nodes) {
    const std::string own = n.scope.empty() ? outer : std::string(n.scope.path());
    paths.insert(own);
    if (n.attrs.body) add_paths(detail::Body::of(n.attrs).graph(), own, paths);
  }
}

/// The paths of all nodes, those in bodies among them; "" where one has none.
Paths paths_of(const Graph& g) {
  Paths paths;
  add_paths(g, "", paths);
  return paths;
}

Graph simplified(Graph g) {
  passes::simplify(g);
  return g;
}

/// Forward; the loss and the gradients of all parameters.
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

/// The sum of squares, so that a loss is a layer, too.
struct Squares final : nn::Layer {
  std::string kind() const override { return "squares"; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return sum(square(x)); }
  std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Squares>(); }
};

constexpr std::int64_t kIn = 6, kUnits = 4;
const Spec kSequence{{3, 5, kIn}, Dtype::f32};
const Spec kOneStep{{3, 1, kIn}, Dtype::f32};

/// A module that is no layer, in one that is.
struct Encoder : nn::Module {
  nn::Linear first{kIn, kUnits};
  nn::Residual rest;
  Parameter scale;
  Encoder() {
    rest.add("0", std::make_unique<nn::Linear>(kUnits, kUnits));
    rest.add("act", std::make_unique<nn::Activation>("tanh", nn::activation("tanh")));
    scale = parameter("scale", {kUnits}, nn::init::constant(2), {});
    adopt("first", first), adopt("rest", rest);
  }
  Tensor encode(const Tensor& x) const {
    return inside([&] { return rest(first(x)) * scale.value(); });
  }
};
struct Translator final : nn::Layer {
  Encoder encoder;
  nn::Linear head{kUnits, 2};
  Squares loss;
  explicit Translator(std::uint64_t seed) : Layer({.seed = seed}) {
    adopt("encoder", encoder), adopt("head", head), adopt("loss", loss);
  }
  std::string kind() const override { return "translator"; }
  Tensor forward(const Tensor& x, const nn::Context&) const override { return loss(head(encoder.encode(x))); }
  std::unique_ptr<nn::Layer> clone() const override { return nullptr; }
};
const Paths kAll{"encoder", "encoder.first", "encoder.rest", "encoder.rest.0", "encoder.rest.act", "head", "loss"};

/// A cell of a user's with a layer inside.
struct OwnCell final : nn::CustomCell {
  nn::Linear gates;
  OwnCell(std::int64_t in, std::int64_t units, const nn::Init& init) : gates(in + units, units, init.child("gates")) {
    adopt("gates", gates);
  }
  std::string kind() const override { return "cell"; }
  RecurrentState step(const Tensor& x, const RecurrentState& before) const override {
    return {tanh(gates(concat({x, before.h}, 1)))};
  }
};

/// One layer and the loss.
nn::Sequential chain(const std::string& name, std::unique_ptr<nn::Layer> layer) {
  nn::Sequential net({.seed = 3});
  net.add(name, std::move(layer));
  net.add("loss", std::make_unique<Squares>());
  return net;
}

/// Forward, with gradients, and both as plans run them.
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

/// Picking the log-probabilities of a few classes moves in front of what computes them.
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

/// A product of a layer and the two of its gradient.
BOOST_AUTO_TEST_CASE(the_gradient_of_a_layer_runs_under_its_path) {
  const Translator net(1);
  const Graph g = simplified(traced_gradient(net, {{3, kIn}, Dtype::f32}));
  std::map<std::string, int> products;
  for (const Graph::Node& n : g.nodes) products[std::string(n.scope.path())] += n.op->name == "matmul";
  BOOST_TEST(products["head"] == 3);
  BOOST_TEST(products["encoder.rest.0"] == 3);
  BOOST_TEST(products["encoder.first"] == 2);  // nobody asks for that of the input
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

/// The layers inside a cell have paths of their own, in the bodies of scans and of their gradients, too.
BOOST_AUTO_TEST_CASE(layers_inside_a_cell_have_paths_of_their_own) {
  const Paths wanted{"loss", "own", "own.cell_l0.gates"};
  for (const nn::Form form : {nn::Form::unrolled, nn::Form::scan}) {
    const nn::Sequential net =
        chain("own", std::make_unique<nn::Custom>(nn::custom<OwnCell>(kIn, kUnits, {.form = form})));
    for (const Graph& g : programs_of(net, kSequence))
      BOOST_TEST(paths_of(g) == wanted, boost::test_tools::per_element());
  }
}

/// Equal cells of two layers share what is made of them, unless layers inside them have paths.
BOOST_AUTO_TEST_CASE(two_equal_recurrent_layers_keep_apart_in_one_program) {
  nn::Sequential net({.seed = 3});
  for (const char* name : {"a", "b"}) net.add(name, std::make_unique<nn::Custom>(nn::custom<OwnCell>(kIn, kIn)));
  net.add("loss", std::make_unique<Squares>());
  const Paths wanted{"a", "a.cell_l0.gates", "b", "b.cell_l0.gates", "loss"};
  for (const Graph& g : programs_of(net, kSequence))
    BOOST_TEST(paths_of(g) == wanted, boost::test_tools::per_element());
}

/// What a tape saves of a compiled function, and its gradient.
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
        for (const Graph::CellValue& r : g.reads) all.push_back(g.cells[r.cell].value());
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

// ---- errors ----------------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(an_error_names_the_innermost_layer) {
  const Translator net(1);
  const std::string wanted = "in encoder.first: linear: expects 6 features, got [3, 7]";
  const auto is_wanted = [&](const ShapeError& e) { return e.what() == wanted && e.layer() == "encoder.first"; };
  BOOST_CHECK_EXCEPTION((void)net(ones({3, 7})), ShapeError, is_wanted);
  BOOST_CHECK_EXCEPTION((void)compile([&](const Tensor& x) { return net(x); })(ones({3, 7})), ShapeError, is_wanted);
  // One that no module has adopted has no path.
  const auto plain = [](const ShapeError& e) {
    return std::string(e.what()).starts_with("linear: ") && e.layer().empty();
  };
  BOOST_CHECK_EXCEPTION((void)nn::Linear(6, 2, {.seed = 1})(ones({3, 7})), ShapeError, plain);
}

/// Values are refused in the same words by every mode of execution.
BOOST_AUTO_TEST_CASE(an_error_in_a_value_names_its_layer_in_every_mode) {
  nn::Sequential net({.seed = 1});
  auto inner = std::make_unique<nn::Sequential>();
  inner->add("words", std::make_unique<nn::Embedding>(5, 3));
  inner->add("gru", std::make_unique<nn::Gru>(3, 4));
  net.add("encoder", std::move(inner));
  const Tensor bad = Tensor::from({std::int64_t{1}, std::int64_t{7}}, {1, 2});
  const auto is_wanted = says("in encoder.words: embedding: token 7 lies outside 0..4");
  BOOST_CHECK_EXCEPTION((void)net(bad), ShapeError, is_wanted);
  const auto f = compile([&](const Tensor& x) { return net(x); });
  BOOST_CHECK_EXCEPTION((void)f(bad), ShapeError, is_wanted);
  const auto step = compile([&](const Tensor& x) {
    Tape tape;
    return tape.grad(sum(net(x)), net.parameters());
  });
  BOOST_CHECK_EXCEPTION((void)step(bad), ShapeError, is_wanted);
  {
    const Tape tape;
    BOOST_CHECK_EXCEPTION((void)f(bad), ShapeError, is_wanted);
  }
  const Graph g = trace([&](const Tensors& x) { return Tensors{net(x[0])}; }, std::vector<Spec>{bad.spec()});
  std::vector<Tensor> arguments{bad};
  for (const Graph::CellValue& r : g.reads) arguments.push_back(g.cells[r.cell].peek());
  BOOST_CHECK_EXCEPTION((void)replay(g, arguments), ShapeError, is_wanted);
  nn::Stream stream = net.stream();
  std::vector<float> y(4);
  const std::int64_t token = 7;
  BOOST_CHECK_EXCEPTION(stream.step(std::span(&token, 1), y), ShapeError, is_wanted);
}

/// A check inside the body of a scan: the layer of the scan, or the one inside its cell.
BOOST_AUTO_TEST_CASE(an_error_in_a_step_names_its_layer) {
  struct Picky final : nn::CustomCell {
    Parameter scale;
    Picky(std::int64_t, std::int64_t units, const nn::Init& init) {
      scale = parameter("scale", {units}, nn::init::constant(1), init);
    }
    std::string kind() const override { return "picky"; }
    RecurrentState step(const Tensor& x, const RecurrentState& before) const override {
      const Tensor at = checked(cast(x, Dtype::i64), 0, 3, "picky: a value of");
      return {before.h + scale.value() * cast(at, Dtype::f32)};
    }
  };
  for (const nn::Form form : {nn::Form::unrolled, nn::Form::scan}) {
    const nn::Sequential net = chain("own", std::make_unique<nn::Custom>(nn::custom<Picky>(1, 1, {.form = form})));
    const Tensor bad = Tensor::from({1.0F, 9.0F}, {1, 2, 1});
    const auto is_wanted = says("in own: picky: a value of 9 lies outside 0..3");
    BOOST_CHECK_EXCEPTION((void)net(bad), ShapeError, is_wanted);
    BOOST_CHECK_EXCEPTION((void)compile([&](const Tensor& x) { return net(x); })(bad), ShapeError, is_wanted);
  }
}

BOOST_AUTO_TEST_CASE(an_error_keeps_its_type_and_first_layer) {
  struct Broken final : nn::Layer {
    std::string kind() const override { return "broken"; }
    Tensor forward(const Tensor&, const nn::Context&) const override { throw ValueError("broken: as always"); }
    std::unique_ptr<nn::Layer> clone() const override { return std::make_unique<Broken>(); }
  };
  nn::Sequential net;
  auto inner = std::make_unique<nn::Residual>();
  inner->add("bad", std::make_unique<Broken>());
  net.add("0", std::move(inner));
  BOOST_CHECK_EXCEPTION((void)net(ones({1})), ValueError,
                        [](const ValueError& e) { return std::string(e.what()) == "in 0.bad: broken: as always"; });
  ValueError e("what");
  e.set_layer("");
  BOOST_TEST(e.what() == std::string("what"));
  e.set_layer("a");
  e.set_layer("b");
  BOOST_TEST(e.what() == std::string("in a: what"));
  const ValueError copy = e;
  BOOST_TEST(copy.layer() == "a");
}

BOOST_AUTO_TEST_SUITE_END()
