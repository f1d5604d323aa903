#pragma once
/// When each operation of a scan's body runs: once, for a chunk of steps before they run or after, or in the step.
#include <vector>

#include "ferrite/compile/graph/view.h"
#include "ferrite/compile/scan/detail/scan_parts.h"

namespace ferrite::detail {

/// A term of a sum over all steps: a^T b of values of one step, or the rows of b.
struct SumTerm {
  std::size_t sum = 0;
  ValueId a = kNoValue;  ///< kNoValue: the rows of b
  ValueId b = 0;
};

/// A body, with views added that its terms read.
struct SummedBody {
  Graph graph;
  std::vector<SumTerm> terms;
};
SummedBody find_terms(const Graph& body, const ScanSignature& s);

enum class When : std::uint8_t { once, before, step, after, anywhere };

/// What the values of a body depend on, and what they are views of.
class BodyValues {
 public:
  BodyValues(const GraphView& view, const ScanSignature& s);

  const GraphView& view() const { return view_; }
  /// Whether a value differs from step to step.
  bool differs(ValueId v) const { return depends_[v] != 0; }
  /// Whether it does so because of the xs alone.
  bool is_of_xs(ValueId v) const { return depends_[v] == kOnX; }
  bool is_input(ValueId v) const { return view_.producer(v) == kNoNode; }
  bool is_carry(ValueId v) const { return is_input(v) && depends_[v] == kOnCarry; }
  /// The place of an input.
  const ScanPlace& input(ValueId v) const { return inputs_[v]; }

  /// By node: anywhere for views and values made of none, which cost nothing; once for what is the same in all steps;
  /// else step.
  const std::vector<When>& when() const { return when_; }
  /// The node that computes what v is a view of; kNoNode for an input or a constant.
  std::size_t source(ValueId v) const;
  /// Whether a node can act on many steps at once.
  bool can_stack(std::size_t node) const;
  /// Whether the views between v and its source can.
  bool views_stack(ValueId v) const;

 private:
  static constexpr char kOnCarry = 1, kOnX = 2;
  const GraphView& view_;
  std::vector<char> depends_;      ///< by value
  std::vector<ScanPlace> inputs_;  ///< by value
  std::vector<When> when_;
};

struct Stages {
  std::vector<When> when;        ///< by node
  std::vector<char> before_too;  ///< by node: what `before` may compute, cheap operations for its own use
};
Stages choose_stages(const BodyValues& body, const ScanSignature& s, const std::vector<SumTerm>& terms);

}  // namespace ferrite::detail
