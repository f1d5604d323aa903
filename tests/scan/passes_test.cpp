// Scans in traced programs after the passes, counted on the graph and on the parts of a body.
#include "ferrite/compile/passes.h"
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/compile/scan.h"
#include "ferrite/compile/scan/detail/run.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/recurrent/gru.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {29, stream, 0}, -1, 1, Dtype::f64); }

std::vector<const Graph::Node*> scans_of(const Graph& g) {
  std::vector<const Graph::Node*> list;
  for (const Graph::Node& n : g.nodes)
    if (n.attrs.body) list.push_back(&n);
  return list;
}
std::size_t count(const Graph& g, std::string_view name) {
  return static_cast<std::size_t>(
      std::count_if(g.nodes.begin(), g.nodes.end(), [&](const Graph::Node& n) { return n.op->name == name; }));
}
const detail::ScanParts& parts_of(const Graph::Node& n) { return detail::ScanBody::of(n.attrs).program().parts(); }

Graph traced(const std::function<Tensors(const Tensors&)>& f, const Tensors& in) {
  std::vector<Spec> specs;
  for (const Tensor& t : in) specs.push_back(t.spec());
  Graph g = trace(f, specs);
  passes::simplify(g);
  return g;
}

/// Returns h and a second carry that only it needs.
ScanResult two_carries(const Tensors& in) {
  return scan(
      [&](const Tensors& c, const Tensors& x) -> ScanStep {
        const Tensor h = tanh(matmul(c[0], in[0]) + x[0]);
        return {{h, c[1] + x[1]}, {h, h * 2, c[1]}};
      },
      {in[1], in[2]}, {in[3], in[4]});
}
const Tensors& operands() {
  static const Tensors in = {draw({3, 3}, 1), draw({2, 3}, 2), draw({2, 3}, 3), draw({5, 2, 3}, 4), draw({5, 2, 3}, 5)};
  return in;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scan_passes)

BOOST_AUTO_TEST_CASE(what_nobody_reads_is_dropped) {
  const Graph all = traced(
      [](const Tensors& in) -> Tensors {
        const ScanResult r = two_carries(in);
        return {r.carry[0], r.carry[1], r.y[0], r.y[1], r.y[2]};
      },
      operands());
  BOOST_REQUIRE_EQUAL(scans_of(all).size(), 1U);
  BOOST_TEST(scans_of(all)[0]->in.size() == 5U);
  BOOST_TEST(scans_of(all)[0]->out.size() == 5U);
  const Graph few = traced([](const Tensors& in) -> Tensors { return {two_carries(in).y[0]}; }, operands());
  BOOST_REQUIRE_EQUAL(scans_of(few).size(), 1U);
  const Graph::Node& n = *scans_of(few)[0];
  BOOST_TEST(n.in.size() == 3U);   // h0, x, the matrix
  BOOST_TEST(n.out.size() == 2U);  // h, its stack
  BOOST_TEST(identical(Plan(few).run(std::span<const Tensor>(operands().data(), 5))[0], two_carries(operands()).y[0]));
}

BOOST_AUTO_TEST_CASE(a_single_step_stands_for_itself) {
  Tensors in = operands();
  in[3] = draw({1, 2, 3}, 4);
  in[4] = draw({1, 2, 3}, 5);
  const auto f = [](const Tensors& x) -> Tensors {
    const ScanResult r = two_carries(x);
    return {r.carry[0], r.carry[1], r.y[0], r.y[1], r.y[2]};
  };
  const Graph g = traced(f, in);
  BOOST_TEST(scans_of(g).empty());
  BOOST_TEST(count(g, "matmul") == 1U);
  const Tensors eager = f(in), planned = Plan(g).run(std::span<const Tensor>(in.data(), in.size()));
  for (std::size_t i = 0; i < eager.size(); ++i) BOOST_TEST(identical(planned[i], eager[i]), "result " << i);
}

BOOST_AUTO_TEST_CASE(a_single_step_carries_its_state_on) {
  const nn::Gru gru(3, 4, {.form = nn::Form::scan}, {2});
  nn::Carry once(gru, 2), again(gru, 2);
  const auto step = compile([&](const Tensor& x) {
    nn::Context context;
    context.carry = &again;
    return gru(x, context);
  });
  nn::Context context;
  context.carry = &once;
  for (std::uint64_t t = 0; t < 5; ++t) {
    const Tensor x = uniform({2, 1, 3}, {29, 10 + t, 0}, -1, 1, Dtype::f32);
    BOOST_TEST(identical(step(x), gru(x, context)), "step " << t);
  }
  BOOST_TEST(scans_of(step.graph()).size() <= 1U);
}

BOOST_AUTO_TEST_CASE(one_forward_scan_where_a_tape_watches_a_compiled_one) {
  const auto f = compile([](const Tensors& in) { return sum(two_carries(in).y[1]); });
  Tape tape;
  Tensors in = operands();
  const auto joint = [&] {
    Tensors watched = in;
    watched[0] = tape.watch(in[0]);
    return tape.grad(f(watched), {watched[0]})[0];
  };
  Tape plain;
  Tensors watched = in;
  watched[0] = plain.watch(in[0]);
  const Tensor wanted = plain.grad(sum(two_carries(watched).y[1]), {watched[0]})[0];
  BOOST_TEST(identical(joint(), wanted));
  // The program's own scan and the one that saves values for the gradient are the same in one trace.
  const Graph g = traced(
      [](const Tensors& x) -> Tensors {
        const Graph inner = trace([](const Tensors& y) -> Tensors { return {sum(two_carries(y).y[1])}; },
                                  std::vector<Spec>{x[0].spec(), x[1].spec(), x[2].spec(), x[3].spec(), x[4].spec()});
        Tape t;
        Tensors w = x;
        w[0] = t.watch(x[0]);
        const Tensors r = replay(inner, std::span<const Tensor>(w.data(), w.size()));
        return {r[0], t.grad(r[0], {w[0]})[0]};
      },
      in);
  BOOST_TEST(scans_of(g).size() == 2U, g.str());
}

