// The parts of a scan that are computed for many steps at once: products that no carry depends on, and views of these;
// and captures of bodies with their own tapes.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/recurrent/gru.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {31, stream, 0}, -1, 1, Dtype::f64); }

using Body = std::function<ScanStep(const Tensors& carry, const Tensors& x)>;

/// Returns the carry and the stacks of a loop in C++.
Tensors looped(const Body& body, Tensors carry, const Tensor& xs, bool reverse) {
  const std::int64_t T = xs.shape()[0];
  std::vector<std::vector<Tensor>> stacks;
  for (std::int64_t n = 0; n < T; ++n) {
    const ScanStep step = body(carry, {select(xs, 0, reverse ? T - 1 - n : n)});
    carry = step.carry;
    stacks.resize(step.y.size());
    for (std::size_t k = 0; k < step.y.size(); ++k)
      stacks[k].insert(reverse ? stacks[k].begin() : stacks[k].end(), step.y[k]);
  }
  for (const std::vector<Tensor>& s : stacks) carry.push_back(stack(s, 0));
  return carry;
}

Tensors scanned(const Body& body, const Tensors& carry, const Tensor& xs, bool reverse, std::int64_t every) {
  const ScanResult r = scan(body, carry, {xs}, {.reverse = reverse, .checkpoint_every = every});
  Tensors all = r.carry;
  for (const Tensor& y : r.y) all.push_back(y);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stages)

/// The product acts on the carry at the beginning of the step, through whatever views its result is read.
BOOST_AUTO_TEST_CASE(stacks_of_products_of_a_carry_are_those_of_a_loop) {
  const std::pair<const char*, std::function<Tensors(const Tensor&)>> views[] = {
      {"itself", [](const Tensor& m) { return Tensors{m}; }},
      {"what follows",
       [](const Tensor& m) {
         return Tensors{m * 2 + 1, m};
       }},
      {"select",
       [](const Tensor& m) {
         return Tensors{select(m, 0, 1), select(m, 1, 2)};
       }},
      {"flip", [](const Tensor& m) { return Tensors{flip(m, {0})}; }},
      {"slice", [](const Tensor& m) { return Tensors{slice(m, 0, 1, 2)}; }},
      {"transpose",
       [](const Tensor& m) {
         return Tensors{transpose(m), unsqueeze(m, 0)};
       }},
      {"the first of some", [](const Tensor& m) { return Tensors{unbind(m, 0)[0]}; }},
      {"the last of some",
       [](const Tensor& m) {
         return Tensors{unbind(m, 0)[2], split(m, 1, 1)[2]};
       }},
      {"what follows one of some", [](const Tensor& m) {
         return Tensors{exp(split(m, 1, 1)[1]), m};
       }}};
  const Tensor w = draw({3, 3}, 1), h = draw({3, 3}, 2);
  for (const std::int64_t T : {1, 5, 200})
    for (const bool reverse : {false, true})
      for (const auto& [name, view] : views) {
        const Tensor xs = draw({T, 3, 3}, 3);
        for (const bool of_carry : {true, false}) {
          const Body body = [&, &view = view](const Tensors& c, const Tensors& x) -> ScanStep {
            return {{tanh(c[0] + x[0])}, view(matmul(of_carry ? c[0] : x[0], w))};
          };
          const Tensors wanted = looped(body, {h}, xs, reverse);
          for (const std::int64_t every : {0, 2}) {
            const Tensors got = scanned(body, {h}, xs, reverse, every);
            const auto f = [&](const Tensors& in) { return scanned(body, {in[0]}, in[1], reverse, every); };
            const Tensors planned = compile(f)(Tensors{h, xs});
            for (std::size_t k = 0; k < wanted.size(); ++k)
              BOOST_TEST_CONTEXT(name << ", " << T << " steps, reverse " << reverse << ", result " << k) {
                BOOST_TEST(identical(got[k], wanted[k]));
                BOOST_TEST(identical(planned[k], wanted[k]));
              }
          }
        }
      }
}

