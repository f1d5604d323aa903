#pragma once
/// The stages of a scan: when each operation of its body runs (once, for a chunk of steps before they run or after, or
/// in the step), and one stage written as a graph of its own.
#include <functional>
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

/// Whether an operation can act on many steps at once: those of its operands that differ from step to step then have a
/// leading axis of steps, and so have its results.
bool can_stack(const Graph& g, const Graph::Node& n, const std::function<bool(ValueId)>& differs);

/// Writes one stage of a scan: the nodes that run in it, as far as somebody reads their results.
class StageWriter {
 public:
  /// `runs`: whether a node may run here. `outside`: the place of a value from elsewhere.
  StageWriter(const GraphView& view, std::function<bool(std::size_t)> runs, std::function<ScanPlace(ValueId)> outside)
      : view_(view), g_(view.graph()), runs_(std::move(runs)), outside_(std::move(outside)) {}

  /// A value that goes to a place.
  void give(ValueId v, const ScanPlace& to) { outs_.push_back({v, to}); }
  /// For one step (chunk = 0), or for a chunk of steps: then what `differs` has a leading axis.
  ScanStage write(std::int64_t chunk, const std::function<bool(ValueId)>& differs);

 private:
  struct Out {
    ValueId value;
    ScanPlace to;
  };
  void add_outsiders();
  void add(const Graph::Node& n);
  void stack(const Graph::Node& n);
  ValueId view(const Primitive& op, const Shape& shape, ValueId v);
  ValueId widened(ValueId v, int rank);
  Spec stacked(const Spec& s) const;

  const GraphView& view_;
  const Graph& g_;
  std::function<bool(std::size_t)> runs_;
  std::function<ScanPlace(ValueId)> outside_;
  std::function<bool(ValueId)> differs_;
  std::int64_t chunk_ = 0;
  std::vector<Out> outs_;
  std::vector<char> needed_;  ///< by value
  std::vector<ValueId> local_;
  Scope scope_{};  ///< of the node that is written
  ScanStage stage_;
};

}  // namespace ferrite::detail
