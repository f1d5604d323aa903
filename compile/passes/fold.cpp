/// Constant folding: computes what depends on constants alone.
#include <algorithm>

#include "ferrite/compile/graph/graph_text.h"
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::passes {
namespace {

constexpr std::int64_t kMostElements = 1 << 14;

/// One element of a tensor that repeats it, as rank 0.
Tensor element_of(const Tensor& t) { return t.view({}, {}, 0); }

/// One element in any shape, without a copy.
Tensor repeated(const Tensor& element, const Shape& shape) {
  return element.view(shape, Shape::filled(shape.rank(), 0), 0);
}

class Folding {
 public:
  explicit Folding(Graph& g) : g_(g), known_(g.values.size()) {
    for (const Graph::Constant& c : g.constants) known_[c.value] = c.tensor;
  }

  void run() {
    const NewFrame frame;
    const KeepDenormals as_anywhere;  // the program may run outside the guard under which it is compiled
    std::vector<Graph::Node> kept;
    kept.reserve(g_.nodes.size());
    for (Graph::Node& n : g_.nodes)
      if (!fold(n)) kept.push_back(std::move(n));
    g_.nodes = std::move(kept);
  }

 private:
  bool fold(const Graph::Node& n) {
    for (const ValueId v : n.in)
      if (!known_[v].defined()) return false;
    if (n.op == detail::ops::full) return fold_full(n);
    if (n.op->is_pointwise() && all_repeat(n)) return fold_repeated(n);
    std::int64_t elements = 0;
    for (const ValueId v : n.out) elements += g_.values[v].shape.numel();
    if (!n.op->view && elements > kMostElements) return false;
    if (detail::effects_of(g_, n).communicates) return false;
    try {
      keep(n, apply(n, n.attrs, [&](ValueId v) { return known_[v]; }));
      return true;
    } catch (const Error&) {  // what refuses these constants does so when the program runs, in its turn among others
      return false;
    }
  }

  bool fold_full(const Graph::Node& n) {
    auto element = n.attrs.as<detail::FullAttrs>(n.op->name);
    element.shape = {};
    const Tensors one = n.op->apply({}, element);
    keep(n, {repeated(one[0], g_.values[n.out[0]].shape)});
    return true;
  }

  bool all_repeat(const Graph::Node& n) const {
    return std::all_of(n.in.begin(), n.in.end(), [&](ValueId v) { return detail::one_value(known_[v]); });
  }

  bool fold_repeated(const Graph::Node& n) {
    const Tensors one = apply(n, n.attrs, [&](ValueId v) { return element_of(known_[v]); });
    keep(n, {repeated(one[0], g_.values[n.out[0]].shape)});
    return true;
  }

  static Tensors apply(const Graph::Node& n, const Attrs& attrs, auto operand) {
    Tensors operands;
    for (const ValueId v : n.in) operands.push_back(operand(v));
    return n.op->apply(OperandList(operands), attrs);
  }

  void keep(const Graph::Node& n, const Tensors& out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      known_[n.out[i]] = out[i];
      g_.constants.push_back({n.out[i], out[i]});
    }
  }

  Graph& g_;
  std::vector<Tensor> known_;
};

}  // namespace

void fold_constants(Graph& g) { Folding(g).run(); }

}  // namespace ferrite::passes
