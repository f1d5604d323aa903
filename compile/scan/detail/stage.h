#pragma once
/// One stage of a scan, written as a graph of its own.
#include <functional>

#include "ferrite/compile/graph/view.h"
#include "ferrite/compile/scan/detail/scan_parts.h"

namespace ferrite::detail {

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
