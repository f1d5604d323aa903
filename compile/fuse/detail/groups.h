#pragma once
/// Groups while they grow: what each computes, and who reads a value.
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

}  // namespace ferrite::detail
