// Programs for any batch and any number of steps: tracing at two sizes and a third predicts the results of tracing at
// others.
#include "ferrite/compile/symbols.h"

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/loss.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

const SymbolicNumber B = SymbolicNumber::symbol(0), T = SymbolicNumber::symbol(1);

using Function = std::function<Tensors(const Tensors&)>;

/// Checks that the program at several sizes is the one that tracing there gives. At size 1, where tracing takes short
/// cuts (a slice of all is the tensor itself), it must compute the same.
SymbolicGraph holds(const Function& f, const std::vector<SymbolicSpec>& inputs) {
  const SymbolicGraph g = trace_symbolic(f, {"B", "T"}, inputs, {2, 5});
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{1, 1}, {2, 5}, {7, 3}, {32, 100}}) {
    std::vector<Spec> specs;
    std::vector<Tensor> values;
    for (const SymbolicSpec& s : inputs) {
      specs.push_back(s.at(sizes));
      const Shape& shape = specs.back().shape;
      values.push_back(is_float(s.dtype) ? uniform(shape, {.seed = 7}, -1, 1) : full(shape, 1, s.dtype));
    }
    const Graph there = g.at(sizes), traced = trace(f, specs);
    if (sizes[0] > 1) BOOST_TEST(there.str() == traced.str());
    for (const Graph::VariableValue& r : there.reads) values.push_back(there.variables[r.variable].peek());
    const Tensors is = replay(there, values), wanted = replay(traced, values);
    for (std::size_t k = 0; k < wanted.size(); ++k) BOOST_TEST(identical(is[k], wanted[k]));
  }
  return g;
}

