// StableHLO: the text, and errors.
#include "ferrite/exchange/stablehlo.h"

#include <boost/test/unit_test.hpp>
#include <regex>

#include "exchange/program_cases.h"
#include "exchange/stablehlo_text.h"
#include "ferrite/autograd/checkpoint.h"
#include "ferrite/autograd/custom_function.h"
#include "ferrite/autograd/hooks.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scatter.h"

namespace {

using ferrite::Dtype;
using ferrite::Graph;
using ferrite::Parameter;
using ferrite::Primitive;
using ferrite::Shape;
using ferrite::Spec;
using ferrite::Tensor;
using ferrite::Tensors;
namespace exchange = ferrite::exchange;
using stablehlo_text::fault_in;

const Parameter kBias("b", Tensor::from({0.5F, -1.0F}));
const Parameter kWeight("net.w", Tensor::from({1.0, 2.0, 3.0}));

using Function = std::function<Tensors(const Tensors&)>;

std::string text_of(const Function& f, std::vector<Spec> specs, const exchange::StablehloOptions& options = {}) {
  return exchange::to_stablehlo(ferrite::trace(f, specs), options);
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

bool refused(const Primitive& op) {
  for (const exchange::ExportRefusal& r : exchange::stablehlo_refusals())
    if (r.operation == op.name) return true;
  return false;
}

/// Returns the error of an export; "" if there is none.
template <class Error>
std::string error_of(const Graph& g, const exchange::StablehloOptions& options = {}) {
  try {
    (void)exchange::to_stablehlo(g, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

/// x . w + b with a constant w and a variable b.
Tensors affine(const Tensors& in) {
  const Tensor w = Tensor::from({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {3, 2});
  return {0.5 * ferrite::relu(ferrite::matmul(in[0], w) + kBias)};
}

Tensors training_step(const Tensors& in) {
  ferrite::Tape tape;
  const Tensor loss = ferrite::sum(ferrite::square(in[0] * kWeight.value()));
  kWeight.assign(kWeight.value() - 0.1 * tape.grad(loss, std::vector<Parameter>{kWeight})[0]);
  return {loss};
}

Tensors views(const Tensors& in) {
  const Tensor& x = in[0];
  const Tensors halves = ferrite::split(x, 2, 1);
  const Tensor joined = ferrite::concat({halves[1], ferrite::pad(halves[0], {1, -1}, {0, 1}, 7)}, 0);
  return {joined, ferrite::slice(x, 1, 3, ferrite::kEnd, -2), ferrite::expand(ferrite::select(x, 0, 1), {2, 4}),
          ferrite::transpose(x), ferrite::stack({x, x}, 1)};
}

Tensors indexing(const Tensors& in) {
  return {ferrite::index_select(in[0], 0, ferrite::argmax(in[0], 1)),
          ferrite::scatter_add(in[0], 1, in[1], ferrite::gather(in[0], 1, in[1]))};
}

Tensors logic(const Tensors& in) {
  const Tensor mask = Tensor::from({true, false, true, true});
  const Tensor chosen = ferrite::where(mask && in[0] < 2.5, in[0], -1.0);
  return {ferrite::cast(chosen, Dtype::i32), ferrite::cast(in[1], Dtype::i32), ferrite::clamp(in[0], -1, 1),
          ferrite::sum(ferrite::cast(mask, Dtype::i32))};
}

Tensors functions(const Tensors& in) { return {ferrite::exp2(in[0]), ferrite::softplus(in[0]), ferrite::erf(in[0])}; }

/// h' = tanh(h . w + x) from the last step to the first; w is read from outside.
Tensors recurrence(const Tensors& in) {
  const auto step = [&](const Tensors& carry, const Tensors& x) -> ferrite::ScanStep {
    const Tensor h = ferrite::tanh(ferrite::matmul(carry[0], in[2]) + x[0]);
    return {{h}, {h}};
  };
  const ferrite::ScanResult r = ferrite::scan(step, {in[0]}, {in[1]}, {.reverse = true});
  return {r.carry[0], r.y[0]};
}

/// Returns the gradient of the recurrence by w: a loop that adds up.
Tensors recurrence_gradient(const Tensors& in) {
  ferrite::Tape tape;
  const Tensor w = tape.watch(in[2]);
  return tape.grad(ferrite::sum(recurrence({in[0], in[1], w})[1]), {w});
}

void check_golden(const std::string& name, const Function& f, const std::vector<Spec>& specs) {
  stablehlo_text::check_golden(name, text_of(f, specs, {.name = name}));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stablehlo)

BOOST_AUTO_TEST_CASE(golden_texts) {
  check_golden("affine", affine, {{{2, 3}}});
  check_golden("training_step", training_step, {{{2, 3}, Dtype::f64}});
  check_golden("views", views, {{{2, 4}}});
  check_golden("indexing", indexing, {{{3, 4}}, {{3, 2}, Dtype::i64}});
  check_golden("logic", logic, {{{4}}, {{2}, Dtype::i64}});
  check_golden("functions", functions, {{{2}}});
  check_golden("recurrence", recurrence, {{{1, 2}}, {{5, 1, 2}}, {{2, 2}}});
  check_golden("recurrence_gradient", recurrence_gradient, {{{1, 2}}, {{5, 1, 2}}, {{2, 2}}});
}

BOOST_AUTO_TEST_CASE(the_check_of_texts_finds_faults) {
  BOOST_TEST(fault_in("  func.func public @main(%arg0: t) -> (t) {\n %0 = stablehlo.add %arg0, %arg0 : t\n") == "");
  BOOST_TEST(fault_in(" %0 = stablehlo.add %1, %1 : t\n").starts_with("%1 is not defined"));
  BOOST_TEST(fault_in(" %0 = stablehlo.iota dim = 0 : t\n %0 = stablehlo.iota dim = 0 : t\n") == "%0 is defined twice");
  BOOST_TEST(fault_in(" %0 = stablehlo.iota dim = 0 : t\n %1 = stablehlo.add , %0 : t\n").starts_with("an operand"));
  const std::string loop = "{\n %0 = stablehlo.iota dim = 0 : t\n %1:2 = stablehlo.while(%now = %0) : t\n cond {\n";
  BOOST_TEST(fault_in(loop + " %2 = stablehlo.abs %now : t\n } do {\n %2 = stablehlo.abs %0 : t\n }\n") == "");
  BOOST_TEST(fault_in(loop + " %2 = stablehlo.abs %now : t\n } do {\n %3 = stablehlo.abs %2 : t\n }\n") ==
             "%2 is not defined:  %3 = stablehlo.abs %2 : t");
}

BOOST_AUTO_TEST_CASE(every_operation_is_written_or_refused) {
  int written = 0, without = 0;
  const auto check_either = [&](const Primitive& op) {
    BOOST_TEST(exchange::has_stablehlo(op) != refused(op),
               op.name << " needs a lowering in exchange/stablehlo, or a reason in the list of refusals");
    without += refused(op) ? 1 : 0;
  };
  for (const char* name : {"scan", "scan_checkpointed", "scan_checkpointed_grad"})
    check_either(*ferrite::detail::find_scan(name));
  const int scans_without = without;
  const std::vector<const Primitive*> all = exchange_test::all_operations();
  for (const Primitive* op : all) {
    check_either(*op);
    if (refused(*op)) continue;
    const auto cases = exchange_test::operation_cases(*op);
    BOOST_TEST(!cases.empty(), op->name);
    for (const exchange_test::ProgramCase& c : cases)
      BOOST_TEST(fault_in(exchange::to_stablehlo(c.graph)) == "", c.name);
    written += cases.empty() ? 0 : 1;
  }
  BOOST_TEST(written + without - scans_without == static_cast<int>(all.size()));
  BOOST_TEST(without == static_cast<int>(exchange::stablehlo_refusals().size()), "a refusal names no operation");
}

BOOST_AUTO_TEST_CASE(refusals_say_why) {
  const auto draw = [](const Tensors& in) -> Tensors { return {in[0] + ferrite::uniform({2}, {.seed = 1})}; };
  const std::vector<Spec> specs = {{{2}}};
  const std::string message = error_of<exchange::ExportError>(ferrite::trace(draw, specs));
  BOOST_TEST(std::regex_match(message, std::regex("to_stablehlo: no lowering of uniform: .*Philox.*; draw outside .*")),
             message);
  const auto unread = [](const Tensors& in) -> Tensors {
    (void)ferrite::uniform({2}, {.seed = 1});
    return {in[0]};
  };
  BOOST_TEST(error_of<exchange::ExportError>(ferrite::trace(unread, specs)) == "");
}

BOOST_AUTO_TEST_CASE(an_operation_in_neither_list_throws) {
  Primitive unknown = *ferrite::find_primitive("reshape");
  unknown.name = "twist";
  BOOST_TEST(!exchange::has_stablehlo(unknown));
  Graph g;
  g.inputs.push_back(g.add_value({{2, 3}}));
  g.outputs.push_back(g.add_node(unknown, ferrite::detail::ShapeAttrs{{6}}, {g.inputs[0]}, {{6}}));
  BOOST_TEST(error_of<exchange::ExportError>(g).starts_with("to_stablehlo: no lowering of twist: "));
}

BOOST_AUTO_TEST_CASE(what_a_sequence_keeps_is_not_written) {
  const ferrite::nn::Gru gru(2, 3);
  Graph g = ferrite::trace([&](const Tensors& in) -> Tensors { return {gru(in[0])}; }, std::vector<Spec>{{{1, 2, 2}}});
  BOOST_TEST(fault_in(exchange::to_stablehlo(g)) == "");
  for (const Graph::Node& n : g.nodes)
    if (n.op->name == "gru_sequence") g.outputs = {n.out.back()};
  BOOST_TEST(error_of<exchange::ExportError>(g).find("do not return it") != std::string::npos);
  const Spec spec = g.values[g.outputs[0]];
  g.outputs = {g.add_node(*ferrite::find_primitive("neg"), {}, {g.outputs[0]}, spec)};
  BOOST_TEST(
      error_of<exchange::ExportError>(g).starts_with("to_stablehlo: no lowering of neg: it reads what a recurrent"));
}

BOOST_AUTO_TEST_CASE(names_and_graphs_are_checked) {
  const Graph g = ferrite::trace(affine, std::vector<Spec>{{{2, 3}}});
  for (const char* bad : {"", "1st", "a b", "a@", "\n"})
    BOOST_TEST(error_of<ferrite::ValueError>(g, {.name = bad}).starts_with("to_stablehlo: the module's name"), bad);
  BOOST_TEST(exchange::to_stablehlo(g, {.name = "_a9"}).find("module @_a9 {") != std::string::npos);
  Graph broken = g;
  broken.outputs = {99};
  BOOST_TEST(error_of<ferrite::TraceError>(broken) != "");
}

BOOST_AUTO_TEST_CASE(weights_stand_in_the_text_or_are_arguments) {
  const std::string hex = "0x0000803F0000004000004040000080400000A0400000C040";
  const std::vector<Spec> specs = {{{2, 3}}};
  const std::string plain = text_of(affine, specs);
  BOOST_TEST(plain.find("dense<\"" + hex + "\"> : tensor<3x2xf32>") != std::string::npos);
  BOOST_TEST(plain.find("@main(%arg0: tensor<2x3xf32>, %arg1: tensor<2xf32>) ->") != std::string::npos);
  BOOST_TEST(plain.find("// %arg1: variable 'b'\n") != std::string::npos);
  const std::string inlined = text_of(affine, specs, {.inline_variables = true});
  BOOST_TEST(inlined.find("dense<\"0x0000003F000080BF\"> : tensor<2xf32>") != std::string::npos);
  BOOST_TEST(inlined.find("@main(%arg0: tensor<2x3xf32>) ->") != std::string::npos);
  const std::string outside = text_of(affine, specs, {.constants_as_arguments = true});
  BOOST_TEST(outside.find("0x") == std::string::npos);
  BOOST_TEST(outside.find("%arg1: tensor<2xf32>, %arg2: tensor<3x2xf32>) ->") != std::string::npos);
  BOOST_TEST(outside.find("// %arg2: constant 0\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_variable_that_is_written_stays_an_argument) {
  const std::vector<Spec> specs = {{{2, 3}, Dtype::f64}};
  const std::string text = text_of(training_step, specs, {.inline_variables = true});
  BOOST_TEST(text.starts_with("// %arg1: variable 'net.w'\n// result 1: variable 'net.w'\n"));
}

/// Returns the lines of the text of a GRU's forward pass and of its gradient.
std::pair<std::int64_t, std::int64_t> lines_of_gru(std::int64_t steps, ferrite::nn::Form form,
                                                   exchange::ScanExport scan) {
  const ferrite::nn::Gru gru(3, 4, {.form = form});
  const auto forward = [&](const Tensors& in) -> Tensors { return {gru(in[0])}; };
  const auto gradient = [&](const Tensors& in) -> Tensors {
    ferrite::Tape tape;
    return tape.grad(ferrite::sum(gru(in[0])), gru.parameters());
  };
  const auto lines = [&](const Function& f) {
    const std::string text = text_of(f, {{{2, steps, 3}}}, {.scan = scan});
    BOOST_TEST(fault_in(text) == "");
    return static_cast<std::int64_t>(count(text, "\n"));
  };
  return {lines(forward), lines(gradient)};
}

BOOST_AUTO_TEST_CASE(the_text_grows_with_the_steps_and_no_faster) {
  using ferrite::nn::Form;
  for (const Form form : {Form::fused, Form::scan}) {
    const auto [a, da] = lines_of_gru(4, form, exchange::ScanExport::unrolled);
    const auto [b, db] = lines_of_gru(8, form, exchange::ScanExport::unrolled);
    const auto [c, dc] = lines_of_gru(12, form, exchange::ScanExport::unrolled);
    BOOST_TEST(c - b == b - a);
    BOOST_TEST(dc - db == db - da);
    BOOST_TEST(b > a);
  }
}

BOOST_AUTO_TEST_CASE(the_text_of_a_loop_does_not_grow) {
  const auto few = lines_of_gru(5, ferrite::nn::Form::scan, exchange::ScanExport::as_while);
  const auto many = lines_of_gru(100'000, ferrite::nn::Form::scan, exchange::ScanExport::as_while);
  BOOST_TEST(few.first == many.first);
  BOOST_TEST(few.second == many.second);
}

BOOST_AUTO_TEST_CASE(the_text_of_kept_carries_does_not_grow) {
  const auto lines = [](std::int64_t steps) {
    const auto gradient = [](const Tensors& in) -> Tensors {
      ferrite::Tape tape;
      const Tensor w = tape.watch(in[0]);
      const auto step = [&](const Tensors& carry, const Tensors& x) -> ferrite::ScanStep {
        return {{ferrite::tanh(carry[0] * w + x[0])}, {}};
      };
      return tape.grad(sum(ferrite::scan(step, {in[1]}, {in[2]}, {.checkpoint_every = 10}).carry[0]), {w});
    };
    return count(text_of(gradient, {{{3}}, {{3}}, {{steps, 3}}}), "\n");
  };
  BOOST_TEST(lines(1007) == lines(35));
}

BOOST_AUTO_TEST_CASE(what_nothing_reads_does_not_go_round) {
  const std::vector<Spec> specs = {{{1, 2}}, {{5, 1, 2}}, {{2, 2}}};
  const auto last = [](const Tensors& in) -> Tensors { return {recurrence(in)[0]}; };
  BOOST_TEST(text_of(recurrence, specs).find("dynamic_update_slice") != std::string::npos);
  for (const exchange::ScanExport form : {exchange::ScanExport::as_while, exchange::ScanExport::unrolled}) {
    const std::string text = text_of(last, specs, {.scan = form});
    BOOST_TEST(text.find("dynamic_update_slice") == std::string::npos);
    BOOST_TEST(text.find("concatenate") == std::string::npos);
  }
}

/// The texts differ in locations alone, and each location names a layer.
BOOST_AUTO_TEST_CASE(layers_are_locations_on_demand) {
  std::size_t seen = 0;
  for (exchange_test::ProgramCase& c : exchange_test::option_cases()) {
    if (!c.options.locations) continue;
    ++seen;
    std::string text = exchange::to_stablehlo(c.graph, c.options);
    const std::string gru = R"( loc("the \22gru\22 of \C3\BC"))", head = R"( loc("head"))";
    BOOST_TEST(count(text, gru) > 0U);
    BOOST_TEST(count(text, head) >= 3U);  // the product, and those of its gradient
    BOOST_TEST(count(text, "}" + gru + "\n") == count(text, "stablehlo.while"));
    for (const std::string& place : {gru, head})
      for (std::size_t at = text.find(place); at != std::string::npos; at = text.find(place))
        text.erase(at, place.size());
    c.options.locations = false;
    BOOST_TEST(text == exchange::to_stablehlo(c.graph, c.options));
  }
  BOOST_TEST(seen == 2U);
}

/// An exported program has no gradients: custom functions, checkpoints and hooks leave no trace in it.
BOOST_AUTO_TEST_CASE(gradients_written_by_hand_are_left_out) {
  using In = const Tensors&;
  const auto twice = ferrite::custom_function(
      "twice", [](In x) { return Tensors{x[0] * 2}; }, [](In, In, In g) { return g; });
  const auto marked = [&](In x) {
    const Tensor y = ferrite::checkpoint([&](const Tensor& t) { return twice(t) + 1; }, x[0]);
    return Tensors{ferrite::hook_gradient(y, [](const Tensor& g) { return g; })};
  };
  const auto plain = [](In x) { return Tensors{x[0] * 2 + 1}; };
  BOOST_TEST(text_of(marked, {{{3}, Dtype::f32}}) == text_of(plain, {{{3}, Dtype::f32}}));
}

BOOST_AUTO_TEST_CASE(scans_are_written) {
  for (const exchange_test::ProgramCase& c : exchange_test::scan_cases()) {
    const std::string text = exchange::to_stablehlo(c.graph, c.options);
    BOOST_TEST(fault_in(text) == "", c.name);
    const bool loop = text.find("stablehlo.while") != std::string::npos;
    const bool no_steps = std::regex_search(c.name, std::regex("(0|no) steps"));
    BOOST_TEST(loop == (c.options.scan == exchange::ScanExport::as_while && !no_steps), c.name);
  }
}

/// Updates may be applied in any order: of elements scattered to one place the one with the largest number wins.
BOOST_AUTO_TEST_CASE(the_last_scattered_element_wins_in_any_order) {
  const Function f = [](const Tensors& in) -> Tensors { return {ferrite::scatter(in[0], 0, in[1], in[2])}; };
  const std::vector<Spec> specs{{{4, 2}}, {{3, 2}, Dtype::i64}, {{3, 2}}};
  const std::string text = exchange::to_stablehlo(f, specs);
  BOOST_TEST(fault_in(text) == "");
  BOOST_TEST(text.find("stablehlo.maximum %old, %new : tensor<i64>") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
