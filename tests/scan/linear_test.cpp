// Scans whose body is linear in its carries are recognised, and equal the same scan run step by step (which
// `checkpoint_every` requests), with all gradients. Bodies that are not linear must not be taken for linear.
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/cumulative.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

constexpr std::int64_t kSteps = 7, kBatch = 3, kIn = 4, kUnits = 5;

Tensor drawn(const Shape& s, std::uint64_t seed) { return uniform(s, {.seed = seed}, -1, 1, Dtype::f64); }

struct Case {
  std::string name;
  ScanBodyFunction body;
  Tensors init, xs;
};

const Parameter kWeights("w", drawn({kIn, 2 * kUnits}, 1));
const Parameter kDecay("d", drawn({kUnits}, 2));

std::vector<Case> linear_cases() {
  const Tensor h0 = drawn({kBatch, kUnits}, 3), c0 = drawn({kBatch, 2}, 4), x = drawn({kSteps, kBatch, kIn}, 5);
  const Tensor u = drawn({kSteps, kBatch, kUnits}, 6), v = drawn({kSteps, kBatch, 2}, 7);
  const Tensor mask = gt(drawn({kSteps, kBatch}, 8), 0.3);
  using In = const Tensors&;
  std::vector<Case> all;
  all.push_back({"gates",
                 [](In c, In in) -> ScanStep {
                   const Tensors g = split(matmul(in[0], kWeights), kUnits, 1);
                   const Tensor z = sigmoid(g[0]), h = c[0] + z * (tanh(g[1]) - c[0]);
                   return {{h}, {h}};
                 },
                 {h0},
                 {x}});
  all.push_back({"decay",
                 [](In c, In in) -> ScanStep {
                   const Tensor h = kDecay * c[0] + in[0];
                   return {{h}, {h * 2.0 + in[0], tanh(c[0]), sum(h, {1})}};
                 },
                 {h0},
                 {u}});
  all.push_back({"two",
                 [](In c, In in) -> ScanStep {
                   const Tensor a = (in[0] - c[0]) / 2.0, b = -(c[1] * in[1]) * 0.5 + c[1];
                   return {{a, b}, {concat({a, b * c[1]}, 1)}};
                 },
                 {h0, c0},
                 {u, v}});
  all.push_back({"sum",
                 [](In c, In in) -> ScanStep {
                   const Tensor h = c[0] + in[0];
                   return {{h}, {c[0]}};
                 },
                 {h0},
                 {u}});
  all.push_back({"resets",
                 [](In c, In in) -> ScanStep {
                   const Tensor before = where(unsqueeze(in[1], 1), 0, c[0]);
                   const Tensor h = sigmoid(in[0]) * before + in[0];
                   return {{h}, {h - before}};
                 },
                 {h0},
                 {u, mask}});
  all.push_back({"kept",
                 [](In c, In in) -> ScanStep {
                   const Tensor h = where(unsqueeze(in[1], 1), c[0] * 0.9 + in[0], c[0]);
                   return {{h}, {h}};
                 },
                 {h0},
                 {u, mask}});
  all.push_back({"no_y", [](In c, In in) -> ScanStep { return {{c[0] * in[0]}, {}}; }, {h0}, {u}});
  all.push_back({"one_axis",
                 [](In c, In in) -> ScanStep {
                   return {{c[0] * 0.5 + in[0]}, {c[0]}};
                 },
                 {drawn({kUnits}, 9)},
                 {drawn({kSteps, kUnits}, 10)}});
  all.push_back({"scalar",
                 [](In c, In in) -> ScanStep {
                   return {{c[0] * in[0] + 1.0}, {c[0]}};
                 },
                 {drawn({}, 9)},
                 {drawn({kSteps}, 10)}});
  return all;
}

/// Returns last carries and stacks, then gradients of carries, of xs, of the parameters.
Tensors everything(const Case& c, const ScanOptions& o) {
  Tape tape;
  Tensors init, xs;
  std::vector<Tensor> of;
  for (const Tensor& t : c.init) init.push_back(tape.watch(t)), of.push_back(init[init.size() - 1]);
  for (const Tensor& t : c.xs) {
    xs.push_back(is_float(t.dtype()) ? tape.watch(t) : t);
    if (is_float(t.dtype())) of.push_back(xs[xs.size() - 1]);
  }
  of.push_back(kWeights.value());
  of.push_back(kDecay.value());
  const ScanResult r = scan(c.body, init, xs, o);
  Tensor loss = zeros({}, Dtype::f64) + sum(kWeights.value() * 0.0) + sum(kDecay.value() * 0.0);
  Tensors all;
  std::uint64_t seed = 20;
  for (const Tensors* list : {&r.carry, &r.y})
    for (const Tensor& t : *list) {
      all.push_back(t);
      loss = loss + sum(t * drawn(t.shape(), seed++));
    }
  for (const Tensor& g : tape.grad(loss, of)) all.push_back(g);
  return all;
}

