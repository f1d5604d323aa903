// The contents of an exported file (names, open extents, states and variables), and errors.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <optional>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/exchange/onnx.h"
#include "ferrite/exchange/onnx_export.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/exchange/step_program.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/optim/sgd.h"
#include "io/temporary_folder.h"
#include "onnx/exporting.h"
#include "onnx/wire.h"
#include "support/compare.h"

using namespace ferrite;
using exporting::exported;
using exporting::Function;
using exporting::numbers;
using support::says;
using wire::parsed;

namespace {

std::vector<std::string> names_of(const std::vector<onnx::Port>& ports) {
  std::vector<std::string> names;
  for (const onnx::Port& p : ports) names.push_back(p.name);
  return names;
}
using Names = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(onnx_export_options)

BOOST_AUTO_TEST_CASE(inputs_outputs_and_parameters_have_their_names) {
  const auto net = dsl::sequence(3).gru(4, {}, "encoder").linear(2).build(/*seed=*/1);
  const Function f = [&](const Tensors& in) -> Tensors { return {net(in[0])}; };
  const onnx::Model plain = parsed(exported(f, {{{2, 5, 3}}}));
  BOOST_TEST(names_of(plain.inputs()) == (Names{"input0"}), boost::test_tools::per_element());
  BOOST_TEST(names_of(plain.outputs()) == (Names{"output0"}), boost::test_tools::per_element());
  const onnx::Model named = parsed(exported(f, {{{2, 5, 3}}}, {.inputs = {"sound"}, .outputs = {"words"}}));
  BOOST_TEST(names_of(named.inputs()) == (Names{"sound"}), boost::test_tools::per_element());
  BOOST_TEST(names_of(named.outputs()) == (Names{"words"}), boost::test_tools::per_element());
  BOOST_TEST(named.inputs()[0].shape == (Names{"2", "5", "3"}), boost::test_tools::per_element());

  BOOST_TEST(named.named_parameters().size() == net.named_parameters().size());
  for (const auto& p : net.named_parameters()) {
    const auto all = named.named_parameters();
    const auto at = std::ranges::find(all, p.name, &nn::Named<Parameter>::name);
    BOOST_TEST_REQUIRE((at != all.end()), p.name);
    BOOST_TEST(support::identical(at->variable.peek(), p.variable.peek()));
  }
  BOOST_TEST(named.report().find("GRU") != std::string::npos, named.report());
  const std::string bytes = exported(f, {{{2, 5, 3}}});
  BOOST_TEST(bytes.find("encoder/GRU") != std::string::npos, "nodes are named by their layers");
}

/// One file runs at extents other than those of the trace, with nodes of every family that depends on them.
BOOST_AUTO_TEST_CASE(extents_stay_open) {
  const auto check = [](const std::string& what, const dsl::Builder& builder, std::int64_t width, bool of_time) {
    BOOST_TEST_CONTEXT(what) {
      const auto net = builder.build(/*seed=*/1);
      net.eval();
      const Function f = [&](const Tensors& in) -> Tensors { return {net(in[0])}; };
      const onnx::Model model = parsed(
          exported(f, {{{1, 9, width}}}, {.dynamic = {{.axis = 0, .name = "batch"}, {.axis = 1, .name = "time"}}}));
      BOOST_TEST(model.inputs()[0].shape == (Names{"batch", "time", std::to_string(width)}),
                 boost::test_tools::per_element());
      BOOST_TEST(model.outputs()[0].shape[0] == "batch");
      if (of_time) BOOST_TEST(model.outputs()[0].shape[1] == "time");
      const Function read = [&](const Tensors& in) { return model.run(in); };
      const auto again = [&] {
        return parsed(exported(read, {{{1, 9, width}}},
                               {.dynamic = {{.axis = 0, .name = "batch"}, {.axis = 1, .name = "time"}}}));
      };
      const onnx::Model twice = again();
      BOOST_CHECK_NO_THROW(
          (void)exchange::to_stablehlo(read, std::vector<Spec>{{{1, 9, width}}},
                                       {.dynamic = {{.axis = 0, .name = "batch"}, {.axis = 1, .name = "time"}}}));
      for (const Shape& s : {Shape{1, 9, width}, Shape{3, 4, width}, Shape{2, 31, width}, Shape{5, 2, width}}) {
        const Tensor x = numbers(s, 8), y = model.run({x})[0];
        BOOST_TEST(support::within(y, net(x), 1e-6));
        BOOST_TEST(support::identical(twice.run({x})[0], y));
      }
    }
  };
  check("recurrent", dsl::sequence(3).gru(4, {.layers = 2, .bidirectional = true}).lstm(3).rnn(5).linear(2), 3, true);
  check("last step", dsl::sequence(3).gru(4).last_step().linear(2), 3, false);
  check("mean", dsl::sequence(3).linear(4).relu().mean_over_time().linear(2), 3, false);
  check("convolution", dsl::sequence(3).causal_conv1d(4, 3, {.dilation = 2}).layer_norm().linear(2), 3, true);
  check("attention", dsl::sequence(8).attention(2, {.causal = true}).linear(2), 8, true);
  check("transformer", dsl::sequence(8).positions().transformer(2, {.causal = true}).linear(2), 8, true);
  check("scan", dsl::sequence(3).min_gru(4).linear(2), 3, true);
}

BOOST_AUTO_TEST_CASE(extents_of_two_inputs_and_their_products) {
  const Function f = [](const Tensors& in) -> Tensors {
    const Tensor y = matmul(in[0], in[1]);  // [A, B]
    return {reshape(y, {-1}), sum(y) / static_cast<double>(y.numel()), concat({in[0], in[0]}, 0)};
  };
  const onnx::Model model =
      parsed(exported(f, {{{4, 3}}, {{3, 6}}},
                      {.dynamic = {{.input = 0, .axis = 0, .name = "A"}, {.input = 1, .axis = 1, .name = "B"}}}));
  BOOST_TEST(model.outputs()[0].shape[0] == "A*B");
  BOOST_TEST(model.outputs()[2].shape[0] == "2*A");
  const Tensors in{numbers({7, 3}), numbers({3, 2})};
  const Tensors y = model.run(in), wanted = f(in);
  for (std::size_t i = 0; i < y.size(); ++i) BOOST_TEST(support::within(y[i], wanted[i], 1e-6));
}

/// A constant that was made outside the traced function for its extents has no element that the file would know.
BOOST_AUTO_TEST_CASE(constants_of_one_element_have_any_extent) {
  const Function f = [](const Tensors& in) -> Tensors {
    const auto n = static_cast<std::size_t>(2 * in[0].size(0) + 1);
    return {in[0] + Tensor::from(std::vector<float>(n * 3, 2.5F), {2 * in[0].size(0) + 1, 1, 3})};
  };
  const onnx::Model model = parsed(exported(f, {{{4, 3}}}, {.dynamic = {{.name = "n"}}}));
  const Tensor x = numbers({7, 3});
  BOOST_TEST(support::identical(model.run({x})[0], f({x})[0]));
}

BOOST_AUTO_TEST_CASE(an_extent_that_is_halved_takes_multiples) {
  const auto net = dsl::image(1, 8, 8).conv2d(2, {3, 3}, {.padding = {1, 1}}).max_pool2d({2, 2}).build(/*seed=*/1);
  const Function f = [&](const Tensors& in) -> Tensors { return {net(in[0])}; };
  const onnx::Model model =
      parsed(exported(f, {{{1, 1, 8, 8}}}, {.dynamic = {{0, 2, "height", 2}, {0, 3, "width", 2}}}));
  BOOST_TEST(model.outputs()[0].shape[2] == "(height)/2");
  const Tensor x = numbers({1, 1, 12, 20});
  BOOST_TEST(support::identical(model.run({x})[0], net(x)));
}

BOOST_AUTO_TEST_CASE(variables_and_states_are_inputs_by_choice) {
  const Parameter weight("net.w", Tensor::from({1.0F, 2.0F, 3.0F}));
  const State count("net.count", Tensor::from({5.0F}));
  const Function f = [&](const Tensors& in) -> Tensors {
    count.assign(count.value() + 1);
    return {in[0] * weight.value() + count.value()};
  };
  const Tensor x = Tensor::from({1.0F, 1.0F, 1.0F});
  const std::vector<Spec> specs{x.spec()};
  const Graph graph = trace(f, specs);
  const onnx::Model carried = parsed(onnx::to_onnx(graph));
  BOOST_TEST(names_of(carried.inputs()) == (Names{"input0", "net.count"}), boost::test_tools::per_element());
  BOOST_TEST(names_of(carried.outputs()) == (Names{"output0", "net.count.next"}), boost::test_tools::per_element());
  const Tensors y = carried.run({x, Tensor::from({7.0F})});
  BOOST_TEST(support::identical(y[0], Tensor::from({9.0F, 10.0F, 11.0F})));
  BOOST_TEST(support::identical(y[1], Tensor::from({8.0F})));

  const onnx::Model begins = parsed(onnx::to_onnx(graph, {.states_as_inputs = false}));
  BOOST_TEST(names_of(begins.inputs()) == (Names{"input0"}), boost::test_tools::per_element());
  BOOST_TEST(support::identical(begins.run({x})[0], Tensor::from({7.0F, 8.0F, 9.0F})));

  const onnx::Model all = parsed(onnx::to_onnx(graph, {.variables_as_inputs = true}));
  BOOST_TEST(all.inputs().size() == 3U);
  BOOST_TEST(all.named_parameters().empty());
}

BOOST_AUTO_TEST_CASE(a_training_step_goes_on_outside) {
  const auto net = dsl::features(3).linear(4).tanh().linear(1).build(/*seed=*/1);
  nn::Sgd sgd(net.parameters(), {.learning_rate = 0.1, .momentum = 0.9});
  const Function step = [&](const Tensors& in) -> Tensors {
    Tape tape;
    const Tensor loss = nn::mse_loss(net(in[0]), in[1]);
    sgd.step(tape.grad(loss, net.parameters()));
    return {loss};
  };
  const Tensor x = numbers({6, 3}), y = numbers({6, 1}, 4);
  const std::vector<Spec> specs{x.spec(), y.spec()};
  const Graph graph = trace(step, specs);
  const onnx::Model model = parsed(onnx::to_onnx(graph));
  Tensors in{x, y};
  for (std::size_t i = 2; i < model.inputs().size(); ++i) {
    const auto at =
        std::ranges::find(graph.variables, model.inputs()[i].name, [](const Variable& v) { return v.name(); });
    BOOST_TEST_REQUIRE((at != graph.variables.end()), model.inputs()[i].name);
    in.push_back(at->peek());
  }
  for (int k = 0; k < 5; ++k) {
    const Tensors out = model.run(in);
    BOOST_TEST(support::within(out[0], step({x, y})[0], 1e-6));
    for (std::size_t i = 2; i < in.size(); ++i)
      for (std::size_t o = 1; o < out.size(); ++o)
        if (model.outputs()[o].name == model.inputs()[i].name + ".next") in[i] = out[o];
  }
}

BOOST_AUTO_TEST_CASE(a_step_with_its_states_is_the_whole_sequence) {
  const auto net =
      dsl::sequence(3).gru(4, {.layers = 2}).causal_conv1d(4, 3, {.dilation = 2}).lstm(3).linear(2).build(/*seed=*/1);
  net.eval();
  const exchange::StepProgram step = exchange::step_program(net, {.batch = 2, .width = 3});
  BOOST_TEST(step.input_names.size() == step.inputs.size());
  BOOST_TEST(step.input_names[0] == "x");
  const onnx::Model model =
      parsed(onnx::to_onnx(step.function, step.inputs, {.inputs = step.input_names, .outputs = step.output_names}));
  BOOST_TEST(names_of(model.inputs()) == step.input_names, boost::test_tools::per_element());
  BOOST_TEST(names_of(model.outputs()) == step.output_names, boost::test_tools::per_element());
  const Tensor x = numbers({2, 11, 3}), whole = net(x);
  Tensors states = step.initial_states();
  for (int t = 0; t < 11; ++t) {
    Tensors in{select(x, 1, t)};
    for (const Tensor& s : states) in.push_back(s);
    const Tensors out = model.run(in);
    BOOST_TEST(support::identical(out[0], contiguous(select(whole, 1, t))));
    states = Tensors(out.begin() + 1, out.end());
  }
}

BOOST_AUTO_TEST_CASE(steps_that_are_none_are_refused) {
  const auto whole = dsl::sequence(3).gru(4, {.bidirectional = true}).build(/*seed=*/1);
  BOOST_CHECK_EXCEPTION((void)exchange::step_program(whole, {.width = 3}), ValueError, says("is not causal"));
  const auto grows = dsl::sequence(8).attention(2, {.causal = true, .capacity = 9}).build(/*seed=*/1);
  BOOST_CHECK_EXCEPTION((void)exchange::step_program(grows, {.width = 8}), ValueError, says("grows with every step"));
}

BOOST_AUTO_TEST_CASE(recurrent_layers_are_nodes) {
  const auto report = [](const dsl::Builder& builder) {
    const auto net = builder.build(/*seed=*/1);
    net.eval();
    const Function f = [&](const Tensors& in) -> Tensors { return {net(in[0])}; };
    return parsed(exported(f, {{{2, 5, 3}}})).report();
  };
  BOOST_TEST(report(dsl::sequence(3).gru(4)).find("GRU: 1") != std::string::npos);
  BOOST_TEST(report(dsl::sequence(3).gru(4, {.reset_after = false})).find("GRU: 1") != std::string::npos);
  BOOST_TEST(report(dsl::sequence(3).lstm(4, {.layers = 2})).find("LSTM: 2") != std::string::npos);
  BOOST_TEST(report(dsl::sequence(3).rnn(4)).find("RNN: 1") != std::string::npos);
  BOOST_TEST(report(dsl::sequence(3).min_gru(4)).find("Scan: 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const Function twice = [](const Tensors& in) -> Tensors { return {in[0] * 2, in[0] + 1}; };
  const std::vector<Spec> specs{{{4, 3}}};
  const auto refuses = [&](const Function& f, const onnx::ExportOptions& o, const std::string& words) {
    BOOST_TEST_CONTEXT(words) { BOOST_CHECK_EXCEPTION((void)onnx::to_onnx(f, specs, o), ValueError, says(words)); }
  };
  refuses(twice, {.name = ""}, "name must not be empty");
  refuses(twice, {.inputs = {"a", "b"}}, "more names of inputs than inputs: 2 and 1");
  refuses(twice, {.outputs = {"a", "b", "c"}}, "more names of outputs than outputs: 3 and 2");
  refuses(twice, {.inputs = {"a"}, .outputs = {"a"}}, "must differ and not be empty: 'a'");
  refuses(twice, {.outputs = {"a", ""}}, "must differ and not be empty: ''");
  refuses(twice, {.dynamic = {{.name = ""}}}, "needs a name");
  refuses(twice, {.dynamic = {{.axis = 2, .name = "n"}}}, "no axis 2 of input 0 for 'n'");
  refuses(twice, {.dynamic = {{.input = 1, .name = "n"}}}, "no axis 0 of input 1 for 'n'");
  refuses(twice, {.dynamic = {{.name = "n", .multiple = 0}}}, "positive number apart: 0");
  refuses(twice, {.dynamic = {{.axis = 0, .name = "n"}, {.axis = 1, .name = "n"}}}, "axes of 'n' differ: 4 and 3");
  refuses(twice, {.dynamic = {{.axis = 1, .name = "n", .multiple = 2}}},
          "'n' is 3 in axis 1 of input 0, no multiple of 2; give an input of such an extent");
  const onnx::ExportOptions open{.dynamic = {{.name = "n"}}};
  BOOST_CHECK_EXCEPTION((void)onnx::to_onnx(trace(twice, specs), open), ValueError, says("a graph has its extents"));
  const Function draws = [](const Tensors& in) -> Tensors { return {in[0] + uniform({4, 3}, {.seed = 1})}; };
  BOOST_CHECK_EXCEPTION((void)onnx::to_onnx(draws, specs), onnx::ExportError,
                        says("no lowering of uniform: its numbers are those of Philox"));
}

/// A projection, like resets and f64, has no node in ONNX: with open steps it is a Scan.
BOOST_AUTO_TEST_CASE(recurrent_layers_without_a_node_stay_open) {
  const onnx::ExportOptions open{.dynamic = {{.axis = 1, .name = "time"}}};
  const auto projected = dsl::sequence(3).lstm(4, {.proj_size = 2}).build(/*seed=*/1);
  const auto doubles = dsl::sequence(3).gru(4, {.layers = 2, .bidirectional = true}).build(1, Dtype::f64);
  for (const auto* net : {&projected, &doubles}) {
    const Dtype dtype = net->parameters()[0].dtype();
    const Function f = [&](const Tensors& in) -> Tensors { return {(*net)(in[0])}; };
    const onnx::Model model = parsed(exported(f, {{{2, 5, 3}, dtype}}, open));
    BOOST_TEST(model.report().find("Scan") != std::string::npos);
    for (const std::int64_t T : {1, 9}) {
      const Tensor x = cast(numbers({2, T, 3}), dtype);
      BOOST_TEST(support::identical(model.run({x})[0], (*net)(x)));
    }
  }
}

/// Extents may be sums of products of open ones, and halves of such sums.
BOOST_AUTO_TEST_CASE(sums_of_products_of_extents_stay_open) {
  const Function f = [](const Tensors& in) -> Tensors {
    const std::int64_t B = in[0].shape()[0], T = in[0].shape()[1];
    const Tensor all = concat({reshape(in[0], {B * T}), sum(in[0], {0})}, 0);            // [B T + T]
    const Tensor pairs = concat({reshape(all, {(B * T + T) / 2, 2}), ones({3, 2})}, 0);  // [(B T + T) / 2 + 3, 2]
    return {slice(all, 0, T, B * T + T), pairs, all / static_cast<double>(B * T + T)};
  };
  const onnx::ExportOptions open{.dynamic = {{.axis = 0, .name = "B"}, {.axis = 1, .name = "T", .multiple = 2}}};
  const onnx::Model model = parsed(exported(f, {{{3, 4}}}, open));
  for (const auto& [B, T] : {std::pair{1, 2}, {2, 6}, {7, 10}}) {
    const Tensor x = numbers({B, T});
    const Tensors is = model.run({x}), wanted = f({x});
    for (std::size_t k = 0; k < wanted.size(); ++k) BOOST_TEST(support::identical(is[k], wanted[k]));
  }
}

/// The scatters are ScatterElements with and without a reduction, and ScatterND.
BOOST_AUTO_TEST_CASE(scatters_are_written_again) {
  using namespace wire;
  for (const std::string op : {"ScatterElements", "ScatterND"}) {
    const Tensor x = numbers({4, 3}), source = numbers({2, 3}, 5);
    const Tensor at = op == "ScatterND" ? Tensor::from<std::int64_t>({2, 0}, {2, 1})
                                        : Tensor::from<std::int64_t>({3, 0, 1, 2, 3, 0}, {2, 3});
    const onnx::Model model = parsed(model_of(graph(node_of(op, {"x", "i", "s"}, {"y"}), {"x", "i", "s"}, {"y"}), 18));
    const Function run = [&](const Tensors& in) { return model.run(in); };
    const onnx::Model again = parsed(exported(run, {x.spec(), at.spec(), source.spec()}));
    BOOST_TEST(again.report().find("ScatterElements: 1") != std::string::npos);
    BOOST_TEST(support::identical(again.run({x, at, source})[0], model.run({x, at, source})[0]));
    BOOST_TEST(!support::identical(model.run({x, at, source})[0], x));
  }
}

/// Programs that differ at other extents, or hold numbers that no arithmetic on the extents yields.
BOOST_AUTO_TEST_CASE(extents_that_cannot_stay_open_are_refused) {
  const std::vector<Spec> specs{{{4, 3}}};
  const onnx::ExportOptions open{.dynamic = {{.name = "n"}}};
  const auto refuses = [&](const Function& f) {
    BOOST_CHECK_EXCEPTION((void)onnx::to_onnx(f, specs, open), onnx::ExportError,
                          says("an extent that should stay open is fixed"));
  };
  refuses([](const Tensors& in) -> Tensors {  // row by row
    Tensor y = select(in[0], 0, 0);
    for (int i = 1; i < in[0].shape()[0]; ++i) y = y + select(in[0], 0, i);
    return {y};
  });
  refuses([](const Tensors& in) -> Tensors {  // elements that were computed outside
    std::vector<float> v(static_cast<std::size_t>(in[0].shape()[0]), 1.0F);
    v.back() = 2;
    return {in[0] + Tensor::from(v, {in[0].shape()[0], 1})};
  });
  refuses([](const Tensors& in) -> Tensors {  // a power of the extent
    return {in[0] * std::ldexp(1.0, static_cast<int>(in[0].shape()[0]))};
  });
  refuses([](const Tensors& in) -> Tensors { return {in[0] * std::sqrt(static_cast<double>(in[0].shape()[0]))}; });
  refuses([](const Tensors& in) -> Tensors { return {in[0].shape()[0] % 2 ? in[0] * 2 : in[0] + 2}; });
}

/// Numbers that an f32 cannot distinguish are distinct in f64; a short range is tried to its end.
BOOST_AUTO_TEST_CASE(numbers_that_are_nearly_explained_are_refused) {
  const onnx::ExportOptions open{.dynamic = {{.name = "n"}}};
  const auto refuses = [&](const Function& f, const Spec& spec) {
    BOOST_CHECK_EXCEPTION((void)onnx::to_onnx(f, std::vector<Spec>{spec}, open), onnx::ExportError,
                          says("an extent that should stay open is fixed"));
  };
  const auto rows = [](const Tensors& in) { return static_cast<double>(in[0].shape()[0]); };
  refuses([&](const Tensors& in) -> Tensors { return {in[0] * (rows(in) + std::pow(0.1, rows(in)))}; },
          {{4, 3}, Dtype::f64});
  refuses([&](const Tensors& in) -> Tensors { return {in[0] * std::sqrt(rows(in) * rows(in) + 1e-5)}; },
          {{4, 3}, Dtype::f64});
  const Function exact = [&](const Tensors& in) -> Tensors { return {in[0] * (rows(in) + 1e-7)}; };
  const onnx::Model model = parsed(exported(exact, {{{4, 3}, Dtype::f64}}, open));
  for (const std::int64_t n : {1, 2, 9, 1000}) {
    const Tensor x = cast(numbers({n, 3}), Dtype::f64);
    BOOST_TEST(max(abs(model.run({x})[0] - exact({x})[0])).item<double>() <= 1e-13 * static_cast<double>(n));
  }
  const Tensor table = numbers({60, 3});  // of positions
  refuses(
      [=](const Tensors& in) -> Tensors {
        const std::int64_t n = in[0].shape()[0];
        return {in[0] + slice(table, 0, 0, n), slice(in[0], 0, 0, std::min<std::int64_t>(n, 20))};
      },
      {{4, 3}});
}

BOOST_AUTO_TEST_CASE(a_file_is_the_same_bytes) {
  const io_test::TemporaryFolder folder;
  const Function f = [](const Tensors& in) -> Tensors { return {in[0] * 2}; };
  const std::vector<Spec> specs{{{4, 3}}};
  onnx::write_onnx(folder / "a.onnx", f, specs);
  const onnx::Model model = onnx::read(folder / "a.onnx");
  const Tensor x = numbers({4, 3});
  BOOST_TEST(support::identical(model.run({x})[0], x * 2));
  BOOST_TEST(onnx::to_onnx(f, specs) == onnx::to_onnx(f, specs));
  BOOST_CHECK_THROW(onnx::write_onnx(folder / "none" / "a.onnx", f, specs), IoError);
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
