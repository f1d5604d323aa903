/// The walk that puts every operation of a graph into a group or lets it run alone, and the rewrites before and after
/// it.
#include "ferrite/compile/fuse/fusion.h"

#include <algorithm>
#include <cstring>

#include "ferrite/compile/fuse/detail/groups.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {

// ---- before the walk: products added up in place, and operands copied for several products ----------------

namespace {

constexpr std::int64_t kFewRows = 64;             ///< rows of a product that reads its right operand in place
constexpr std::int64_t kStaysInCaches = 1 << 20;  ///< bytes of a sum that a kernel reads at no cost

/// Computes a, b, total -> total + a . b.
void add_to_total(Inputs in, std::span<Tensor> out, const Attrs&) {
  const Tensor& total = in[2];
  if (out[0].raw() != total.raw())
    std::memcpy(Writer::raw(out[0]), total.raw(), static_cast<std::size_t>(total.numel() * size_of(total.dtype())));
  add_product(in[0], in[1], out[0]);
}

void copy(Inputs in, std::span<Tensor> out, const Attrs&) { copy_to(Writer::raw(out[0]), in[0]); }

constexpr std::uint8_t kTotal[] = {2};

// Operations that only plans know. Their shapes are those of the operations that they replace.
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
  /// Returns whether v is a product of matrices that only one sum reads, with few enough terms to be added in place.
  bool is_summand(ValueId v) const {
    const Graph::Node* const n = view_.node_of(v);
    if (view_.uses(v) != 1 || !n || n->op != ops::matmul || !are_matrices(g_, *n)) return false;
    const std::int64_t terms = g_.values[n->in[0]].shape[1];
    return terms > 0 && terms <= kMostTermsAdded;
  }
  /// Returns whether a product may be added to v: v is a product or a sum with a chosen product.
  bool is_sum(ValueId v) const {
    const Graph::Node* const n = view_.node_of(v);
    if (view_.uses(v) != 1 || !n) return false;
    return (n->op == ops::matmul && are_matrices(g_, *n)) || n->op == &kAddProduct ||
           chosen_[view_.producer(v)] != kNoValue;
  }

  /// Chooses the operand of a sum that becomes a product added to the other one: the later one, if either would do.
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

  /// Returns whether to add up a sum in place. A large sum that a kernel reads is better added up in that kernel, some
  /// rows at a time.
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

namespace {

/// The groups of a graph and the nodes that run alone.
struct Partition {
  Groups groups;
  std::vector<std::size_t> alone;  ///< nodes that run alone, last first
};

/// Outputs of groups, by group.
using Outputs = std::vector<std::vector<GroupOutput>>;

struct Schedule {
  std::vector<Task> tasks;
  std::vector<std::string> refusals;  ///< what was not fused, and why
};

}  // namespace

// ---- before the walk: a buffer for each result, and copies moved after what they copy ---------------------

void materialize_ends(Graph& g) {
  const GraphView view(g);
  std::vector<ValueId> copy(g.values.size(), kNoValue);
  const auto ensure = [&](ValueId& v) {
    const Graph::Node* const n = view.node_of(v);
    if (n && !n->op->view && n->op != ops::pad) return;
    const Scope scope = n ? n->scope : Scope();
    if (copy[v] == kNoValue) copy[v] = g.add_node(*ops::contiguous, {}, {v}, Spec(g.values[v]), scope);
    v = copy[v];
  };
  for (ValueId& v : g.outputs) ensure(v);
  for (Graph::VariableValue& w : g.writes) ensure(w.value);
}

void move_copies_up(Graph& g) {
  std::vector<std::size_t> behind(g.values.size());  // by value: number of kept nodes after which it is complete
  std::vector<std::size_t> place(g.nodes.size()), order(g.nodes.size());
  std::size_t stay = 0;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Graph::Node& n = g.nodes[i];
    const bool moves = n.op == ops::contiguous || n.op == ops::concat || n.op == ops::stack;
    std::size_t at = moves ? 0 : ++stay;
    if (moves)
      for (const ValueId v : n.in) at = std::max(at, behind[v]);
    for (const ValueId v : n.out) behind[v] = at;
    place[i] = 2 * at + (moves ? 1 : 0);
    order[i] = i;
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return place[i]; });
  std::vector<Graph::Node> nodes;
  nodes.reserve(order.size());
  for (const std::size_t i : order) nodes.push_back(std::move(g.nodes[i]));
  g.nodes = std::move(nodes);
}

