// The updates of all optimisers as one operation: they have the bits of the definition in operations at every length,
// compiled steps apply one operation per parameter with the bits of eager ones, and every rule has a kernel.
#include <functional>
#include <limits>
#include <memory>

#include "conformance/oracles/oracle.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/optim/adadelta.h"
#include "ferrite/nn/optim/adagrad.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/adamax.h"
#include "ferrite/nn/optim/detail/rule_update.h"
#include "ferrite/nn/optim/lion.h"
#include "ferrite/nn/optim/nadam.h"
#include "ferrite/nn/optim/radam.h"
#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/sgd.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"
#include "support/operations.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

const Primitive& rule_update() { return support::operation("rule_update"); }

/// Returns operands of a sample's application to n elements; states and numbers are not negative.
Tensors operands(const detail::Sample& sample, std::int64_t n, Dtype dtype) {
  Tensors in;
  for (std::uint64_t i = 0; i < sample.inputs.size(); ++i) {
    const bool number = i >= 2 && sample.inputs[i].shape.rank() == 0 && sample.inputs[0].shape.rank() > 0;
    in.push_back(number ? uniform({}, {5, i, 1}, 0.1, 1, Dtype::f64)
                        : uniform({n}, {5, i, static_cast<std::uint32_t>(n)}, i < 2 ? -1 : 0, 1, dtype));
  }
  return in;
}

void check_same(const Tensors& in, const Attrs& attrs, const std::string& what) {
  const Tensors got = rule_update().apply(OperandList(in), attrs);
  const Tensors wanted = rule_update().reference(OperandList(in), attrs);
  BOOST_TEST_REQUIRE(got.size() == wanted.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    BOOST_TEST(identical(got[k], wanted[k]), attrs.str() << ", result " << k << " " << what);
}

/// Returns the samples whose parameters are not scalars.
std::vector<detail::Sample> samples() {
  std::vector<detail::Sample> list;
  for (const detail::Sample& s : oracles::samples(rule_update()))
    if (s.inputs[0].shape.rank() > 0) list.push_back(s);
  return list;
}

/// Makes an optimiser of two parameters, of some kind with some options.
using Make = std::function<std::unique_ptr<nn::Optimizer>(std::vector<Parameter>)>;
template <class O, class Options>
Make make(const Options& options) {
  return [options](std::vector<Parameter> p) { return std::make_unique<O>(std::move(p), options); };
}

std::vector<std::pair<std::string, Make>> all_optimisers() {
  using namespace nn;
  return {{"sgd", make<Sgd, SgdOptions>({.learning_rate = 0.1})},
          {"sgd, decay, maximize", make<Sgd, SgdOptions>({.weight_decay = 0.1, .maximize = true})},
          {"sgd, momentum", make<Sgd, SgdOptions>({.momentum = 0.9})},
          {"sgd, dampening", make<Sgd, SgdOptions>({.momentum = 0.9, .dampening = 0.3})},
          {"sgd, nesterov", make<Sgd, SgdOptions>({.momentum = 0.9, .nesterov = true})},
          {"rmsprop", make<RmsProp, RmsPropOptions>({})},
          {"rmsprop, centered", make<RmsProp, RmsPropOptions>({.momentum = 0.5, .centered = true})},
          {"adam", make<Adam, AdamOptions>({})},
          {"adam, decay", make<Adam, AdamOptions>({.weight_decay = 0.1, .maximize = true})},
          {"adamw", make<AdamW, AdamOptions>({})},
          {"adamw, amsgrad", make<AdamW, AdamOptions>({.weight_decay = 0.1, .amsgrad = true})},
          {"nadam", make<NAdam, NAdamOptions>({.weight_decay = 0.1, .decoupled_weight_decay = true})},
          {"radam", make<RAdam, RAdamOptions>({.beta2 = 0.9})},
          {"adamax", make<Adamax, AdamaxOptions>({.weight_decay = 0.1})},
          {"adagrad", make<Adagrad, AdagradOptions>({.learning_rate_decay = 0.1})},
          {"adadelta", make<Adadelta, AdadeltaOptions>({})},
          {"lion", make<Lion, LionOptions>({.weight_decay = 0.1})}};
}

/// Two parameters, of f32 and f64, their optimiser and the gradients of a step.
struct Trained {
  explicit Trained(const Make& make)
      : a("a", uniform({37}, {8, 0, 0}, -1, 1)),
        b("b", uniform({3, 5}, {8, 1, 0}, -1, 1, Dtype::f64)),
        optimiser(make({a, b})) {}
  static Tensors gradients(std::uint32_t step) {
    return {uniform({37}, {9, 0, step}, -1, 1), uniform({3, 5}, {9, 1, step}, -1, 1, Dtype::f64)};
  }
  std::vector<Tensor> values() const {
    std::vector<Tensor> all{a.peek(), b.peek()};
    for (const auto& s : optimiser->states()) all.push_back(s.variable.peek());
    return all;
  }

  Parameter a, b;
  std::unique_ptr<nn::Optimizer> optimiser;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(rules)

BOOST_AUTO_TEST_CASE(have_the_bits_of_their_definitions_at_every_length) {
  for (const detail::Sample& s : samples())
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const std::int64_t first : {0, 112})  // 112: where quotients begin to be multiplied by a reciprocal
        for (std::int64_t n = first; n <= first + 35; ++n)
          check_same(operands(s, n, dtype), s.attrs, "of " + std::to_string(n) + " elements");
}

BOOST_AUTO_TEST_CASE(and_of_special_values) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const detail::Sample& s : samples())
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      const double least = dtype == Dtype::f32 ? 0x1p-149 : 0x1p-1074;
      Tensors in = operands(s, 160, dtype);
      const auto repeated = [&](const std::vector<double>& values) {
        return flatten(expand(cast(Tensor::from(values, {8}), dtype), {20, 8}));
      };
      in[0] = repeated({-0.0, 0.0, inf, nan, 1.0, least, 1.0, 1.0});
      in[1] = repeated({0.0, -0.0, 1.0, 1.0, inf, -least, nan, 1.0});
      if (in[2].rank() == 1) in[2] = repeated({-0.0, least, inf, 0.0, 0.0, least, 0.0, 0.5});
      if (in.size() > 3 && in[3].rank() == 1) in[3] = repeated({0.0, least, inf, 0.0, 0.0, least, 1.0, inf});
      check_same(in, s.attrs, "of special values");
    }
}

