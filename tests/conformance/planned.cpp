// Every operation is the same, to the bit, eager, planned and fused: alone, between neighbours, and its gradient.
#include <boost/test/unit_test.hpp>

#include "cases.h"
#include "ferrite/compile/plan.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/pointwise.h"
#include "support/compare.h"
#include "support/guarded.h"

namespace conformance {
namespace {

using Function = std::function<Tensors(const Tensors&)>;

void check(const std::string& what, const Function& f, const Tensors& in) {
  const Tensors wanted = f(in);
  std::vector<Spec> specs;
  Tensors frozen;
  for (const Tensor& x : in) specs.push_back(x.spec()), frozen.push_back(support::frozen_copy(x));
  const ferrite::Graph g = ferrite::trace(f, specs);
  for (const ferrite::PlanOptions& options : {ferrite::PlanOptions{}, ferrite::PlanOptions{.fuse = false}}) {
    const ferrite::Plan plan(g, options);
    for (const Tensors* given : std::initializer_list<const Tensors*>{&in, &frozen}) {
      const Tensors got = plan.run(std::span<const Tensor>(given->data(), given->size()));
      BOOST_TEST(got.size() == wanted.size());
      for (std::size_t k = 0; k < wanted.size(); ++k)
        BOOST_TEST(support::identical(got[k], wanted[k]), what << ": result " << k << " differs when planned"
                                                               << (options.fuse ? " and fused" : "")
                                                               << (given == &frozen ? ", of frozen operands" : ""));
    }
  }
}

/// Returns values computed from a result by operations around it.
Tensors surrounded(const Primitive& op, const Tensors& in, const Attrs& attrs) {
  Tensors before;
  for (const Tensor& x : in) before.push_back(ferrite::is_float(x.dtype()) ? 0.5 * x * 2 : x);
  Tensors out = apply(op, before, attrs);
  Tensors after;
  for (const Tensor& y : out) {
    after.push_back(y);
    if (ferrite::is_float(y.dtype())) after.push_back(ferrite::reshape(y * 0.75, {-1}));
  }
  return after;
}

Tensors with_gradient(const Primitive& op, const Tensors& in, const Attrs& attrs) {
  ferrite::Tape tape;
  Tensors variables, operands;
  for (const Tensor& x : in) {
    const bool real = ferrite::is_float(x.dtype());
    operands.push_back(real ? tape.watch(x) : x);
    if (real) variables.push_back(operands[operands.size() - 1]);
  }
  const Tensors out = apply(op, operands, attrs);
  Tensor total;
  for (const Tensor& y : out) {
    if (!ferrite::is_float(y.dtype())) continue;
    const Tensor part = ferrite::cast(ferrite::sum(y * y), Dtype::f64);
    total = total.defined() ? total + part : part;
  }
  if (!total.defined() || variables.empty()) return out;
  return tape.grad(total, std::span<const Tensor>(variables.data(), variables.size()));
}

}  // namespace

void check_planned(const Primitive& op, const Tensors& in, const Attrs& attrs) {
  std::string what(op.name);
  for (const Tensor& x : in) what += " " + x.spec().str();
  what += " " + attrs.str();
  check(
      what, [&](const Tensors& x) { return apply(op, x, attrs); }, in);
  check(
      what + " between others", [&](const Tensors& x) { return surrounded(op, x, attrs); }, in);
  if ((op.differentiable() || op.is_composite()) && op.second_order_by_reference == false)
    check(
        what + " and its gradient", [&](const Tensors& x) { return with_gradient(op, x, attrs); }, in);
}

void check_whole(const Primitive& op, const Tensors& in, const Attrs& attrs) {
  std::vector<Spec> specs;
  Tensors operands;
  for (const Tensor& x : in) specs.push_back(x.spec());
  ferrite::Tracer tracer(ferrite::Tracer::Outside::constants, ferrite::Tracer::Composites::whole);
  ferrite::Graph g;
  {
    const ferrite::NewFrame frame(tracer);
    for (const Spec& s : specs) operands.push_back(tracer.input(s));
    g = tracer.finish(ferrite::detail::record_composite(op, ferrite::OperandList(operands), attrs));
  }
  BOOST_TEST((g.nodes.size() == 1 && g.nodes[0].op == &op), op.name);
  const Primitive* const known[] = {&op};
  const ferrite::Graph parsed = ferrite::parse_graph(g.str(), {.operations = known});
  BOOST_TEST(parsed.str() == g.str());
  const Tensors wanted = apply(op, in, attrs);
  for (const ferrite::Graph& one : {g, parsed}) {
    const std::span<const Tensor> list(in.data(), in.size());
    const Tensors planned = ferrite::Plan(one).run(list), replayed = ferrite::replay(one, list);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      BOOST_TEST(support::identical(planned[k], wanted[k]), op.name << ": as one node it differs when planned");
      BOOST_TEST(support::identical(replayed[k], wanted[k]), op.name << ": as one node it differs when replayed");
    }
  }
}

}  // namespace conformance