// ---- outputs of groups, with parts of concatenations written in place -------------------------------------

namespace {

class PartsInPlace {
 public:
  explicit PartsInPlace(const Groups& groups) : groups_(groups), maker_(groups.view().graph().values.size(), kNoNode) {
    for (std::size_t at = 0; at < groups.size(); ++at) {
      outputs_.push_back(groups[at].outputs);
      for (const GroupOutput& o : groups[at].outputs)
        if (!o.window) maker_[o.value] = at;
    }
  }

  Outputs run(bool fuse) {
    if (!fuse) return std::move(outputs_);
    for (std::size_t at = 0; at < outputs_.size(); ++at)
      std::erase_if(outputs_[at], [&](const GroupOutput& o) { return o.window && moved(o, expression(at, o)); });
    return std::move(outputs_);
  }

 private:
  const Expression& expression(std::size_t at, const GroupOutput& o) const {
    return groups_[at].expressions[static_cast<std::size_t>(o.expression)];
  }

  /// Makes the group that computes what `copy` copies write it in its place; returns whether it could.
  bool moved(const GroupOutput& output, const Expression& copy) {
    if (copy.node || copy.operands.size() != 1) return false;
    const GroupOperand& part = copy.operands[0];
    const ValueId v = part.value;
    if (part.expression >= 0 || !part.fills.empty() || maker_[v] == kNoNode || groups_.is_stored(v)) return false;
    // Only without a view: the window's axes are those of the value.
    if (!(part.map == copy.map) || !(part.map.shape == copy.map.shape)) return false;
    for (const Groups::Use& u : groups_.uses(v))
      if (const GroupOperand& o = groups_.operand(u); o.expression < 0 && &o != &part) return false;
    for (GroupOutput& made : outputs_[maker_[v]]) {
      if (made.value != v || made.window) continue;
      const Expression& e = expression(maker_[v], made);
      if (e.of_rows || e.reduces) return false;
      made = {made.expression, output.value, true, output.layout};
      return true;
    }
    return false;
  }

