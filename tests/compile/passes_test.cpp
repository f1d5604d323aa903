// Each pass on programs written for it: what remains, and the same bits.
#include "ferrite/compile/passes.h"

#include "programs.h"

using namespace ferrite;
using support::identical;

namespace {

using Function = std::function<Tensors(const Tensors&)>;
using Pass = void (*)(Graph&);

std::size_t count(const Graph& g, std::string_view name) {
  std::size_t n = 0;
  for (const Graph::Node& node : g.nodes) n += node.op->name == name;
  return n;
}

/// Returns the graph of f on these inputs after passes, whose results must be those of f.
Graph after(const Function& f, const Tensors& in, std::initializer_list<Pass> passes) {
  std::vector<Spec> specs;
  for (const Tensor& x : in) specs.push_back(x.spec());
  Graph g = trace(f, specs);
  for (const Pass pass : passes) pass(g);
  g.validate();
  const Tensors wanted = f(in);
  const Tensors got = replay(g, {in.data(), in.size()});
  for (std::size_t i = 0; i < wanted.size(); ++i) BOOST_TEST(identical(got[i], wanted[i]), g.str());
  return g;
}

/// Returns values at which careless rewriting shows: zeros of both signs, infinities, NaN.
Tensor special() {
  const float inf = std::numeric_limits<float>::infinity();
  return Tensor::from({0.0F, -0.0F, inf, -inf, std::numeric_limits<float>::quiet_NaN(), 1.5F, -2.0F, 1e-40F}, {8});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(passes_test)

BOOST_AUTO_TEST_CASE(dead_code_goes) {
  Parameter unused("unused", zeros({8}));
  const Graph g = after(
      [&](const Tensors& x) {
        (void)(exp(x[0]) + unused);
        return Tensors{x[0] * 2};
      },
      {special()}, {passes::remove_dead_code});
  BOOST_TEST(g.nodes.size() == 1U);
  BOOST_TEST(g.reads.empty());
  BOOST_TEST(g.variables.empty());
  BOOST_TEST(g.outputs[0] == 1U);  // renumbered
}

BOOST_AUTO_TEST_CASE(common_subexpressions_are_merged_by_their_bits) {
  const Graph g = after(
      [](const Tensors& x) {
        return Tensors{exp(x[0]) + exp(x[0]), x[0] + 0.0, x[0] + (-0.0), sum(x[0]), sum(x[0], {0}, true)};
      },
      {special()}, {passes::merge_common_subexpressions, passes::remove_dead_code});
  BOOST_TEST(count(g, "exp") == 1U);
  BOOST_TEST(count(g, "add") == 3U);  // + 0.0 is not + -0.0
  BOOST_TEST(count(g, "sum") == 2U);
}

BOOST_AUTO_TEST_CASE(random_draws_are_merged_only_when_they_are_the_same_draw) {
  const Graph g = after(
      [](const Tensors& x) {
        const Shape s{8};
        return Tensors{uniform(s, {1, 2, 3}) + uniform(s, {1, 2, 3}),
                       uniform(s, {1, 2, 4}),
                       uniform(s, {1, 3, 3}),
                       uniform(s, {2, 2, 3}),
                       normal(s, {1, 2, 3}),
                       uniform(s, {1, 2, 3}, 0, 1, Dtype::f32, cast(sum(cast(x[0], Dtype::i64)), Dtype::i64))};
      },
      {special()}, {passes::merge_common_subexpressions, passes::remove_dead_code});
  BOOST_TEST(count(g, "uniform") == 5U);
  BOOST_TEST(count(g, "normal") == 1U);
}

BOOST_AUTO_TEST_CASE(constants_are_folded) {
  const Tensor c = Tensor::from({1.0F, 2.0F}, {2});
  const Graph g = after(
      [&](const Tensors& x) {
        return Tensors{x[0] + exp(c) * 2, zeros({1000, 1000}) + 1.5 * ones({1000, 1000}), sum(arange(5))};
      },
      {Tensor::from({3.0F, 4.0F}, {2})}, {passes::fold_constants, passes::remove_dead_code});
  BOOST_TEST(g.nodes.size() == 1U);
  BOOST_TEST(g.constants.size() == 3U);
  BOOST_TEST(g.str().find("all 0x1.8p+0") != std::string::npos);  // a million elements as one
}

BOOST_AUTO_TEST_CASE(large_constants_are_not_multiplied) {
  const Tensor c = uniform({200, 1}, {1, 1, 1});
  const Graph g = after([&](const Tensors& x) { return Tensors{x[0] + sum(c + transpose(c))}; }, {full({}, 1.0)},
                        {passes::fold_constants, passes::remove_dead_code});
  BOOST_TEST(count(g, "add") == 2U);
}

BOOST_AUTO_TEST_CASE(simplification_keeps_zeros_and_nans) {
  const Graph g = after(
      [](const Tensors& in) {
        const Tensor& x = in[0];
        return Tensors{x * 1,
                       1.0 * x,
                       x / 1.0,
                       x - 0.0,
                       x + (-0.0),
                       -(-x),
                       cast(cast(x, Dtype::f64), Dtype::f32),
                       x + 0.0,
                       0.0 - x,
                       x - (-0.0),
                       x * 0,
                       1 / x,
                       x * ones({8}),
                       x * ones({1}),
                       contiguous(transpose(reshape(x, {2, 4})))};
      },
      {special()}, {passes::fold_constants, passes::simplify_exactly, passes::remove_dead_code});
  BOOST_TEST(count(g, "mul") == 1U);  // by 0
  BOOST_TEST(count(g, "add") == 1U);  // 0.0 turns -0 into 0
  BOOST_TEST(count(g, "sub") == 2U);  // 0 - x, x - (-0)
  BOOST_TEST(count(g, "div") == 1U);
  BOOST_TEST(count(g, "neg") == 0U);
  BOOST_TEST(count(g, "cast") == 0U);
  BOOST_TEST(count(g, "contiguous") == 0U);
}

BOOST_AUTO_TEST_CASE(a_cast_that_loses_stays) {
  const Graph g = after(
      [](const Tensors& x) {
        return Tensors{cast(cast(x[0], Dtype::i32), Dtype::f32),
                       cast(cast(cast(x[0], Dtype::f64), Dtype::f32), Dtype::f64)};
      },
      {special()}, {passes::simplify_exactly, passes::remove_dead_code});
  BOOST_TEST(count(g, "cast") == 3U);
  const Tensor whole = Tensor::from<std::int32_t>({16777217, -2147483647, 5, 0});  // the first is not an f32
  const Graph of_integers = after(
      [](const Tensors& x) {
        return Tensors{cast(cast(x[0], Dtype::f32), Dtype::i32), cast(cast(x[0], Dtype::f64), Dtype::i32)};
      },
      {whole}, {passes::simplify_exactly, passes::remove_dead_code});
  BOOST_TEST(count(of_integers, "cast") == 2U);
}

BOOST_AUTO_TEST_CASE(sums_of_padded_pieces_become_one_concatenation) {
  const auto piece = [](const Tensor& x, std::int64_t before, std::int64_t after_it) {
    return pad(x, {before}, {after_it});
  };
  const Graph g = after(
      [&](const Tensors& x) {
        return Tensors{piece(x[0], 0, 16) + piece(exp(x[0]), 8, 8) + piece(x[0], 16, 0),
                       piece(x[0], 3, 20) + piece(x[0], 22, 1)};  // with gaps
      },
      {special()}, {passes::join_padded_sums, passes::remove_dead_code});
  BOOST_TEST(count(g, "pad") == 0U);
  BOOST_TEST(count(g, "concat") == 2U);
}

BOOST_AUTO_TEST_CASE(overlapping_or_shared_pieces_stay_sums) {
  const Graph g = after(
      [](const Tensors& x) {
        const Tensor left = pad(x[0], {0}, {8});
        return Tensors{left + pad(x[0], {8}, {0}), left,  // shared
                       pad(exp(x[0]), {0}, {8}) + pad(x[0], {7}, {1}), pad(x[0], {0}, {8}, 1.0) + pad(x[0], {8}, {0}),
                       pad(x[0], {0}, {8}, -0.0) + pad(x[0], {8}, {0}, -0.0)};  // -0 + -0 is -0
      },
      {special()}, {passes::join_padded_sums, passes::remove_dead_code});
  BOOST_TEST(count(g, "concat") == 0U);
}

BOOST_AUTO_TEST_CASE(picking_moves_to_the_operands) {
  const Tensor index = Tensor::from({std::int64_t{3}, std::int64_t{-1}, std::int64_t{0}}, {3, 1});
  const Tensors in{uniform({3, 8}, {1, 1, 1}), uniform({3, 1}, {1, 2, 1}), uniform({8}, {1, 3, 1})};
  const Graph g = after(
      [&](const Tensors& x) {
        return Tensors{gather(exp(x[0] - x[1]) * x[2] + 1, 1, index),
                       gather(tanh(x[0]), 0, transpose(minimum(index, 2)))};
      },
      in, {passes::sink_gathers, passes::merge_common_subexpressions, passes::remove_dead_code});
  BOOST_TEST(count(g, "gather") == 3U);  // of x[0], of x[2] and along the other axis
  for (const Graph::Node& n : g.nodes)
    if (n.op->name == "exp") BOOST_TEST(g.values[n.out[0]].shape.numel() == 3);
}

BOOST_AUTO_TEST_CASE(all_passes_together_keep_the_bits_of_random_programs) {
  for (std::uint64_t seed = 20000; seed < 20200; ++seed) {
    const programs::Program f(seed);
    (void)after([&](const Tensors& x) { return f(x); }, f.inputs(), {passes::simplify});
  }
}

BOOST_AUTO_TEST_SUITE_END()
