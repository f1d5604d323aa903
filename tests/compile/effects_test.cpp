// Every stage of the compiler keeps the effects of operations: how often they happen, in which order, and before any
// variable has changed.
#include "conformance/oracles/oracle.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/tensor/define.h"
#include "support/compare.h"
#include "support/operations.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

std::vector<double> sent;  ///< operand of each run of `send`, in order
bool connected = true;

/// Returns x and sends it to others: what an exchange between processes is to a compiler.
struct Send {
  static constexpr auto name = "send", onnx = "", stablehlo = "", summary = "x, sent to others";
  static constexpr Effects effects{.communicates = true};

  static Specs infer(Inputs in, const NoAttrs&) { return {in[0].spec()}; }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) {
    if (!connected) throw ValueError("send: nobody listens");
    const Tensor x = cast(in[0], Dtype::f64);
    sent.push_back(sum(x).item<double>());
    detail::copy_to(detail::Writer::raw(out[0]), in[0]);
  }
  static Tensors vjp(const Vjp& v, const NoAttrs&) { return {detail::call(detail::structured<Send>, {{&v.grad()}})}; }
};

/// Returns the number of the call: a value received from others differs between calls, for equal operands.
struct Receive {
  static constexpr auto name = "receive", onnx = "", stablehlo = "", summary = "the number of the call";
  static constexpr Effects effects{.communicates = true};

  static Specs infer(Inputs in, const NoAttrs&) { return {in[0].spec()}; }
  static void eval(Inputs, std::span<Tensor> out, const NoAttrs&) {
    static float calls = 0;
    detail::Writer::data<float>(out[0])[0] = ++calls;
  }
};

struct Number : Receive {
  static constexpr auto name = "number";
  static Specs infer(Inputs, const NoAttrs&) { return {{{}, Dtype::f32}}; }
};

Tensor send(const Tensor& x) { return detail::call(detail::structured<Send>, {{&x}}); }