/// The second gradient has sums over steps whose terms are parts of products.
BOOST_AUTO_TEST_CASE(scans_over_sequences_have_second_gradients) {
  const Tensors in = {draw({3, 6}, 1), draw({2, 6}, 2), draw({2, 2}, 3), draw({3, 2, 2, 3}, 4)};
  const auto second = [&](int kind) {
    Tape tape;
    Tensors v;
    for (const Tensor& t : in) v.push_back(tape.watch(t));
    const Body body = [&](const Tensors& c, const Tensors& x) -> ScanStep {
      const Tensors r = gru_sequence(x[0], {v[0], v[1]}, c[0]);
      return {{r[1]}, {r[0]}};
    };
    const Tensors r = kind < 0 ? looped(body, {v[2]}, v[3], false) : scanned(body, {v[2]}, v[3], false, kind);
    Tensor total = zeros({}, Dtype::f64);
    for (const Tensor& g : tape.grad(sum(sin(r[0])) + sum(sin(r[1])), v, {.create_graph = true}))
      total = total + sum(square(g));
    return tape.grad(total, v);
  };
  const Tensors wanted = second(-1);
  for (const int every : {0, 1, 2}) {
    const Tensors got = second(every);
    for (std::size_t k = 0; k < in.size(); ++k)
      BOOST_TEST(within(got[k], wanted[k], 1e-11), "every " << every << ", by input " << k);
  }
}

/// The carry that counts steps is saved with the others, and has no gradient.
BOOST_AUTO_TEST_CASE(a_compiled_gradient_of_a_checkpointed_scan_with_an_integer_carry_has_a_gradient) {
  const Tensors in = {draw({3}, 1), draw({3}, 2), draw({5, 3}, 3)};
  const auto second = [&](std::int64_t every, bool compiled) {
    const auto f = [=](const Tensors& v) {
      Tape tape;
      const Tensor w = tape.watch(v[0]);
      const Body body = [&](const Tensors& c, const Tensors& x) -> ScanStep {
        const Tensor h = sin(c[1] * cast(c[0], Dtype::f64) * w + x[0]);
        return {{c[0] + 1, h}, {h * h}};
      };
      const ScanResult r = scan(body, {ones({3}, Dtype::i64), v[1]}, {v[2]}, {.checkpoint_every = every});
      return tape.grad(sum(r.y[0]) + sum(square(r.carry[1])), {w});
    };
    Tape tape;
    Tensors v;
    for (const Tensor& t : in) v.push_back(tape.watch(t));
    const Tensor g = compiled ? compile(f)(v)[0] : f(v)[0];
    return tape.grad(sum(square(g)), v);
  };
  const Tensors wanted = second(0, false);
  for (const std::int64_t every : {0, 1, 2, 9})
    for (const bool compiled : {false, true}) {
      const Tensors got = second(every, compiled);
      for (std::size_t k = 0; k < in.size(); ++k)
        BOOST_TEST(within(got[k], wanted[k], 1e-11), "every " << every << ", by input " << k);
    }
}

/// A tensor of an outer tape that a body captures is a variable there, even if an inner tape watches it, too.
BOOST_AUTO_TEST_CASE(a_tape_in_a_body_that_watches_a_captured_variable_passes_gradients_on) {
  const Tensors in = {draw({3}, 1), draw({3}, 2), draw({4, 3}, 3)};
  const auto gradients = [&](int every) {
    Tape tape;
    Tensors v;
    for (const Tensor& t : in) v.push_back(tape.watch(t));
    const Body body = [&](const Tensors& c, const Tensors& x) -> ScanStep {
      Tape inner;
      const Tensor w = inner.watch(v[0]);
      const Tensor g = inner.grad(sum(tanh(w * w) * v[0]), {w})[0];
      return {{sin(c[0] + g * x[0])}, {g}};
    };
    const Tensors r = every < 0 ? looped(body, {v[1]}, v[2], false) : scanned(body, {v[1]}, v[2], false, every);
    return tape.grad(sum(r[0]) + sum(square(r[1])), v);
  };
  const Tensors wanted = gradients(-1);
  for (const int every : {0, 2}) {
    const Tensors got = gradients(every);
    for (std::size_t k = 0; k < in.size(); ++k)
      BOOST_TEST(within(got[k], wanted[k], 1e-12), "every " << every << ", by input " << k);
  }
}

BOOST_AUTO_TEST_CASE(a_tape_in_a_compiled_function_watches_no_variable_of_a_tape_outside) {
  Tape tape;
  const Tensor v = tape.watch(draw({3}, 1));
  const auto f = compile([&](const Tensor& x) {
    Tape inner;
    const Tensor w = inner.watch(v);
    return inner.grad(sum(w * w * x), {w})[0];
  });
  BOOST_CHECK_EXCEPTION(f(draw({3}, 2)), TraceError, support::says("is recorded on a tape"));
}

BOOST_AUTO_TEST_SUITE_END()
