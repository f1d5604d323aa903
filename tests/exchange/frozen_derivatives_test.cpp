// Jacobian programs: blocks against central differences, against `jacobian`, and in both modes; what their traces hold.
#include "ferrite/exchange/freeze_jacobian.h"

#include <algorithm>
#include <map>
#include <set>

#include "ferrite/autograd/jacobian.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/io/module_file.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/tensor/convolution.h"
#include "support/compare.h"
#include "support/fixtures.h"
#include "support/frozen.h"

using namespace ferrite;
using exchange::JacobianMode;
using exchange::JacobianProgram;
using support::identical;
using support::says;
using support::within;

namespace {

/// Returns inputs of the program's types from a seed, between -1 and 1.
Tensors values_of(const std::vector<Spec>& specs, std::uint64_t seed) {
  Tensors in;
  for (const Spec& s : specs) {
    in.push_back(is_float(s.dtype) ? cast(uniform(s.shape, {.seed = seed}, -1, 1), s.dtype) : zeros(s.shape, s.dtype));
    ++seed;
  }
  return in;
}

Tensor with_element(const Tensor& x, std::int64_t at, double change) {
  std::vector<double> v = support::doubles(x);
  v[static_cast<std::size_t>(at)] += change;
  return Tensor::from(v, x.shape());
}

/// Returns a block by central differences of the primal program in f64, whose error is about 1e-9.
Tensor by_differences(const JacobianProgram& p, const Tensors& in, const exchange::JacobianBlock& b) {
  constexpr double kStep = 1e-5;
  std::vector<Tensor> columns;
  for (std::int64_t i = 0; i < in[b.input].numel(); ++i) {
    Tensors above = in, below = in;
    above[b.input] = with_element(in[b.input], i, kStep);
    below[b.input] = with_element(in[b.input], i, -kStep);
    columns.push_back(reshape(p.primal(above)[b.result] - p.primal(below)[b.result], {-1}) / (2 * kStep));
  }
  return stack(std::span<const Tensor>(columns), 1);
}

/// Checks all blocks of both modes against central differences and each other, and the results against the primal.
void check(const std::function<Tensors(const Tensors&)>& f, const std::vector<Spec>& inputs, std::uint64_t seed = 3) {
  const auto forward = exchange::jacobian_program(f, inputs, {.mode = JacobianMode::forward});
  const auto reverse = exchange::jacobian_program(f, inputs, {.mode = JacobianMode::reverse});
  const auto columns = exchange::jacobian_program(f, inputs, {.column_major = true});
  const Tensors in = values_of(forward.inputs, seed);
  const Tensors y = forward.primal(in), a = forward.function(in), b = reverse.function(in), c = columns.function(in);
  BOOST_TEST_REQUIRE(a.size() == y.size() + forward.blocks.size());
  BOOST_TEST_REQUIRE(b.size() == a.size());
  for (std::size_t k = 0; k < y.size(); ++k) {
    BOOST_TEST(identical(a[k], y[k]));
    BOOST_TEST(identical(b[k], y[k]));
  }
  for (std::size_t k = 0; k < forward.blocks.size(); ++k) {
    const Tensor& block = a[y.size() + k];
    BOOST_TEST(within(block, by_differences(forward, in, forward.blocks[k]), 1e-8));
    BOOST_TEST(within(block, b[y.size() + k], 1e-13));
    BOOST_TEST(within(transpose(c[y.size() + k]), block, 1e-13));
  }
}

void check_step(const nn::Layer& layer, std::int64_t width) {
  const auto step = exchange::step_program(layer, {.batch = 1, .width = width});
  check(step.function, step.inputs);
}

/// Compares the blocks of a layer's step with those that tests/data/make_step_jacobian_fixtures.py got from PyTorch,
/// for the layer's parameters there.
void check_against_torch(const std::string& name, const nn::Layer& layer) {
  const io::TensorFile file = support::fixture("step_jacobians.safetensors");
  const std::string prefix = name + "/";
  io::load(layer, file.renamed([&](std::string_view n) {
    const bool parameter = n.starts_with(prefix) && (n.find("weight") != n.npos || n.find("bias") != n.npos);
    return parameter ? std::string(n.substr(prefix.size())) : std::string();
  }));
  const auto step = exchange::step_program(layer, {.batch = 1, .width = 2, .dtype = Dtype::f64});
  for (const JacobianMode mode : {JacobianMode::forward, JacobianMode::reverse}) {
    const auto p = exchange::jacobian_program(step, {.mode = mode});
    const std::vector<std::string> names{"x", "h", "c"}, results{"y", "h", "c"};
    Tensors in;
    for (std::size_t i = 0; i < p.inputs.size(); ++i) in.push_back(file.tensor(prefix + names[i]));
    const Tensors out = p.function(in);
    for (std::size_t k = 0; k < p.blocks.size(); ++k) {
      const exchange::JacobianBlock& b = p.blocks[k];
      const std::string block = prefix + "d" + results[b.result] + "_d" + names[b.input];
      BOOST_TEST_CONTEXT(block) BOOST_TEST(within(out[p.results.size() + k], file.tensor(block), 1e-14));
    }
  }
}

Tensor weights(const Shape& s, std::uint64_t seed) { return uniform(s, {.seed = seed}, -0.5, 0.5); }

std::set<std::string> operations_of(const JacobianProgram& p) {
  Graph g = trace(p.function, p.inputs);
  std::set<std::string> names;
  for (const Graph::Node& n : g.nodes) names.insert(std::string(n.op->name));
  return names;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(frozen_derivatives)

BOOST_AUTO_TEST_CASE(steps_of_recurrent_layers) {
  check_step(nn::Gru(3, 5, {.seed = 1}), 3);
  check_step(nn::Gru(2, 4, {.reset_after = false}, {.seed = 2}), 2);
  check_step(nn::Lstm(2, 4, {.seed = 3}), 2);
  check_step(nn::Gru(2, 3, {.layers = 2}, {.seed = 4}), 2);
}

BOOST_AUTO_TEST_CASE(steps_of_chains) {
  const auto net = dsl::sequence(2).gru(4).linear(3).tanh().linear(1).build(5);
  check_step(net, 2);
}

BOOST_AUTO_TEST_CASE(steps_have_the_jacobians_of_torch) {
  const nn::Init exact{.seed = 1, .dtype = Dtype::f64};
  check_against_torch("gru", nn::Gru(2, 4, exact));
  check_against_torch("lstm", nn::Lstm(2, 4, exact));
  check_against_torch("head", dsl::sequence(2).gru(4, "gru").linear(1, "head").build(1, Dtype::f64));
}

BOOST_AUTO_TEST_CASE(programs_of_operations) {
  const Tensor w = weights({4, 3}, 1), k = weights({2, 3, 3}, 2);
  check(
      [&](const Tensors& in) {
        return Tensors{tanh(matmul(in[0], w)), sum(in[0] * in[1], {1})};
      },
      {{{2, 4}}, {{2, 4}}});
  check(
      [&](const Tensors& in) {
        return Tensors{softmax(in[0]), layer_norm(in[0]), logsumexp(in[0], {0})};
      },
      {{{2, 5}}});
  check([&](const Tensors& in) { return Tensors{conv1d(in[0], k, {}, {.padding = {1}})}; }, {{{2, 3, 6}}});
  check([&](const Tensors& in) { return Tensors{matmul(in[0], in[1]), matmul(w, in[0])}; }, {{{3, 2}}, {{2, 3}}});
  check(
      [&](const Tensors& in) {
        return Tensors{amax(in[0], {1}), where(in[0] > 0, in[0] * 2, in[0]), flip(in[0], {1})};
      },
      {{{3, 4}}});
}

BOOST_AUTO_TEST_CASE(whole_sequences_and_scans) {
  const nn::Gru fused(2, 3, {.seed = 1}), scanned(2, 3, {.form = nn::Form::scan}, {.seed = 1});
  for (const nn::Gru* gru : {&fused, &scanned})
    check([&](const Tensors& in) { return Tensors{(*gru)(in[0])}; }, {{{1, 4, 2}}});
}

BOOST_AUTO_TEST_CASE(a_step_and_its_jacobians_as_c) {
  const auto net = dsl::sequence(2).gru(5, "gru").linear(1, "head").build(3);
  const auto step = exchange::step_program(net, {.batch = 1, .width = 2});
  frozen::Library library;
  library.add("derived", exchange::freeze_jacobian(step, {}, {.name = "derived"}));
  BOOST_TEST_REQUIRE(library.build(frozen::compilers()[0]) == "");
  const auto f = library.functions<double, double>("derived");
  std::vector<double> memory(f.bytes / sizeof(double) + 1);
  BOOST_TEST(f.check(memory.data()) == 0);
  const auto p = exchange::jacobian_program(step);
  const Tensors in = values_of(p.inputs, 5), wanted = p.function(in);
  BOOST_TEST_REQUIRE(wanted.size() == 6U);
  std::vector<std::vector<double>> out;
  for (const Tensor& y : wanted) out.emplace_back(static_cast<std::size_t>(y.numel()), NAN);
  const auto run =
      library.function<int(void*, const double*, const double*, double*, double*, double*, double*, double*, double*)>(
          "derived_run");
  BOOST_TEST(run(memory.data(), in[0].values<double>().data(), in[1].values<double>().data(), out[0].data(),
                 out[1].data(), out[2].data(), out[3].data(), out[4].data(), out[5].data()) == 0);
  for (std::size_t k = 0; k < out.size(); ++k)
    BOOST_TEST(identical(Tensor::from(out[k], wanted[k].shape()), wanted[k]));
}

BOOST_AUTO_TEST_CASE(zero_blocks_and_constants_are_written) {
  const auto p = exchange::jacobian_program(
      [](const Tensors& in) {
        return Tensors{in[0] * in[0], in[1] + 1, zeros({2})};
      },
      std::vector<Spec>{{{2}}, {{3}}});
  frozen::Library library;
  library.add("zeros", exchange::freeze(p.function, p.inputs, {.name = "zeros"}));
  BOOST_TEST_REQUIRE(library.build(frozen::compilers()[0]) == "");
  const auto f = library.functions<double, double>("zeros");
  std::vector<double> memory(f.bytes / sizeof(double) + 1);
  BOOST_TEST(f.check(memory.data()) == 0);
}

BOOST_AUTO_TEST_CASE(blocks_without_a_path_are_zeros) {
  const std::vector<Spec> inputs{{{2}}, {{3}}};
  const auto f = [](const Tensors& in) { return Tensors{in[0] * in[0], in[1] + 1, zeros({2})}; };
  check(f, inputs);
  const auto p = exchange::jacobian_program(f, inputs);
  std::vector<bool> zero;
  for (const auto& b : p.blocks) zero.push_back(b.zero);
  const std::vector<bool> wanted{false, true, true, false, true, true};
  BOOST_TEST(zero == wanted);
}

BOOST_AUTO_TEST_CASE(results_and_inputs_are_chosen) {
  const nn::Gru gru(2, 3, {.seed = 1});
  const auto step = exchange::step_program(gru, {.batch = 1, .width = 2});
  const auto all = exchange::jacobian_program(step);
  const std::vector<std::string> names{"y", "h_next", "dy_dx", "dy_dh", "dh_next_dx", "dh_next_dh"};
  BOOST_TEST(all.output_names == names);
  const auto one = exchange::jacobian_program(step, {.results = {{1}}, .inputs = {{1}}});
  BOOST_TEST_REQUIRE(one.blocks.size() == 1U);
  BOOST_TEST(one.output_names.back() == "dh_next_dh");
  const Tensors in = values_of(all.inputs, 1);
  BOOST_TEST(identical(one.function(in)[2], all.function(in)[5]));
  BOOST_TEST((all.inputs[0].dtype == Dtype::f64));
}

BOOST_AUTO_TEST_CASE(a_step_of_a_gru_takes_no_product_besides_its_own) {
  const nn::Gru gru(1, 32, {.seed = 1});
  const auto p = exchange::jacobian_program(exchange::step_program(gru, {.batch = 1, .width = 1}));
  BOOST_TEST((p.mode == JacobianMode::forward));
  const Graph g = trace(p.function, p.inputs);
  BOOST_TEST(std::ranges::count_if(g.nodes, [](const Graph::Node& n) { return n.op->name == "matmul"; }) == 2);
  std::map<const void*, std::int64_t> elements;  // by storage: other constants are views of these
  for (const Graph::Constant& c : g.constants) {
    if (!c.tensor.contiguous()) continue;
    std::int64_t& n = elements[c.tensor.impl()->storage];
    n = std::max(n, c.tensor.numel());
  }
  std::int64_t total = 0;
  for (const auto& [storage, n] : elements) total += n;
  BOOST_TEST(total <= 33 * 96 + 2 * 96 + 32 * 32 + 100);  // the weights, once, and unit vectors
}

BOOST_AUTO_TEST_CASE(definitions_take_the_place_of_operations_of_layers) {
  const nn::Gru gru(2, 3, {.seed = 1});
  const auto p = exchange::jacobian_program([&](const Tensors& in) { return Tensors{gru(in[0])}; },
                                            std::vector<Spec>{{{1, 3, 2}}});
  BOOST_TEST(operations_of(p).count("gru_sequence") == 0U);
}

BOOST_AUTO_TEST_CASE(wrong_calls_are_refused) {
  const std::vector<Spec> one{{{2}}}, tokens{{{2}, Dtype::i64}};
  const auto same = [](const Tensors& in) { return in; };
  BOOST_CHECK_EXCEPTION(exchange::jacobian_program(nullptr, one), ValueError, says("the function is null"));
  BOOST_CHECK_EXCEPTION(exchange::jacobian_program(same, one, {.results = {{1}}}), ValueError,
                        says("result 1 does not exist: there are 1"));
  BOOST_CHECK_EXCEPTION(exchange::jacobian_program(same, tokens, {.inputs = {{0}}}), DtypeError,
                        says("input 0 is i64[2], which has no derivative"));
  BOOST_CHECK_EXCEPTION(exchange::jacobian_program(same, one, {.dtype = Dtype::i64}), ValueError,
                        says("must be f64 or f32, got i64"));
  const State count("count", zeros({2}));
  BOOST_CHECK_EXCEPTION(exchange::jacobian_program(
                            [&](const Tensors& in) {
                              count.assign(in[0]);
                              return in;
                            },
                            one),
                        ValueError, says("the function assigns the variable 'count'"));
}

BOOST_AUTO_TEST_SUITE_END()
