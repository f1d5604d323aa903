// Exact results of scans, to the bit: with many operands, with one step, compiled and eager.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/ops.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream, Dtype dtype = Dtype::f64) {
  return uniform(shape, {29, stream, 0}, -1, 1, dtype);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(exact)

/// There are 70 captured tensors, every third of which is differentiated, and 70 ys, every second of which is read:
/// each has its own gradient.
BOOST_AUTO_TEST_CASE(checkpointed_gradients_of_seventy_captures) {
  constexpr std::size_t n = 70;
  const Tensor x = draw({20, 3}, 1), h = draw({3}, 2);
  const auto gradients = [&](std::int64_t every) {
    Tape tape;
    Tensors captures, wanted{tape.watch(x)};
    for (std::size_t k = 0; k < n; ++k) captures.push_back(draw({3}, 10 + k));
    for (std::size_t k = 0; k < n; k += 3) {
      captures[k] = tape.watch(captures[k]);
      wanted.push_back(captures[k]);
    }
    const auto body = [&](const Tensors& c, const Tensors& s) -> ScanStep {
      Tensor next = tanh(c[0] + s[0]);
      Tensors ys;
      for (std::size_t k = 0; k < n; ++k) {
        ys.push_back(next * captures[k]);
        next = next + ys.back() * (0.01 * static_cast<double>(1 + k % 7));
      }
      return {{next}, ys};
    };
    const ScanResult r = scan(body, {h}, {wanted[0]}, {.checkpoint_every = every});
    Tensor loss = sum(square(r.carry[0]));
    for (std::size_t k = 1; k < n; k += 2) loss = loss + sum(r.y[k] * static_cast<double>(k));
    return tape.grad(loss, {wanted.data(), wanted.size()});
  };
  const Tensors plain = gradients(0), checkpointed = gradients(4);
  BOOST_REQUIRE_EQUAL(plain.size(), checkpointed.size());
  for (std::size_t k = 0; k < plain.size(); ++k) {
    BOOST_TEST_CONTEXT("gradient " << k) BOOST_TEST(identical(checkpointed[k], plain[k]));
    BOOST_TEST(amax(abs(plain[k])).item<double>() > 0);
  }
}

/// One compiled step has the bits of one eager step: sums of biases over rows keep their order, and a sum of -0 is 0 in
/// both.
BOOST_AUTO_TEST_CASE(a_single_step_keeps_its_bits_when_compiled) {
  for (const std::int64_t rows : {1, 5, 37, 300}) {
    const Tensor w = draw({3, 4}, 1, Dtype::f32), b = draw({4}, 2, Dtype::f32), x = draw({1, rows, 3}, 3, Dtype::f32);
    const Tensor h = draw({rows, 4}, 4, Dtype::f32);
    const auto f = [](const Tensors& in) -> Tensors {
      Tape tape;
      const Tensor tw = tape.watch(in[0]), tb = tape.watch(in[1]), tx = tape.watch(in[2]), th = tape.watch(in[3]);
      const auto body = [&](const Tensors& c, const Tensors& s) -> ScanStep {
        const Tensor next = tanh(matmul(s[0], tw) + tb + c[0] * -0.0);
        return {{next}, {next * tb}};
      };
      const ScanResult r = scan(body, {th}, {tx});
      const Tensor loss = sum(square(r.carry[0])) - sum(r.y[0]);
      Tensors all = tape.grad(loss, {tw, tb, tx, th});
      all.push_back(r.y[0].unmarked());
      return all;
    };
    const Tensors in{w, b, x, h};
    const Tensors eager = f(in), compiled = compile(f)(in);
    for (std::size_t k = 0; k < eager.size(); ++k)
      BOOST_TEST_CONTEXT(rows << " rows, result " << k) BOOST_TEST(identical(compiled[k], eager[k]));
  }
}

/// A program's text may contain anything: wrong positions are refused.
BOOST_AUTO_TEST_CASE(positions_that_do_not_fit_are_refused) {
  const auto f = [](const Tensors& in) -> Tensors {
    Tape tape;
    const Tensor h = tape.watch(in[0]);
    const auto body = [](const Tensors& c, const Tensors& s) -> ScanStep { return {{c[0] * s[0]}, {}}; };
    return tape.grad(sum(scan(body, {h}, {in[1]}, {.checkpoint_every = 2}).carry[0]), {h});
  };
  const std::string text = trace(f, std::vector<Spec>{{{2}, Dtype::f32}, {{4, 2}, Dtype::f32}}).str();
  const std::string given = "inputs={0}";
  const std::size_t at = text.find(given);
  BOOST_REQUIRE(at != std::string::npos);
  BOOST_TEST(parse_graph(text).str() == text);
  for (const char* wrong : {"inputs={2}", "inputs={-1}", "inputs={0, 0}", "inputs={1, 0}"}) {
    std::string bad = text;
    bad.replace(at, given.size(), wrong);
    BOOST_CHECK_EXCEPTION((void)parse_graph(bad), TraceError, says("ascending positions below 2"));
  }
}

/// A compiled function that takes a gradient through a checkpointed scan is differentiated from outside, so the part of
/// its program that computes the gradient needs a gradient itself.
BOOST_AUTO_TEST_CASE(compiled_gradients_of_checkpointed_scans_have_gradients) {
  const Tensors in = {uniform({3}, {1, 2, 0}, -1, 1, Dtype::f64), uniform({3}, {1, 3, 0}, -1, 1, Dtype::f64),
                      uniform({5, 3}, {1, 4, 0}, -1, 1, Dtype::f64)};
  const auto second = [&](std::int64_t every, bool compiled) {
    const auto f = [=](const Tensors& x) -> Tensors {
      Tape tape;
      const Tensor w = tape.watch(x[0]);
      const auto body = [&](const Tensors& c, const Tensors& s) -> ScanStep {
        const Tensor h = tanh(c[0] * w + s[0]);
        return {{h}, {h * h}};
      };
      const ScanResult r = scan(body, {x[1]}, {x[2]}, {.checkpoint_every = every});
      return tape.grad(sum(r.y[0]) + sum(r.carry[0] * r.carry[0]), {w});
    };
    Tape tape;
    Tensors watched;
    for (const Tensor& t : in) watched.push_back(tape.watch(t));
    const Tensor g = compiled ? compile(f)(watched)[0] : f(watched)[0];
    return tape.grad(sum(g * g), {watched[0], watched[1], watched[2]});
  };
  const Tensors wanted = second(0, false);
  for (const std::int64_t every : {1, 2, 9})
    for (const bool compiled : {false, true}) {
      const Tensors got = second(every, compiled);
      for (std::size_t k = 0; k < got.size(); ++k)
        BOOST_TEST(within(got[k], wanted[k], 1e-13), "every " << every << ", by input " << k);
    }
}

BOOST_AUTO_TEST_SUITE_END()