/// Returns what a run of f sends.
template <class F>
std::vector<double> sent_by(F&& f) {
  sent.clear();
  f();
  return sent;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(effects)

BOOST_AUTO_TEST_CASE(every_application_runs_once_in_its_order) {
  const auto f = [](const Tensor& x) {
    (void)send(x);              // its result is not read
    const Tensor a = send(x);   // equal to the first one
    (void)send(full({}, 5.0));  // of a constant
    (void)send(x * 2 + a);
    return a + send(x) + send(zeros({0}) + 1);  // of an empty tensor
  };
  const auto compiled = compile(f);
  const Tensor x = full({}, 3.0);
  const std::vector<double> wanted = sent_by([&] { (void)f(x); });
  BOOST_TEST(wanted.size() == 6U);
  for (int run = 0; run < 2; ++run) {
    const std::vector<double> got = sent_by([&] { (void)compiled(x); });
    BOOST_TEST(got == wanted, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(equal_applications_receive_different_values) {
  const auto f = [](const Tensor& x) {
    const Tensor first = detail::call(detail::structured<Receive>, {{&x}});
    return detail::call(detail::structured<Receive>, {{&x}}) - first;
  };
  const Tensor x = full({}, 3.0);
  BOOST_TEST(f(x).item() == 1.0F);
  BOOST_TEST(compile(f)(x).item() == 1.0F);
}

BOOST_AUTO_TEST_CASE(a_scan_sends_in_every_step) {
  const Tensor x = full({}, 3.0), xs = arange(4.0);
  const auto f = [](const Tensor& same, const Tensor& by_step) {
    const auto body = [&](const Tensors& c, const Tensors& in) -> ScanStep {
      (void)send(same * 2);  // does not depend on the step
      (void)send(in[0]);     // does not depend on the carry
      return {{send(c[0] + in[0])}};
    };
    return scan(body, {full({}, 0.0)}, {by_step}).carry[0];
  };
  const std::vector<double> wanted = {6, 0, 0, 6, 1, 1, 6, 2, 3, 6, 3, 6};
  BOOST_TEST(sent_by([&] { (void)f(x, xs); }) == wanted, boost::test_tools::per_element());
  const auto compiled = compile(f);
  BOOST_TEST(sent_by([&] { (void)compiled(x, xs); }) == wanted, boost::test_tools::per_element());
}

/// An operation without operands does not depend on the step, but still runs in each step.
BOOST_AUTO_TEST_CASE(a_scan_receives_in_every_step) {
  const auto body = [](const Tensors& c, const Tensors& x) -> ScanStep {
    const Tensor received = detail::call(detail::structured<Number>, {});
    return {{c[0] + x[0] * received}, {received}};
  };
  const auto f = [&](const Tensor& xs) { return scan(body, {full({}, 0.0)}, {xs}).y[0]; };
  const Tensor xs = arange(4.0);
  const auto steps = [](const Tensor& y) { return slice(y, 0, 1) - slice(y, 0, 0, -1); };
  BOOST_TEST(identical(steps(f(xs)), ones({3})));
  BOOST_TEST(identical(steps(compile(f)(xs)), ones({3})));
}

/// A value that a product after the steps reads, too, is received in the steps alone.
BOOST_AUTO_TEST_CASE(what_a_step_received_is_not_received_again_after_it) {
  const Tensor w = uniform({2, 2}, {.seed = 1}, 1, 2), xs = uniform({6, 3, 2}, {.seed = 2}, 1, 2);
  const auto body = [&](const Tensors& c, const Tensors& x) -> ScanStep {
    const Tensor received = detail::call(detail::structured<Number>, {});
    return {{c[0] + received}, {received, matmul(x[0], w) * received, matmul(expand(received, {3, 2}), w)}};
  };
  const auto f = [&](const Tensor& x) {
    const ScanResult r = scan(body, {full({}, 0.0)}, {x});
    return std::vector<Tensor>{r.carry[0], r.y[0], r.y[1], r.y[2]};
  };
  const auto check = [&](const std::vector<Tensor>& r) {
    BOOST_TEST(identical(r[0], sum(r[1])));
    BOOST_TEST(identical(r[2], matmul(xs, w) * reshape(r[1], {6, 1, 1})));
    BOOST_TEST(identical(r[3], matmul(expand(reshape(r[1], {6, 1, 1}), {6, 3, 2}), w)));
  };
  check(f(xs));
  const auto compiled = compile([&](const Tensor& x) {
    const std::vector<Tensor> r = f(x);
    return Tensors{r[0], r[1], r[2], r[3]};
  });
  const Tensors r = compiled(xs);
  check({r[0], r[1], r[2], r[3]});
}

BOOST_AUTO_TEST_CASE(gradients_send_theirs) {
  const auto f = [](const Tensor& x) { return sum(square(send(x * 2))); };
  const auto both = [](const auto& g) {
    Tape tape;
    const Tensor x = tape.watch(full({}, 3.0));
    (void)tape.grad(g(x), {x});
  };
  const std::vector<double> wanted = {6, 12};
  BOOST_TEST(sent_by([&] { both(f); }) == wanted, boost::test_tools::per_element());
  const auto compiled = compile(f);
  BOOST_TEST(sent_by([&] { both(compiled); }) == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(nothing_is_sent_again_for_a_gradient) {
  Tape tape;
  const Tensor c = tape.watch(full({}, 1.0));
  const auto body = [](const Tensors& in, const Tensors& x) -> ScanStep { return {{send(in[0] * x[0])}}; };
  BOOST_CHECK_EXCEPTION((void)scan(body, {c}, {arange(4.0)}, {.checkpoint_every = 2}), ValueError,
                        says("checkpoint_every computes steps again"));
}

/// A run that fails in the middle has changed no variable.
BOOST_AUTO_TEST_CASE(what_may_fail_comes_before_what_is_written) {
  for (const bool early : {true, false}) {
    const Parameter w("w", uniform({40}, {.seed = 1}));
    nn::Adam adam({w});
    const auto step = compile([&](const Tensor& x) {
      Tape tape;
      const Tensor loss = sum(square(w.value() * x));
      const Tensors g = tape.grad(loss, {w});
      const Tensor before = early ? send(loss) : loss;
      adam.step(g);
      return early ? before : send(loss);
    });
    const Tensor x = uniform({40}, {.seed = 2});
    connected = true;
    (void)step(x);
    (void)step(x);
    const Tensor kept = contiguous(w.peek() + 0);
    connected = false;
    BOOST_CHECK_EXCEPTION((void)step(x), ValueError, says("nobody listens"));
    connected = true;
    BOOST_TEST(identical(w.peek(), kept));
  }
}

BOOST_AUTO_TEST_CASE(records_say_what_they_do) {
  const Spec f32{{3}, Dtype::f32}, i64{{3}, Dtype::i64};
  const auto of = [](const Primitive& p, std::vector<Spec> in) {
    return p.effects ? p.effects(in, oracles::samples(p).front().attrs) : Effects{};
  };
  BOOST_TEST(of(*find_primitive("gather"), {f32, i64}).throws);
  BOOST_TEST(of(*find_primitive("checked"), {f32}).throws);
  BOOST_TEST(of(*find_primitive("uniform"), {}).draws);
  BOOST_TEST(of(*find_primitive("normal"), {}).draws);
  BOOST_TEST(of(support::operation("gru_sequence"), {f32, i64}).throws);
  BOOST_TEST(!of(support::operation("gru_sequence"), {f32}).throws);
  BOOST_TEST((of(support::operation("rule_update"), {f32}) == Effects{}));
  BOOST_TEST((of(*find_primitive("add"), {f32, f32}) == Effects{}));
  for (const Primitive* p : primitives()) BOOST_TEST(!of(*p, {f32, f32}).communicates, p->name);
}

BOOST_AUTO_TEST_SUITE_END()
