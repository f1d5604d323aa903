#pragma once
/// The body of a scan partitioned into stages: when each operation runs (once, for a chunk of steps before they run or
/// after, or in the step), and one stage written as a graph of its own.
#include <functional>
#include <vector>

#include "ferrite/compile/graph/view.h"
#include "ferrite/compile/scan_body.h"

namespace ferrite::detail {

// ---- the parts --------------------------------------------------------------------------------------------

/// Where a value stands while a scan runs.
struct ScanPlace {
  enum class Kind : std::uint8_t {
    carry,
    x,        ///< a stack that came in
    capture,  ///< the same in all steps, from outside
    once,     ///< the same in all steps, computed before the first
    chunk,    ///< of every step in a chunk of steps
    y,        ///< a stack that goes out
  };
  Kind kind = Kind::carry;
  std::size_t index = 0;
};

/// A graph with the places of its inputs and outputs.
struct ScanStage {
  Graph graph;
  std::vector<ScanPlace> in, out;
  /// Nothing runs in it: no value goes out, and none is refused.
  bool empty() const { return graph.outputs.empty() && graph.nodes.empty(); }
};

/// A term of a sum over all steps, as sums over rows: a^T b of [rows, a], [rows, b], or the rows b themselves.
struct ScanTerm {
  std::size_t sum = 0;
  Dtype dtype{};
  std::int64_t rows = 1;  ///< of one step
  std::int64_t a_width = 0;
  std::int64_t b_width = 0;
  ScanPlace a{}, b{};
};

/// A body taken apart. `before` and `after` act on a chunk of steps at once, all their values having a leading axis.
struct ScanParts {
  ScanStage once;    ///< what depends on captures alone
  ScanStage before;  ///< products with the xs, and what follows from them
  ScanStage step;    ///< what depends on the carries
  ScanStage after;   ///< products that no carry waits for
  std::vector<ScanTerm> terms;
  /// Stacks of carries as they come into the steps: which carry, where to.
  std::vector<std::pair<std::size_t, ScanPlace>> carried;
  std::vector<Spec> chunks;  ///< one step of each value that stands in chunks
};

/// For chunks of so many steps; 0: whoever runs it has one step at a time, so `before` and `after` are empty and `step`
/// does their work. Else the parts but for the extents of leading axes do not depend on that number.
ScanParts take_apart(const ScanBody& body, std::int64_t chunk);

// ---- how they are found -----------------------------------------------------------------------------------

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