  const Groups& groups_;
  std::vector<std::size_t> maker_;  ///< by value: the group that computes it
  Outputs outputs_;
};

/// Returns the outputs of groups. With `fuse`, a part of a concatenation that an earlier group computes for nothing
/// else is written into the whole by that group, without a copy.
Outputs outputs_in_place(const Groups& groups, bool fuse) { return PartsInPlace(groups).run(fuse); }

// ---- products that run with the group that reads them -----------------------------------------------------

/// Returns whether a group reads a matrix so that points of its domain, in order, meet the rows in order: then rows of
/// the matrix may be computed just before they are read.
bool runs_along_rows(const IndexMap& map, const Shape& extents) {
  const int last = map.shape.rank() - 1;
  std::int64_t rows = 1;
  Shape steps = Shape::filled(last, 1);  // number of rows that one step along an axis passes
  for (int a = last - 1; a >= 0; --a) {
    if (map.offset[a] != 0) return false;
    steps[a] = rows;
    rows *= map.shape[a];
  }
  int k = 0;
  for (; k < extents.rank() && rows > 1; ++k) {
    if (extents[k] == 1) continue;
    if (rows % extents[k] != 0 || map.axis[k] < 0 || map.axis[k] == last) return false;
    rows /= extents[k];
    if (map.coefficient[k] * steps[static_cast<int>(map.axis[k])] != rows) return false;
  }
  for (; k < extents.rank(); ++k)
    if (extents[k] > 1 && map.axis[k] >= 0 && map.axis[k] != last) return false;
  return rows == 1;
}

bool reads_along_rows(const Groups& groups, ValueId v, std::size_t at) {
  const std::vector<Groups::Use>& uses = groups.uses(v);
  return std::all_of(uses.begin(), uses.end(), [&](const Groups::Use& u) {
    return runs_along_rows(groups.operand(u).map, groups[at].domain.extents());
  });
}

/// Returns the group that alone reads a value from memory; kNoNode if there is none.
std::size_t only_reader(const Groups& groups, ValueId v) {
  const std::vector<Groups::Use>& uses = groups.uses(v);
  if (groups.is_stored(v) || uses.empty()) return kNoNode;
  const bool one =
      std::all_of(uses.begin(), uses.end(), [&](const Groups::Use& u) { return u.group == uses[0].group; });
  return one ? uses[0].group : kNoNode;
}

/// Returns whether a product may wait until a later task at no cost: its operands live that long in any case, or only
/// products run in between.
bool delays_nothing(const Groups& groups, const std::vector<Task>& tasks, std::size_t from, std::size_t to) {
  const std::vector<Graph::Node>& nodes = groups.view().graph().nodes;
  const Graph::Node& n = nodes[tasks[from].position];
  const bool given = std::all_of(
      n.in.begin(), n.in.end(), [&](ValueId v) { return groups.view().producer(groups.windows()[v].base) == kNoNode; });
  if (given) return true;
  for (std::size_t t = from + 1; t < to; ++t)
    if (tasks[t].group >= 0 || !is_product(*nodes[tasks[t].position].op)) return false;
  return true;
}

/// Returns the schedule with every product that a single group reads row after row moved into that group's task.
Schedule with_products(const Groups& groups, Schedule schedule) {
  std::vector<Task>& tasks = schedule.tasks;
  std::vector<std::size_t> task_of(groups.size(), kNoNode);
  for (std::size_t t = 0; t < tasks.size(); ++t)
    if (tasks[t].group >= 0) task_of[static_cast<std::size_t>(tasks[t].group)] = t;
  std::vector<char> attached(tasks.size());
  for (std::size_t t = tasks.size(); t-- > 0;) {
    const Graph::Node& n = groups.view().graph().nodes[tasks[t].position];
    if (tasks[t].group >= 0 || n.op != ops::matmul) continue;
    const ValueId v = n.out[0];
    const std::size_t group = only_reader(groups, v);
    if (group == kNoNode || task_of[group] == kNoNode) continue;
    const bool along_rows = reads_along_rows(groups, v, group);
    if (!along_rows || !delays_nothing(groups, tasks, t, task_of[group])) {
      schedule.refusals.push_back(refusal(groups.view(), v,
                                          along_rows ? "its operands would live until the kernel that reads it"
                                                     : "the kernel that reads it does not run along its rows"));
      continue;
    }
    tasks[task_of[group]].products.push_back(tasks[t].position);
    attached[t] = true;
  }
  std::size_t t = 0;
  std::erase_if(tasks, [&](const Task&) { return attached[t++] != 0; });
  return schedule;
}

// ---- the walk ---------------------------------------------------------------------------------------------

/// Returns whether `axes` are all axes from `first` on.
bool are_from(const Shape& axes, int first) {
  for (int i = 0; i < axes.rank(); ++i)
    if (axes[i] != first + i) return false;
  return axes.rank() > 0;
}

/// Returns the map from the axes of a reduction's operand to its result.
IndexMap map_of_result(const Shape& operand, const Shape& result, const Shape& axes) {
  const bool keeps = result.rank() == operand.rank();
  IndexMap map;
  map.shape = result;
  map.offset = Shape::filled(result.rank(), 0);
  int next = 0;
  for (int k = 0; k < operand.rank(); ++k) {
    bool reduced = false;
    for (const std::int64_t a : axes) reduced |= a == k;
    map.axis.push_back(reduced ? -1 : keeps ? k : next);
    map.coefficient.push_back(reduced ? 0 : 1);
    next += reduced ? 0 : 1;
  }
  return map;
}

/// Returns the group that writes a part: the group of another part, one that reads what it reads, or a new one.
std::size_t group_of_part(Groups& groups, std::size_t i, ValueId part, bool fuse, std::vector<std::size_t>& own) {
  constexpr std::size_t kMostParts = 16;
  const Shape& shape = groups.view().spec(part).shape;
  std::size_t at = kNoNode;
  if (fuse) {
    for (const std::size_t k : own)
      if (groups[k].root.shape == shape && groups[k].outputs.size() < kMostParts) at = k;
    if (at != kNoNode) return at;
    at = sibling_of(groups, part, shape, groups.earliest_use(groups.view().graph().nodes[i].out[0]));
  }
  if (at == kNoNode) at = groups.add_group(i, shape);
  own.push_back(at);
  return at;
}

/// Makes the kernels that compute the parts of a concatenation or a stack write them where they belong.
void write_parts(Groups& groups, std::size_t i, bool fuse) {
  const GraphView& view = groups.view();
  const Graph::Node& n = view.graph().nodes[i];
  const ValueId whole = n.out[0];
  const int axis = n.attrs.as<AxisAttrs>().axis;
  const bool stacked = n.op == ops::stack;
  const Shape strides = view.spec(whole).shape.strides();
  std::int64_t begin = 0;
  std::vector<std::size_t> own;  // groups of other parts
  for (const ValueId part : n.in) {
    const Shape& shape = view.spec(part).shape;
    Layout layout{strides, begin * strides[axis]};
    if (stacked) layout.strides.erase(axis);
    begin += stacked ? 1 : shape[axis];
    if (groups.is_empty(part)) continue;
    groups.add_copy(i, part, group_of_part(groups, i, part, fuse, own), {0, whole, true, layout});
  }
}

/// Walks a graph backwards and puts every node in a group that reads its result, in a new group, or alone. A group runs
/// at the position of its last node.
class FusionWalk {
 public:
  FusionWalk(const GraphView& view, const FusionOptions& options)
      : g_(view.graph()),
        options_(options),
        rows_behind_(find_rows(g_)),
        partition_{Groups(view), {}},
        groups_(partition_.groups) {}

