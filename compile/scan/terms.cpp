/// Sums over all steps of a scan, as terms that one product or one sum of rows computes for many steps.
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/scan/detail/stages.h"

namespace ferrite::detail {
namespace {

class Terms {
 public:
  explicit Terms(const GraphView& view) : view_(view), to_{view.graph(), {}} {}

  void add(std::size_t sum, ValueId v) {
    const Graph::Node* const n = view_.node_of(v);
    if (n && n->op == ops::add && n->in.size() == 2 && same_types(*n)) {
      add(sum, n->in[0]);
      add(sum, n->in[1]);
    } else if (n && n->op == ops::permute && is_matrix_product(n->in[0])) {  // (a^T b)^T = b^T a
      const Graph::Node& product = *view_.node_of(n->in[0]);
      to_.terms.push_back({sum, product.in[1], transposed(product.in[0])});
    } else if (n && n->op == ops::reshape) {
      add(sum, n->in[0]);
    } else if (is_matrix_product(v)) {
      to_.terms.push_back({sum, transposed(n->in[0]), n->in[1]});
    } else if (n && n->op == ops::sum && sums_rows(*n)) {
      to_.terms.push_back({sum, kNoValue, n->in[0]});
    } else {
      to_.terms.push_back({sum, kNoValue, as_row(v)});
    }
  }
  SummedBody finish() { return std::move(to_); }

 private:
  bool is_matrix_product(ValueId v) const {
    const Graph::Node* const n = view_.node_of(v);
    return n && n->op == ops::matmul && view_.spec(n->in[0]).shape.rank() == 2 &&
           view_.spec(n->in[1]).shape.rank() == 2;
  }
  bool same_types(const Graph::Node& n) const {
    return view_.spec(n.in[0]) == view_.spec(n.out[0]) && view_.spec(n.in[1]) == view_.spec(n.out[0]);
  }
  bool sums_rows(const Graph::Node& n) const {
    return view_.spec(n.in[0]).shape.rank() == 2 && n.attrs.as<ReductionAttrs>().axes == Shape{0};
  }

  ValueId transposed(ValueId v) {
    const Graph::Node* const n = view_.node_of(v);
    if (n && n->op == ops::permute) return n->in[0];
    const Shape& s = view_.spec(v).shape;
    return add_view(*ops::permute, PermuteAttrs{{1, 0}}, v, {s[1], s[0]});
  }
  ValueId as_row(ValueId v) {
    const Shape row{1, view_.spec(v).shape.numel()};
    return view_.spec(v).shape == row ? v : add_view(*ops::reshape, ShapeAttrs{row}, v, row);
  }
  ValueId add_view(const Primitive& op, const Attrs& attrs, ValueId v, const Shape& shape) {
    const Graph::Node* const n = view_.node_of(v);
    return to_.graph.add_node(op, attrs, {v}, {shape, view_.spec(v).dtype}, n ? n->scope : Scope());
  }

  const GraphView& view_;
  SummedBody to_;
};

}  // namespace

SummedBody find_terms(const Graph& body, const ScanSignature& s) {
  const GraphView view(body);
  Terms terms(view);
  for (std::size_t k = 0; k < s.sums; ++k) terms.add(k, body.outputs[s.carries + k]);
  return terms.finish();
}

}  // namespace ferrite::detail
