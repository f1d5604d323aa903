/// Products that are added up in place, and operands that are copied for several of them.
#include "ferrite/compile/fuse/products.h"

#include <cstring>

#include "ferrite/compile/fuse/fusion.h"
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {
namespace {

constexpr std::int64_t kFewRows = 64;             ///< of a product that reads its right operand in place
constexpr std::int64_t kStaysInCaches = 1 << 20;  ///< bytes of a sum that a kernel reads at no cost

/// a, b, total -> total + a . b.
void add_to_total(Inputs in, std::span<Tensor> out, const Attrs&) {
  const Tensor& total = in[2];
  if (out[0].raw() != total.raw())
    std::memcpy(Writer::raw(out[0]), total.raw(), static_cast<std::size_t>(total.numel() * size_of(total.dtype())));
  add_product(in[0], in[1], out[0]);
}

void copy(Inputs in, std::span<Tensor> out, const Attrs&) { copy_to(Writer::raw(out[0]), in[0]); }

constexpr std::uint8_t kTotal[] = {2};

// Operations that only plans know: shapes are those of what they stand for.
constexpr Primitive kAddProduct = {
    .name = "add_product", .summary = "total + a . b", .eval = add_to_total, .in_place = kTotal};
constexpr Primitive kTurn = {.name = "turn", .summary = "a view in its own order", .eval = copy};

bool are_matrices(const Graph& g, const Graph::Node& n) {
  return g.values[n.in[0]].shape.rank() == 2 && g.values[n.in[1]].shape.rank() == 2;
}

class Accumulating {
 public:
  explicit Accumulating(Graph& g) : g_(g), view_(g) {}

  void run() {
    chosen_.assign(g_.nodes.size(), kNoValue);
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) choose(i);
    for (std::size_t i = g_.nodes.size(); i-- > 0;)
      if (chosen_[i] != kNoValue && !worth(i)) chosen_[i] = kNoValue;
    std::vector<char> gone(g_.nodes.size());
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)
      if (chosen_[i] != kNoValue && is_sum(other(i))) rewrite(i, gone);
    std::size_t i = 0;
    std::erase_if(g_.nodes, [&](const Graph::Node&) { return gone[i++] != 0; });
  }

 private:
  /// A product of matrices that nothing but one sum reads, with as many terms as can be added.
  bool is_summand(ValueId v) const {
    const Graph::Node* const n = view_.node_of(v);
    if (view_.uses(v) != 1 || !n || n->op != ops::matmul || !are_matrices(g_, *n)) return false;
    const std::int64_t terms = g_.values[n->in[0]].shape[1];
    return terms > 0 && terms <= kMostTermsAdded;
  }
  /// What a product may be added to: a product, or such a sum.
  bool is_sum(ValueId v) const {
    const Graph::Node* const n = view_.node_of(v);
    if (view_.uses(v) != 1 || !n) return false;
    return (n->op == ops::matmul && are_matrices(g_, *n)) || n->op == &kAddProduct ||
           chosen_[view_.producer(v)] != kNoValue;
  }

  /// The operand of a sum that becomes a product added to the other one: the later one, if either would do.
  void choose(std::size_t i) {
    const Graph::Node& n = g_.nodes[i];
    if (n.op != ops::add || n.in.size() != 2 || n.in[0] == n.in[1]) return;
    const Spec& out = g_.values[n.out[0]];
    if (g_.values[n.in[0]] != out || g_.values[n.in[1]] != out || out.shape.numel() == 0) return;
    const std::size_t late = view_.producer(n.in[1]) > view_.producer(n.in[0]) ? 1 : 0;
    for (const std::size_t k : {late, 1 - late})
      if (chosen_[i] == kNoValue && is_summand(n.in[k]) && is_sum(n.in[1 - k])) chosen_[i] = n.in[k];
  }
  ValueId other(std::size_t i) const {
    const Graph::Node& n = g_.nodes[i];
    return n.in[0] == chosen_[i] ? n.in[1] : n.in[0];
  }

  /// A large sum that a kernel reads is better added up in that kernel, some rows at a time.
  bool worth(std::size_t i) const {
    const ValueId v = g_.nodes[i].out[0];
    if (g_.values[v].shape.numel() * size_of(g_.values[v].dtype) <= kStaysInCaches) return true;
    const std::size_t reader = view_.last_user(v);
    return reader == kNoNode || chosen_[reader] != kNoValue || !is_elementwise(*g_.nodes[reader].op);
  }

  void rewrite(std::size_t i, std::vector<char>& gone) {
    const std::size_t product = view_.producer(chosen_[i]);
    const ValueId total = other(i);
    Graph::Node& n = g_.nodes[i];
    n.op = &kAddProduct;
    n.attrs = {};
    n.in = {g_.nodes[product].in[0], g_.nodes[product].in[1], total};
    gone[product] = true;
    chosen_[i] = kNoValue;
  }

  Graph& g_;
  GraphView view_;
  std::vector<ValueId> chosen_;  ///< by node: the operand that is a product added to the other one
};

}  // namespace

void accumulate_products(Graph& g) { Accumulating(g).run(); }

void copy_transposed_operands(Graph& g) {
  std::vector<std::uint32_t> readers(g.values.size());
  const auto reads_few_rows = [&](const Graph::Node& n) {
    if (n.op != ops::matmul && n.op != &kAddProduct) return false;
    return are_matrices(g, n) && g.values[n.in[0]].shape[0] <= kFewRows;
  };
  for (const Graph::Node& n : g.nodes)
    if (reads_few_rows(n)) ++readers[n.in[1]];
  std::vector<ValueId> copy_of(g.values.size(), kNoValue);
  std::vector<Graph::Node> nodes;
  nodes.swap(g.nodes);
  for (Graph::Node& n : nodes) {
    if (reads_few_rows(n) && copy_of[n.in[1]] != kNoValue) n.in[1] = copy_of[n.in[1]];
    const bool turns = n.op == ops::permute;
    g.nodes.push_back(std::move(n));
    if (!turns) continue;
    const ValueId v = g.nodes.back().out[0];
    if (readers[v] > 1) copy_of[v] = g.add_node(kTurn, {}, {v}, Spec(g.values[v]), g.nodes.back().scope);
  }
}

bool is_product(const Primitive& op) { return &op == ops::matmul || &op == &kAddProduct; }

}  // namespace ferrite::detail