  Partition run() {
    for (std::size_t i = g_.nodes.size(); i-- > 0;) visit(i);
    return std::move(partition_);
  }

 private:
  void visit(std::size_t i) {
    const Graph::Node& n = g_.nodes[i];
    if (is_elementwise(*n.op)) return elementwise(i);
    if (n.op == ops::contiguous) return copy(i);
    if (options_.fuse && n.op->row_reduction) return reduction(i);
    if (n.op == ops::concat || n.op == ops::stack) return concatenation(i);
    if (!n.op->view && n.op != ops::pad) return alone(i);
    for (const ValueId v : n.out)
      if (groups_.must_copy(v) && !groups_.is_empty(v) && !groups_.copy_view(i, v)) alone(i);
  }

  bool is_dead(ValueId v) const { return !groups_.is_read(v) || groups_.is_empty(v); }
  static std::span<const ValueId> operands(const Graph::Node& n) { return {n.in.data(), n.in.size()}; }

  Placement refused(ValueId v, Placement at) {
    if (!at.refusal.empty()) groups_.refuse(v, at.refusal);
    return at;
  }
  Placement in_new_group(std::size_t i, const Shape& extents) {
    const std::size_t at = groups_.add_group(i, extents);
    return {at, groups_[at].root, whole_box(extents), true, false, {}};
  }

  void alone(std::size_t i) {
    const Graph::Node& n = g_.nodes[i];
    bool any = effects_of(g_, n).must_run();
    for (const ValueId v : n.out) any |= !is_dead(v);
    if (!any) return;
    groups_.read_alone(i);
    partition_.alone.push_back(i);
  }

