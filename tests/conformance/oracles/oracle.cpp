// The registered oracles, and the evaluation of programs with them.
#include "conformance/oracles/oracle.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "ferrite/compile/graph.h"
#include "ferrite/tensor/attributes.h"

namespace oracles {
namespace {

/// Returns the list of oracles, which is filled while the program starts.
std::vector<Oracle>& list() {
  static std::vector<Oracle> all;
  return all;
}

Dense dense_of(const Tensor& t) {
  Dense d(t.spec());
  visit_dtype(t.dtype(), [&](auto zero) {
    std::size_t i = 0;
    for (const auto v : t.to_vector<decltype(zero)>()) d.values[i++] = static_cast<double>(v);
  });
  return d;
}

/// Evaluates a pointwise operation element by element; literals are among its operands.
void pointwise(const Graph::Node& n, std::span<const Dense> in, Dense& out) {
  const Oracle& oracle = of(*n.op);
  for_each_index(out.shape, [&](const Shape& i) {
    double operands[Literals::kMost] = {};
    std::size_t next = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(n.op->arity); ++k) {
      const Scalar* const literal = literal_of(n.attrs, k);
      operands[k] = literal ? literal->real() : in[next++].broadcast_at(i);
    }
    out.at(i) = oracle.scalar(operands);
  });
}

}  // namespace

Added::Added(std::initializer_list<Oracle> oracles) { list().insert(list().end(), oracles); }

std::span<const Oracle> all() { return list(); }

const Oracle& of(const Primitive& op) {
  const auto found = std::ranges::find(list(), op.name, &Oracle::name);
  if (found == list().end())
    throw std::out_of_range(std::string(op.name) + " has no oracle; add one to tests/conformance/oracles");
  return *found;
}

std::vector<Dense> evaluate(const Graph& g, std::span<const Dense> in) {
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
      of(*n.op).evaluate(operands, results, n.attrs);
    }
    for (std::size_t k = 0; k < results.size(); ++k) values[n.out[k]] = std::move(results[k]);
  }
  std::vector<Dense> out;
  for (const ValueId v : g.outputs) out.push_back(values[v]);
  return out;
}

}  // namespace oracles