BOOST_AUTO_TEST_CASE(threads_give_the_bits_of_one) {
  for (const detail::Sample& s : samples()) {
    const Tensors in = operands(s, 100'003, Dtype::f32);
    set_threads(3);
    check_same(in, s.attrs, "with threads");
    set_threads(1);
  }
}

BOOST_AUTO_TEST_CASE(a_compiled_step_is_one_operation_a_parameter_with_the_bits_of_an_eager_one) {
  for (const auto& [name, make] : all_optimisers())
    for (const bool cycled : {false, true}) {
      Trained eager(make), compiled(make);
      if (cycled && !eager.optimiser->has_momentum()) continue;
      const auto step = compile([&](const Tensor& a, const Tensor& b) {
        compiled.optimiser->step(Tensors{a, b});
        return sum(a);
      });
      for (std::uint32_t i = 0; i < 6; ++i) {  // RAdam is rectified from the sixth step on
        if (cycled && i == 2)
          for (const Trained* t : {&eager, &compiled}) t->optimiser->set_momentum(0.7);
        const Tensors grads = Trained::gradients(i);
        eager.optimiser->step(grads);
        (void)step(grads[0], grads[1]);
        const std::vector<Tensor> got = compiled.values(), wanted = eager.values();
        for (std::size_t k = 0; k < wanted.size(); ++k)
          BOOST_TEST(identical(got[k], wanted[k]), name << ": value " << k << " after step " << i);
      }
    }
}

BOOST_AUTO_TEST_CASE(every_optimiser_records_one_application_a_parameter) {
  for (const auto& [name, make] : all_optimisers()) {
    const Trained t(make);
    const std::vector<Spec> types{{{37}, Dtype::f32}, {{3, 5}, Dtype::f64}};
    const Graph g = trace(
        [&](const Tensors& grads) {
          t.optimiser->step(grads);
          return Tensors{};
        },
        types);
    const auto updates =
        std::count_if(g.nodes.begin(), g.nodes.end(), [](const Graph::Node& n) { return n.op->name == "rule_update"; });
    BOOST_TEST(updates == 2, name);
    const Primitive* const known[] = {&rule_update(), &support::operation("adam_begin")};
    BOOST_TEST(parse_graph(g.str(), {.operations = known}).str() == g.str());
  }
}

/// Kernels are compiled for exactly the sets of states that checks accept.
BOOST_AUTO_TEST_CASE(every_set_of_states_that_is_accepted_has_a_kernel) {
  using namespace nn::detail;
  int forms = 0;
  for (const RuleFacts& facts : kRuleFacts) {
    BOOST_TEST(facts_of(facts.kind).name == facts.name);
    for (unsigned states = 0; states < 8; ++states) {
      const bool accepted = has_form(facts.kind, states);
      forms += accepted;
      for (const bool maximize : {false, true}) {
        const Rule rule{.kind = facts.kind, .maximize = maximize};
        BOOST_TEST((sweep_of<float>(rule, states) != nullptr) == accepted);
        BOOST_TEST((sweep_of<double>(rule, states) != nullptr) == accepted);
      }
    }
  }
  BOOST_TEST(forms == 14);
}

BOOST_AUTO_TEST_CASE(states_that_a_rule_cannot_have_are_refused) {
  using namespace nn::detail;
  using States = std::array<std::vector<State>, kRuleStates>;
  const State m("m", zeros({3}));
  RuleSteps steps;
  BOOST_CHECK_EXCEPTION(steps.add({.kind = RuleKind::adam}, States{std::vector<State>{m}, {}, {}}), ValueError,
                        says("optimizer: the rule 'adam' has no form with the states {0}"));
  BOOST_CHECK_EXCEPTION(steps.add({.kind = RuleKind::sgd}, States{std::vector<State>{}, {m}, {}}), ValueError,
                        says("the rule 'sgd' has no form with the states {1}"));
}

BOOST_AUTO_TEST_CASE(wrong_constants_are_named) {
  using namespace nn::detail;
  const Tensor x = ones({3}), number = full({}, 0.5);
  const auto apply = [&](const RuleAttrs& attrs, const Tensors& in) {
    return rule_update().apply(OperandList(in), attrs);
  };
  const std::vector<std::int64_t> rate{5}, wrong{5, 0}, share{1, 5}, first{0};
  BOOST_CHECK_EXCEPTION(apply({.rule = Label("newton")}, {x, x}), ValueError,
                        says("rule_update: there is no rule 'newton'"));
  BOOST_CHECK_EXCEPTION(apply({.rule = Label("sgd")}, {x, x}), ValueError,
                        says("rule_update: the rule 'sgd' needs number 5, got {}"));
  BOOST_CHECK_EXCEPTION(apply({.rule = Label("sgd"), .numbers = Positions::of(wrong)}, {x, x, number, number}),
                        ValueError, says("rule_update: numbers must ascend below 6, got {5, 0}"));
  BOOST_CHECK_EXCEPTION(
      apply({.rule = Label("rmsprop"), .states = Positions::of(first), .numbers = Positions::of(share)},
            {x, x, x, number, number}),
      ValueError, says("rule_update: the rule 'rmsprop' has no number 1, got {1, 5}"));
  BOOST_CHECK_EXCEPTION(apply({.rule = Label("adam"), .states = Positions::of(first)}, {x, x, x}), ValueError,
                        says("rule_update: the rule 'adam' has no form with the states {0}"));
  BOOST_CHECK_EXCEPTION(apply({.rule = Label("sgd"), .weight_decay = 1, .decoupled_decay = 1}, {x, x}), ValueError,
                        says("it takes weight_decay or decoupled_decay, got both"));
  const RuleAttrs plain{.rule = Label("sgd"), .numbers = Positions::of(rate)};
  BOOST_CHECK_EXCEPTION(apply(plain, {x, x}), ShapeError,
                        says("rule_update: it takes w, g, 0 states and 1 numbers, got 2 operands"));
  BOOST_CHECK_EXCEPTION(apply(plain, {x, ones({2}), number}), ShapeError,
                        says("rule_update: g is f32[2], w is f32[3]"));
  BOOST_TEST(identical(apply(plain, {x, x, number})[0], full({3}, 0.5)));
}

BOOST_AUTO_TEST_SUITE_END()