  void concatenation(std::size_t i) {
    if (!is_dead(g_.nodes[i].out[0])) write_parts(groups_, i, options_.fuse);
  }

  void copy(std::size_t i) {
    const Graph::Node& n = g_.nodes[i];
    const ValueId v = n.out[0];
    if (is_dead(v)) return;
    std::size_t at = options_.fuse ? with_sibling(groups_, operands(n), v).group : kNoNode;
    if (at == kNoNode) at = groups_.add_group(i, g_.values[v].shape);
    groups_.add_copy(i, n.in[0], at, {.value = v});
  }

  // ---- elementwise operations ----------------------------------------------------------------------------

  void elementwise(std::size_t i) {
    const Graph::Node& n = g_.nodes[i];
    const ValueId v = n.out[0];
    if (is_dead(v)) return;
    Placement at;
    if (options_.fuse) at = in_a_reader(v);
    if (options_.fuse && !at) at = with_sibling(groups_, operands(n), v);
    if (!at) at = in_new_group(i, g_.values[v].shape);
    for (;;) {
      groups_.read_operands(at.group, groups_.add(i, v, at));
      if (!at.in_parts) return;
      const std::vector<Groups::Use>& uses = groups_.uses(v);
      const auto left = std::find_if(uses.begin(), uses.end(), [&](const Groups::Use& u) {
        return u.group == at.group && groups_.operand(u).expression < 0;
      });
      if (left == uses.end()) return;
      at.map = groups_.operand(*left).map;
      at.region = whole_box(groups_[at.group].domain.extents());
    }
  }

  Placement in_a_reader(ValueId v) {
    Placement at = in_earliest_reader(groups_, v);
    if (!at) return refused(v, std::move(at));
    Group& group = groups_[at.group];
    if (rows_behind_[v] && !group.domain.has_rows())
      if (const std::optional<int> axis = first_axis_of_rows(group, at.map, rows_behind_[v])) group.declare_rows(*axis);
    return refused(v, unless_costly(groups_, v, std::move(at), options_.guard));
  }

  // ---- reductions ----------------------------------------------------------------------------------------

  /// Puts a reduction in the group that reads its result: the rows of the group's domain are reduced.
  void reduction(std::size_t i) {
    const Graph::Node& n = g_.nodes[i];
    const ValueId v = n.out[0];
    if (is_dead(v)) return;
    Placement at = refused(v, in_earliest_reader(groups_, v));
    std::optional<IndexMap> map;
    if (at && take_rows(n, at)) map = map_of_rows(n, at);
    if (!map) {
      at = in_group_of_rows(i);
      if (!at) return reduction_across(i);
      map = map_of_rows(n, at);
      if (!map) return reduction_across(i);
    }
    reduce(i, at, *map);
  }

  void reduce(std::size_t i, const Placement& at, const IndexMap& operand) {
    const int e = groups_.add(i, g_.nodes[i].out[0], at);
    groups_[at.group].expressions[static_cast<std::size_t>(e)].reduces = true;
    groups_.read(at.group, e, g_.nodes[i].in[0], operand);
  }

  /// Gives the group that reads a reduction its rows; returns false if it cannot have them.
  bool take_rows(const Graph::Node& n, Placement& at) {
    Group& group = groups_[at.group];
    const RowsInReader rows = rows_in_reader(groups_, n, at);
    if (rows.how == RowsInReader::How::not_at_all) groups_.refuse(n.out[0], rows.refusal);
    if (rows.how == RowsInReader::How::declared) group.declare_rows(rows.first_axis);
    if (rows.how == RowsInReader::How::appended) append_rows(group, rows_of(g_, n).elements, at);
    return rows.how != RowsInReader::How::not_at_all;
  }
  static void append_rows(Group& group, std::int64_t elements, Placement& at) {
    group.domain.append(elements, followers_of(group, at));
    for (Expression& e : group.expressions) e.of_rows = true;
  }
  static Followers followers_of(Group& group, Placement& at) {
    Followers all = group.followers();
    all.maps.push_back(&at.map);
    all.boxes.push_back(&at.region);
    return all;
  }

