/// What groups write to memory, parts of concatenations where they belong.
#include <algorithm>

#include "ferrite/compile/fuse/detail/fused_schedule.h"

namespace ferrite::detail {
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

  /// Whether the group that computes what `copy` copies writes it in its place from now on.
  bool moved(const GroupOutput& output, const Expression& copy) {
    if (copy.node || copy.operands.size() != 1) return false;
    const GroupOperand& part = copy.operands[0];
    const ValueId v = part.value;
    if (part.expression >= 0 || !part.fills.empty() || maker_[v] == kNoNode || groups_.is_stored(v)) return false;
    // Only as it stands: the window's axes are those of the value.
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

}  // namespace

Outputs outputs_in_place(const Groups& groups, bool fuse) { return PartsInPlace(groups).run(fuse); }

}  // namespace ferrite::detail