struct Leaky final : nn::CustomCell {
  Parameter w_x, decay;
  Leaky(std::int64_t D, std::int64_t H, const nn::Init& init) {
    w_x = parameter("w_x", {D, 2 * H}, nn::init::xavier_uniform(), init);
    decay = parameter("decay", {H}, nn::init::uniform(0, 1), init);
  }
  std::string kind() const override { return "leaky"; }
  nn::RecurrentState step(const Tensor& x, const nn::RecurrentState& s) const override {
    const Tensors g = split(matmul(x, w_x), decay.shape()[0], 1);
    return {sigmoid(g[0]) * decay * s.h + tanh(g[1])};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(linear_scans)

BOOST_AUTO_TEST_CASE(are_recognised_and_equal_the_steps_with_all_gradients) {
  for (const Case& c : linear_cases())
    for (const bool reverse : {false, true})
      for (const bool ragged : {false, true}) {
        BOOST_TEST_CONTEXT(c.name << (reverse ? " back" : "") << (ragged ? " ragged" : "")) {
          BOOST_TEST(Scan(c.body).report(c.init, c.xs) == "linear in its carries: runs as linear_scan");
          if (ragged && (c.init[0].rank() < 2 || c.xs[0].rank() < 3)) continue;
          ScanOptions o{.reverse = reverse};
          if (ragged) o.lengths = Tensor::from<std::int64_t>({4, kSteps, 1}, {kBatch});
          ScanOptions steps = o;
          steps.checkpoint_every = 1;
          const Tensors got = everything(c, o), wanted = everything(c, steps);
          BOOST_REQUIRE(got.size() == wanted.size());
          for (std::size_t k = 0; k < got.size(); ++k) BOOST_TEST_CONTEXT(k) {
              BOOST_TEST(within(got[k], wanted[k], 1e-13));
            }
        }
      }
}

BOOST_AUTO_TEST_CASE(appear_in_traced_programs) {
  const Case c = linear_cases()[0];
  const auto f = [&](const Tensors& in) { return Tensors{scan(c.body, {in[0]}, {in[1]}).y[0]}; };
  const std::vector<Spec> specs{c.init[0].spec(), c.xs[0].spec()};
  const Graph g = trace(f, specs);
  BOOST_TEST(g.str().find("linear_scan") != std::string::npos);
  BOOST_TEST(g.str().find(" = scan") == std::string::npos);
  const auto compiled = compile([&](const Tensor& h, const Tensor& x) { return scan(c.body, {h}, {x}).y[0]; });
  BOOST_TEST(identical(compiled(c.init[0], c.xs[0]), scan(c.body, c.init, c.xs).y[0]));
}

BOOST_AUTO_TEST_CASE(are_not_seen_where_there_are_none) {
  const Tensor h = drawn({kBatch, kUnits}, 1), x = drawn({kSteps, kBatch, kUnits}, 2);
  const Tensor w = drawn({kUnits, kUnits}, 3), mask = gt(drawn({kSteps, kBatch, 1}, 4), 0.0);
  const auto report = [&](const ScanBodyFunction& f, const Tensors& init, const Tensors& xs) {
    return Scan(f).report(init, xs);
  };
  using In = const Tensors&;
  const auto one = [&](auto f) {
    return report([f](In c, In in) -> ScanStep { return {{f(c[0], in[0])}, {}}; }, {h}, {x});
  };
  const std::string by = "runs step by step: ";
  BOOST_TEST(one([](auto c, auto in) { return tanh(c) + in; }) == by + "a carry goes through tanh");
  BOOST_TEST(one([&](auto c, auto in) { return matmul(c, w) + in; }) == by + "a carry goes through matmul");
  BOOST_TEST(one([](auto c, auto in) { return c * c + in; }) == by + "a carry goes through mul");
  BOOST_TEST(one([](auto c, auto in) { return in / c; }) == by + "a carry goes through div");
  BOOST_TEST(one([](auto c, auto in) { return c * sum(c) + in; }) == by + "a carry goes through sum");
  BOOST_TEST(one([](auto c, auto in) { return where(gt(c, 0.0), in, c * 2.0); }) == by + "a carry goes through less");
  BOOST_TEST(one([](auto c, auto in) { return where(gt(in, 0.0), in, c * 2.0); }) == by + "a carry goes through where");
  BOOST_TEST(one([](auto c, auto in) {
               return slice(concat({c, in}, 1), 1, 1, kUnits + 1);
             }) == by + "a carry goes through concat");
  BOOST_TEST(one([](auto, auto in) { return in; }) == by + "a carry does not depend on its own last value alone");
  BOOST_TEST(one([](auto c, auto in) { return c * cumsum(in, 1); }) == by + "cumsum cannot act on all steps at once");
  BOOST_TEST(report(
                 [](In c, In in) -> ScanStep {
                   return {{c[1] + in[0], c[0]}, {}};
                 },
                 {h, h}, {x}) == by + "a carry does not depend on its own last value alone");
  BOOST_TEST(report(
                 [](In c, In in) -> ScanStep {
                   return {{c[0] + c[1] + in[0], c[1] * 2.0}, {}};
                 },
                 {h, h}, {x}) == by + "two carries meet in add");
  BOOST_TEST(report(
                 [](In c, In in) -> ScanStep {
                   return {{where(in[1], 0, c[0]) + c[0] + in[0]}, {}};
                 },
                 {h}, {x, mask}) == by + "a carry is read before and after a reset");
  BOOST_TEST(report(
                 [](In c, In in) -> ScanStep {
                   return {{where(gt(in[0], 0.0), 0, c[0]) + in[0]}, {}};
                 },
                 {h}, {x}) == by + "a carry is reset by a mask that is not one of rows");
  BOOST_TEST(report(
                 [](In c, In in) -> ScanStep {
                   return {{where(in[1], 2.0, c[0]) + in[0]}, {}};
                 },
                 {h}, {x, mask}) == by + "a carry goes through where");
  BOOST_TEST(report(
                 [](In c, In in) -> ScanStep {
                   return {{c[0] + in[0]}, {}};
                 },
                 {full({2}, 1, Dtype::i64)}, {full({kSteps, 2}, 1, Dtype::i64)}) == by + "a carry is no float");
}

/// A reset removes values that are not finite, as a step does.
BOOST_AUTO_TEST_CASE(resets_forget_what_is_not_finite) {
  const Case c = linear_cases()[4];
  const Tensor mask = expand(unsqueeze(eq(arange(kSteps), 3), 1), {kSteps, kBatch});
  const Tensor x =
      where(reshape(lt(arange(kSteps), 3), {kSteps, 1, 1}), std::numeric_limits<double>::infinity(), c.xs[0]);
  const ScanResult r = scan(c.body, c.init, {x, mask}),
                   alone = scan(c.body, c.init, {slice(x, 0, 3, kSteps), slice(mask, 0, 3, kSteps)});
  BOOST_TEST(identical(slice(r.y[0], 0, 3, kSteps), alone.y[0]));
}

/// Whole sequences, pieces and streams of a linear cell are rounded in the same way.
BOOST_AUTO_TEST_CASE(cells_of_users_stream_with_the_bits_of_the_whole) {
  const nn::Custom layer = nn::custom<Leaky>(kIn, kUnits, {.layers = 2}, {.seed = 3});
  const Tensor x = uniform({2, 9, kIn}, {.seed = 5}, -1, 1);
  const nn::RecurrentResult whole = layer.run(x);
  const nn::RecurrentResult first = layer.run(slice(x, 1, 0, 4)),
                            rest = layer.run(slice(x, 1, 4, 9), {.state = first.state});
  BOOST_TEST(identical(concat({first.output, rest.output}, 1), whole.output));
  nn::Stream stream = layer.stream(2);
  BOOST_TEST(stream.on_tensors() == 0U);
  std::vector<float> y(2 * kUnits);
  for (std::int64_t t = 0; t < 9; ++t) {
    const std::vector<float> in = contiguous(select(x, 1, t)).to_vector<float>();
    stream.step(in, y);
    BOOST_TEST(identical(Tensor::from(y, {2, kUnits}), select(whole.output, 1, t)));
  }
  const nn::Custom by_steps = nn::custom<Leaky>(kIn, kUnits, {.layers = 2, .form = nn::Form::unrolled}, {.seed = 3});
  BOOST_TEST(within(by_steps(x), whole.output, 1e-6));
  const Tensor lengths = Tensor::from<std::int64_t>({3, 9}, {2}), resets = eq(expand(arange(9), {2, 9}), 5);
  const nn::Context context{.lengths = lengths, .reset_mask = resets};
  BOOST_TEST(within(layer(x, context), by_steps(x, context), 1e-6));
  BOOST_TEST(within(layer(x, {.reset_mask = resets}), by_steps(x, {.reset_mask = resets}), 1e-6));
}

BOOST_AUTO_TEST_SUITE_END()
