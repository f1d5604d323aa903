#pragma once
/// The stages of a scan's body: each operation runs once, in the step, or for a chunk of steps before or after they
/// run; each stage is written as a separate graph.
#include <functional>
#include <vector>

#include "ferrite/compile/graph_view.h"
#include "ferrite/compile/scan_body.h"

namespace ferrite::detail {

// ---- the parts --------------------------------------------------------------------------------------------

/// The place of a value while a scan runs.
struct ScanPlace {
  enum class Kind : std::uint8_t {
    carry,
    x,        ///< a stack among the operands
    capture,  ///< the same in all steps, from outside
    once,     ///< the same in all steps, computed before the first
    chunk,    ///< a stack of the steps of one chunk
    y,        ///< a stack among the results
  };
  Kind kind = Kind::carry;
  std::size_t index = 0;
};

/// A graph with the places of its inputs and outputs.
struct ScanStage {
  Graph graph;
  std::vector<ScanPlace> in, out;
  /// Returns whether nothing runs in this stage: it has no results, and no operation that may refuse values.
  bool empty() const { return graph.outputs.empty() && graph.nodes.empty(); }
};

/// A term of a sum over all steps, as a sum over rows: a^T b of [rows, a], [rows, b], or the rows b themselves.
struct ScanTerm {
  std::size_t sum = 0;
  Dtype dtype{};
  std::int64_t rows = 1;  ///< rows of one step
  std::int64_t a_width = 0;
  std::int64_t b_width = 0;
  ScanPlace a{}, b{};
};

/// The stages of a body. `before` and `after` act on a chunk of steps at once: all their values have a leading axis.
struct ScanParts {
  ScanStage once;    ///< operations that depend on captures alone
  ScanStage before;  ///< products with the xs, and operations that follow from them
  ScanStage step;    ///< operations that depend on the carries
  ScanStage after;   ///< products that no carry waits for
  std::vector<ScanTerm> terms;
  /// Stacks of the carries that the steps read: index of the carry, place of its stack.
  std::vector<std::pair<std::size_t, ScanPlace>> carried;
  std::vector<Spec> chunks;  ///< the type of one step of each value with place `chunk`
};

/// Takes a body apart for chunks of `chunk` steps. 0 means that the caller has one step at a time: `before` and `after`
/// are empty and `step` does their work. Otherwise the stages do not depend on `chunk`, except for the extents of
/// leading axes.
ScanParts take_apart(const ScanBody& body, std::int64_t chunk);

// ---- how they are found -----------------------------------------------------------------------------------

/// A term of a sum over all steps: a^T b of values of one step, or the rows of b.
struct SumTerm {
  std::size_t sum = 0;
  ValueId a = kNoValue;  ///< kNoValue: the term is the rows of b
  ValueId b = 0;
};

/// A body, with the views added that its terms read.
struct SummedBody {
  Graph graph;
  std::vector<SumTerm> terms;
};
/// Returns a body with the terms of its sums.
SummedBody find_terms(const Graph& body, const ScanSignature& s);

enum class When : std::uint8_t { once, before, step, after, anywhere };

/// What the values of a body depend on, and what they are views of.
class BodyValues {
 public:
  BodyValues(const GraphView& view, const ScanSignature& s);

  const GraphView& view() const { return view_; }
  /// Returns whether a value differs from step to step.
  bool differs(ValueId v) const { return depends_[v] != 0; }
  /// Returns whether a value differs from step to step because of the xs alone.
  bool is_of_xs(ValueId v) const { return depends_[v] == kOnX; }
  bool is_input(ValueId v) const { return view_.producer(v) == kNoNode; }
  bool is_carry(ValueId v) const { return is_input(v) && depends_[v] == kOnCarry; }
  /// Returns the place of an input.
  const ScanPlace& input(ValueId v) const { return inputs_[v]; }

  /// Returns, by node, when it may run: `anywhere` for views and values made from no operand, which cost nothing;
  /// `once` for values that are the same in all steps; otherwise `step`.
  const std::vector<When>& when() const { return when_; }
  /// Returns the node that computes the value that v is a view of; kNoNode for an input or a constant.
  std::size_t source(ValueId v) const;
  /// Returns whether a node can act on many steps at once.
  bool can_stack(std::size_t node) const;
  /// Returns whether the views between v and its source can act on many steps at once.
  bool views_stack(ValueId v) const;

 private:
  static constexpr char kOnCarry = 1, kOnX = 2;
  const GraphView& view_;
  std::vector<char> depends_;      ///< by value: kOnCarry and kOnX
  std::vector<ScanPlace> inputs_;  ///< by value: the place of an input
  std::vector<When> when_;
};

/// The stage in which each node of a body runs.
struct Stages {
  std::vector<When> when;        ///< by node: the stage that it runs in
  std::vector<char> before_too;  ///< by node: cheap operations that `before` may compute, too, for its own use
};
/// Chooses the stage of every node: what can leave the step does.
Stages choose_stages(const BodyValues& body, const ScanSignature& s, const std::vector<SumTerm>& terms);

/// Returns whether an operation can act on many steps at once: then those of its operands that differ from step to step
/// have a leading axis of steps, and so do its results.
bool can_stack(const Graph& g, const Graph::Node& n, const std::function<bool(ValueId)>& differs);

/// Writes one stage of a scan: the nodes that run in it and whose results are read.
class StageWriter {
 public:
  /// Writes a stage of the graph of `view`. `runs` returns whether a node may run in it, `outside` the place of a value
  /// that is computed elsewhere.
  StageWriter(const GraphView& view, std::function<bool(std::size_t)> runs, std::function<ScanPlace(ValueId)> outside)
      : view_(view), g_(view.graph()), runs_(std::move(runs)), outside_(std::move(outside)) {}

  /// Adds the value v to the results of the stage, stored in the place `to`.
  void give(ValueId v, const ScanPlace& to) { outs_.push_back({v, to}); }
  /// Writes the stage for one step (chunk = 0), or for a chunk of steps, in which the values for which `differs` holds
  /// have a leading axis.
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
  std::vector<char> needed_;  ///< by value: read in this stage
  std::vector<ValueId> local_;
  Scope scope_{};  ///< layer of the node that is being written
  ScanStage stage_;
};

}  // namespace ferrite::detail
