/// Programs evaluated in doubles by the oracles of their operations.
#include "ferrite/compile/graph/oracle.h"

#include "ferrite/tensor/attributes.h"

namespace ferrite::detail {
namespace {

Dense dense_of(const Tensor& t) {
  Dense d(t.spec());
  visit_dtype(t.dtype(), [&](auto zero) {
    std::size_t i = 0;
    for (const auto v : t.to_vector<decltype(zero)>()) d.values[i++] = static_cast<double>(v);
  });
  return d;
}

/// Element by element; literals stand among the operands.
void pointwise(const Graph::Node& n, std::span<const Dense> in, Dense& out) {
  for_each_index(out.shape, [&](const Shape& i) {
    double operands[Literals::kMost] = {};
    std::size_t next = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(n.op->arity); ++k) {
      const Scalar* const literal = literal_of(n.attrs, k);
      operands[k] = literal ? literal->real() : in[next++].broadcast_at(i);
    }
    out.at(i) = n.op->scalar(operands);
  });
}

}  // namespace

std::vector<Dense> evaluate_by_oracles(const Graph& g, std::span<const Dense> in) {
  std::vector<Dense> values(g.values.size());
  for (std::size_t i = 0; i < g.inputs.size(); ++i) values[g.inputs[i]] = in[i];
  for (const Graph::Constant& c : g.constants) values[c.value] = dense_of(c.tensor);
  for (const Graph::Node& n : g.nodes) {
    std::vector<Dense> operands, results;
    for (const ValueId v : n.in) operands.push_back(values[v]);
    for (const ValueId v : n.out) results.emplace_back(g.values[v]);
    if (n.op->is_pointwise()) {
      pointwise(n, operands, results[0]);
    } else {
      n.op->oracle(operands, results, n.attrs);
    }
    for (std::size_t k = 0; k < results.size(); ++k) values[n.out[k]] = std::move(results[k]);
  }
  std::vector<Dense> out;
  for (const ValueId v : g.outputs) out.push_back(values[v]);
  return out;
}

}  // namespace ferrite::detail
