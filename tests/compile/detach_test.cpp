// Gradients that end inside compiled functions and scans also end when these are differentiated from outside.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/dsl/builder.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/recurrent/custom.h"
#include "ferrite/tensor/recorder.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

using Function = std::function<Tensor(const Tensor&)>;

Tensor gradient(const Function& f, const Tensor& at) {
  Tape tape;
  const Tensor x = tape.watch(at);
  return tape.grad(f(x), {x})[0];
}

void check_alike(const Function& f, const Tensor& at) {
  const auto compiled = compile(f);
  const Tensor wanted = gradient(f, at);
  BOOST_TEST(identical(gradient([&](const Tensor& x) { return compiled(x); }, at), wanted));
  BOOST_TEST(identical(compiled(at), f(at)));
  // The gradient of the gradient, too.
  const auto penalty = [&](const Function& g) {
    Tape tape;
    const Tensor x = tape.watch(at);
    const Tensor d = tape.grad(g(x), {x}, {.create_graph = true})[0];
    return tape.grad(sum(square(d)) + sum(x), {x})[0];
  };
  BOOST_TEST(identical(penalty([&](const Tensor& x) { return compiled(x); }), penalty(f)));
}

/// A cell with a straight-through estimator.
struct Binary final : nn::CustomCell {
  Parameter w;
  Binary(std::int64_t D, std::int64_t H, const nn::Init& init) {
    w = parameter("w", {D, H}, nn::init::uniform(-1, 1), init);
  }
  std::string kind() const override { return "binary"; }
  RecurrentState step(const Tensor& x, const RecurrentState& s) const override {
    const Tensor a = matmul(x, w) + s.h * 0.5;
    return {a + detach(sign(a) - a)};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(detached)

BOOST_AUTO_TEST_CASE(a_straight_through_estimator) {
  const Tensor at = uniform({5}, {.seed = 1}, -1, 1, Dtype::f64);
  check_alike([](const Tensor& x) { return sum((x + detach(sign(x) - x)) * 3 * x); }, at);
  check_alike([](const Tensor& x) { return sum(x * detach(x) + detach(square(x)) * x); }, at);
}

/// Values computed under NoTapes are not part of a gradient, however they are used outside.
BOOST_AUTO_TEST_CASE(what_no_tape_sees) {
  const Tensor at = uniform({5}, {.seed = 2}, 0.5, 1, Dtype::f64);
  const Parameter w("w", uniform({5}, {.seed = 3}, -1, 1, Dtype::f64));
  const Function normalised = [](const Tensor& x) {
    Tensor scale, twice;
    {
      const NoTapes frame;
      scale = sum(square(x));
      twice = scale * x;
    }
    return sum(x * x / scale + twice * x + twice);
  };
  check_alike(normalised, at);
  // A value that is its own copy is not part of a gradient either.
  check_alike(
      [](const Tensor& x) {
        const auto copied = [&] {
          const NoTapes frame;
          return contiguous(x);
        };
        return sum(copied() * x);
      },
      at);
  // A variable read under NoTapes is a constant; the same variable read outside is not.
  for (const bool first : {true, false}) {
    const auto f = [&](const Tensor& x) {
      const auto constant = [&] {
        const NoTapes frame;
        return w.value();
      };
      const Tensor c = first ? constant() : Tensor();
      const Tensor v = w.value();
      return sum(x * v * (first ? c : constant()));
    };
    const auto compiled = compile(f);
    const auto of_w = [&](const Function& g) {
      Tape tape;
      return tape.grad(g(at), {w})[0];
    };
    const Tensor wanted = of_w(f);
    BOOST_TEST(identical(wanted, at * w.peek()));
    BOOST_TEST(identical(of_w([&](const Tensor& x) { return compiled(x); }), wanted));
  }
  // In the body of a scan.
  const auto scanned = [&](const Tensor& v) {
    const auto body = [&](const Tensors& c, const Tensors& x) -> ScanStep {
      Tensor size;
      {
        const NoTapes frame;
        size = 1 + square(c[0] * v);
      }
      return {{c[0] * v / size + x[0]}};
    };
    return scan(body, {full({}, 1.0, Dtype::f64)}, {at}).carry[0];
  };
  const auto looped = [&](const Tensor& v) {
    Tensor c = full({}, 1.0, Dtype::f64);
    for (const Tensor& x : unbind(at)) c = c * v / (1 + square(detach(c * v))) + x;
    return c;
  };
  const Tensor v = full({}, 0.7, Dtype::f64);
  const double wanted = gradient(looped, v).item<double>();
  BOOST_TEST(std::fabs(gradient(scanned, v).item<double>() - wanted) < 1e-14);
  BOOST_TEST(std::fabs(gradient(compile(scanned), v).item<double>() - wanted) < 1e-14);
}

BOOST_AUTO_TEST_CASE(variables_that_are_assigned_and_read_again) {
  const State s("s", full({}, 2.0, Dtype::f64));
  const Tensor at = full({}, 3.0, Dtype::f64);
  const auto f = [&](const Tensor& x) {
    s.assign(x * x);
    return s.value() * x + s.value();
  };
  const auto compiled = compile(f);
  const Tensor wanted = gradient(f, at);
  BOOST_TEST(identical(gradient([&](const Tensor& x) { return compiled(x); }, at), wanted));
  BOOST_TEST(wanted.item<double>() == 9.0);
}

BOOST_AUTO_TEST_CASE(truncated_back_propagation_within_a_compiled_loss) {
  const auto net = dsl::sequence(2).gru(3).build(3);
  const nn::Carry carry(net, 2);
  const auto f = [&](const Tensor& x) {
    Tensor loss = zeros({});
    for (const Tensor& piece : nn::pieces(x, 2)) loss = loss + sum(square(net(piece, {.carry = &carry})));
    return loss;
  };
  const auto compiled = compile(f);
  const Tensor x = uniform({2, 6, 2}, {.seed = 1}, -1, 1);
  const auto gradients = [&](const Function& g) {
    carry.reset();
    Tape tape;
    return tape.grad(g(x), net.parameters());
  };
  const Tensors wanted = gradients(f), got = gradients([&](const Tensor&t) { return compiled(t); });
  for (std::size_t k = 0; k < wanted.size(); ++k) BOOST_TEST(support::within(got[k], wanted[k], 1e-6));
}

BOOST_AUTO_TEST_CASE(bodies_of_scans) {
  const Tensor xs = uniform({4}, {.seed = 2}, 0, 1, Dtype::f64), at = full({}, 0.5, Dtype::f64);
  const auto step = [](const Tensor& c, const Tensor& x, const Tensor& w) { return c * detach(w) + x * w; };
  for (const std::int64_t every : {0, 2}) {
    const auto scanned = [&](const Tensor& w) {
      const auto body = [&](const Tensors& c, const Tensors& x) -> ScanStep { return {{step(c[0], x[0], w)}}; };
      return scan(body, {full({}, 1.0, Dtype::f64)}, {xs}, {.checkpoint_every = every}).carry[0];
    };
    const auto looped = [&](const Tensor& w) {
      Tensor c = full({}, 1.0, Dtype::f64);
      for (const Tensor& x : unbind(xs)) c = step(c, x, w);
      return c;
    };
    const double wanted = gradient(looped, at).item<double>();
    BOOST_TEST(std::fabs(gradient(scanned, at).item<double>() - wanted) < 1e-14);
    BOOST_TEST(std::fabs(gradient(compile(scanned), at).item<double>() - wanted) < 1e-14);
  }
}

/// One tensor is captured both as a variable and as a constant, in either order.
BOOST_AUTO_TEST_CASE(captures_with_and_without_a_tape) {
  const Tensor w0 = full({}, 0.5, Dtype::f64), xs = ones({3}, Dtype::f64);
  for (const bool first : {true, false}) {
    Tape tape;
    const Tensor w = tape.watch(w0);
    const auto body = [&](const Tensors& c, const Tensors& x) -> ScanStep {
      return {{first ? x[0] * w + c[0] * w0 : c[0] * w0 + x[0] * w}};
    };
    const Tensor y = scan(body, {full({}, 1.0, Dtype::f64)}, {xs}).carry[0];
    BOOST_TEST(tape.grad(y, {w})[0].item<double>() == 1 + 0.5 + 0.25);
  }
}

BOOST_AUTO_TEST_CASE(cells_of_ones_own) {
  const Tensor x = uniform({2, 5, 3}, {.seed = 3}, -1, 1, Dtype::f64);
  Tensors all;
  for (const nn::Form form : {nn::Form::unrolled, nn::Form::scan}) {
    const auto layer = nn::custom<Binary>(3, 4, {.form = form}, {.seed = 1, .dtype = Dtype::f64});
    Tape tape;
    all.push_back(tape.grad(sum(square(layer(x) - 0.3)), layer.parameters())[0]);
  }
  BOOST_TEST(support::within(all[1], all[0], 1e-12));
  BOOST_TEST(sum(abs(all[0])).item<double>() > 0.1);
}

BOOST_AUTO_TEST_CASE(captured_variables_would_have_no_gradient) {
  Tape tape;
  const Tensor w = tape.watch(full({}, 3)), x = tape.watch(full({}, 2));
  const auto lost = compile([&](const Tensor& y) { return y * w; });
  BOOST_CHECK_EXCEPTION((void)lost(x), TraceError,
                        says("is recorded on a tape, and as a constant it would have no gradient"));
  const Tensor constant = detach(w);
  const auto meant = compile([&](const Tensor& y) { return y * constant; });
  BOOST_TEST(tape.grad(meant(x), {x})[0].item<float>() == 3.0F);
}

BOOST_AUTO_TEST_CASE(variables_made_inside_a_traced_function) {
  const auto f = compile([](const Tensor& x) {
    const State s("own", zeros({}));
    s.assign(s.value() + x);
    return s.value();
  });
  BOOST_CHECK_EXCEPTION((void)f(ones({})), TraceError, says("the variable 'own' was made inside the traced function"));
}

/// A plan that only runs and is never differentiated is the same as without detaching.
BOOST_AUTO_TEST_CASE(plans_have_none_of_it) {
  const auto f = [](const Tensors& x) { return Tensors{detach(x[0] * 2) + 1}; };
  const auto plain = [](const Tensors& x) { return Tensors{x[0] * 2 + 1}; };
  const std::vector<Spec> in = {{{3}, Dtype::f32}};
  BOOST_TEST(Plan(trace(f, in)).graph().str() == Plan(trace(plain, in)).graph().str());
}

BOOST_AUTO_TEST_SUITE_END()