BOOST_AUTO_TEST_CASE(a_layer_is_taken_apart) {
  const nn::Gru gru(6, 5, {.form = nn::Form::scan}, {2, {}, Dtype::f64});
  const Graph g = traced(
      [&](const Tensors& in) -> Tensors {
        Tape tape;
        const Tensor x = tape.watch(in[0]);
        const Tensor y = gru(x);
        Tensors out = tape.grad(sum(y * y), gru.parameters());
        out.push_back(y);
        return out;
      },
      {draw({2, 9, 6}, 1)});
  const std::vector<const Graph::Node*> list = scans_of(g);
  BOOST_REQUIRE_EQUAL(list.size(), 2U);
  const detail::ScanParts &forward = parts_of(*list[0]), &back = parts_of(*list[1]);
  // Forward there is one product of x for many steps, and one of h in a step.
  BOOST_TEST(count(forward.before.graph, "matmul") == 1U);
  BOOST_TEST(count(forward.step.graph, "matmul") == 1U);
  BOOST_TEST(count(forward.after.graph, "matmul") == 0U);
  BOOST_TEST(forward.terms.empty());
  const PlanReport& report = detail::ScanBody::of(list[0]->attrs).program().step_report();
  BOOST_TEST(report.kernels == 1U);
  BOOST_TEST(report.products == 1U);
  // Backward there is one product in a step; weights and biases are sums over rows, outside of the steps.
  BOOST_TEST(count(back.step.graph, "matmul") == 1U);
  BOOST_TEST(count(back.step.graph, "sum") == 0U);
  BOOST_TEST(back.terms.size() == 4U);
  BOOST_TEST(std::count_if(back.terms.begin(), back.terms.end(), [](const auto& t) { return t.a_width > 0; }) == 2);
  BOOST_TEST(detail::ScanBody::of(list[1]->attrs).program().step_report().kernels == 2U);
}

BOOST_AUTO_TEST_CASE(no_cell_is_known_by_name_or_order) {
  // A GRU with other names and another order of its operations has as many kernels and products per step.
  const Tensor w_x = draw({6, 15}, 1), w_h = draw({5, 15}, 2), b = draw({15}, 3), c = draw({15}, 4);
  const Graph g = traced(
      [&](const Tensors& in) -> Tensors {
        return {scan(
                    [&](const Tensors& state, const Tensors& x) -> ScanStep {
                      const Tensor& before = state[0];
                      const Tensors q = split(c + matmul(before, w_h), 5, 1), p = split(b + matmul(x[0], w_x), 5, 1);
                      const Tensor keep = sigmoid(q[1] + p[1]);
                      const Tensor fresh = tanh(q[2] * sigmoid(q[0] + p[0]) + p[2]);
                      const Tensor after = (before - fresh) * keep + fresh;
                      return {{after}, {after}};
                    },
                    {in[0]}, {in[1]})
                    .y[0]};
      },
      {draw({2, 5}, 5), draw({9, 2, 6}, 6)});
  BOOST_REQUIRE_EQUAL(scans_of(g).size(), 1U);
  const detail::ScanBody& body = detail::ScanBody::of(scans_of(g)[0]->attrs);
  BOOST_TEST(count(body.program().parts().before.graph, "matmul") == 1U);
  BOOST_TEST(body.program().step_report().products == 1U);
  BOOST_TEST(body.program().step_report().kernels == 1U);
}

BOOST_AUTO_TEST_CASE(the_input_gradient_is_one_product_for_many_steps) {
  const nn::Gru gru(6, 5, {.form = nn::Form::scan}, {2, {}, Dtype::f64});
  const Graph g = traced(
      [&](const Tensors& in) -> Tensors {
        Tape tape;
        const Tensor x = tape.watch(in[0]);
        return tape.grad(sum(gru(x)), {x});
      },
      {draw({2, 9, 6}, 1)});
  const detail::ScanParts& back = parts_of(*scans_of(g)[1]);
  BOOST_TEST(count(back.after.graph, "matmul") == 1U);
  BOOST_TEST(count(back.step.graph, "matmul") == 1U);
  BOOST_TEST(back.terms.empty());  // no gradient of a weight is wanted
}

BOOST_AUTO_TEST_CASE(a_body_stands_in_a_text) {
  const Graph g = traced([](const Tensors& in) -> Tensors { return {two_carries(in).y[0]}; }, operands());
  const std::string text = g.str();
  BOOST_TEST(text.find("= scan(") != std::string::npos);
  BOOST_TEST(parse_graph(text).str() == text);
  const Tensors span(operands().begin(), operands().end());
  BOOST_TEST(
      identical(Plan(parse_graph(text)).run(std::span<const Tensor>(span.data(), 5))[0], two_carries(operands()).y[0]));
  for (const std::string& wrong :
       {std::string("graph {\n  input %0: f32[2]\n  %1: f32[2] = scan(%0) parts=[1, 0, 0]\n"),
        text.substr(0, text.size() / 2)})
    BOOST_CHECK_THROW(parse_graph(wrong), TraceError);
}

BOOST_AUTO_TEST_SUITE_END()
