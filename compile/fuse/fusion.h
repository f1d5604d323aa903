#pragma once
/// Which operations of a graph run together: groups of elementwise operations with the views between them, and the
/// operations that run alone, in an order in which everything is computed before it is read.
#include <deque>
#include <string>
#include <vector>

#include "ferrite/compile/fuse/index_map.h"
#include "ferrite/compile/graph.h"
#include "ferrite/compile/graph/view.h"

namespace ferrite::detail {

/// Elements outside a box are replaced by a value: what a padding does to the expression it pads.
struct Fill {
  Box box;
  Scalar value;
};

/// What an expression reads: a value in memory or the result of another expression of its group, through a map and
/// paddings; or a literal.
struct GroupOperand {
  ValueId value = kNoValue;  ///< kNoValue: the literal
  IndexMap map{};
  Box region{};               ///< where it matters, and all indices of the map lie inside the value
  std::vector<Fill> fills{};  ///< innermost first; the region is the box of the first
  int expression = -1;        ///< where the value is computed in this group; -1: in memory
  Scalar literal{};
};

/// One operation inside a group, or a plain copy of its operand (no node).
struct Expression {
  const Graph::Node* node = nullptr;
  std::size_t order = 0;  ///< position of the node in the graph: operands first
  Dtype dtype = Dtype::f32;
  IndexMap map{};        ///< from the group's domain to the value's indices
  Box region{};          ///< where its value matters
  bool of_rows = false;  ///< one element for each row of the domain
  bool reduces = false;  ///< the node is a reduction of rows
  InlineVector<GroupOperand, 3> operands{};
};

/// A result of a group that goes to memory: all of a value, or a window on one (a part of a concatenation).
struct GroupOutput {
  int expression = 0;
  ValueId value = 0;
  bool window = false;
  Layout layout{};  ///< of the window, for each axis of the expression's value
};

/// Reductions that no tile holds whole: of the first axes, or of rows too long for a tile.
enum class Across : std::uint8_t { none, columns, long_rows };

struct Group {
  explicit Group(const Shape& extents) : domain(extents) {}
  std::size_t position = 0;  ///< runs where the node of this number stands
  Domain domain;
  IndexMap root{};  ///< of a value that fills the domain
  std::deque<Expression> expressions;
  std::vector<GroupOutput> outputs;
  int loads = 0;
  Across across = Across::none;
  std::int64_t across_elements = 0;  ///< that each result is reduced from

  /// All that is expressed in the axes of the domain.
  Followers followers();
  /// Makes the axes from this one on the rows of the domain.
  void declare_rows(int first_axis);
};

/// What runs, in order.
struct Task {
  std::size_t position = 0;  ///< of the node, or of the last one of the group
  int group = -1;            ///< index into `groups`; -1: the node runs alone, through its record's `eval`
  /// Of a group: matrix products that nothing else reads, in the order of its rows. They run with it, rows by rows.
  std::vector<std::size_t> products{};
};

/// A window on a value that is in memory.
struct Window {
  ValueId base = kNoValue;
  Shape strides;
  std::int64_t offset = 0;
};

struct Fused {
  std::deque<Group> groups;
  std::vector<Task> tasks;
  std::vector<std::string> refusals;  ///< what was not fused and why
  std::vector<Window> windows;        ///< by value: how operations that run alone see it
};

struct FusionOptions {
  bool fuse = true;   ///< off: every operation is a group of its own
  bool guard = true;  ///< off: values are computed wherever they are read, however often
};

/// Decides. The graph must be simplified; its outputs and written values must be results of nodes that are no views
/// (see `materialize_ends`).
Fused fuse(const Graph& g, const FusionOptions& options);

/// Puts a copy behind every output and written value that is an input, a constant or a view.
void materialize_ends(Graph& g);
/// Copies and concatenations stand right behind what they copy, so that the kernel that computes it can write it twice.
void move_copies_up(Graph& g);

/// Expressions that results of a group depend on, by number.
std::vector<char> live_expressions(const Group& group);

/// Whether an operation acts on one element at a time, so that it may be part of a group.
bool is_elementwise(const Primitive& op);
/// The kernel of such an operation for operands of that dtype.
Block block_of(const Graph& g, const Graph::Node& n);

/// Whether a map runs through its value in row-major order, each element once, along the first `axes` axes.
bool is_dense(const IndexMap& map, const Shape& extents, int axes);

/// A sum of products, as the gradient of a weight that every step reads, is added up in place, product by product:
/// `add_product` of two operands and the sum so far. Without it all products would live until one kernel
/// adds them up.
void accumulate_products(Graph& g);

/// A transposed right operand that several products of few rows read is copied once into the order in which they read
/// it.
void copy_transposed_operands(Graph& g);

/// Whether an operation is a product, added to something or not.
bool is_product(const Primitive& op);

}  // namespace ferrite::detail
