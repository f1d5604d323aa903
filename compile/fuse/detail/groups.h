#pragma once
/// Groups while they grow: what each computes, who reads a value, and where the result of an operation may be computed:
/// inside a group that reads it, or in a sibling that reads its operands.
#include <deque>

#include "ferrite/compile/fuse/fusion.h"

namespace ferrite::detail {

/// A place where a value may be computed, or the reason why there is none.
struct Placement {
  std::size_t group = kNoNode;
  IndexMap map{};
  Box region{};
  bool store = false;     ///< it is also read from memory
  bool in_parts = false;  ///< read through several views that together read each element at most once
  std::string refusal{};  ///< why it has no placement
  explicit operator bool() const { return group != kNoNode; }
};

/// The groups of a graph whose nodes are visited backwards, so that every reader of a value is known before the value
/// itself is placed.
class Groups {
 public:
  /// A place inside a group where a value is read.
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
  /// Returns the groups that read or compute a value, in the order in which they were added.
  const std::vector<std::size_t>& users(ValueId v) const { return users_[v]; }
  /// Returns the first operation that runs alone and reads a value from memory; kNoNode if there is none.
  std::size_t first_alone(ValueId v) const { return first_alone_[v]; }
  /// Returns whether a value is needed in memory, whatever groups read it.
  bool is_stored(ValueId v) const { return view_.is_end(v) || first_alone_[v] != kNoNode; }
  bool is_read(ValueId v) const { return is_stored(v) || !uses_[v].empty() || must_copy_[v]; }
  /// Returns whether a view must be in memory, because a reader cannot follow it.
  bool must_copy(ValueId v) const { return must_copy_[v]; }
  bool is_empty(ValueId v) const { return view_.spec(v).shape.numel() == 0; }
  /// Returns the position of the first reader of a value.
  std::size_t earliest_use(ValueId v) const;

  // ---- growing -------------------------------------------------------------------------------------------

  std::size_t add_group(std::size_t position, const Shape& extents);
  /// Adds a node's result, computed at a placement; returns the index of its expression, which has no operands yet.
  int add(std::size_t node, ValueId v, const Placement& at);
  /// Adds a plain copy over all of a group's domain as an expression, and `output` as the output of that expression.
  void add_copy(std::size_t node, ValueId source, std::size_t group, GroupOutput output);
  /// Reads the operands of an expression's node, in the order of its kernel: tensors, and literals from its constants.
  void read_operands(std::size_t group, int expression);
  /// Adds v, read through a map, to an expression's operands, following v's views to a value that is in memory or
  /// computed.
  void read(std::size_t group, int expression, ValueId v, const IndexMap& map);
  /// Copies a view in a separate group. Returns false, and does nothing, when it has more axes than a kernel can have.
  bool copy_view(std::size_t node, ValueId v);
  /// Reads the operands of a node that runs alone, from the nearest values in memory that have windows for it.
  void read_alone(std::size_t node);
  void refuse(ValueId v, const std::string& why);

  // ---- results -------------------------------------------------------------------------------------------

  const std::vector<Window>& windows() const { return windows_; }
  const std::vector<std::string>& refusals() const { return refusals_; }
  /// Returns the groups themselves, and ends this object.
  std::deque<Group> take() && { return std::move(groups_); }

 private:
  bool follow_view(Group& group, GroupOperand& o);
  bool copied(ValueId v, const char* why);
  const Window& window_of(ValueId v);

  const GraphView& view_;
  std::deque<Group> groups_;
  std::vector<std::vector<Use>> uses_;           ///< by value: where groups read it
  std::vector<std::vector<std::size_t>> users_;  ///< by value: groups that read or compute it
  std::vector<std::size_t> first_alone_;         ///< by value: see `first_alone`
  std::vector<char> must_copy_;                  ///< by value: see `must_copy`
  std::vector<Window> windows_;                  ///< by value: the window that operations that run alone see
  std::vector<std::string> refusals_;            ///< what was not fused, and why
};

/// Returns why a value is not fused, in the words of reports.
std::string refusal(const GraphView& view, ValueId v, const std::string& why);

// ---- placement --------------------------------------------------------------------------------------------

/// Places v in the earliest group that reads it, if v can be computed there at all: in time, and in one order. That
/// keeps the order of groups free of cycles without any search.
Placement in_earliest_reader(const Groups& groups, ValueId v);
/// Confirms the placement `at` of an elementwise result, unless the group's order does not suit v or computing it so
/// often would cost more than writing and reading it (`guard`).
Placement unless_costly(const Groups& groups, ValueId v, Placement at, bool guard);
/// Places v in a group of v's shape that reads what an operand is or is a view of, and that runs before v is read.
Placement with_sibling(const Groups& groups, std::span<const ValueId> operands, ValueId v);
/// Returns a group of that shape that reads or computes what the operand is a view of and runs before node `until`;
/// kNoNode if there is none.
std::size_t sibling_of(const Groups& groups, ValueId operand, const Shape& shape, std::size_t until);

// ---- rows that are reduced -----------------------------------------------------------------------------

/// A reduction of the last axes of its operand, whose rows may fit into a tile.
struct RowsOfReduction {
  bool last_axes = false;     ///< it reduces the last axes
  bool same_dtype = false;    ///< its kernel takes rows of the operand's dtype
  std::int64_t elements = 0;  ///< elements of a row
  bool fit() const;
};
/// Returns the rows that a reduction node reduces.
RowsOfReduction rows_of(const Graph& g, const Graph::Node& n);

/// Returns, by value, the number of elements of the rows that the value was reduced from, as long as operations keep
/// one element for each row; 0 for none.
std::vector<std::int64_t> find_rows(const Graph& g);

/// Returns the first axis of a group's domain such that the axes from it on are rows of `elements` elements and the map
/// of a value that is read there moves only along the axes before it, in order.
std::optional<int> first_axis_of_rows(const Group& group, const IndexMap& map, std::int64_t elements);

/// How the group that reads a reduction gets the rows that are reduced.
struct RowsInReader {
  enum class How : std::uint8_t { not_at_all, as_they_are, declared, appended };
  How how = How::not_at_all;
  int first_axis = 0;     ///< declared: the first axis of the rows
  std::string refusal{};  ///< not at all: the reason
};
/// Returns how the group at placement `at`, which reads the reduction n, gets its rows.
RowsInReader rows_in_reader(const Groups& groups, const Graph::Node& n, const Placement& at);

}  // namespace ferrite::detail
