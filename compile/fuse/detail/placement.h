#pragma once
/// Where the result of an operation may be computed: inside a group that reads it, or in a sibling that reads its
/// operands.
#include "ferrite/compile/fuse/detail/groups.h"

namespace ferrite::detail {

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