  /// Returns a placement in a new group, for the operand of the reduction.
  Placement in_group_of_rows(std::size_t i) {
    const Graph::Node& n = g_.nodes[i];
    const RowsOfReduction rows = rows_of(g_, n);
    const Shape& results = g_.values[n.out[0]].shape;
    // The map for many axes may need more than the maximum rank.
    if (!rows.same_dtype || !rows.fit() || results.rank() + g_.values[n.in[0]].shape.rank() > Shape::kMaxRank)
      return {};
    Placement at = in_new_group(i, results);
    append_rows(groups_[at.group], rows.elements, at);
    return at;
  }

  /// Returns the map of a reduction's operand, which runs over all of the domain: the result's place on the outer axes,
  /// then the row.
  std::optional<IndexMap> map_of_rows(const Graph::Node& n, Placement& at) {
    Group& group = groups_[at.group];
    IndexMap whole = at.map;
    for (int k = group.domain.outer(); k < group.domain.extents().rank(); ++k) {
      whole.axis[k] = whole.shape.rank();
      whole.coefficient[k] = 1;
      whole.shape.push_back(group.domain.extents()[k]);
      whole.offset.push_back(0);
    }
    return through_reshape(group.domain, followers_of(group, at), whole, g_.values[n.in[0]].shape);
  }

  /// Places a reduction of the first axes, or of rows too long for a tile: it ends the kernel that computes its
  /// operand.
  void reduction_across(std::size_t i) {
    const Graph::Node& n = g_.nodes[i];
    const ValueId v = n.out[0];
    const Spec& operand = g_.values[n.in[0]];
    const Shape axes = n.attrs.as<ReductionAttrs>().axes;
    const Graph::Node* const maker = groups_.view().node_of(groups_.view().root(n.in[0]));
    if (!maker || !is_elementwise(*maker->op) || !n.op->row_reduction(operand.dtype)) return alone(i);
    const bool last = g_.values[v].shape.numel() == 1 || are_from(axes, operand.shape.rank() - axes.rank());
    const std::int64_t elements = operand.shape.numel() / g_.values[v].shape.numel();
    if ((!last && !are_from(axes, 0)) || elements < 2) {
      groups_.refuse(v, "it reduces neither the first axes nor the last; what it reads is written for it");
      return alone(i);
    }
    Placement at = in_new_group(i, operand.shape);
    at.map = map_of_result(operand.shape, g_.values[v].shape, axes);
    groups_[at.group].across = last ? Across::long_rows : Across::columns;
    groups_[at.group].across_elements = elements;
    reduce(i, at, IndexMap(groups_[at.group].root));
  }

  const Graph& g_;
  const FusionOptions& options_;
  std::vector<std::int64_t> rows_behind_;  ///< by value: see find_rows
  Partition partition_;
  Groups& groups_;
};

}  // namespace

Fused fuse(const Graph& g, const FusionOptions& options) {
  const GraphView view(g);
  Partition partition = FusionWalk(view, options).run();
  const Groups& groups = partition.groups;
  Outputs outputs = outputs_in_place(groups, options.fuse);
  std::vector<Task> tasks;
  for (const std::size_t node : partition.alone) tasks.push_back({node});
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (!outputs[k].empty()) tasks.push_back({groups[k].position, static_cast<int>(k)});
  std::ranges::stable_sort(tasks, {}, &Task::position);
  Schedule schedule{std::move(tasks), groups.refusals()};
  if (options.fuse) schedule = with_products(groups, std::move(schedule));
  Fused fused{{}, std::move(schedule.tasks), std::move(schedule.refusals), groups.windows()};
  fused.groups = std::move(partition.groups).take();
  for (std::size_t k = 0; k < outputs.size(); ++k) fused.groups[k].outputs = std::move(outputs[k]);
  return fused;
}

}  // namespace ferrite::detail
