#pragma once
/// Decides which operations of a graph run together: groups of elementwise operations with the views between them, and
/// operations that run alone, in an order in which everything is computed before it is read.
#include <deque>
#include <string>
#include <vector>

#include "ferrite/compile/fuse/index_map.h"
#include "ferrite/compile/graph.h"
#include "ferrite/compile/graph_view.h"

namespace ferrite::detail {

/// A value that replaces the elements outside a box, as a padding does with the expression that it pads.
struct Fill {
  Box box;
  Scalar value;
};

/// The operand of an expression: a value in memory or the result of another expression of its group, read through a map
/// and paddings; or a literal.
struct GroupOperand {
  ValueId value = kNoValue;  ///< kNoValue: the operand is the literal
  IndexMap map{};
  Box region{};               ///< where its value matters; inside, all indices of the map lie within the value
  std::vector<Fill> fills{};  ///< innermost first; the region is the box of the first
  int expression = -1;        ///< index of the expression of this group that computes it; -1: in memory
  Scalar literal{};
};

/// One operation inside a group, or a plain copy of its operand (without a node).
struct Expression {
  const Graph::Node* node = nullptr;
  std::size_t order = 0;  ///< position of the node in the graph: operands first
  Dtype dtype = Dtype::f32;
  IndexMap map{};        ///< from the group's domain to the value's indices
  Box region{};          ///< the part of the domain where its value matters
  bool of_rows = false;  ///< has one element for each row of the domain
  bool reduces = false;  ///< the node is a reduction of rows
  InlineVector<GroupOperand, 3> operands{};
};

/// A result of a group that is written to memory: a whole value, or a window on one (a part of a concatenation).
struct GroupOutput {
  int expression = 0;
  ValueId value = 0;
  bool window = false;
  Layout layout{};  ///< of the window, for each axis of the expression's value
};

/// Reductions that no tile holds whole: of the first axes (columns), or of rows too long for a tile.
enum class Across : std::uint8_t { none, columns, long_rows };

/// A fusion group: expressions over one domain, which become one fused kernel.
struct Group {
  explicit Group(const Shape& extents) : domain(extents) {}
  std::size_t position = 0;  ///< position in the graph of the node in whose place the group runs
  Domain domain;
  IndexMap root{};  ///< map of a value that fills the domain
  std::deque<Expression> expressions;
  std::vector<GroupOutput> outputs;
  int loads = 0;
  Across across = Across::none;
  std::int64_t across_elements = 0;  ///< elements that each result is reduced from

  /// Returns all maps and boxes that are expressed in the axes of the domain.
  Followers followers();
  /// Makes the axes from `first_axis` on the rows of the domain.
  void declare_rows(int first_axis);
};

/// A unit of work in the order of execution: a group, or a node that runs alone.
struct Task {
  std::size_t position = 0;  ///< of the node, or of the last node of the group
  int group = -1;            ///< index into `groups`; -1: the node runs alone, through its record's `eval`
  /// The group's matrix products that nothing else reads, in the order of its rows. They run with it, a few rows at a
  /// time.
  std::vector<std::size_t> products{};
};

/// A window on a value that is in memory.
struct Window {
  ValueId base = kNoValue;
  Shape strides;
  std::int64_t offset = 0;
};

/// The groups of a graph and the order in which they and the other operations run.
struct Fused {
  std::deque<Group> groups;
  std::vector<Task> tasks;
  std::vector<std::string> refusals;  ///< what was not fused, and why
  std::vector<Window> windows;        ///< by value: the window through which operations that run alone see it
};

/// Options of `fuse`, taken from PlanOptions.
struct FusionOptions {
  bool fuse = true;   ///< if off, every operation is a group by itself
  bool guard = true;  ///< if off, values are computed wherever they are read, however often
};

/// Decides which operations run together. The graph must be simplified; its outputs and written values must be results
/// of nodes that are neither views nor paddings (see `materialize_ends`).
Fused fuse(const Graph& g, const FusionOptions& options);

/// Adds a copy of every output of the graph, and of every value written to a variable, that is an input, a constant, a
/// view or a padding: `fuse` needs a node that computes it.
void materialize_ends(Graph& g);
/// Moves copies and concatenations right after what they copy, so that the kernel that computes it can write it twice.
void move_copies_up(Graph& g);

/// Returns which expressions the results of a group depend on, by index.
std::vector<char> live_expressions(const Group& group);

/// Returns whether an operation acts on one element at a time, so that it may be part of a group.
bool is_elementwise(const Primitive& op);
/// Returns the kernel of an elementwise node for the dtype of its operands.
Block block_of(const Graph& g, const Graph::Node& n);

/// Returns whether a map runs through its value in row-major order, each element once, along the first `axes` axes.
bool is_dense(const IndexMap& map, const Shape& extents, int axes);

/// Adds up sums of products, such as the gradient of a weight that every step reads, in place: each product becomes an
/// `add_product` of two operands and the sum so far. Otherwise all products would live until one kernel adds them up.
void accumulate_products(Graph& g);

/// Copies a transposed right operand that several products of few rows read, once, into the order in which they read
/// it.
void copy_transposed_operands(Graph& g);

/// Returns whether an operation is a matrix product, added to something or not.
bool is_product(const Primitive& op);

}  // namespace ferrite::detail
