// The costs of programs: multiply-adds of products, in every part of a program, and bytes.
#include "conformance/oracles/oracle.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "support/compare.h"
#include "support/operations.h"

using namespace ferrite;
using support::says;

namespace {

std::int64_t multiply_adds(const std::function<Tensors(const Tensors&)>& f, std::vector<Spec> in) {
  return cost_of(trace(f, in)).multiply_adds;
}

Tensor summed(const Tensors& list) {
  Tensor total = sum(list[0]);
  for (std::size_t i = 1; i < list.size(); ++i) total = total + sum(list[i]);
  return total;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(costs)

BOOST_AUTO_TEST_CASE(products_count_their_terms_and_all_else_its_bytes) {
  const auto f = [](const Tensors& x) { return Tensors{transpose(matmul(x[0], x[1])) + 1}; };
  const Cost cost = cost_of(trace(f, std::vector<Spec>{{{5, 2, 3}, Dtype::f32}, {{3, 4}, Dtype::f32}}));
  BOOST_TEST(cost.multiply_adds == 5 * 2 * 3 * 4);
  const std::int64_t product = 5 * 2 * 3 + 3 * 4 + 5 * 2 * 4, sum = 2 * 5 * 2 * 4;  // a transposition moves nothing
  BOOST_TEST(cost.bytes == 4 * (product + sum));
}

/// One operation for all steps costs as much as its composition.
BOOST_AUTO_TEST_CASE(sequences_cost_what_their_steps_do) {
  for (const char* name : {"gru_sequence", "lstm_sequence", "rnn_sequence"}) {
    const Primitive& op = support::operation(name);
    for (const detail::Sample& s : oracles::samples(op)) {
      std::vector<Spec> in;
      for (const auto& i : s.inputs) in.push_back({i.shape, i.dtype});
      const auto fused = [&](const Tensors& x) { return op.apply(OperandList(x), s.attrs); };
      const auto steps = [&](const Tensors& x) { return op.reference(OperandList(x), s.attrs); };
      BOOST_TEST(multiply_adds(fused, in) == multiply_adds(steps, in), name);
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_sequences_count_what_is_wanted) {
  constexpr std::int64_t T = 5, B = 2, D = 3, H = 4, kIn = T * B * D * 3 * H, kState = T * B * H * 3 * H;
  const std::vector<Spec> in = {{{T, B, D}, Dtype::f32}, {{D, 3 * H}, Dtype::f32}, {{H, 3 * H}, Dtype::f32}};
  const auto cost_with = [&](std::vector<int> wanted) {
    return multiply_adds(
        [&](const Tensors& x) {
          Tape tape;
          Tensors all(x.begin(), x.end()), of;
          for (const int k : wanted)
            of.push_back(all[static_cast<std::size_t>(k)] = tape.watch(all[static_cast<std::size_t>(k)]));
          const Tensor y = sum(gru_sequence(all[0], {all[1], all[2]}, zeros({B, H}))[0]);
          const Tensors g = tape.grad(y, of);
          return Tensors{summed(g)};
        },
        in);
  };
  BOOST_TEST(cost_with({0, 1, 2}) == kIn + kState + 2 * kIn + 2 * kState);
  BOOST_TEST(cost_with({1}) == kIn + kState + kIn + kState);
  BOOST_TEST(cost_with({2}) == kIn + kState + 2 * kState);
}

BOOST_AUTO_TEST_CASE(scans_cost_their_steps) {
  constexpr std::int64_t T = 7, B = 2, H = 3, kStep = B * H * H;
  const std::vector<Spec> in = {{{B, H}, Dtype::f32}, {{H, H}, Dtype::f32}, {{T, B, H}, Dtype::f32}};
  const auto of = [](std::int64_t every) {
    return [every](const Tensors& x) {
      const auto body = [&](const Tensors& c, const Tensors& s) -> ScanStep {
        const Tensor h = tanh(matmul(c[0], x[1]) + s[0]);
        return {{h}, {h}};
      };
      return scan(body, {x[0]}, {x[2]}, {.checkpoint_every = every}).y[0];
    };
  };
  const auto forward = [&](std::int64_t every) {
    return multiply_adds([&](const Tensors& x) { return Tensors{of(every)(x)}; }, in);
  };
  const auto trained = [&](std::int64_t every) {
    return multiply_adds(
        [&](const Tensors& x) {
          Tape tape;
          const Tensors w = {x[0], tape.watch(x[1]), x[2]};
          return tape.grad(sum(of(every)(w)), {w[1]});
        },
        in);
  };
  BOOST_TEST(forward(0) == T * kStep);
  BOOST_TEST(forward(3) == T * kStep);
  BOOST_TEST(trained(0) == T * 3 * kStep);  // products forward, to the step before, and to the weights
  BOOST_TEST(trained(3) == T * 4 * kStep);  // and forward again
}

/// The steps of a plan are not operations of a program: no shape rule exists to check them.
BOOST_AUTO_TEST_CASE(a_graph_of_a_plan_is_no_program) {
  const auto f = [](const Tensors& x) { return Tensors{matmul(x[0], x[1]) + matmul(x[1], x[0])}; };
  const Plan plan(trace(f, std::vector<Spec>{{{4, 4}, Dtype::f32}, {{4, 4}, Dtype::f32}}));
  BOOST_CHECK_EXCEPTION(plan.graph().validate(), TraceError, says("is a step of a plan, which no program has"));
}

BOOST_AUTO_TEST_SUITE_END()
