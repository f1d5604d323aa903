#pragma once
/// Groups while they grow: what each computes, who reads a value, and where the result of an operation may be computed:
/// inside a group that reads it, or in a sibling that reads its operands.
#include <deque>

#include "ferrite/compile/fuse/fusion.h"

namespace ferrite::detail {

/// Where a value may be computed, or why it may not.
struct Placement {
  std::size_t group = kNoNode;
  IndexMap map{};
  Box region{};
  bool store = false;     ///< somebody else reads it from memory
  bool in_parts = false;  ///< through several views that together read each element at most once
  std::string refusal{};  ///< why not
  explicit operator bool() const { return group != kNoNode; }
};

/// Groups of a graph whose nodes are visited backwards, so that every reader of a value is known before the value
/// itself is placed.
class Groups {
 public:
  /// A read inside a group.
  struct Use {
    std::size_t group;
    int expression;
    std::size_t operand;
  };

  explicit Groups(const GraphView& view);

  const GraphView& view() const { return view_; }
  std::size_t size() const { return groups_.size(); }
  const Group& operator[](std::size_t at) const { return groups_[at]; }
  Group& operator[](std::size_t at) { return groups_[at]; }

  // ---- readers -------------------------------------------------------------------------------------------

  const std::vector<Use>& uses(ValueId v) const { return uses_[v]; }
  const GroupOperand& operand(const Use& u) const {
    return groups_[u.group].expressions[static_cast<std::size_t>(u.expression)].operands[u.operand];
  }
  /// The groups that read a value or compute it, in the order in which they came to.
  const std::vector<std::size_t>& users(ValueId v) const { return users_[v]; }
  /// The first operation that runs alone and reads a value from memory; kNoNode where none does.
  std::size_t first_alone(ValueId v) const { return first_alone_[v]; }
  /// Whether a value is needed in memory, whatever groups read it.
  bool is_stored(ValueId v) const { return view_.is_end(v) || first_alone_[v] != kNoNode; }
  bool is_read(ValueId v) const { return is_stored(v) || !uses_[v].empty() || must_copy_[v]; }
  /// Whether a view must be in memory: a reader of it cannot follow it.
  bool must_copy(ValueId v) const { return must_copy_[v]; }
  bool is_empty(ValueId v) const { return view_.spec(v).shape.numel() == 0; }
  /// The position of the first reader.
  std::size_t earliest_use(ValueId v) const;

  // ---- growing -------------------------------------------------------------------------------------------

  std::size_t add_group(std::size_t position, const Shape& extents);
  /// A node's result, computed where a placement says; gives the number of its expression, which has no operands yet.
  int add(std::size_t node, ValueId v, const Placement& at);
  /// A plain copy over all of a group's domain, and its output, whose expression it is.
  void add_copy(std::size_t node, ValueId source, std::size_t group, GroupOutput output);
  /// The operands of an expression's node, in the order of its kernel: tensors, and literals from its constants.
  void read_operands(std::size_t group, int expression);
  /// An operand of an expression: v through a map, from what must be in memory or is computed behind its views.
  void read(std::size_t group, int expression, ValueId v, const IndexMap& map);
  /// Copies a view in a group of its own; false, and nothing done, where it has more axes than a kernel.
  bool copy_view(std::size_t node, ValueId v);
  /// The operands of a node that runs alone, from the nearest values in memory that have windows for it.
  void read_alone(std::size_t node);
  void refuse(ValueId v, const std::string& why);

  // ---- what has become of them ---------------------------------------------------------------------------

  const std::vector<Window>& windows() const { return windows_; }
  const std::vector<std::string>& refusals() const { return refusals_; }
  /// The groups themselves: the end of this.
  std::deque<Group> take() && { return std::move(groups_); }

 private:
  bool follow_view(Group& group, GroupOperand& o);
  bool copied(ValueId v, const char* why);
  const Window& window_of(ValueId v);

  const GraphView& view_;
  std::deque<Group> groups_;
  std::vector<std::vector<Use>> uses_;           ///< by value
  std::vector<std::vector<std::size_t>> users_;  ///< by value
  std::vector<std::size_t> first_alone_;         ///< by value
  std::vector<char> must_copy_;                  ///< by value
  std::vector<Window> windows_;                  ///< by value: how operations that run alone see it
  std::vector<std::string> refusals_;            ///< what was not fused, and why
};

/// Why a value is not fused, as reports have it.
std::string refusal(const GraphView& view, ValueId v, const std::string& why);

// ---- placement --------------------------------------------------------------------------------------------

/// In the earliest group that reads v, if v can be computed there at all: in time, and in one order. That keeps the
/// order of groups free of cycles without any search.
Placement in_earliest_reader(const Groups& groups, ValueId v);
/// The same placement of an elementwise result, unless the group's order does not suit v or computing it so often would
/// cost more than writing and reading it (`guard`).
Placement unless_costly(const Groups& groups, ValueId v, Placement at, bool guard);
/// In a group of that shape that reads what one of the operands is or is a view of, and runs before v is read.
Placement with_sibling(const Groups& groups, std::span<const ValueId> operands, ValueId v);
/// Such a group for one operand, running before node `until`; kNoNode where there is none.
std::size_t sibling_of(const Groups& groups, ValueId operand, const Shape& shape, std::size_t until);

// ---- rows that are reduced -----------------------------------------------------------------------------

/// A reduction of the last axes of its operand, whose rows may fit into a tile.
struct RowsOfReduction {
  bool last_axes = false;     ///< it reduces these
  bool same_dtype = false;    ///< its kernel takes rows of the operand's dtype
  std::int64_t elements = 0;  ///< of a row
  bool fit() const;
};
RowsOfReduction rows_of(const Graph& g, const Graph::Node& n);

/// By value: elements of the rows that it was reduced from, as far as operations have one element for each row; 0:
/// none.
std::vector<std::int64_t> find_rows(const Graph& g);

/// The axis from which on the axes of a group's domain are rows of so many elements, if the map of a value that is read
/// there moves along the axes before it only, in order.
std::optional<int> first_axis_of_rows(const Group& group, const IndexMap& map, std::int64_t elements);

/// How the group that reads a reduction comes to have the rows that are reduced.
struct RowsInReader {
  enum class How : std::uint8_t { not_at_all, as_they_are, declared, appended };
  How how = How::not_at_all;
  int first_axis = 0;     ///< declared: of the rows
  std::string refusal{};  ///< not at all: why
};
RowsInReader rows_in_reader(const Groups& groups, const Graph::Node& n, const Placement& at);

}  // namespace ferrite::detail