auto says(const std::string& text) {
  return [=](const Error& e) {
    BOOST_TEST_MESSAGE(e.what());
    return std::string(e.what()).find(text) != std::string::npos;
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(symbols)

BOOST_AUTO_TEST_CASE(numbers_are_found_from_their_values) {
  const SymbolicTrial trial({"B", "T"}, {2, 5});
  const auto found = [&](auto f) {
    std::vector<std::int64_t> values;
    for (const auto& s : trial.sizes()) values.push_back(f(s[0], s[1]));
    return trial.number(values);
  };
  const std::vector<std::string> names = {"B", "T"};
  BOOST_TEST(found([](auto, auto) { return 7; })->str(names) == "7");
  BOOST_TEST(found([](auto b, auto) { return b; })->str(names) == "B");
  BOOST_TEST(found([](auto, auto t) { return 2 * t - 1; })->str(names) == "2*T - 1");
  BOOST_TEST(found([](auto b, auto t) { return 3 * b * t + b - t; })->str(names) == "3*B*T - T + B");
  BOOST_TEST(found([](auto b, auto t) { return -b * t; })->str(names) == "-B*T");
  BOOST_TEST(found([](auto, auto t) { return 5 - t; })->str(names) == "-T + 5");
  BOOST_TEST(!found([](auto, auto t) { return t * t; }));
  BOOST_TEST(!found([](auto, auto t) { return (t + 1) / 2; }));
  BOOST_TEST(!found([](auto b, auto) { return std::max<std::int64_t>(b, 3); }));
  const auto product = found([](auto b, auto t) { return (b + 1) * (t - 2); });
  BOOST_TEST(product->at(std::vector<std::int64_t>{10, 20}) == 11 * 18);
  BOOST_TEST((*found([](auto b, auto) { return b; }) == B));
  BOOST_TEST(!B.constant());
  BOOST_TEST(SymbolicNumber(3).constant().value() == 3);
}

BOOST_AUTO_TEST_CASE(numbers_may_have_a_divisor_that_steps_allow) {
  const std::vector<std::vector<std::int64_t>> sizes = {{3, 8}, {4, 8}, {3, 12}, {7, 8}, {3, 20}, {11, 28}, {3, 240}};
  const auto found = [&](const std::vector<std::int64_t>& steps, auto f) {
    std::vector<std::int64_t> values;
    for (const auto& s : sizes) values.push_back(f(s[0], s[1]));
    return SymbolicNumber::with_values(sizes, values, steps);
  };
  const std::vector<std::string> names = {"B", "T"};
  const auto half = [](auto, auto t) { return t / 2 + 1; };
  BOOST_TEST(found({1, 4}, half)->str(names) == "(T + 2)/2");
  BOOST_TEST(!found({1, 1}, half));
  BOOST_TEST(!found({}, half));
  const auto sum = found({1, 4}, [](auto b, auto t) { return (b * t + 2 * t) / 4 - b; });
  BOOST_TEST(sum->str(names) == "(B*T + 2*T - 4*B)/4");
  BOOST_TEST(sum->at(std::vector<std::int64_t>{2, 4}) == 2);
  BOOST_TEST(sum->may_be_negative());
  BOOST_TEST(!found({1, 4}, half)->may_be_negative());
  BOOST_TEST(sum->at(std::vector<std::int64_t>{3, 5}) == 3);   // 13 / 4, rounded down
  BOOST_TEST(sum->at(std::vector<std::int64_t>{9, 1}) == -7);  // -25 / 4
  BOOST_TEST(!found({1, 4}, [](auto b, auto t) { return b * b + t; }));
}

/// Two values determine T / 2 + 1, and two more must agree.
BOOST_AUTO_TEST_CASE(few_values_prove_no_divisor) {
  const std::vector<std::vector<std::int64_t>> sizes = {{8}, {12}, {16}, {20}};
  const std::vector<std::int64_t> values = {5, 7, 9, 11}, steps = {4};
  const auto found = [&](std::size_t n) {
    return SymbolicNumber::with_values(std::span(sizes).first(n), std::span(values).first(n), steps);
  };
  BOOST_TEST(!found(3));
  BOOST_TEST(found(4).has_value());
  BOOST_TEST(!SymbolicNumber::with_values(std::span(sizes).first(2), std::vector<std::int64_t>{8, 12}));
  BOOST_TEST(SymbolicNumber::with_values(std::span(sizes).first(3), std::vector<std::int64_t>{8, 12, 16}).has_value());
}

BOOST_AUTO_TEST_CASE(rounded_numbers_are_found_where_values_leave_no_choice) {
  std::vector<std::vector<std::int64_t>> sizes;
  for (const std::int64_t t : {10, 11, 12, 13, 14, 16, 17, 71, 240, 720, 137}) sizes.push_back({3, t});
  sizes.push_back({5, 10});
  const auto found = [&](auto f) {
    std::vector<std::int64_t> values;
    for (const auto& s : sizes) values.push_back(f(s[0], s[1]));
    const std::vector<SymbolicNumber> all = SymbolicNumber::rounded_with_values(sizes, values);
    return all.size() == 1 ? std::optional(all[0]) : std::nullopt;
  };
  const std::vector<std::string> names = {"B", "T"};
  BOOST_TEST(found([](auto, auto t) { return (t + 1) / 2; })->str(names) == "(T + 1)/2");
  BOOST_TEST(found([](auto, auto t) { return (t - 5) / 4 + 1; })->str(names) == "(T - 1)/4");
  BOOST_TEST(found([](auto, auto t) { return (3 * t + 2) / 7; })->str(names) == "(3*T + 2)/7");
  BOOST_TEST(found([](auto, auto t) { return 9 - t / 3; })->str(names) == "(-T + 29)/3");  // negative: rounded up
  BOOST_TEST(!found([](auto, auto t) { return std::min<std::int64_t>(t / 2, 20); }));
  BOOST_TEST(!found([](auto, auto t) { return t / 2 + (t > 100); }));
  BOOST_TEST(!found([](auto b, auto t) { return t / 2 + b; }));
  BOOST_TEST(!found([](auto, auto t) { return t / 9; }));
  BOOST_TEST(!found([](auto, auto t) { return t / 2 + t % 2 * 2; }));
  sizes = {{3, 10}, {3, 12}, {3, 14}, {3, 16}, {3, 240}, {3, 720}, {5, 10}};  // even ones do not determine odd ones
  BOOST_TEST(!found([](auto, auto t) { return (t + 1) / 2; }));
  const std::vector<std::int64_t> halves{5, 6, 7, 8, 120, 360, 5};
  BOOST_TEST(SymbolicNumber::rounded_with_values(sizes, halves).size() == 2U);  // T / 2 and (T + 1) / 2
}

/// Half of a size that was even in every trial, but need not be.
BOOST_AUTO_TEST_CASE(divisors_divide_what_multiples_allow) {
  const std::vector<std::vector<std::int64_t>> sizes = {{2, 8}, {4, 8}, {2, 12}, {8, 8}, {2, 20}, {6, 28}, {2, 240}};
  std::vector<std::int64_t> halves;
  for (const auto& s : sizes) halves.push_back(s[0] / 2);
  BOOST_TEST(!SymbolicNumber::with_values(sizes, halves, std::vector<std::int64_t>{1, 4}));
  BOOST_TEST(SymbolicNumber::with_values(sizes, halves, std::vector<std::int64_t>{2, 4}).has_value());
}

BOOST_AUTO_TEST_CASE(sizes_beyond_64_bits_are_refused) {
  const std::int64_t big = std::int64_t{1} << 62;
  BOOST_CHECK_THROW(
      (void)SymbolicTrial({"B"}, {3}).number(std::vector<std::int64_t>{1, 3, 7})->at(std::vector<std::int64_t>{big}),
      ShapeError);
  BOOST_CHECK_THROW((void)B.at(std::vector<std::int64_t>{}), ValueError);
  BOOST_CHECK_THROW((void)SymbolicNumber::symbol(16), ValueError);
  BOOST_CHECK_THROW(SymbolicTrial({}, {}), ValueError);
  BOOST_CHECK_THROW(SymbolicTrial({"B"}, {0}), ValueError);
  BOOST_CHECK_THROW(SymbolicTrial({"B"}, {1, 2}), ValueError);
}

BOOST_AUTO_TEST_CASE(a_network_and_its_gradient) {
  const nn::Gru gru(3, 4, {.layers = 2, .bidirectional = true}, {.seed = 1});
  const nn::Linear head(8, 2, {.seed = 2});
  const Function forward = [&](const Tensors& in) { return Tensors{head(gru(in[0]))}; };
  const SymbolicGraph g = holds(forward, {{{B, T, 3}}});
  BOOST_TEST(g.spec_of(g.graph().outputs[0]).str(g.symbols()) == "f32[B, T, 2]");
  const Function training = [&](const Tensors& in) {
    Tape tape;
    const Tensor x = tape.watch(in[0]);
    const Tensor loss = nn::mse_loss(head(gru(x)), in[1]);  // divided by 2 B T
    Tensors all = tape.grad(loss, head.parameters(), {.retain = true});
    all.push_back(tape.grad(loss, {x})[0]);
    all.push_back(loss);
    return all;
  };
  holds(training, {{{B, T, 3}}, {{B, T, 2}}});
}

BOOST_AUTO_TEST_CASE(scans_and_what_they_run) {
  const nn::Lstm lstm(3, 4, {.form = nn::Form::scan}, {.seed = 1});
  holds([&](const Tensors& in) { return Tensors{lstm(in[0])}; }, {{{B, T, 3}}});
  holds([&](const Tensors& in) { return Tensors{lstm(in[0], {.lengths = in[1]})}; }, {{{B, T, 3}}, {{B}, Dtype::i64}});
  const Function gradient = [&](const Tensors& in) {
    Tape tape;
    const Tensor x = tape.watch(in[0]);
    return tape.grad(sum(square(lstm(x))), {x});
  };
  holds(gradient, {{{B, T, 3}}});
}

BOOST_AUTO_TEST_CASE(shapes_ranges_and_slices) {
  const SymbolicGraph g = holds(
      [](const Tensors& in) {
        const Tensor& x = in[0];
        const std::int64_t b = x.shape()[0], t = x.shape()[1];
        const Tensor rows = reshape(x, {b * t, 4});
        return Tensors{mean(rows), arange(2 * t), slice(x, 1, t - 1, t), var(x, {0, 1}), flatten(x, 1)};
      },
      {{{B, T, 4}}});
  BOOST_TEST(g.spec_of(g.graph().outputs[4]).shape_str(g.symbols()) == "[B, 4*T]");
  const Graph at = g.at({3, 2});
  const Tensor x = uniform({3, 2, 4}, {.seed = 1}, -1, 1);
  BOOST_TEST(identical(replay(at, std::vector<Tensor>{x})[0], mean(reshape(x, {6, 4}))));
}

BOOST_AUTO_TEST_CASE(what_does_not_follow_the_symbols_is_refused) {
  const auto refused = [](const Function& f, const std::string& text) {
    BOOST_CHECK_EXCEPTION((void)trace_symbolic(f, {"B", "T"}, {{{B, T, 4}}}, {2, 5}), TraceError, says(text));
  };
  refused([](const Tensors& in) { return Tensors{in[0] * (1.0 / static_cast<double>(in[0].numel()))}; },
          "mul has a constant that is not a sum of products of symbols");
  refused(
      [](const Tensors& in) {
        Tensor total = zeros({4});
        for (std::int64_t t = 0; t < in[0].shape()[1]; ++t) total = total + sum(slice(in[0], 1, t, t + 1), {0, 1});
        return Tensors{total};
      },
      "another form at other sizes");
  refused(
      [](const Tensors& in) {
        return Tensors{in[0] * Tensor::from(std::vector<float>{static_cast<float>(in[0].shape()[0])}, {1})};
      },
      "is another tensor at other sizes");
  refused([](const Tensors& in) { return Tensors{slice(in[0], 1, 0, (in[0].shape()[1] + 1) / 2)}; },
          "is no sum of products");
  refused([](const Tensors& in) { return Tensors{in[0].shape()[1] % 2 ? exp(in[0]) : sin(in[0])}; }, "at other sizes");
  const nn::Gru unrolled(4, 3, {.form = nn::Form::unrolled}, {.seed = 1});
  refused([&](const Tensors& in) { return Tensors{unrolled(in[0])}; }, "nn::Form::scan or fused");
  const SymbolicGraph g = trace_symbolic([](const Tensors& in) { return Tensors{exp(in[0])}; }, {"B"}, {{{B, 4}}}, {2});
  BOOST_CHECK_THROW((void)g.at({1, 2}), ValueError);
  BOOST_CHECK_THROW((void)g.at({0}), ValueError);
}

BOOST_AUTO_TEST_SUITE_END()
