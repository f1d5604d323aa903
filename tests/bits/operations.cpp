// Every operation on the operands with which tests/conformance tests it, and its gradients.
#include "ferrite/compile/operations.h"
#include <algorithm>

#include "bits/results.h"
#include "conformance/cases.h"
#include "conformance/oracles/oracle.h"
#include "ferrite/nn/operations.h"
#include "support/derivative.h"

namespace bits {
namespace {

using namespace ferrite;

/// Adds the results of an operation, and the gradients of their weighted sum where it has any. The gradients of the
/// operations of programs are programs.
void add(Tensors& to, const Primitive& op, const Tensors& in, const Attrs& attrs) {
  const auto f = [&](const Tensors& x) { return conformance::apply(op, x, attrs); };
  for (const Tensor& y : f(in)) to.push_back(y);
  const bool of_programs = std::ranges::count(program_operations(), &op) > 0;
  if ((op.differentiable() || op.is_composite()) && !of_programs)
    for (const Tensor& g : support::derivative(f, in, {}, 1)) to.push_back(g);
}

Tensors pointwise(const Primitive& op) {
  Tensors all;
  for (const Dtype dtype : {Dtype::f32, Dtype::boolean})
    if (op.block(dtype)) add(all, op, conformance::operands_of(op, conformance::columns_of(op, dtype), dtype), {});
  return all;
}

Tensors structured(const Primitive& op) {
  Tensors all;
  std::uint32_t call = 0;
  for (const detail::Sample& sample : oracles::samples(op)) {
    // The programs of scans and compiled functions have fixed types.
    if (sample.attrs.body && !sample.inputs.empty() && sample.inputs[0].dtype == Dtype::f64) continue;
    add(all, op, conformance::inputs_of(op, sample, Dtype::f32, call++), sample.attrs);
  }
  return all;
}

}  // namespace

std::vector<Result> operation_results() {
  std::vector<Result> all;
  for (const Primitive* op :
       detail::joined({primitives(), nn::operations(), program_operations(), composites(), nn::composites()}))
    all.push_back(
        {"operation/" + std::string(op->name), [op] { return op->is_pointwise() ? pointwise(*op) : structured(*op); }});
  return all;
}

}  // namespace bits
